"""The sink that keeps what a demo shows: JSON at once, pictures when the run is over.

::

    exhibits/<of>-<name>-<step>.json|png|gif   what the named step <of> showed after a step
    exhibits/<name>.json|png|gif               what the judge showed
    exhibits/metrics-<of>.json|png             the curves of a named step
    exhibits/metrics-across-steps.json|png     the same metric of several named steps

Each JSON says by itself what it is (``of``, ``name``, ``step``); its name is only made safe.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecotour import drawing, events, exhibit_json, metric_curves, record
from ecotour.errors import RecordError
from ecotour.exhibits import Code, Exhibit, Film, Images, Table
from ecotour.files import write_whole

SHOWN = 6
"""Of a picture that takes long to draw, so many moments are drawn, evenly spaced, last included."""


@dataclass(frozen=True)
class Stored:
    """One exhibit of a run's directory.

    Attributes:
        path: Its JSON; the picture beside it has the same stem.
        of: The named step that showed it, or ``None`` for the judge.
        name: What the demo calls it.
        step: After which step; ``None`` for the judge.
        exhibit: The values.
    """

    path: Path
    of: str | None
    name: str
    step: int | None
    exhibit: Exhibit


class Pictures:
    """Stores each exhibit as it comes and draws them all at the end."""

    def __init__(self, run_dir: Path) -> None:
        """Keep the exhibits of the run in ``run_dir``."""
        self._run_dir = run_dir
        self._taken: dict[str, tuple[str | None, str]] = {}

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``.

        Raises:
            ContractError: The demo showed something that is no proper exhibit.
        """
        match event:
            case events.Viewed(of, step, exhibits):
                for name, exhibit in exhibits.items():
                    self._store(of, name, step, exhibit)
            case events.Judged(verdict, _):
                for name, exhibit in verdict.exhibits.items():
                    self._store(None, name, None, exhibit)
            case events.Ended():
                draw(self._run_dir)
            case _:
                pass

    def close(self) -> None:
        """Nothing is left open."""

    def _store(self, of: str | None, name: str, step: int | None, exhibit: Exhibit) -> None:
        document = {
            "schema": record.SCHEMA,
            "of": of,
            "name": str(name),
            "step": step,
            "exhibit": exhibit_json.to_json(exhibit, str(name)),
        }
        stem = slug(name) if of is None else f"{slug(of)}-{slug(name)}"
        if self._taken.setdefault(stem, (of, name)) != (of, name):
            stem += "_" + _digest(f"{of}\n{name}")  # two names that only differ in their signs
        if step is not None:
            stem += f"-{step:08d}"
        _write_json(self._run_dir / "exhibits" / f"{stem}.json", document)


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
        A line on each file that could not be used.

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
            write_whole(picture, drawing.png(one.exhibit))
            if isinstance(one.exhibit, Film):
                write_whole(one.path.with_suffix(".gif"), drawing.gif(one.exhibit))
    panels, torn = read or read_panels(run_dir)
    written: set[Path] = set()
    for each in panels:
        stem = "metrics-across-steps" if each.of is None else f"metrics-{slug(each.of)}"
        target = run_dir / "exhibits" / f"{stem}.json"
        if target in written:
            target = target.with_stem(f"{stem}_{_digest(str(each.of))}")
        written.add(target)
        document = {
            "schema": record.SCHEMA,
            "of": each.of,
            "caption": each.caption,
            "panels": [exhibit_json.to_json(one) for one in each.curves],
        }
        changed = _write_json(target, document)
        if changed or again or not target.with_suffix(".png").exists():
            write_whole(target.with_suffix(".png"), drawing.panels_png(each.curves, each.caption))
    return damaged + torn


def read_panels(run_dir: Path) -> tuple[list[metric_curves.Panels], list[str]]:
    """The curves of ``metrics.jsonl``, and a line on each row that is damaged."""
    history, damaged = record.read_history(run_dir)
    guides = record.read(run_dir).get("guides") or {}
    return metric_curves.from_history(history, guides), damaged


def read_exhibits(run_dir: Path, damaged: list[str]) -> Iterator[Stored]:
    """Every exhibit of a run, by named step, name and step; a line on each unreadable one."""
    found = []
    for path in (run_dir / "exhibits").glob("*.json"):
        try:
            document = json.loads(path.read_bytes())
            if "panels" in document:
                continue  # made of metrics.jsonl, and made again from it
            of, name, step = document["of"], document["name"], document["step"]
            exhibit = exhibit_json.from_json(document["exhibit"])
        except (OSError, ValueError, KeyError, TypeError, RecordError) as error:
            damaged.append(f"{path}: {error}, left out")
            continue
        found.append(Stored(path, of, str(name), step, exhibit))
    yield from sorted(found, key=lambda one: (one.of or "", one.name, one.step or 0))


def spaced(items: list[Any], most: int = SHOWN) -> list[Any]:
    """About ``most`` of ``items``, evenly spaced, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    picks = sorted({round(k * (len(items) - 1) / (most - 1)) for k in range(most)})
    return [items[pick] for pick in picks]


def slug(name: str) -> str:
    """A file name from whatever a demo calls a thing: ``a-z``, digits and ``_``, never empty.

    There is no hyphen in it, so that hyphens can join the parts of a name.
    """
    text = re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")
    if len(text) > 60 or not text:
        text = f"{text[:40]}_{_digest(name)}".lstrip("_")
    return text


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


def _write_json(path: Path, document: dict[str, Any]) -> bool:
    """Write ``document`` unless it is there already; say whether it was written."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    content = (text + "\n").encode("utf-8", "replace")
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(exist_ok=True)
    write_whole(path, content)
    return True


def _digest(text: str) -> str:
    return hashlib.sha256(str(text).encode("utf-8", "surrogatepass")).hexdigest()[:6]
