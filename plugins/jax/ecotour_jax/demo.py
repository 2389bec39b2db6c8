"""JAX's own transformations, and what XLA makes of them.

The libraries of this tour stand on four transformations of plain functions: `grad` and its kin,
`vmap`, `jit`, and sharding over devices. Each is shown here on functions small enough to check by
hand, and checked.
"""

# %% What you will see
# A JAX function is a NumPy-like function of arrays that is free of side effects. A transformation
# takes such a function and returns another: its derivative, the same for a batch, the same
# compiled, the same on several devices. They compose, in any order.
#
# The run has seven named steps. `newton` minimises a valley with `grad` and `hessian`, compiled.
# `derivatives` compares derivatives with formulas known by heart. `directions`, `examples` and
# `compilation` measure forward against reverse, loops against `vmap`, and single operations
# against one program. `machine` follows a program down to machine code; `devices` runs one on 1, 2
# and 4 devices.
#
# `calculus.py`, `measure.py`, `machine.py` and `devices.py` are the rest of the lesson. The others
# are no part of it: `bookkeeping.py` keeps what is found, `hlo.py` reads XLA's text, `gallery.py`
# shows.
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour_jax import calculus, devices, gallery, machine, measure
from ecotour_jax.bookkeeping import answer_of, answer_step, measuring_step


# %% Configuration
@dataclass(frozen=True)
class Config:
    """The demo's flags."""

    repeats: int = ecotour.flag(50, "timed calls behind each median", at_least=3)
    rate: float = ecotour.flag(0.001, "step length of gradient descent", above=0.0)


# %% `newton`: a derivative of a derivative, inside one compiled program
# Rosenbrock's valley (1 - x)² + 100 (y - x²)² has its minimum 0 at (1, 1). Gradient descent sees
# the slope, `jax.grad`; Newton's method also the curvature, `jax.hessian`, and jumps to where the
# quadratic that fits best has its minimum. State: two points [2]. Metrics: their coordinates and
# heights.
def valley(point: jax.Array) -> jax.Array:
    """[2] -> []."""
    x, y = point
    return (1.0 - x) ** 2 + 100.0 * (y - x**2) ** 2


def newton_step(config: Config) -> ecotour.Step:
    """Both methods from (-1.2, 1), the customary start."""

    def init(key: jax.Array, batch: Any) -> dict[str, jax.Array]:
        start = jnp.array([-1.2, 1.0], jnp.float32)
        return {"newton": start, "descent": start}

    @jax.jit
    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        p, q = state["newton"], state["descent"]
        p = p - jnp.linalg.solve(jax.hessian(valley)(p), jax.grad(valley)(p))
        q = q - config.rate * jax.grad(valley)(q)
        metrics = {"newton_x": p[0], "newton_y": p[1], "newton_height": valley(p)}
        metrics |= {"descent_x": q[0], "descent_y": q[1], "descent_height": valley(q)}
        return {"newton": p, "descent": q}, metrics

    return ecotour.Step(init=init, step=step, steps=40)


# %% The measuring steps: one formula, one shape, one batch size, one length per step
# What a row of numbers holds stands with the function that measures it.
def measuring_steps(config: Config) -> dict[str, ecotour.Step]:
    """Four steps in plain Python, which fill a table row by row."""

    def derivatives(row: int, key: jax.Array) -> np.ndarray:
        words = np.asarray(jax.random.key_data(key))
        return calculus.agreement(calculus.formulas(np.random.default_rng(words))[row])

    def directions(row: int, key: jax.Array) -> list[float]:
        return measure.compare_directions(*measure.SHAPES[row], key, config.repeats)

    def examples(row: int, key: jax.Array) -> list[float]:
        return measure.compare_batching(measure.BATCHES[row], key, config.repeats)

    def compilation(row: int, key: jax.Array) -> list[float]:
        return measure.compare_compilation(measure.LENGTHS[row], key, config.repeats)

    operators = len(calculus.OPERATORS)
    return {
        "derivatives": measuring_step(
            derivatives,
            calculus.FORMULAS,
            2 * operators,
            lambda row: {
                "fewest_digits_float32": np.nanmin(row[0:-2:2]),
                "fewest_digits_float64": np.nanmin(row[1:-2:2]),
            },
        ),
        "directions": measuring_step(
            directions,
            len(measure.SHAPES),
            5,
            lambda row: {"forward_ms": row[0], "reverse_ms": row[1]},
        ),
        "examples": measuring_step(
            examples,
            len(measure.BATCHES),
            6,
            lambda row: {"loop_ms": row[0], "vmap_ms": row[1], "mean_ms": row[2]},
        ),
        "compilation": measuring_step(
            compilation,
            len(measure.LENGTHS),
            4,
            lambda row: {"op_by_op_ms": row[0], "jit_ms": row[1]},
        ),
    }


