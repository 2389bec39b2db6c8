"""Small drawings out of characters: sparklines, bars, and pictures of half blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ecotour.rundir.values_json import pixels

if TYPE_CHECKING:
    from rich.text import Text

SPARKS, ASCII_SPARKS = "▁▂▃▄▅▆▇█", "_.-=*#"
SHADES, ASCII_SHADES = " ░▒▓█", " .:-=+*#%@"
MOST_KEPT = 512


@dataclass
class History:
    """All values of a metric in bounded memory: past `MOST_KEPT`, pairs of them become one."""

    values: list[float] = field(default_factory=list)
    stride: int = 1
    _pending: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Take one more value; one that is not finite is remembered as a gap."""
        self._pending.append(value)
        if len(self._pending) < self.stride:
            return
        self.values.append(_mean(self._pending))
        self._pending.clear()
        if len(self.values) >= MOST_KEPT:
            pairs = zip(self.values[::2], self.values[1::2], strict=True)
            self.values = [_mean(pair) for pair in pairs]
            self.stride *= 2


def sparkline(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The course of ``values`` in at most ``width`` characters; a gap is a space."""
    if width < 1 or not values:
        return ""
    count = min(width, len(values))
    edges = [round(k * len(values) / count) for k in range(count + 1)]
    means = [_mean(values[a:b]) for a, b in itertools.pairwise(edges)]
    finite = [value for value in means if math.isfinite(value)]
    marks = ASCII_SPARKS if ascii_only else SPARKS
    if not finite:
        return " " * count
    low, high = min(finite), max(finite)
    span = high - low

    def mark(value: float) -> str:
        if not math.isfinite(value):
            return " "
        level = 0.5 if not span > 0 or not math.isfinite(span) else (value - low) / span
        return marks[min(len(marks) - 1, int(level * len(marks)))]

    return "".join(map(mark, means))


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """A bar of up to ``width`` characters, to the eighth of one where the encoding has them."""
    share = min(1.0, max(0.0, share))
    if ascii_only:
        return "#" * max(1 if share > 0 else 0, round(share * width))
    eighths = max(1 if share > 0 else 0, round(share * width * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()


def track(share: float, width: int, *, ascii_only: bool = False) -> tuple[str, str]:
    """A progress bar as what is done and what is left."""
    done = round(min(1.0, max(0.0, share)) * width)
    return ("#" * done, "." * (width - done)) if ascii_only else ("━" * done, "─" * (width - done))


def picture_row(
    images: Any, columns: int, most: int, *, colour: bool, ascii_only: bool
) -> list[Text]:
    """Draw the first ``most`` pictures side by side, each ``columns`` characters wide.

    Args:
        images: As the pixels of `ecotour.exhibits.Images`.
        columns: Width of a picture in characters.
        most: How many at most.
        colour: Two pixels in each character by foreground and background; else shades.
        ascii_only: Shades out of ASCII.

    Returns:
        Lines of equal width.
    """
    from rich.text import Text

    stack = pixels(np.asarray(images[:most]))
    stack = stack[..., None] if stack.ndim == 3 else stack
    height, width = stack.shape[1:3]
    rows = max(1, round(columns * height / width / 2))
    small = [resized(picture, 2 * rows, columns) for picture in stack]
    lines = [Text(no_wrap=True, overflow="crop") for _ in range(rows)]
    marks = ASCII_SHADES if ascii_only else SHADES
    for position, picture in enumerate(small):
        for row, line in enumerate(lines):
            if position:
                line.append(" ")
            top, bottom = picture[2 * row], picture[2 * row + 1]
            if colour:
                _append_blocks(line, top, bottom)
            else:
                grey = (top.mean(axis=1) + bottom.mean(axis=1)) / 2
                level = (grey / 256 * len(marks)).astype(int)
                line.append("".join(marks[int(one)] for one in level))
    return lines


def resized(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """``[H, W, C]`` to ``[height, width, C]``, each pixel the mean of the area that it covers."""
    down, across = _areas(picture.shape[0], height), _areas(picture.shape[1], width)
    return np.asarray(np.einsum("hH,wW,HWc->hwc", down, across, picture.astype(np.float64)))


def _areas(before: int, after: int) -> np.ndarray:
    edges = np.linspace(0, before, after + 1)
    start = np.maximum(edges[:-1, None], np.arange(before)[None])
    end = np.minimum(edges[1:, None], np.arange(1, before + 1)[None])
    weights = np.maximum(0.0, end - start)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _append_blocks(line: Text, top: np.ndarray, bottom: np.ndarray) -> None:
    pairs = [(_hex(above), _hex(below)) for above, below in zip(top, bottom, strict=True)]
    start = 0
    for end in range(1, len(pairs) + 1):
        if end == len(pairs) or pairs[end] != pairs[start]:
            above, below = pairs[start]
            line.append("▀" * (end - start), f"{above} on {below}")
            start = end


def _hex(pixel: np.ndarray) -> str:
    # 32 levels: few distinct styles to parse, and no eye tells them from 256 at this size
    levels = [min(255, round(float(value) / 8) * 8) for value in pixel]
    red, green, blue = levels * 3 if len(levels) == 1 else levels
    return f"#{red:02x}{green:02x}{blue:02x}"


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else math.nan
