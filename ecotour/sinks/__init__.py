"""Sinks: whatever is done with the events of a run. A sink knows no runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ecotour.events import Event


class Sink(Protocol):
    """Called with each event, in order; closed once, also where the run breaks off."""

    def __call__(self, event: Event, /) -> None:
        """Take note of ``event``. May raise: the run goes on without this sink."""

    def close(self) -> None:
        """Finish what is unfinished."""
