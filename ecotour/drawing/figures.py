"""Exhibits as they stand on the report page: text as text, lines as SVG, pixels as PNG."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecotour import drawing
from ecotour.contract.exhibits import Code, Exhibit, Film, Heatmap, Images, Table
from ecotour.drawing import look, wording
from ecotour.rundir.stored_exhibits import Stored

HALF = 4.8
"""Inches of a drawing that takes half of the page's width."""
SMALL = 3.4
LARGEST_SVG = 250_000
"""Characters; of a bigger drawing, what is long becomes pixels."""
FEW_COLUMNS = 6
"""Of a heat map that takes half of the page's width; with more it takes all of it."""
FEW_CHARACTERS = 60
"""Of the longest texts of a table's columns, side by side, that fit into half of the width."""


@dataclass(frozen=True)
class Picture:
    """One thing to look at: exactly one of ``svg``, ``source``, ``table`` and ``code`` is set, or
    ``missing``, which says why there is nothing. One that is ``wide`` needs the page's whole width.
    """

    caption: str
    svg: str = ""
    source: str = ""
    still: str = ""
    pixelated: bool = False
    width: int = 0
    height: int = 0
    table: Mapping[str, Any] | None = None
    code: str | None = None
    files: str = ""
    missing: str = ""
    wide: bool = False


def picture(one: Stored, *, small: bool = False) -> Picture:
    """Prepare one exhibit for the page: text where it is text, SVG where it has few lines."""
    try:
        return _picture(one, small=small)
    except Exception as error:  # noqa: BLE001 - what a library cannot draw must not cost the page
        missing = f"It cannot be drawn: {type(error).__name__}: {error}"
        return Picture(one.exhibit.caption, missing=missing, files=one.path.stem)


def _picture(one: Stored, *, small: bool) -> Picture:
    exhibit, files = one.exhibit, one.path.stem
    if isinstance(exhibit, Table):
        table = _table(exhibit)
        lines = [table["columns"], *table["rows"]]
        widths = [max(len(str(line[c])) for line in lines) for c in range(len(table["columns"]))]
        wide = sum(widths) + 2 * len(widths) > FEW_CHARACTERS
        return Picture(exhibit.caption, table=table, files=files, wide=wide)
    if isinstance(exhibit, Code):
        return Picture(exhibit.caption, code=exhibit.text, files=files, wide=True)
    if isinstance(exhibit, Images):
        return _pixels(exhibit, files, target=280 if small else 900)
    if isinstance(exhibit, Film):
        return Picture(
            exhibit.caption,
            source=_inline("gif", drawing.gif(exhibit)),
            still=_inline("png", drawing.png(exhibit)),
            pixelated=True,
            files=files,
        )
    wide = isinstance(exhibit, Heatmap) and np.shape(exhibit.values)[-1] > FEW_COLUMNS
    width = SMALL if small else look.WIDTH if one.of or wide else HALF
    drawn = drawing.svg(exhibit, width, LARGEST_SVG // 4 if small else LARGEST_SVG)
    return Picture(exhibit.caption, svg=drawn, files=files, wide=wide)


def _table(exhibit: Table) -> dict[str, Any]:
    numeric = [
        bool(exhibit.rows) and all(not isinstance(row[c], str) for row in exhibit.rows)
        for c in range(len(exhibit.columns))
    ]
    rows = [[wording.number(cell) for cell in row] for row in exhibit.rows]
    return {"columns": list(exhibit.columns), "rows": rows, "numeric": numeric}


def _pixels(exhibit: Images, files: str, target: int) -> Picture:
    from ecotour.drawing import pixels

    width, height = pixels.grid(exhibit, target).size
    source = _inline("png", pixels.grid_png(exhibit, target))
    return Picture(
        exhibit.caption, source=source, pixelated=True, width=width, height=height, files=files,
        wide=True,
    )  # fmt: skip


def svg_picture(exhibit: Exhibit, width: float) -> Picture:
    """Draw an exhibit of lines for ``width`` inches of the page."""
    return Picture(exhibit.caption, svg=drawing.svg(exhibit, width))


def _inline(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
