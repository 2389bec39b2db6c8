"""Curves over steps (or anything): one panel or several side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ecotour.contract.exhibits import Curves, Line
from ecotour.drawing import canvas, look
from ecotour.drawing.metric_curves import thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 1200
"""More points than this in a line are thinned before they are drawn."""

ROW = 12.4
"""Points from one row of a legend to the next."""
SHORT_LEGEND = 2 * ROW
"""Points of a legend that a figure of ordinary height has room for."""

HUGE = 1e250
"""Beyond it (and below its inverse on a logarithmic axis) margins would overflow."""

GUIDE_DASHES = ((0, (4, 3)), (0, (1.5, 2)), (0, (7, 2, 1.5, 2)))
DASHES = ("solid", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.4, 1.2, 1.4)))


def panels(curves: Sequence[Curves], width: float = look.WIDTH) -> Figure:
    """Draw each of ``curves`` in its own axes; two or more stand in rows of two or three."""
    count = len(curves)
    columns = 1 if count == 1 else 2 if count in (2, 4) else 3
    rows = math.ceil(count / columns)
    width = width if columns == 1 else 3.7 * columns
    height = 0.7 * width**0.86 if columns == 1 else 2.75
    figure = canvas.new_figure(width, height * rows)
    figure.get_layout_engine().set(wspace=0.06, hspace=0.08)  # type: ignore[union-attr, call-arg]
    for position, one in enumerate(curves):
        axes = figure.add_subplot(rows, columns, position + 1)
        above = draw(axes, one, first_colour=position if count > 1 and len(one.lines) == 1 else 0)
        if count == 1:  # a long legend must not take the room of the curves
            figure.set_figheight(height + max(0.0, above - SHORT_LEGEND) / 72)
    return figure


def draw(axes: Axes, curves: Curves, first_colour: int = 0) -> float:
    """Draw ``curves`` into ``axes``: its bands, its lines, then its guides with their legends.

    Returns:
        The height of the legends, in points.
    """
    canvas.plot_axes(axes)
    handles: list[Any] = []
    for number, (name, line) in enumerate(curves.lines.items()):
        shade = first_colour + number
        colour = look.SERIES[shade % len(look.SERIES)]
        dashes = DASHES[number // len(look.SERIES) % len(DASHES)]
        handles.append(_draw_line(axes, line, colour, dashes, curves))
        handles[-1].set_label(" " + canvas.shorten(name, 40))
    alone = len(handles) == 1
    guides = draw_guides(axes, curves.guides)
    if curves.log_x:
        _set_log(axes, "x", curves)
    if curves.log_y:
        _set_log(axes, "y", curves)
    _label(axes, curves)
    title = curves.y_label or (next(iter(curves.lines)) if alone else "")
    return head(axes, title, [] if alone else handles, guides)


def _draw_line(axes: Axes, line: Line, colour: str, dashes: Any, curves: Curves) -> Any:
    x, y = np.asarray(line.x, float), np.asarray(line.y, float)
    if line.low is not None and line.high is not None:
        low, high = np.asarray(line.low, float), np.asarray(line.high, float)
        axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
    y = np.clip(np.where(np.isfinite(y), y, np.nan), -HUGE, HUGE)
    if curves.log_y:
        y = np.where((y > 0) & (y < 1 / HUGE), 1 / HUGE, y)
    if line.low is None and not curves.log_x and is_noisy(y):
        axes.plot(*thinned(x, y, MOST_POINTS), color=colour, alpha=0.28, linewidth=0.8)
        y = running_mean(y)
    x, y = thinned(x, y, MOST_POINTS)
    (drawn,) = axes.plot(x, y, color=colour, linestyle=dashes)
    # a value between two gaps is a line without length: it shows as a dot
    lone = np.isfinite(y) & ~np.isfinite(np.r_[np.nan, y[:-1]]) & ~np.isfinite(np.r_[y[1:], np.nan])
    axes.plot(x[lone], y[lone], "o", color=colour, markersize=3.5, linestyle="none")
    return drawn


def draw_guides(axes: Axes, guides: Mapping[str, float]) -> list[Any]:
    """Draw reference lines; return them for the legend, where no curve can cross their names."""
    return [
        axes.axhline(
            height,
            color=look.INK,
            linewidth=0.9,
            linestyle=GUIDE_DASHES[number % 3],
            zorder=2.5,
            label=" " + canvas.shorten(legend, 48),
        )
        for number, (legend, height) in enumerate(guides.items())
    ]


def head(axes: Axes, title: str, *legends: Sequence[Any]) -> float:
    """Write the title above the axes, and between the two each legend in as few rows as it needs.

    The vertical axis is named up here, where it reads without turning one's head.

    Returns:
        The height of the legends, in points.
    """
    figure, grid = axes.get_figure(root=True), axes.get_gridspec()
    assert figure is not None
    assert grid is not None
    room = 12.5 * figure.get_figwidth() / grid.ncols  # characters, about
    above, legend = 0.0, None
    for handles in reversed([legend for legend in legends if legend]):
        longest = max(len(str(handle.get_label())) for handle in handles)
        columns = max(1, min(len(handles), 6, int(room // (longest + 5))))
        if above and legend is not None:
            axes.add_artist(legend)  # a second legend would push the first one out
        legend = axes.legend(
            handles=list(handles),
            loc="lower left",
            bbox_to_anchor=(-0.012, 1.0),
            ncols=columns,
            borderaxespad=0.25 + above / look.SMALL_SIZE,
            handlelength=1.5,
            columnspacing=1.2,
            handletextpad=0.3,
            borderpad=0.2,
            labelspacing=0.35,
        )
        above += ROW * -(-len(handles) // columns)
    axes.set_title(canvas.shorten(title, min(60, int(0.88 * room))), pad=8 + above)
    return above


def _label(axes: Axes, curves: Curves) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlabel(canvas.shorten(curves.x_label, 60))
    if not curves.log_x:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=curves.x_label == "step"))
        axes.xaxis.set_major_formatter(FuncFormatter(canvas.tick))
    if not curves.log_y:
        axes.yaxis.set_major_locator(MaxNLocator(6))


def _set_log(axes: Axes, which: str, curves: Curves) -> None:
    pairs = [line.x if which == "x" else line.y for line in curves.lines.values()]
    values = np.concatenate([np.asarray(v, float).ravel() for v in pairs] or [np.zeros(0)])
    if not (np.isfinite(values) & (values > 0)).any():
        return  # nothing that a logarithm could show
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    canvas.log_axis(axes.xaxis if which == "x" else axes.yaxis)


def is_noisy(y: np.ndarray) -> bool:
    """Whether most of the movement is back and forth, so that a mean helps the eye."""
    values = y[np.isfinite(y)]
    if len(values) < 60:
        return False
    turns = np.sign(np.diff(values))
    return bool(np.mean(turns[1:] * turns[:-1] < 0) > 0.3)


def running_mean(y: np.ndarray) -> np.ndarray:
    """Centred mean over a twentieth of the points; gaps stay gaps and count in no mean."""
    window = max(3, len(y) // 20 | 1)
    kernel = np.ones(window)
    finite = np.isfinite(y)
    total = np.convolve(np.where(finite, y, 0.0), kernel, mode="same")
    count = np.convolve(finite.astype(float), kernel, mode="same")
    return np.where(finite, total / np.maximum(count, 1), np.nan)
