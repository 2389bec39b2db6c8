"""What the judge shows: tables, curves, texts and drawings, made from measured numbers."""

# %%
from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from ecotour import Outcome, exhibits
from ecotour_jax import calculus, devices, hlo, machine, measure


def newton_paths(
    valley: Callable[[jax.Array], jax.Array], history: Mapping[str, Any]
) -> exhibits.Paths:
    """Where Newton's method and gradient descent went."""
    x, y = np.linspace(-1.6, 1.6, 81), np.linspace(-3.6, 1.8, 109)
    heights = jax.vmap(lambda b: jax.vmap(lambda a: valley(jax.numpy.stack([a, b])))(x))(y)
    paths = {}
    for name, words in (("newton", "Newton's method"), ("descent", "gradient descent")):
        points = np.stack([history[f"{name}_x"].values, history[f"{name}_y"].values], axis=1)
        paths[words] = np.concatenate([[[-1.2, 1.0]], points])
    return exhibits.Paths(
        x, y, np.asarray(heights), paths,
        caption="Rosenbrock's valley: Newton's method, with the curvature, needs six steps; "
        "gradient descent, with the slope alone, has hardly started.",
        targets=np.array([[1.0, 1.0]]),
    )  # fmt: skip


def digits_map(rows: np.ndarray, column: int, dtype: str, names: list[str]) -> exhibits.Heatmap:
    """Digits of agreement of each formula and operator."""
    values = rows.reshape(len(names), len(calculus.OPERATORS), 2)[..., column]
    return exhibits.Heatmap(
        values,
        caption=f"Decimal digits on which JAX in {dtype} and the closed form agree. Derivatives "
        "are exact up to rounding; finite differences lose a third or more of the digits.",
        row_names=names,
        column_names=calculus.OPERATORS,
        cells=[["" if np.isnan(v) else f"{v:.1f}" for v in row] for row in values],
    )


def directions(rows: np.ndarray, unit: str) -> dict[str, exhibits.Curves]:
    """Forward and reverse as inputs grow, and as outputs grow."""
    first = 0 if unit == "ms" else 2
    label = {"ms": "time of a Jacobian, ms", "operations": "operations on numbers"}[unit]
    half = len(measure.SIZES)
    shown = {}
    for what, part in (("inputs", rows[:half]), ("outputs", rows[half:])):
        lines = {
            name: exhibits.Line(measure.SIZES, part[:, first + column])
            for column, name in enumerate(("forward (jacfwd)", "reverse (jacrev)"))
        }
        other = "outputs" if what == "inputs" else "inputs"
        shown[f"jacobian {unit}, {what} grow"] = exhibits.Curves(
            lines,
            caption=f"A Jacobian with {measure.FIXED} {other} as the {what} grow: forward pays for "
            "each input, reverse for each output; they meet where there are as many of both.",
            x_label=what,
            y_label=label,
            log_x=True,
            log_y=True,
        )
    return shown


def curves(
    x: Any, rows: np.ndarray, names: tuple[str, ...], caption: str, x_label: str
) -> exhibits.Curves:
    """Times over a size, both logarithmic."""
    lines = {name: exhibits.Line(x, rows[:, column]) for column, name in enumerate(names)}
    return exhibits.Curves(lines, caption, x_label, "time, ms", log_x=True, log_y=True)


def pass_table(dumped: Any) -> exhibits.Table:
    """What each of XLA's passes changed."""
    texts = [text for _, text in dumped["passes"]]
    changes = ["", *(hlo.difference(*pair) for pair in itertools.pairwise(texts))]
    rows = [
        (name, sum(hlo.operations(text).values()), hlo.kernels(text), hlo.bytes_moved(text), change)
        for (name, text), change in zip(dumped["passes"], changes, strict=True)
    ]
    return exhibits.Table(
        columns=("after the pass", "operations", "steps", "bytes read and written", "changed"),
        rows=rows,
        caption="The program after each pass of XLA that changed it: its operations, the steps in "
        "which they are carried out, and the bytes that these read and write. Fusion writes some "
        "operations twice, so that fewer steps read and write memory.",
    )


