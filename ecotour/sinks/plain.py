"""A run in plain lines, few and regular: for pipes, files, logs and dumb terminals."""

from __future__ import annotations

from collections.abc import Mapping

from ecotour.contract import events
from ecotour.drawing.wording import duration, number
from ecotour.sinks.stream import SafeStream

LINES = 16
"""Progress lines in a whole run, however long it is and however many named steps it has."""
MOST_METRICS = 6
FEW_STEPS = 4


class PlainLines:
    """Writes a line where one more sixteenth of all steps is done."""

    def __init__(self, stream: SafeStream) -> None:
        """Write to ``stream``."""
        self._stream = stream
        self._totals: Mapping[str, int] = {}
        self._before = 0
        self._next = 0.0

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``."""
        match event:
            case events.Started(plan, _, totals):
                self._totals = totals
                self._say(f"ecotour {plan.demo} ({plan.distribution}), seed {plan.seed}")
            case events.DataReady(info=info):
                for line in dict.fromkeys(map(str, info.values())):
                    self._say(f"data: {line}")
            case events.StepBegun(of=of, compiled=False):
                self._say(f"{of}: not compiled")
            case events.Compiled(of, costs) if len(self._totals) <= FEW_STEPS:
                hit = ", from the compilation cache" if costs.get("cache_hit") else ""
                parts = [costs.get(part) or 0.0 for part in ("trace_s", "lower_s", "compile_s")]
                self._say(f"{of}: compiled in {duration(sum(parts))}{hit}")
            case events.Reported():
                self._report(event)
            case events.StepEnded(of, step, _):
                self._before += self._totals.get(of, step)
            case events.Judged(verdict, seconds):
                count = len(verdict.checks)
                checks = "1 check" if count == 1 else f"{count} checks"
                self._say(f"verdict: {checks} in {duration(seconds)}")
            case _:
                pass

    def close(self) -> None:
        """Nothing is left open."""

    def _report(self, event: events.Reported) -> None:
        every = sum(self._totals.values()) or event.total
        share = (self._before + event.step) / every
        if share < self._next - 1e-9:
            return
        self._next = (int(share * LINES + 1e-9) + 1) / LINES
        metrics = "  ".join(
            f"{name} {number(value)}" for name, value in list(event.metrics.items())[:MOST_METRICS]
        )
        speed = ""
        if event.step_ms:
            left = (event.total - event.step) * event.step_ms / 1e3
            speed = f"  {number(1e3 / event.step_ms)} steps/s"
            if event.step < event.total:
                speed += f"  {duration(left)} left"
        width = len(f"{event.total:,}")
        self._say(f"{event.of}: step {event.step:>{width},} of {event.total:,}  {metrics}{speed}")

    def _say(self, line: str) -> None:
        self._stream.write(one_line(line) + "\n")
        self._stream.flush()


def one_line(text: str) -> str:
    """``text`` without line breaks and other control characters, escape codes among them.

    A byte of a path that is not UTF-8 is shown as JSON has it, ``\\udcff``.
    """
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in text)
