"""The report page of a run's directory, ``report.html``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ecotour.drawing import page, pictures
from ecotour.drawing.html import render
from ecotour.rundir.files import write_whole
from ecotour.rundir.stored_exhibits import read_exhibits


def write_report(run_dir: Path, record: Mapping[str, Any]) -> list[str]:
    """Write ``report.html`` (and all pictures that are missing) from what the directory holds.

    Args:
        run_dir: The run's directory; its JSON and ``metrics.jsonl`` are read, no JAX is needed.
        record: What ``run.json`` holds, or will hold.

    Returns:
        A line on each damaged file that had to be left out, and on what cannot be drawn.

    Raises:
        OSError: The directory cannot be written.
    """
    panels, torn = pictures.read_panels(run_dir)  # once: there may be a million rows
    damaged = pictures.draw(run_dir, read=(panels, torn))
    stored = list(read_exhibits(run_dir, []))
    content = render("report.html.j2", page=page.make(record, stored, panels, damaged))
    write_whole(run_dir / "report.html", content.encode("utf-8", "backslashreplace"))
    return damaged
