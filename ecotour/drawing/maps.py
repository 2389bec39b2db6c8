"""Paths over contours, and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ecotour.contract.exhibits import Graph, Paths
from ecotour.drawing import canvas, look
from ecotour.drawing.curves import DASHES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = 14
RIM = "#8d99a8"


def paths(exhibit: Paths, width: float = look.WIDTH) -> Figure:
    """Contours in grey, each path in its colour with a dot where it begins and where it ends."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    x, y = np.asarray(exhibit.x, float), np.asarray(exhibit.y, float)
    heights = np.asarray(exhibit.heights, float)
    figure = canvas.new_figure(width, 0.766 * width)
    axes = figure.add_subplot()
    levels = _levels(heights, exhibit.log_levels)
    if len(levels) > 1 and min(heights.shape) > 1:
        # one colour, more and more transparent: so it suits a dark page, too
        red, green, blue = to_rgb(look.MUTED)
        ends = [(red, green, blue, 0.17), (red, green, blue, 0.02)]
        greys = LinearSegmentedColormap.from_list("land", ends)
        masked = np.ma.masked_invalid(heights)
        axes.contourf(x, y, masked, levels=levels, cmap=greys, extend="both")
        axes.contour(x, y, masked, levels=levels, colors=look.MUTED, alpha=0.4, linewidths=0.5)
    handles = []
    for number, (name, points) in enumerate(exhibit.paths.items()):
        walk = np.asarray(points, float).reshape(-1, 2)
        colour = look.SERIES[number % len(look.SERIES)]
        dashes = DASHES[number // len(look.SERIES) % len(DASHES)]
        (line,) = axes.plot(
            walk[:, 0],
            walk[:, 1],
            color=colour,
            linestyle=dashes,
            linewidth=1.5,
            label=" " + canvas.shorten(name, 40),
        )
        handles.append(line)
        if 2 <= len(walk) <= 60:
            axes.plot(walk[:, 0], walk[:, 1], "o", color=colour, markersize=2.2, linestyle="none")
        inside = walk[np.isfinite(walk).all(axis=1)]
        if len(inside):
            axes.plot(*inside[0], "o", color="#ffffff", markeredgecolor=colour, markersize=5)
            axes.plot(*inside[-1], "o", color=colour, markersize=5)
    if exhibit.targets is not None and len(exhibit.targets):
        stars = np.asarray(exhibit.targets, float).reshape(-1, 2)
        axes.plot(
            stars[:, 0],
            stars[:, 1],
            "*",
            color="#f2c200",
            markeredgecolor="#18212e",
            markeredgewidth=0.7,
            markersize=12,
            linestyle="none",
            zorder=5,
        )
    # a path that flies off must not shrink the map to a dot
    axes.set_xlim(np.nanmin(x), np.nanmax(x))
    axes.set_ylim(np.nanmin(y), np.nanmax(y))
    axes.spines["bottom"].set_visible(False)
    if handles:
        figure.legend(
            handles=handles,
            loc="outside upper left",
            ncols=min(4, len(handles)),
            handlelength=1.4,
            columnspacing=1.2,
            handletextpad=0.3,
        )
    return figure


def _levels(heights: np.ndarray, logarithmic: bool) -> np.ndarray:
    finite = heights[np.isfinite(heights)]
    if not finite.size or finite.min() == finite.max():
        return np.zeros(0)
    low, high = float(finite.min()), float(finite.max())
    if not logarithmic:
        return np.linspace(low, high, LEVELS)
    above = finite[finite > low] - low
    start = max(float(np.quantile(above, 0.002)), (high - low) * 1e-6)
    return np.unique(low + np.geomspace(start, high - low, LEVELS))


def graph(exhibit: Graph, width: float = look.WIDTH) -> Figure:
    """Nodes as discs (coloured by value, named, ringed where marked), edges as lines or arrows."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap

    places = np.asarray(exhibit.positions, float).reshape(-1, 2)
    edges = np.asarray(exhibit.edges, int).reshape(-1, 2)
    count = len(places)
    figure = canvas.new_figure(width, 0.766 * width)
    axes = figure.add_subplot()
    axes.set_axis_off()
    disc = float(np.clip(5200 / max(count, 1), 18, 300))
    if exhibit.directed and len(edges) <= 400:
        for start, end in edges:
            axes.annotate(
                "",
                places[end],
                places[start],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": look.MUTED,
                    "linewidth": 0.9,
                    "shrinkA": disc**0.5 / 2,
                    "shrinkB": disc**0.5 / 2 + 1,
                    "mutation_scale": 9,
                    "connectionstyle": "arc3,rad=0.08",
                },
            )
    else:
        axes.add_collection(
            LineCollection(places[edges], colors=look.MUTED, linewidths=0.8, alpha=0.55)
        )
    colours = LinearSegmentedColormap.from_list("ecotour", list(look.DIVERGING))
    values = None if exhibit.values is None else np.asarray(exhibit.values, float)
    faces: list[Any] = [look.SERIES[0]] * count
    if values is not None:
        faces = [colours(float(v)) if np.isfinite(v) else look.HAIRLINE for v in values]
    ringed = set(exhibit.marked)
    axes.scatter(
        places[:, 0],
        places[:, 1],
        s=disc,
        c=faces,
        zorder=3,
        edgecolors=[look.INK if n in ringed else RIM for n in range(count)],
        linewidths=[2.4 if n in ringed else 0.7 for n in range(count)],
    )
    if exhibit.labels is not None and count <= 150:
        _name_nodes(axes, exhibit, places, values, disc)
    axes.margins(0.08)
    axes.autoscale_view()
    return figure


def _name_nodes(axes, exhibit: Graph, places, values, disc: float) -> None:  # type: ignore[no-untyped-def]
    inside = max((len(text) for text in exhibit.labels or ()), default=0) <= 3 and disc > 120
    for node, text in enumerate(exhibit.labels or ()):
        middling = values is not None and (
            not np.isfinite(values[node]) or 0.25 < float(values[node]) < 0.75
        )
        axes.annotate(
            canvas.shorten(text, 24),
            places[node],
            xytext=(0, 0 if inside else -(disc**0.5) / 2 - 2),
            textcoords="offset points",
            ha="center",
            va="center" if inside else "top",
            fontsize=look.SMALL_SIZE - 0.5,
            zorder=4,
            color=("#101820" if middling else "#fefefe") if inside else look.INK,
        )
