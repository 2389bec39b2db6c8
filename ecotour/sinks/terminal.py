"""The sink for whoever watches. All of it goes to standard error: standard output is for JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import IO, Any

from ecotour.contract import events
from ecotour.sinks.live import LiveView
from ecotour.sinks.plain import PlainLines, one_line
from ecotour.sinks.stream import SafeStream, console, is_live
from ecotour.sinks.summary import summary


class Terminal:
    """Shows a run: redrawn in place on a terminal, in a few plain lines elsewhere.

    It never raises because of the stream: a vanished terminal is no reason to end a run.
    """

    def __init__(self, stream: IO[str] | None = None, *, quiet: bool = False) -> None:
        """Write to ``stream`` (standard error); ``quiet`` shows warnings and nothing else."""
        self._stream = SafeStream(sys.stderr if stream is None else stream)
        self._quiet = quiet
        self._live = not quiet and is_live(self._stream)
        self._view: LiveView | PlainLines | None = None
        if not quiet:
            self._view = (LiveView if self._live else PlainLines)(self._stream)

    def __call__(self, event: events.Event) -> None:
        """Show ``event``, or remember it for the next redraw."""
        match event:
            case events.Warned(message):
                self._warn(f"warning: {message}")
            case events.Recompiled(of, step, reason):
                self._warn(f"warning: {of} was compiled again at step {step:,}: {reason}")
            case _ if self._view is not None:
                self._view(event)

    def close(self) -> None:
        """Leave the terminal as it was found."""
        if self._view is not None:
            self._view.close()

    def summarise(self, record: Mapping[str, Any]) -> None:
        """Print the summary of a run, whose record is ``record``; nothing if quiet."""
        if not self._quiet:
            self._stream.write("\n")
            console(self._stream, live=self._live).print(summary(record), crop=False)
            self._stream.flush()

    @property
    def failure(self) -> Exception | None:
        """What made the stream be let go, if it was."""
        return self._stream.failure

    def _warn(self, line: str) -> None:
        if isinstance(self._view, LiveView):
            self._view.warn(line)
        else:
            self._stream.write(one_line(line) + "\n")
            self._stream.flush()
