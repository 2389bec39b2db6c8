"""The pictures of a run's directory: drawn of its exhibits and metrics, where they are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ecotour import drawing
from ecotour.contract.exhibits import Code, Film, Images, Table
from ecotour.drawing import metric_curves
from ecotour.errors import ContractError
from ecotour.rundir import exhibit_json, record
from ecotour.rundir.files import write_whole
from ecotour.rundir.metric_rows import read_history
from ecotour.rundir.stored_exhibits import Stored, digest, read_exhibits, slug, write_json

SHOWN = 6
"""Of a picture that takes long to draw, so many moments are drawn, evenly spaced, last included."""


def draw(
    run_dir: Path,
    *,
    again: bool = False,
    read: tuple[list[metric_curves.Panels], list[str]] | None = None,
) -> list[str]:
    """Draw what has no picture yet (``again``: everything) and the curves of all metrics.

    Args:
        run_dir: The run's directory.
        again: Draw everything.
        read: What `read_panels` gives, where somebody has read them already.

    Returns:
        A line on each file that could not be used, and on each exhibit that could not be drawn.

    Raises:
        RecordError: The directory holds no run.
    """
    damaged: list[str] = []
    stored = list(read_exhibits(run_dir, damaged))
    for one in stored:
        if not _worth_drawing(one, stored):
            continue
        picture = one.path.with_suffix(".png")
        if again or _older(picture, one.path):
            try:
                write_whole(picture, drawing.png(one.exhibit))
                if isinstance(one.exhibit, Film):
                    write_whole(one.path.with_suffix(".gif"), drawing.gif(one.exhibit))
            except Exception as error:  # noqa: BLE001 - nor may a library that draws
                why = said(error, one.name)
                damaged.append(f"{where(one.of, one.step)}: {why}: it is not drawn")
    panels, torn = read or read_panels(run_dir)
    written: set[Path] = set()
    for each in panels:
        stem = "metrics-across-steps" if each.of is None else f"metrics-{slug(each.of)}"
        target = run_dir / "exhibits" / f"{stem}.json"
        if target in written:
            target = target.with_stem(f"{stem}_{digest(str(each.of))}")
        written.add(target)
        document = {
            "schema": record.SCHEMA,
            "of": each.of,
            "caption": each.caption,
            "panels": [exhibit_json.to_json(one) for one in each.curves],
        }
        changed = write_json(target, document)
        if changed or again or not target.with_suffix(".png").exists():
            write_whole(target.with_suffix(".png"), drawing.panels_png(each.curves, each.caption))
    return damaged + torn


def read_panels(run_dir: Path) -> tuple[list[metric_curves.Panels], list[str]]:
    """The curves of ``metrics.jsonl``, and a line on each row that is damaged."""
    history, damaged = read_history(run_dir)
    guides = record.read(run_dir).get("guides") or {}
    return metric_curves.from_history(history, guides), damaged


def spaced(items: list[Any], most: int = SHOWN) -> list[Any]:
    """About ``most`` of ``items``, evenly spaced, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    picks = sorted({round(k * (len(items) - 1) / (most - 1)) for k in range(most)})
    return [items[pick] for pick in picks]


def where(of: str | None, step: int | None) -> str:
    """Who showed something, and when, for a warning."""
    return "the verdict" if of is None else f"{of!r} after step {step}"


def said(error: Exception, name: str) -> str:
    """What is wrong with an exhibit, in one line."""
    line = (str(error).strip().splitlines() or ["no message"])[0]
    if isinstance(error, ContractError):
        return line
    return f"exhibit {name!r}: {type(error).__name__}: {line}"


def _worth_drawing(one: Stored, stored: list[Stored]) -> bool:
    if isinstance(one.exhibit, Images) or one.step is None:
        return True
    series = [other for other in stored if (other.of, other.name) == (one.of, one.name)]
    if isinstance(one.exhibit, Table | Code | Film):
        return one is series[-1]
    return any(one is chosen for chosen in spaced(series))


def _older(picture: Path, source: Path) -> bool:
    try:
        return picture.stat().st_mtime_ns < source.stat().st_mtime_ns
    except FileNotFoundError:
        return True
