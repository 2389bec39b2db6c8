"""The report page: one file that needs no network, no script and nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ecotour import events, wording
from ecotour.files import write_whole


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
    from ecotour.sinks import page, pictures

    panels, torn = pictures.read_panels(run_dir)  # once: there may be a million rows
    damaged = pictures.draw(run_dir, read=(panels, torn))
    stored = list(pictures.read_exhibits(run_dir, []))
    content = render(page.make(record, stored, panels, damaged))
    write_whole(run_dir / "report.html", content.encode("utf-8", "replace"))
    return damaged


def render(page: Any) -> str:
    """The page as HTML. Every text is escaped; only our own drawings are not."""
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ecotour", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawing"] = markupsafe.Markup  # our SVG, whose texts are escaped in it
    environment.filters["number"] = wording.number
    environment.filters["spaced"] = lambda name: str(name).replace("_", " ")
    return environment.get_template("report.html.j2").render(page=page)


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
            write_report(self._run_dir, self._record)

    def close(self) -> None:
        """Nothing is left open."""
