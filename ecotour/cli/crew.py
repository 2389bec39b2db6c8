"""The sinks of one run, in their order: what is written, drawn and shown of its events."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from ecotour.cli import process
from ecotour.cli.job import Job
from ecotour.contract import events
from ecotour.contract.events import Sink
from ecotour.errors import EcotourError
from ecotour.machine import environment
from ecotour.rundir.claim import RunDirectory


class Crew:
    """All sinks of a run. One that fails costs a warning, and never the run.

    Attributes:
        record: The record so far, in the form of ``run.json``.
    """

    def __init__(self, job: Job, directory: RunDirectory) -> None:
        """Gather them for a run in ``directory``, and write its first record.

        Raises:
            EcotourError: One that was asked for cannot be had, or the record cannot be written.
        """
        from ecotour.rundir.continuation import identity
        from ecotour.sinks import extension
        from ecotour.sinks.checkpoints import Checkpoints
        from ecotour.sinks.pictures import Pictures
        from ecotour.sinks.recorder import Recorder
        from ecotour.sinks.report import Report
        from ecotour.sinks.terminal import Terminal

        found, path = job.continuation, directory.path
        self._notes: deque[str] = deque(found.remarks if found else ())
        note = self._notes.append
        self._others = extension.make(job.options.sinks, path, job.plan)
        facts = environment.describe()  # before anything is written: there may be no device
        self._recorder = Recorder(directory, job.plan, job.command, note, job.earlier)
        self._notes.extend(filter(None, [process.use_cache()]))
        self.record = self._recorder.record
        self.record["environment"] = facts
        reshaped = found.reshaped if found else {}
        self._checkpoints = Checkpoints(path, identity(job.plan), note, reshaped)
        self._terminal = Terminal(quiet=job.options.quiet)
        # in this order: the rows first, then the state that comes after them
        self._all: list[Sink] = [
            self._recorder, Pictures(path, note), self._checkpoints, Report(path, self.record),
            *self._others, self._terminal,
        ]  # fmt: skip
        self._path = path

    def __call__(self, event: events.Event) -> None:
        """Hand ``event`` to all of them, and before it what they had to say."""
        if isinstance(event, events.Ended):
            self._checkpoints.wait()  # the record says so only when all is saved
        while self._notes and not isinstance(event, events.Started):
            self._dispatch(events.Warned(self._notes.popleft()))
        self._dispatch(event)

    def finish(self) -> EcotourError | None:
        """Write the last record, close all, and print the summary; return what could not be."""
        failure: EcotourError | None = None
        while self._notes:  # on pictures, which are drawn last
            said = events.Warned(self._notes.popleft())
            self._recorder(said)
            self._terminal(said)
        self.record["artifacts"] = artifacts(self._path)
        self._recorder.write()
        for ours in (self._checkpoints, self._terminal, self._recorder):
            try:
                ours.close()
            except EcotourError as error:
                failure = failure or error
        for sink in self._others:
            try:
                sink.close()
            except Exception as error:  # noqa: BLE001 - no sink may cost a training run
                self._notes.append(f"{type(sink).__name__}: {type(error).__name__}: {error}")
        while self._notes:
            self._terminal(events.Warned(self._notes.popleft()))
        self._terminal.summarise(self.record)
        return failure

    def _dispatch(self, event: events.Event) -> None:
        """One that fails is dropped, with a warning to the others."""
        for sink in list(self._all):
            try:
                sink(event)
            except Exception as error:  # noqa: BLE001 - no sink may cost a training run
                self._all.remove(sink)
                name = type(sink).__name__
                said = f"{name} gave up: {type(error).__name__}: {error}"
                self._dispatch(events.Warned(said))


def artifacts(path: Path) -> dict[str, Any]:
    """What lies in a run's directory for people to look at: name to path in it."""
    found = {"report": "report.html"} if (path / "report.html").exists() else {}
    for file in sorted((path / "exhibits").glob("*")):
        if file.suffix in (".png", ".gif"):
            found[file.stem + ("" if file.suffix == ".png" else " (moving)")] = (
                f"exhibits/{file.name}"
            )
    return found
