"""The sink that keeps what a demo shows: JSON at once, pictures when the run is over.

::

    exhibits/<of>-<name>-<step>.json|png|gif   what the named step <of> showed after a step
    exhibits/<name>.json|png|gif               what the judge showed
    exhibits/metrics-<of>.json|png             the curves of a named step
    exhibits/metrics-across-steps.json|png     the same metric of several named steps

Each JSON says by itself what it is (``of``, ``name``, ``step``, and its ``place`` among what was
shown with it); its name is only made safe.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecotour import drawing, events, exhibit_json, metric_curves, record
from ecotour.errors import ContractError, RecordError
from ecotour.exhibits import Code, Exhibit, Film, Images, Table
from ecotour.files import write_whole
from ecotour.metric_rows import read_history

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
    """Stores each exhibit as it comes and draws them all at the end.

    One that cannot be stored or drawn costs itself and no other.
    """

    def __init__(self, run_dir: Path, warn: Callable[[str], None]) -> None:
        """Keep the exhibits of the run in ``run_dir``.

        Args:
            run_dir: The run's directory.
            warn: Called with a line on each exhibit that had to be left out.
        """
        self._run_dir, self._warn = run_dir, warn
        self._taken: dict[str, tuple[str | None, str]] = {}
        self._left_out: set[tuple[str | None, str]] = set()

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``."""
        match event:
            case events.Viewed(of, step, exhibits):
                self._store_all(of, step, exhibits)
            case events.Judged(verdict, _):
                self._store_all(None, None, verdict.exhibits)
            case events.Ended():
                for line in draw(self._run_dir):
                    self._warn(line)
            case _:
                pass

    def close(self) -> None:
        """Nothing is left open."""

    def _store_all(self, of: str | None, step: int | None, exhibits: Mapping[str, Exhibit]) -> None:
        for place, (name, exhibit) in enumerate(exhibits.items()):
            try:
                self._store(of, name, step, place, exhibit)
            except Exception as error:  # noqa: BLE001 - a demo's array may raise anything
                if (of, name) not in self._left_out:
                    self._left_out.add((of, name))
                    self._warn(f"{_where(of, step)}: {_said(error, name)}: it is left out")

    def _store(
        self, of: str | None, name: str, step: int | None, place: int, exhibit: Exhibit
    ) -> None:
        document = {
            "schema": record.SCHEMA,
            "of": of,
            "name": str(name),
            "step": step,
            "place": place,
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
                said = _said(error, one.name)
                damaged.append(f"{_where(one.of, one.step)}: {said}: it is not drawn")
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
    history, damaged = read_history(run_dir)
    guides = record.read(run_dir).get("guides") or {}
    return metric_curves.from_history(history, guides), damaged


def read_exhibits(run_dir: Path, damaged: list[str]) -> Iterator[Stored]:
    """Every exhibit of a run; a line on each unreadable one.

    The judge's come first, then those of each named step, all in the demo's own order, and each
    over its steps.
    """
    found: list[tuple[int, Stored]] = []
    for path in (run_dir / "exhibits").glob("*.json"):
        try:
            document = json.loads(path.read_bytes())
            if "panels" in document:
                continue  # made of metrics.jsonl, and made again from it
            of, name, step = document["of"], document["name"], document["step"]
            exhibit = exhibit_json.from_json(document["exhibit"])
            place = int(document.get("place") or 0)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, RecordError) as error:
            damaged.append(f"{path}: {error}, left out")
            continue
        found.append((place, Stored(path, of, str(name), step, exhibit)))
    steps = _named_steps(run_dir)
    # where it stood the last time that it was shown
    found.sort(key=lambda pair: pair[1].step or 0)
    places = {(one.of, one.name): place for place, one in found}

    def order(one: Stored) -> tuple[int, str, int, str, int]:
        of = one.of or ""
        turn = steps.index(of) if of in steps else -1 if one.of is None else len(steps)
        return turn, of, places[one.of, one.name], one.name, one.step or 0

    yield from sorted((one for _, one in found), key=order)


def _named_steps(run_dir: Path) -> list[str]:
    try:
        return list(record.read(run_dir).get("totals") or ())
    except RecordError:
        return []


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


def _where(of: str | None, step: int | None) -> str:
    return "the verdict" if of is None else f"{of!r} after step {step}"


def _said(error: Exception, name: str) -> str:
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
