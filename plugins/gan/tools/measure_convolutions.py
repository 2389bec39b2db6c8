"""Measures every form of every operation at the flagship's layers, and prints the table anew.

    python plugins/gan/tools/measure_convolutions.py [--batch 64] [--rounds 15]

The forms of one operation take turns, so that a busy moment of the machine falls on all of them;
the fastest median wins. Paste the printed rows into `ecotour_gan/convolutions/table.py`, then run
`tests/benchmarks/gan_step.py`: what wins alone need not win inside the whole step, where XLA runs
operations side by side and keeps what two of them share.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ecotour_gan.convolutions.geometry import Geometry
from ecotour_gan.convolutions.operations import (
    FORWARD,
    forward,
    input_gradient,
    weight_gradient,
)

# layer, larger image, stride, channels of the larger image, channels of the smaller one
LAYERS = [
    ("convolution", 28, 2, 1, 8),
    ("convolution", 14, 1, 8, 16),
    ("convolution", 14, 2, 16, 32),
    ("convolution", 7, 1, 32, 64),
    ("convolution", 7, 2, 64, 128),
    ("transposed", 14, 2, 32, 64),
    ("transposed", 28, 2, 1, 32),
]
TAPS = 5

Operands = tuple[jax.Array, jax.Array, jax.Array]


def operations(geometry: Geometry) -> dict[str, dict[str, Callable[..., jax.Array]]]:
    """Every operation in every form that can run at this geometry."""
    forms = [form for form in FORWARD if form != "fourier" or geometry.rows.stride == 1]
    # Beyond ten points an axis Toom-Cook loses too many of float32's digits to be offered.
    phase_outputs = geometry.rows.out + -(-geometry.rows.taps // geometry.rows.stride) - 1
    if phase_outputs > 8:
        forms.remove("toom-cook")

    def run(
        operation: Callable[..., jax.Array], form: str, *which: int
    ) -> Callable[..., jax.Array]:
        return lambda *operands: operation(form, *(operands[i] for i in which), geometry)

    return {
        "forward": {form: run(forward, form, 0, 1) for form in forms},
        "input_gradient": {form: run(input_gradient, form, 2, 1) for form in [*forms, "phases"]},
        "weight_gradient": {form: run(weight_gradient, form, 0, 2) for form in forms},
    }


def measure(
    forms: dict[str, Callable[..., jax.Array]], operands: Operands, rounds: int
) -> dict[str, float]:
    """Median milliseconds of each form, taken in turns after two rounds of warm-up."""
    compiled = {form: jax.jit(run).lower(*operands).compile() for form, run in forms.items()}
    times: dict[str, list[float]] = {form: [] for form in forms}
    for number in range(rounds + 2):
        for form, run in compiled.items():
            begin = time.perf_counter()
            run(*operands).block_until_ready()
            if number >= 2:
                times[form].append(1e3 * (time.perf_counter() - begin))
    return {form: statistics.median(values) for form, values in times.items()}


def main() -> None:
    """Prints the figures as they come, then the table's rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    draw = np.random.default_rng(0)
    rows = []
    for layer, size, stride, inputs, outputs in LAYERS:
        geometry = Geometry.same((size, size), (TAPS, TAPS), (stride, stride))
        small = geometry.rows.out
        image, kernel, cotangent = (
            jnp.asarray(draw.standard_normal(shape), jnp.float32)
            for shape in (
                (arguments.batch, size, size, inputs),
                (TAPS, TAPS, inputs, outputs),
                (arguments.batch, small, small, outputs),
            )
        )
        best = []
        for operation, forms in operations(geometry).items():
            figures = measure(forms, (image, kernel, cotangent), arguments.rounds)
            best.append(min(figures, key=lambda form, f=figures: f[form]))
            told = ", ".join(f"{form} {ms:.2f}" for form, ms in sorted(figures.items()))
            print(f"{layer} {size} {inputs}-{outputs} /{stride} {operation}: {told} ms", flush=True)
        chosen = ", ".join(f'"{form}"' for form in best)
        rows.append(f'    ShapeClass("{layer}", {size}, {TAPS}, {stride}): Forms({chosen}),')
    print("\nTABLE: dict[ShapeClass, Forms] = {", *rows, "}", sep="\n")


if __name__ == "__main__":
    main()
