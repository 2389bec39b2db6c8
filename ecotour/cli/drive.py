"""Where the runner meets the sinks."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ecotour import environment, events
from ecotour.errors import EcotourError
from ecotour.record import RunDirectory, to_json

if TYPE_CHECKING:
    from ecotour.demo import Program
    from ecotour.plan import Plan
    from ecotour.sinks import Sink

VERDICT_NOT_REACHED = 3


@dataclass(frozen=True)
class Options:
    """How a run is shown and judged on the command line."""

    quiet: bool = False
    strict: bool = False
    json: bool = False


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
    from ecotour import runner, stages

    directory = RunDirectory.claim(out, plan.demo)
    try:
        stages.use_compilation_cache(environment.cache_directory() / "compiled")
        from ecotour.sinks.pictures import Pictures
        from ecotour.sinks.recorder import Recorder
        from ecotour.sinks.report import Report
        from ecotour.sinks.terminal import Terminal

        recorder = Recorder(directory, command, environment.describe())
        pictures = Pictures(directory.path)
        report = Report(directory.path, recorder.record)
        terminal = Terminal(quiet=options.quiet)
        sinks: list[Sink] = [recorder, pictures, report, terminal]
        failure: EcotourError | None = None
        with stop_signals() as stop:
            try:
                for event in runner.run(program, plan, began=began, stop=stop):
                    dispatch(event, sinks)
            except EcotourError as error:
                failure = error
        for sink in sinks:
            sink.close()
        record = recorder.record
        record["artifacts"] = artifacts(directory.path)
        recorder.write()
        terminal.summarise(record)
        if options.json:
            stdout.write(to_json(record, indent=1) + "\n")
        if failure is not None:
            failure.shown_as_json = options.json  # type: ignore[attr-defined]
            raise failure
        if record["status"] == "interrupted":
            return 128 + stop.signal
        if options.strict and not all(check["passed"] for check in record["checks"]):
            return VERDICT_NOT_REACHED
        return 0
    finally:
        directory.release()


def artifacts(path: Path) -> dict[str, str]:
    """What lies in a run's directory for people to look at: name to path in it."""
    found = {"report": "report.html"} if (path / "report.html").exists() else {}
    for file in sorted((path / "exhibits").glob("*")):
        if file.suffix in (".png", ".gif"):
            found[file.stem + ("" if file.suffix == ".png" else " (moving)")] = (
                f"exhibits/{file.name}"
            )
    return found


def dispatch(event: events.Event, sinks: list[Sink]) -> None:
    """Hand ``event`` to each sink. One that fails is dropped, with a warning to the others."""
    for sink in list(sinks):
        try:
            sink(event)
        except Exception as error:  # noqa: BLE001 - no sink may cost a training run
            sinks.remove(sink)
            name = type(sink).__name__
            dispatch(events.Warned(f"{name} gave up: {type(error).__name__}: {error}"), sinks)


@contextlib.contextmanager
def stdout_for_json(wanted: bool) -> Iterator[IO[str]]:
    """Give the real standard output to whoever prints the document.

    Where one is wanted, all else that goes to file descriptor 1 inside, also what a plugin or a
    library prints from C, goes to standard error.
    """
    if not wanted:
        yield sys.stdout
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    document = os.fdopen(saved, "w", encoding="utf-8")
    python_stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        yield document
    finally:
        with contextlib.suppress(BrokenPipeError):
            document.flush()
        sys.stdout = python_stdout
        os.dup2(saved, 1)
        document.close()


class _Stop:
    """Called by the runner after each step: whether to stop. ``signal`` says why."""

    def __init__(self) -> None:
        self.signal = 0

    def __call__(self) -> bool:
        return self.signal != 0

    def handle(self, number: int, _: Any) -> None:
        if self.signal:  # the second one means it
            os._exit(128 + number)
        self.signal = number


@contextlib.contextmanager
def stop_signals() -> Iterator[_Stop]:
    """Turn SIGINT, SIGTERM and SIGHUP into a wish to stop; the handlers are put back after."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before: Mapping[int, Any] = {number: signal.signal(number, stop.handle) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
