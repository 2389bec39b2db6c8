"""The sink that writes the report page when a run is over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ecotour.contract import events


class Report:
    """Writes the page when the run is over, from the record as it then is.

    It must be called after the sinks that keep the record and the exhibits.
    """

    def __init__(self, run_dir: Path, record: Mapping[str, Any]) -> None:
        """Report on the run in ``run_dir``; ``record`` is read when the run ends."""
        self._run_dir, self._record = run_dir, record

    def __call__(self, event: events.Event) -> None:
        """Write the page, if ``event`` is the last one."""
        if isinstance(event, events.Ended):
            from ecotour.drawing.report import write_report  # and with it what draws

            write_report(self._run_dir, self._record)

    def close(self) -> None:
        """Nothing is left open."""
