"""A demo's source as cells of prose and code, for whoever lays it out as a page or a notebook.

The percent format that editors know: a line ``# %%`` begins a code cell, ``# %% [markdown]`` a
cell of prose in Markdown, written in comments. Three liberties that demos take:

- What stands before the first marker and is no more than the module's docstring is prose.
- ``# %% A title`` begins a code cell with that heading; comments directly under it are its prose.
- A line that looks like a marker inside a string is none.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["prose", "code"]

_MARKER = re.compile(r"# ?%%(?P<rest>.*)")
_PROSE_TAG = re.compile(r"\[(markdown|md)\]")
_HEADING = re.compile(r"(#{1,6})(?= )")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True)
class Cell:
    """A piece of a source file.

    Attributes:
        kind: ``prose`` (Markdown) or ``code`` (Python).
        text: Without the marker, the comment signs and empty lines around it.
        line: The number of its first line in the file, from 1.
    """

    kind: Kind
    text: str
    line: int


def split(source: str) -> list[Cell]:
    """The cells of a Python file in order; empty ones are left out.

    Raises:
        ValueError: ``source`` is no Python.
    """
    lines = source.splitlines()
    markers = [*_markers(source), len(lines)]
    cells = list(_preamble(lines[: markers[0]]))
    for start, end in itertools.pairwise(markers):
        marker = _MARKER.match(lines[start])
        rest = marker["rest"] if marker else ""
        title = _PROSE_TAG.sub("", rest).strip()
        heading = [f"## {title}", ""] if title else []
        body = lines[start + 1 : end]
        if _PROSE_TAG.search(rest):
            cells.append(Cell("prose", _strip([*heading, *map(_uncomment, body)]), start + 2))
            continue
        told = _leading_comments(body) if title else 0
        prose = [*heading, *map(_uncomment, body[:told])]
        cells.append(Cell("prose", _strip(prose), start + 1))
        skipped = told + _empty(body[told:])
        cells.append(Cell("code", _strip(body[told:]), start + 2 + skipped))
    return [cell for cell in cells if cell.text]


def markdown(cells: Iterable[Cell], *, top: int = 2) -> str:
    """The cells as one Markdown text, code in fences; the highest heading becomes level ``top``."""
    cells = list(cells)
    shift = top - min(map(_highest, cells), default=top)
    parts = []
    for cell in cells:
        if cell.kind == "code":
            fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", cell.text)), default=0))
            parts.append(f"{fence}python\n{cell.text}\n{fence}")
        else:
            parts.append("\n".join(_shifted(cell.text.splitlines(), shift)))
    return "\n\n".join(parts) + "\n"


def section(cells: Sequence[Cell], heading: str) -> list[Cell]:
    """The cells from the heading ``heading`` up to the next one of its level or above.

    Raises:
        KeyError: There is no such heading; its argument is the list of those there are.
    """
    found: list[Cell] = []
    level = 0
    for cell in cells:
        here = _headings(cell)
        if found and here and here[0][0] <= level:
            break
        if not found and any(text == heading for _, text in here):
            level = next(depth for depth, text in here if text == heading)
            found.append(cell)
        elif found:
            found.append(cell)
    if not found:
        raise KeyError([text for cell in cells for _, text in _headings(cell)])
    return found


def _markers(source: str) -> list[int]:
    """The numbers, from 0, of the lines with a marker."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise ValueError(f"cannot be read as Python: {error}") from error
    return [
        token.start[0] - 1
        for token in tokens
        if token.type == tokenize.COMMENT and token.start[1] == 0 and _MARKER.match(token.string)
    ]


def _preamble(lines: list[str]) -> Iterator[Cell]:
    text = "\n".join(lines)
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise ValueError(f"cannot be read as Python: {error}") from error
    docstring = ast.get_docstring(ast.Module(body, []))
    if docstring and len(body) == 1:
        yield Cell("prose", docstring.replace("``", "`"), 1)
    else:
        yield Cell("code", _strip(lines), 1 + _empty(lines))


def _leading_comments(lines: list[str]) -> int:
    count = 0
    while count < len(lines) and lines[count].startswith("#"):
        count += 1
    return count


def _uncomment(line: str) -> str:
    return line.removeprefix("#").removeprefix(" ") if line.startswith("#") else line


def _strip(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n").rstrip()


def _empty(lines: list[str]) -> int:
    return next((number for number, line in enumerate(lines) if line.strip()), 0)


def _headings(cell: Cell) -> list[tuple[int, str]]:
    """Level and text of each heading of a cell."""
    if cell.kind == "code":
        return []
    return [
        (len(found[1]), line[found.end() :].strip())
        for line, fenced in _lines(cell.text.splitlines())
        if not fenced and (found := _HEADING.match(line))
    ]


def _highest(cell: Cell) -> int:
    return min((level for level, _ in _headings(cell)), default=6)


def _shifted(lines: list[str], shift: int) -> Iterator[str]:
    for line, fenced in _lines(lines):
        found = None if fenced else _HEADING.match(line)
        if found:
            level = min(6, max(1, len(found[1]) + shift))
            line = "#" * level + line[found.end() :]
        yield line


def _lines(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a fenced block."""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if fence:
            yield line, True
            if found and found[1].startswith(fence) and line.strip() == found[1]:
                fence = ""
        else:
            fence = found[1] if found else ""
            yield line, bool(found)
