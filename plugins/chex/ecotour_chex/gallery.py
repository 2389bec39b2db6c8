"""What the judge shows, made from the arrays that a run left behind."""

# %%
from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from ecotour import exhibits
from ecotour_chex.apart import SPREAD, TESTED, VARIANTS
from ecotour_chex.bookkeeping import CAUGHT, COLUMNS, ROWS, STOPPED, as_text, whole_matrix
from ecotour_chex.faults import FAULTS
from ecotour_chex.tools import APART, BY_HAND, HERE
from ecotour_chex.visit import VISIT_STEPS


def heat_map(kind: np.ndarray, at: np.ndarray) -> exhibits.Heatmap:
    """Which tool catches which fault, and at which step."""

    def cell(kind: int, step: int) -> str:
        if kind == CAUGHT:
            return f"step {step}" if step <= VISIT_STEPS else "at end"
        return "crash" if kind == STOPPED else ""

    cells = [
        [cell(*found) for found in zip(*row, strict=True)]
        for row in zip(kind.tolist(), at.tolist(), strict=True)
    ]
    return exhibits.Heatmap(
        values=kind / CAUGHT,
        caption=(
            "Each fault with each tool, tried. A step: the tool caught the fault there. “crash”: "
            "the program broke off by itself. “at end”: noticed after the loop. Empty: not at all."
        ),
        row_names=[fault.name for fault in ROWS],
        # the two longest names would look the same, cut off
        column_names=[name.replace("assert_trees_all", "…_all") for name in COLUMNS],
        cells=cells,
        row_label="fault",
        column_label="tool",
    )


def symptoms(museum: Any) -> exhibits.Table:
    """What the owner of each fault would see, in words and as a number."""
    rows: list[list[str | float]] = [
        [fault.name, fault.symptom, fault.measured, float(correct), float(spoilt)]
        for fault, (correct, spoilt) in zip(FAULTS, museum["symptom"][1:], strict=True)
    ]
    return exhibits.Table(
        columns=("fault", "what you would see", "measured", "correct", "with the fault"),
        rows=rows,
        caption="The symptom of each fault, beside the same measurement of the correct training.",
    )


def costs(here: np.ndarray, apart: np.ndarray) -> exhibits.Table:
    """Median time of a step, and the median of what each guard adds."""
    names = [tool.name for tool in (*HERE, *APART, BY_HAND)]
    rows = [
        (name, 1e3 * bare, 1e3 * added, (bare + added) / bare)
        for name, (bare, added) in zip(names, np.concatenate([here, apart]), strict=True)
    ]
    return exhibits.Table(
        columns=("guard", "bare step, µs", "cost of the guard, µs", "times slower"),
        rows=rows,
        caption=(
            "What each guard costs per step of this very small training (medians; the two took "
            "turns). Guards on shapes and traces work while JAX traces, and then cost nothing."
        ),
    )


def devices(apart: Any) -> exhibits.Table:
    """Four forced host devices, against four fake ones."""
    rows: list[list[str | float]] = [
        [fault.name, float(real), float(fake), float(gap)]
        for fault, (real, fake, gap) in zip(SPREAD, apart["devices"], strict=True)
    ]
    return exhibits.Table(
        columns=("training", "error on 4 devices, %", "on 4 fake ones, %", "largest difference"),
        rows=rows,
        caption=(
            "One step with the padded batch, on four devices and on Chex's stand-ins: how far the "
            "update misses that of a single device, and how far the two are apart."
        ),
    )


def variants(apart: Any) -> exhibits.Heatmap:
    """One test under all variants."""
    failed = np.asarray(apart["variants"])
    return exhibits.Heatmap(
        values=(failed == 0).astype(float),
        caption="The same test under all variants of Chex, the one with pmap on four devices.",
        row_names=[fault.name for fault in TESTED],
        column_names=VARIANTS,
        cells=[[f"fails at {n}" if n else "passes" for n in row] for row in failed.tolist()],
    )


def broken_code() -> exhibits.Code:
    """The broken pieces, as they stand in the source."""
    parts = []
    for number, fault in enumerate(FAULTS, 1):
        sources = (inspect.getsource(piece) for piece in fault.pieces().values())
        parts.append(f"# {number}. {fault.name}\n" + "\n".join(map(textwrap.dedent, sources)))
    return exhibits.Code(
        text="\n\n".join(parts), caption="The broken piece of each fault.", language="python"
    )


def messages(museum: Any, apart: Any) -> exhibits.Code:
    """What the claiming tools say, in Chex's own words."""
    parts = []
    for row, fault in enumerate(FAULTS, 1):
        said = as_text(museum["says"][row]) or as_text(apart["says"][row])
        said = textwrap.fill(" ".join(said.split()), 96, max_lines=5, placeholder=" …")
        parts.append(f"{fault.name} → {fault.claimed_by}\n{textwrap.indent(said, '    ')}")
    return exhibits.Code(
        text="\n\n".join(parts), caption="What the tool that claims a fault says about it."
    )


def all_exhibits(states: Mapping[str, Any]) -> dict[str, exhibits.Exhibit]:
    """Everything on the wall, by name."""
    museum, apart = states["museum"], states["apart"]
    return {
        "museum": heat_map(*whole_matrix(museum, apart)),
        "symptoms": symptoms(museum),
        "costs": costs(states["costs"]["ms"], apart["ms"]),
        "devices": devices(apart),
        "variants": variants(apart),
        "messages": messages(museum, apart),
        "broken code": broken_code(),
    }
