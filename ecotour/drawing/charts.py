"""Bars and heatmaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecotour.contract.exhibits import Bars, Heatmap
from ecotour.drawing import canvas, look
from ecotour.drawing.curves import draw_guides, head
from ecotour.drawing.wording import number

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

UPRIGHT_NAMES = 60
"""Characters of all names together that fit under upright bars; more, and the bars lie."""


def bars(chart: Bars, width: float = look.WIDTH) -> Figure:
    """Upright bars where the names are short, lying ones where they need room."""
    from matplotlib.ticker import FuncFormatter

    names = [canvas.shorten(name, 32) for name in chart.names]
    values = np.asarray(chart.values, float)
    lying = sum(len(name) + 1 for name in names) > UPRIGHT_NAMES and not chart.guides
    height = min(12.0, max(1.6, 0.6 + 0.3 * len(names))) if lying else 0.7 * width**0.83
    figure = canvas.new_figure(width, height)
    axes = figure.add_subplot()
    canvas.plot_axes(axes, grid="x" if lying else "y")
    errors = None if chart.errors is None else np.nan_to_num(np.asarray(chart.errors, float))
    drawn = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    places = np.arange(len(names))
    error_style = {"ecolor": look.INK, "elinewidth": 1.0, "capsize": 2.5}
    if lying:
        axes.barh(
            places, drawn, xerr=errors, height=0.68, color=look.SERIES[0], error_kw=error_style
        )
        axes.set_yticks(places, names, color=look.INK)
        axes.invert_yaxis()
        axes.tick_params(axis="x", length=0)
        axes.spines["bottom"].set_visible(False)
        axes.axvline(0, color=look.MUTED, linewidth=0.8)
    else:
        axes.bar(places, drawn, yerr=errors, width=0.68, color=look.SERIES[0], error_kw=error_style)
        turned = sum(len(name) + 1 for name in names) > UPRIGHT_NAMES
        axes.set_xticks(
            places,
            names,
            color=look.INK,
            rotation=30 if turned else 0,
            ha="right" if turned else "center",
        )
        axes.tick_params(axis="x", length=0)
        axes.axhline(0, color=look.MUTED, linewidth=0.8)
        axes.yaxis.set_major_formatter(FuncFormatter(canvas.tick))
    if len(names) <= 16:
        if chart.guides:
            _write_inside(axes, places, values, drawn)  # at the foot, where no guide crosses them
        else:
            _write_values(axes, places, values, drawn, errors, lying)
    head(axes, chart.y_label, draw_guides(axes, chart.guides))
    return figure


def _write_values(axes, places, values, drawn, errors, lying) -> None:  # type: ignore[no-untyped-def]
    reach = drawn + np.sign(np.where(drawn == 0, 1, drawn)) * (0 if errors is None else errors)
    for place, value, end in zip(places, values, reach, strict=True):
        up = end >= 0
        axes.annotate(
            number(float(value)),
            (end, place) if lying else (place, end),
            xytext=(3 if up else -3, 0) if lying else (0, 2 if up else -2),
            textcoords="offset points",
            ha=("left" if up else "right") if lying else "center",
            va="center" if lying else ("bottom" if up else "top"),
            fontsize=look.SMALL_SIZE,
            color=look.MUTED,
        )
    axes.margins(x=0.12 if lying else 0.02, y=0.02 if lying else 0.12)


def _write_inside(axes, places, values, drawn) -> None:  # type: ignore[no-untyped-def]
    tallest = float(np.abs(drawn).max(initial=0.0))
    for place, value, end in zip(places, values, drawn, strict=True):
        inside = abs(end) > 0.12 * tallest
        up = end >= 0
        axes.annotate(
            _short(float(value)),
            (place, 0 if inside else end),
            xytext=(0, 3 if up else -3),
            textcoords="offset points",
            ha="center",
            va="bottom" if up else "top",
            fontsize=look.SMALL_SIZE - 0.5,
            color=look.PAPER if inside else look.MUTED,
            zorder=3,
        )


def _short(value: float) -> str:
    return f"{value:.2g}" if 1e-3 <= abs(value) < 100 and value % 1 else number(value)


def heatmap(chart: Heatmap) -> Figure:
    """Cells as colours: one scale from little to much, or two from zero where signs differ."""
    values = np.asarray(chart.values, float)
    rows, columns = values.shape
    cell = min(0.62, max(0.16, 5.2 / max(columns, 1)))
    wide = max((len(text) for row in chart.cells or () for text in row), default=0)
    if wide > 6 and columns <= 12:
        cell = min(1.6, 0.075 * wide + 0.15)
    tall = min(cell, 0.42)
    figure = canvas.new_figure(
        min(7.2, max(3.4, cell * columns + 1.9)), min(6.4, max(1.7, tall * rows + 1.0))
    )
    axes = figure.add_subplot()
    colours, scale = _scale(values)
    shown = axes.imshow(
        np.ma.masked_invalid(values),
        cmap=colours,
        norm=scale,
        aspect="auto",
        interpolation="nearest",
    )
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)
    _name_cells(axes, chart, rows, columns)
    if rows * columns <= 900:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        axes.grid(which="minor", color=look.PAPER, linewidth=1.2)
        axes.tick_params(which="minor", length=0)
    if chart.cells is not None or (chart.annotate and rows * columns <= 400):
        _write_cells(axes, chart, values, colours, scale)
    if chart.cells is None and np.isfinite(values).any():
        bar = figure.colorbar(shown, ax=axes, fraction=0.05, pad=0.02, aspect=24)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=look.SMALL_SIZE)
    return figure


def _scale(values: np.ndarray) -> tuple[Colormap, Normalize]:
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb

    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low < 0 < high:
        reach = max(-low, high)
        low, high, stops = -reach, reach, look.DIVERGING
    else:
        stops = look.SEQUENTIAL
        if low == high:
            low, high = low - 0.5, high + 0.5
    colours = LinearSegmentedColormap.from_list("ecotour", list(stops))
    # nothing to see: on a light page and on a dark one
    return colours.with_extremes(bad=(*to_rgb(look.MUTED), 0.2)), Normalize(low, high)


def _name_cells(axes, chart: Heatmap, rows: int, columns: int) -> None:  # type: ignore[no-untyped-def]
    from matplotlib.ticker import MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(8, integer=True))
    if chart.column_names is not None and columns <= 60:
        names = [canvas.shorten(name, 24) for name in chart.column_names]
        long = max(map(len, names), default=0) * columns > 90
        axes.set_xticks(
            np.arange(columns),
            names,
            rotation=40 if long else 0,
            ha="right" if long else "center",
            color=look.INK,
        )
    elif chart.column_names is not None or columns == 1:
        axes.set_xticks([])
    if chart.row_names is not None and rows <= 60:
        axes.set_yticks(
            np.arange(rows), [canvas.shorten(name, 32) for name in chart.row_names], color=look.INK
        )
    elif chart.row_names is not None or rows == 1:
        axes.set_yticks([])
    axes.set_xlabel(canvas.shorten(chart.column_label, 60))
    axes.set_ylabel(canvas.shorten(chart.row_label, 60))


def _write_cells(axes, chart: Heatmap, values, colours, scale) -> None:  # type: ignore[no-untyped-def]
    rows, columns = values.shape
    for row in range(rows):
        for column in range(columns):
            value = values[row, column]
            text = chart.cells[row][column] if chart.cells is not None else number(float(value))
            shade = colours(scale(value)) if np.isfinite(value) else (1.0, 1.0, 1.0, 1.0)
            light = 0.299 * shade[0] + 0.587 * shade[1] + 0.114 * shade[2] > 0.56
            axes.text(
                column,
                row,
                canvas.shorten(text, 24),
                ha="center",
                va="center",
                fontsize=look.SMALL_SIZE - (1 if columns > 8 else 0),
                # not the palette's ink: the page turns that light, and these cells stay as they are
                color="#101820" if light else "#fefefe",
            )