def operation_table(texts: Mapping[str, str]) -> exhibits.Table:
    """Operations by name, before and after."""
    before, after = hlo.operations(texts["hlo_before"]), hlo.operations(texts["hlo_after"])
    names = sorted(before | after)
    rows = [(name, before[name], after[name]) for name in names]
    return exhibits.Table(
        columns=("operation", "before XLA's passes", "after"),
        rows=[*rows, ("all", sum(before.values()), sum(after.values()))],
        caption="Divisions by a constant become multiplications, and the square root and the "
        "division by it become one reciprocal square root.",
    )


def drawing(text: str, caption: str) -> exhibits.Graph:
    """The entry computation as a graph."""
    found, entry = hlo.computations(text)
    positions, edges, labels = hlo.layout(found[entry])
    depth = -positions[:, 1]
    return exhibits.Graph(
        positions, edges, caption, values=depth / max(1.0, float(depth.max())),
        labels=labels, directed=True,
    )  # fmt: skip


def device_table(spread: np.ndarray) -> exhibits.Table:
    """Every way on every number of devices."""
    rows = [
        (way, count, int(devices_used), int(reduces), error, ms)
        for way, part in zip(devices.WAYS, spread, strict=True)
        for count, (error, reduces, devices_used, ms) in zip(devices.COUNTS, part, strict=True)
    ]
    return exhibits.Table(
        columns=("way", "devices", "used", "all-reduces", "largest error", "time, ms"),
        rows=rows,
        caption="The gradient of one batch, on 1, 2 and 4 forced host devices (threads of a CPU), "
        "against the same by hand in NumPy.",
    )


def all_exhibits(
    outcome: Outcome,
    valley: Callable[[jax.Array], jax.Array],
    rows: Mapping[str, np.ndarray],
    dumped: Any,
    spread: np.ndarray,
) -> dict[str, exhibits.Exhibit]:
    """Everything, by name, in the order of the tour."""
    names = [one.name for one in calculus.formulas(np.random.default_rng(0))]
    texts = machine.stages()
    code = textwrap.fill(dumped["machine_code"], 16 * 3)
    llvm = "\n".join(dumped["llvm"].splitlines()[:60])
    return {
        "newton": newton_paths(valley, outcome.history["newton"]),
        "digits float64": digits_map(rows["derivatives"], 1, "float64", names),
        "digits float32": digits_map(rows["derivatives"], 0, "float32", names),
        **directions(rows["directions"], "ms"),
        **directions(rows["directions"], "operations"),
        "examples": curves(
            measure.BATCHES,
            rows["examples"],
            ("one by one (loop)", "all at once (vmap)", "the mean alone"),
            "Gradients of single examples: the loop pays for each call, vmap once.",
            "examples in the batch",
        ),
        "compilation": curves(
            measure.LENGTHS,
            rows["compilation"],
            ("op by op", "jit"),
            "The same function as ten calls and as one program.",
            "numbers in the array",
        ),
        "1 jaxpr": exhibits.Code(texts["jaxpr"], "What JAX traced."),
        "2 StableHLO": exhibits.Code(texts["stablehlo"], "What JAX hands to XLA.", "llvm"),
        "3 HLO before": exhibits.Code(texts["hlo_before"], "As XLA reads it."),
        "4 HLO after": exhibits.Code(texts["hlo_after"], "After XLA's passes."),
        "5 LLVM": exhibits.Code(llvm, "The last kernel for the CPU (its beginning).", "llvm"),
        "6 machine code": exhibits.Code(code, "Its instructions, as bytes."),
        "passes": pass_table(dumped),
        "operations": operation_table(texts),
        "graph before": drawing(texts["hlo_before"], "The program before XLA's passes."),
        "graph after": drawing(
            texts["hlo_after"], "After them: every box but the inputs is one step carried out."
        ),
        "devices": device_table(spread),
    }