# %% The verdict
# In digits: how far each result is from what is known by other means. Times are shown and not
# judged, since they depend on who else uses the machine; what XLA counts does not.
def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Digits of agreement, orders of growth, equal results on all devices."""
    check, states = ecotour.Check, outcome.states
    at = np.asarray(states["newton"]["newton"], np.float64)
    newton = -np.log10(max(float(np.linalg.norm(at - 1.0)), 1e-17))
    rows = {name: np.asarray(state["rows"]) for name, state in states.items() if "rows" in state}
    digits = rows["derivatives"].reshape(calculus.FORMULAS, len(calculus.OPERATORS), 2)
    exact, differences = digits[:, :-1], digits[:, -1]
    forward, reverse = rows["directions"][:, 2], rows["directions"][:, 3]
    cheaper = [f < r for f, r in zip(forward, reverse, strict=True)]
    fewer_inputs = [n < m for n, m in measure.SHAPES]
    square = [n == m for n, m in measure.SHAPES]
    agree = [c == f or s for c, f, s in zip(cheaper, fewer_inputs, square, strict=True)]
    dumped = answer_of(states["machine"])
    spread = np.array([[list(one.values()) for one in way] for way in answer_of(states["devices"])])
    checks = [
        check.at_least("Newton: digits of the minimum (1, 1), float32", newton, 4.0),
        check.at_least("derivatives: fewest digits, float32", np.nanmin(exact[..., 0]), 4.0),
        check.at_least("derivatives: fewest digits, float64", np.nanmin(exact[..., 1]), 12.0),
        check.at_least(
            "derivatives: digits more than finite differences, float64",
            np.nanmin(np.nanmin(exact[:, :-1, 1], axis=1) - differences[:, 1]),
            1.0,
        ),
        check.equals(
            "forward does less work where inputs are fewer, cases", sum(agree), len(agree)
        ),
        check.at_most("forward and reverse differ by", np.nanmax(rows["directions"][:, 4]), 1e-5),
        check.at_most("vmap and loop differ by", np.nanmax(rows["examples"][:, 3]), 1e-5),
        check.at_most(
            "per-example gradients: off the closed form by", np.nanmax(rows["examples"][:, 5]), 1e-5
        ),
        check.at_most("op by op and jit differ by", np.nanmax(rows["compilation"][:, 2]), 1e-4),
        check.at_least("XLA: passes that changed the program", len(dumped["passes"]), 3),
        check.at_least("XLA: bytes of machine code", dumped["code_bytes"], 100),
        check.at_most("devices: largest error of a gradient", spread[..., 0].max(), 1e-5),
        check.equals("devices: all results were spread", spread_as_asked(spread), True),
    ]
    return ecotour.Verdict(checks, gallery.all_exhibits(outcome, valley, rows, dumped, spread))


def spread_as_asked(spread: np.ndarray) -> bool:
    """Whether each way ran on 1, 2 and 4 devices, with an all-reduce wherever there are several."""
    return bool((spread[..., 2] == devices.COUNTS).all() and (spread[:, 1:, 1] >= 1).all())


# %% The program, and the hook
def build(config: Config) -> ecotour.Program:
    """Seven named steps, and no data; the last two need a process of their own."""
    return ecotour.Program(
        steps={
            "newton": newton_step(config),
            **measuring_steps(config),
            "machine": answer_step(lambda key: machine.dump()),
            "devices": answer_step(devices.ask),
        },
        judge=judge,
    )


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Announce the demo."""
    return ecotour.Demo(
        summary="JAX's own transformations, and what XLA makes of them.",
        config=Config,
        build=build,
        teaches=(
            "What grad, vmap, jit and sharding do to a function, when forward beats reverse, what "
            "a batch axis costs, and which way a program takes from Python to machine code."
        ),
    )
