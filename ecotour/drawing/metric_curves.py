"""From the rows of ``metrics.jsonl`` to curves: each metric over steps, with its guide."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecotour.contract.exhibits import Curves, Line
from ecotour.running.history import History

MOST_STORED = 20_000
"""Reports kept of a metric; of more, the lowest and highest of each stretch (and its gaps)."""


@dataclass(frozen=True)
class Panels:
    """Curves that stand side by side.

    Attributes:
        of: The named step, or ``None`` where several are compared.
        curves: One for each metric.
        caption: One sentence: what one sees.
    """

    of: str | None
    curves: tuple[Curves, ...]
    caption: str


def from_history(
    reported: Mapping[str, History], guides: Mapping[str, Mapping[str, Any]]
) -> list[Panels]:
    """Make panels of all metrics: one set for each named step, then one that compares them.

    Args:
        reported: By named step; a value that is no number becomes a gap.
        guides: By named step and metric, ``[height, legend]``.

    Returns:
        Panels in the order in which the named steps first reported. The comparison exists where
        two or more steps report a metric of the same name.
    """
    history = {of: _columns(one) for of, one in reported.items()}
    found = []
    for of, (steps, metrics) in history.items():
        curves = tuple(
            Curves(
                {name: _line(steps, values)},
                caption=f"{name} of {of}",
                y_label=name,
                guides=_guide(guides.get(of, {}).get(name)),
            )
            for name, values in metrics.items()
        )
        if curves:
            found.append(Panels(of, curves, f"What {of} reported, step by step."))
    shared = _shared(history)
    if shared:
        curves = tuple(
            Curves(
                {of: _line(history[of][0], history[of][1][name]) for of in ofs},
                caption=f"{name} of each named step",
                y_label=name,
                guides=_common_guide(guides, ofs, name),
            )
            for name, ofs in shared.items()
        )
        found.append(Panels(None, curves, "The same metric of each named step."))
    return found


def _columns(reported: History) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    series = reported.series()
    steps = next((one.steps for one in series.values()), np.zeros(0))
    return steps.astype(np.float64), {name: one.values for name, one in series.items()}


def _value(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _line(steps: np.ndarray, values: np.ndarray) -> Line:
    return Line(*thinned(steps, values, MOST_STORED))


def _guide(guide: Any) -> dict[str, float]:
    if not isinstance(guide, Sequence) or len(guide) != 2 or not math.isfinite(_value(guide[0])):
        return {}
    return {str(guide[1]): float(guide[0])}


def _common_guide(guides: Mapping[str, Any], ofs: Sequence[str], name: str) -> dict[str, float]:
    # equal guides of several steps are one line
    merged: dict[str, float] = {}
    for of in ofs:
        merged |= _guide(guides.get(of, {}).get(name))
    return merged


def _shared(
    history: Mapping[str, tuple[np.ndarray, dict[str, np.ndarray]]],
) -> dict[str, list[str]]:
    holders: dict[str, list[str]] = {}
    for of, (_, metrics) in history.items():
        for name in metrics:
            holders.setdefault(name, []).append(of)
    return {name: ofs for name, ofs in holders.items() if len(ofs) > 1}


def thinned(x: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep of each stretch its first gap and its lowest and highest point, in order.

    So a spike of a single step is still seen among a million. ``x`` and ``y`` are ``[N]``; about
    ``most`` points are left.
    """
    if len(x) <= most:
        return x, y
    edges = np.linspace(0, len(x), most // 2 + 1).astype(int)
    kept: list[int] = [0, len(x) - 1]
    for start, end in itertools.pairwise(edges):
        stretch = y[start:end]
        gaps = np.isnan(stretch)
        if gaps.any():
            kept.append(start + int(gaps.argmax()))
        if not gaps.all():
            kept.append(start + int(np.nanargmin(stretch)))
            kept.append(start + int(np.nanargmax(stretch)))
    order = np.unique(kept)
    return x[order], y[order]
