"""What a demo shows: values, not drawings.

A demo returns exhibits; the sinks draw them (matplotlib for files, half blocks for a terminal) and
store them as JSON, from which every picture can be drawn again. Arrays are NumPy arrays or
anything that ``numpy.asarray`` takes, JAX arrays included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

ArrayLike: TypeAlias = Any


@dataclass(frozen=True)
class Images:
    """A grid of pictures.

    Attributes:
        pixels: ``[N, H, W]``, ``[N, H, W, 1]`` (grey) or ``[N, H, W, 3]`` (colour); ``uint8`` in
            0 … 255, or float in 0 … 1 (what lies outside is clipped).
        caption: One sentence: what one sees, and from which data.
        columns: Pictures in a row; by default the square root of N, rounded up.
        labels: A short text under each picture, or none.
    """

    pixels: ArrayLike
    caption: str
    columns: int | None = None
    labels: Sequence[str] | None = None


@dataclass(frozen=True)
class Line:
    """One curve: ``y`` over ``x``, both ``[N]``; ``low`` and ``high`` ``[N]`` bound its band.

    A y that is not finite is drawn as a gap.
    """

    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None


@dataclass(frozen=True)
class Curves:
    """Named curves in one pair of axes.

    Attributes:
        lines: Name of each curve (its legend) to its values.
        caption: One sentence: what one sees.
        x_label: What the horizontal axis counts, with its unit.
        y_label: What the vertical axis measures, with its unit.
        guides: Legend to height of horizontal reference lines.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is logarithmic.
    """

    lines: Mapping[str, Line]
    caption: str
    x_label: str = "step"
    y_label: str = ""
    guides: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Bars:
    """Named amounts, e.g. a histogram; ``values`` and ``errors`` (optional) are ``[N]``."""

    names: Sequence[str]
    values: ArrayLike
    caption: str
    y_label: str = ""
    errors: ArrayLike | None = None
    guides: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers; numbers are formatted by whoever draws them."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | int | bool | None]]
    caption: str


@dataclass(frozen=True)
class Heatmap:
    """A matrix ``[R, C]`` as colours, with a name for each row and column (or none).

    ``annotate`` writes each value into its cell; ``cells`` replaces the numbers by texts.
    """

    values: ArrayLike
    caption: str
    row_names: Sequence[str] | None = None
    column_names: Sequence[str] | None = None
    annotate: bool = False
    cells: Sequence[Sequence[str]] | None = None
    row_label: str = ""
    column_label: str = ""


@dataclass(frozen=True)
class Paths:
    """Paths over the contours of a function of two variables.

    Attributes:
        x: ``[C]``, the grid's horizontal coordinates.
        y: ``[R]``, its vertical ones.
        heights: ``[R, C]``, the function on the grid; contours are spaced by their logarithm when
            ``log_levels``.
        paths: Name to ``[T, 2]`` points in order of time.
        caption: One sentence: what one sees.
        targets: ``[K, 2]``, known minima, marked with a star.
        log_levels: Space the levels by the logarithm of the height above the lowest one.
    """

    x: ArrayLike
    y: ArrayLike
    heights: ArrayLike
    paths: Mapping[str, ArrayLike]
    caption: str
    targets: ArrayLike | None = None
    log_levels: bool = True


@dataclass(frozen=True)
class Graph:
    """A graph: nodes at ``positions`` ``[N, 2]``, ``edges`` ``[E, 2]`` of node numbers.

    ``values`` ``[N]`` colours the nodes (0 … 1), ``labels`` ``[N]`` names them, ``marked`` lists
    the numbers of the nodes to ring; ``directed`` draws arrow heads.
    """

    positions: ArrayLike
    edges: ArrayLike
    caption: str
    values: ArrayLike | None = None
    labels: Sequence[str] | None = None
    marked: Sequence[int] = ()
    directed: bool = False


@dataclass(frozen=True)
class Code:
    """Text to be read as it is: a jaxpr, HLO, an error message. ``language`` is a Pygments name."""

    text: str
    caption: str
    language: str = "text"


@dataclass(frozen=True)
class Film:
    """Frames shown one after another: ``[T, H, W]`` or ``[T, H, W, 3]``; pixels as in Images.

    It becomes a GIF and, where nothing moves, a strip.
    """

    frames: ArrayLike
    caption: str
    frames_per_second: float = 4.0


Exhibit: TypeAlias = Images | Curves | Bars | Table | Heatmap | Paths | Graph | Code | Film
