"""A run as it goes on, redrawn in place: progress, metrics, and the pictures as they appear."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ecotour.contract import events
from ecotour.contract.exhibits import Images
from ecotour.drawing import look
from ecotour.drawing.wording import duration, number
from ecotour.rundir.values_json import picture_stack
from ecotour.sinks import glyphs
from ecotour.sinks.plain import one_line
from ecotour.sinks.stream import SafeStream, console

if TYPE_CHECKING:
    import numpy as np
    from rich.console import RenderableType
    from rich.text import Text

REDRAWS_PER_SECOND = 8
DRAWING_SHARE = 0.02
"""Redrawing may take this part of the time; on a slow terminal there are fewer redraws."""
MOST_METRICS = 10


class LiveView:
    """Draws the state of a run at most eight times a second, and only when an event comes."""

    def __init__(self, stream: SafeStream) -> None:
        """Draw on the terminal behind ``stream``."""
        from rich.live import Live

        self._ascii = not stream.unicode
        self._console = console(stream, live=True)
        self._colour = self._console.color_system in ("truecolor", "256") and not (
            self._console.no_color or self._ascii
        )
        # no thread of its own: it would compete with the run for the interpreter
        self._live = Live(
            console=self._console, auto_refresh=False, redirect_stdout=False,
            redirect_stderr=True, vertical_overflow="crop",
        )  # fmt: skip
        self._next = 0.0
        self._totals: Mapping[str, int] = {}
        self._heading = self._data = self._doing = ""
        self._last: events.Reported | None = None
        self._pace: float | None = None
        self._history: dict[str, glyphs.History] = {}
        self._images: tuple[np.ndarray, str] | None = None
        self._drawn: tuple[int, list[Text]] | None = None

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``, and redraw if it is time."""
        at_once = True
        match event:
            case events.Reported():
                self._note(event)
                at_once = False
            case events.Started(plan, _, totals):
                self._totals = totals
                self._heading = f"ecotour {plan.demo} ({plan.distribution}), seed {plan.seed}"
                self._doing = "reading the data"
                self._live.start()
            case events.DataReady(info=info):
                self._data = "; ".join(dict.fromkeys(map(str, info.values())))
                self._doing = "making the first state"
            case events.StepBegun(of=of, done=done, total=total, compiled=compiled):
                self._last, self._pace = None, None
                self._history.clear()
                self._doing = f"{of}: {'compiling' if compiled else 'measuring'}"
                if done:
                    self._doing += f", to go on after step {done:,} of {total:,}"
            case events.Compiled(of, costs):
                parts = [costs.get(part) or 0.0 for part in ("trace_s", "lower_s", "compile_s")]
                self._doing = f"{of}: compiled in {duration(sum(parts))}; first step"
            case events.Viewed(of, step, exhibits):
                self._look(of, step, exhibits)
                at_once = False
            case events.StepEnded(of, step, costs):
                self._end_step(of, step, costs)
            case events.Judged():
                self._doing = "drawing the pictures"
            case events.Ended():
                self._doing = ""
                self._draw()
                self.close()
                return
            case _:
                return
        if at_once or time.monotonic() >= self._next:
            self._draw()

    def warn(self, line: str) -> None:
        """Print a line above what is redrawn."""
        from rich.text import Text

        self._console.print(Text(one_line(line), style="yellow"))

    def close(self) -> None:
        """Leave the last picture where it is, and the cursor below it."""
        self._live.stop()

    def _note(self, event: events.Reported) -> None:
        self._doing = ""
        self._last = event
        for name, value in event.metrics.items():
            self._history.setdefault(name, glyphs.History()).add(value)
        if event.step_ms:
            self._pace = event.step_ms if self._pace is None else (
                0.7 * self._pace + 0.3 * event.step_ms
            )  # fmt: skip

    def _look(self, of: str, step: int, exhibits: Mapping[str, object]) -> None:
        for name, exhibit in exhibits.items():
            if isinstance(exhibit, Images):
                try:  # now: what is on the device may be gone when it is time to redraw
                    stack = picture_stack("pixels", exhibit.pixels)
                except Exception:  # noqa: BLE001 - whoever stores it says what is wrong with it
                    continue
                self._images = stack, f"{name} after step {step:,} of {of}"
                self._drawn = None
                return

    def _end_step(self, of: str, step: int, costs: Mapping[str, object]) -> None:
        from rich.text import Text

        loop = costs.get("loop_s")
        took = f" in {duration(float(loop))}" if isinstance(loop, int | float) else ""
        mark = "done" if self._ascii else "✓"
        line = Text(f"{mark} ", style=f"bold {look.SERIES[2]}")
        line.append(one_line(f"{of}: {step:,} steps{took}"), style="default")
        self._console.print(line)
        done = list(self._totals).index(of) + 1 if of in self._totals else 0
        self._doing = "measuring the result" if done == len(self._totals) else ""

    def _draw(self) -> None:
        began = time.monotonic()
        self._live.update(self._frame(), refresh=True)
        now = time.monotonic()
        self._next = now + max(1 / REDRAWS_PER_SECOND, (now - began) / DRAWING_SHARE)

    def _frame(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        width = self._console.width
        heading = Text(one_line(self._heading), style="bold", no_wrap=True, overflow="ellipsis")
        lines: list[RenderableType] = [heading]
        if self._data:
            lines.append(Text(one_line(self._data), "dim", no_wrap=True, overflow="ellipsis"))
        if self._last is not None:
            lines += [Text(""), self._progress(self._last, width), self._metrics(self._last, width)]
        if self._doing:
            lines += [Text(""), Text(one_line(self._doing), no_wrap=True, overflow="ellipsis")]
        lines += self._pictures(width)
        return Group(*lines)

    def _progress(self, event: events.Reported, width: int) -> Text:
        from rich.text import Text

        where = f"{one_line(event.of)}  step {event.step:,} of {event.total:,}"
        if len(self._totals) > 1 and event.of in self._totals:
            where = f"{list(self._totals).index(event.of) + 1}/{len(self._totals)} {where}"
        speed = ""
        if self._pace:
            speed = f"{number(1e3 / self._pace)} steps/s"
            if event.step < event.total:
                speed += f", {duration((event.total - event.step) * self._pace / 1e3)} left"
        room = width - len(where) - len(speed) - 4
        line = Text(where, no_wrap=True, overflow="ellipsis")
        if room >= 8:
            share = event.step / max(1, event.total)
            done, left = glyphs.track(share, min(room, 60), ascii_only=self._ascii)
            line.append("  ").append(done, look.SERIES[5]).append(left, "dim")
        return line.append("  ").append(speed, "dim")

    def _metrics(self, event: events.Reported, width: int) -> RenderableType:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2, 0, 0))
        names = list(event.metrics)[:MOST_METRICS]
        longest = max((len(name) for name in names), default=0)
        room = max(0, min(60, width - min(longest, width // 2) - 18))
        for position, name in enumerate(names):
            value = event.metrics[name]
            shown = number(value) if math.isfinite(value) else str(value)
            history = self._history.get(name)
            spark = glyphs.sparkline(
                history.values if history else [], room, ascii_only=self._ascii
            )
            colour = look.SERIES[position % len(look.SERIES)]
            table.add_row(
                Text(one_line(name), no_wrap=True, overflow="ellipsis"),
                Text(shown, "bold" if math.isfinite(value) else "bold red", justify="right"),
                Text(spark, colour, no_wrap=True, overflow="crop"),
            )
        return table

    def _pictures(self, width: int) -> list[RenderableType]:
        from rich.text import Text

        if self._images is None:
            return []
        stack, where = self._images
        if self._drawn is None or self._drawn[0] != width:
            tall = self._console.height
            columns = 20 if width >= 84 and tall >= 26 else 14
            columns = 28 if width >= 170 and tall >= 36 else columns
            rows = glyphs.picture_row(
                stack, columns, max(1, min(8, (width + 1) // (columns + 1))),
                colour=self._colour, ascii_only=self._ascii,
            )  # fmt: skip
            self._drawn = width, rows
        caption = Text(one_line(where), "dim", no_wrap=True, overflow="ellipsis")
        return [Text(""), *self._drawn[1], caption]
