"""How large a record may be, and what is left out of one that would be larger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ecotour.rundir.files import write_whole
from ecotour.trust.records import Shown

BUDGET = 400_000
"""Bytes that a record should stay below."""
ROOM = 40_000
"""Of it, left for the words, which are written last."""
ROOM_FOR_ROWS = 80_000
"""Of it, at most for the rows of metrics, where there are many named steps."""

Redraw: TypeAlias = Callable[[str, str], bytes]


def fit(fresh: Path, shown: list[Shown], redraw: Redraw) -> tuple[list[Shown], list[str]]:
    """Leave out what says least, until the record is small enough, and say what it was.

    Moments along the way go first; then the insides of large drawings become pixels; then curves of
    metrics go (the verdict has its own pictures); and at last large drawings become pixels whole.

    Args:
        fresh: The record's directory.
        shown: What is in it.
        redraw: From a drawing's stem and ``.svg`` or ``.png`` to a smaller form of it: with pixels
            inside, or all of it pixels.

    Returns:
        What is left, and a phrase on everything that was left out.
    """
    last = {(one.of, one.name): one for one in shown}
    spare = [one for one in shown if one.role == "view" and last[one.of, one.name] is not one]
    dropped = []
    while spare and size(fresh) > BUDGET - ROOM:
        one = spare.pop(0)
        shown.remove(one)
        if one.file:
            (fresh / one.file).unlink()
        dropped.append(f"{one.title} after step {one.step}")
    shown = _smaller(fresh, shown, redraw, ".svg")
    curves = [one for one in shown if one.role == "metrics"]
    if any(one.role == "verdict" and one.file for one in shown):
        curves.sort(key=lambda one: (fresh / str(one.file)).stat().st_size)
        while curves and size(fresh) > BUDGET - ROOM:
            one = curves.pop()
            shown = [other for other in shown if other is not one]
            (fresh / str(one.file)).unlink()
            dropped.append(f"the curve of {one.title}")
    return _smaller(fresh, shown, redraw, ".png"), dropped


def _smaller(fresh: Path, shown: list[Shown], redraw: Redraw, suffix: str) -> list[Shown]:
    """Draw anew what is largest, with pixels inside (``.svg``) or whole (``.png``), as needed."""
    large = sorted(fresh.glob("*.svg"), key=lambda file: -file.stat().st_size)
    while large and size(fresh) > BUDGET - ROOM:
        file = large.pop(0)
        content = redraw(file.stem, suffix)
        if len(content) < file.stat().st_size:
            file.unlink()
            smaller = file.with_suffix(suffix)
            write_whole(smaller, content)
            shown = [replace(o, file=smaller.name) if o.file == file.name else o for o in shown]
    return shown


def size(directory: Path) -> int:
    """Bytes of all files in ``directory``."""
    return sum(file.stat().st_size for file in directory.iterdir())
