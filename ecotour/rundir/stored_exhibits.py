"""The exhibits of a run on disk: what a demo showed as JSON, each file saying by itself what it is.

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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecotour.contract.exhibits import Exhibit
from ecotour.errors import RecordError
from ecotour.machine import names
from ecotour.rundir import exhibit_json, record
from ecotour.rundir.files import write_whole


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


def slug(name: str) -> str:
    """A file name from whatever a demo calls a thing: ``a-z``, digits and ``_``, never empty.

    There is no hyphen in it, so that hyphens can join the parts of a name.
    """
    text = re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")
    if len(text) > 60 or not text or names.is_device(text):
        text = f"{text[:40]}_{digest(name)}".lstrip("_")
    return text


def write_json(path: Path, document: dict[str, Any]) -> bool:
    """Write ``document`` unless it is there already; say whether it was written."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    content = (text + "\n").encode("utf-8", "replace")
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(exist_ok=True)
    write_whole(path, content)
    return True


def digest(text: str) -> str:
    """Six characters that tell names apart which a file name cannot."""
    return hashlib.sha256(str(text).encode("utf-8", "surrogatepass")).hexdigest()[:6]
