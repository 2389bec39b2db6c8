"""Where the runner meets the sinks."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ecotour.cli import process
from ecotour.contract import events
from ecotour.errors import EcotourError
from ecotour.machine import environment
from ecotour.rundir.claim import RunDirectory
from ecotour.rundir.strict_json import to_json

if TYPE_CHECKING:
    from ecotour.contract.demo import Program
    from ecotour.contract.plan import Plan
    from ecotour.rundir.continuation import Continuation
    from ecotour.sinks import Sink

VERDICT_NOT_REACHED = 3


@dataclass(frozen=True)
class Options:
    """How a run is shown and judged on the command line."""

    quiet: bool = False
    strict: bool = False
    json: bool = False
    sinks: tuple[str, ...] = ()
    """Names of sinks from other distributions."""


def drive(
    program: Program,
    plan: Plan,
    *,
    began: float,
    out: Path | None,
    command: list[str],
    options: Options,
    stdout: IO[str],
) -> int:
    """Claim a directory, run the program into the sinks, and return the exit code.

    Raises:
        EcotourError: The run failed.
    """
    with process.stop_signals() as stop:
        directory = RunDirectory.claim(out, plan.demo)
        return carry_out(program, plan, directory, stop, began, command, options, stdout)


def carry_out(
    program: Program,
    plan: Plan,
    directory: RunDirectory,
    stop: process.Stop,
    began: float,
    command: list[str],
    options: Options,
    stdout: IO[str],
    *,
    earlier: Mapping[str, Any] | None = None,
    continuation: Continuation | None = None,
) -> int:
    """Run, or go on with a run whose record is ``earlier``, in a directory that is owned here.

    The directory is released in any case.

    Raises:
        EcotourError: The run failed.
    """
    from ecotour.running import runner
    from ecotour.sinks import extension
    from ecotour.sinks.recorder import Recorder

    notes: deque[str] = deque(continuation.remarks if continuation else ())
    try:
        others = extension.make(options.sinks, directory.path, plan)
        facts = environment.describe()  # before anything is written: there may be no device
        recorder = Recorder(directory, plan, command, notes.append, earlier)
        notes.extend(filter(None, [process.use_cache()]))
        recorder.record["environment"] = facts
        from ecotour.rundir.continuation import identity
        from ecotour.sinks.checkpoints import Checkpoints
        from ecotour.sinks.pictures import Pictures
        from ecotour.sinks.report import Report
        from ecotour.sinks.terminal import Terminal

        checkpoints = Checkpoints(
            directory.path,
            identity(plan),
            notes.append,
            continuation.reshaped if continuation else {},
        )
        terminal = Terminal(quiet=options.quiet)
        report = Report(directory.path, recorder.record)
        # in this order: the rows first, then the state that comes after them
        sinks: list[Sink] = [recorder, Pictures(directory.path, notes.append), checkpoints, report]
        sinks += [*others, terminal]
        failure: EcotourError | None = None
        resume = continuation.resume if continuation else None
        try:
            for event in runner.run(program, plan, began=began, stop=stop, resume=resume):
                if isinstance(event, events.Ended):
                    checkpoints.wait()  # the record says so only when all is saved
                while notes and not isinstance(event, events.Started):
                    dispatch(events.Warned(notes.popleft()), sinks)
                dispatch(event, sinks)
        except EcotourError as error:
            failure = error
        while notes:  # on pictures, which are drawn last
            said = events.Warned(notes.popleft())
            recorder(said)
            terminal(said)
        record = recorder.record
        record["artifacts"] = artifacts(directory.path)
        recorder.write()
        for sink in (checkpoints, terminal, recorder):
            try:
                sink.close()
            except EcotourError as error:
                failure = failure or error
        close(others, notes)
        while notes:
            terminal(events.Warned(notes.popleft()))
        terminal.summarise(record)
        if options.json:
            with contextlib.suppress(OSError):  # whoever was to read it has gone
                stdout.write(to_json(record, indent=1) + "\n")
        if failure is not None:
            failure.shown_as_json = options.json
            raise failure
        if record["status"] == "interrupted":
            return 128 + stop.signal
        reached = all(check["passed"] for check in record["checks"]) and not record["unshown"]
        if options.strict and not reached:
            return VERDICT_NOT_REACHED
        return 0
    finally:
        directory.abandon()


def artifacts(path: Path) -> dict[str, str]:
    """What lies in a run's directory for people to look at: name to path in it."""
    found = {"report": "report.html"} if (path / "report.html").exists() else {}
    for file in sorted((path / "exhibits").glob("*")):
        if file.suffix in (".png", ".gif"):
            found[file.stem + ("" if file.suffix == ".png" else " (moving)")] = (
                f"exhibits/{file.name}"
            )
    return found


def close(others: list[Sink], notes: deque[str]) -> None:
    """Close the sinks of other distributions; one that cannot be closed is noted, and no more."""
    for sink in others:
        try:
            sink.close()
        except Exception as error:  # noqa: BLE001 - no sink may cost a training run
            notes.append(f"{type(sink).__name__}: {type(error).__name__}: {error}")


def dispatch(event: events.Event, sinks: list[Sink]) -> None:
    """Hand ``event`` to each sink. One that fails is dropped, with a warning to the others."""
    for sink in list(sinks):
        try:
            sink(event)
        except Exception as error:  # noqa: BLE001 - no sink may cost a training run
            sinks.remove(sink)
            name = type(sink).__name__
            dispatch(events.Warned(f"{name} gave up: {type(error).__name__}: {error}"), sinks)
