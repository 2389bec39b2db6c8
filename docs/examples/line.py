"""A line through noisy points, by gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour import exhibits

SLOPE, INTERCEPT, NOISE = 2.0, -1.0, 0.1


@dataclass(frozen=True)
class Config:
    """Each field is a flag."""

    learning_rate: float = ecotour.flag(0.1, "how far to go down the gradient", above=0)
    batch_size: int = ecotour.flag(32, "points a step", at_least=1, at_most=256)


def points() -> ecotour.Dataset:
    """256 points, always the same ones: `x` and `y`, each `[256]`."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, 256).astype(np.float32)
    y = SLOPE * x + INTERCEPT + NOISE * generator.normal(size=256).astype(np.float32)
    info = ecotour.DataInfo("points on a line", "synthetic", "train", 256)
    return ecotour.Dataset(info, {"x": x, "y": y})


def init(key: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
    """Slope and intercept `[2]`, at random."""
    return jax.random.normal(key, (2,))


def loss(line: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
    """Mean squared distance from the line."""
    slope, intercept = line
    return jnp.mean((slope * batch["x"] + intercept - batch["y"]) ** 2)


@partial(jax.jit, static_argnames="config")
def step(
    config: Config, line: jax.Array, batch: dict[str, jax.Array], key: jax.Array
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Go down the gradient once."""
    value, gradient = jax.value_and_grad(loss)(line, batch)
    return line - config.learning_rate * gradient, {"loss": value}


def view(line: jax.Array, key: jax.Array) -> dict[str, exhibits.Exhibit]:
    """The line as it is, beside the one the points were made from."""
    x = np.linspace(-1, 1, 50)
    slope, intercept = np.asarray(line)
    lines = {
        "found": exhibits.Line(x, slope * x + intercept),
        "true": exhibits.Line(x, SLOPE * x + INTERCEPT),
    }
    return {"line": exhibits.Curves(lines, "The line found so far.", "x", "y")}


def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Good is what cannot be told from the noise."""
    slope, intercept = np.asarray(outcome.states["fit"])
    check = ecotour.Check.at_most
    return ecotour.Verdict(
        [
            check("error of the slope", abs(slope - SLOPE), 0.1),
            check("error of the intercept", abs(intercept - INTERCEPT), 0.1),
        ],
        summary=f"The line is y = {slope:.2f} x + {intercept:.2f}.",
    )


def build(config: Config) -> ecotour.Program:
    """What the runner needs to know."""
    guides = {"loss": (NOISE**2, "the noise alone")}
    fit = ecotour.Step(init, partial(step, config), steps=200, view=view, guides=guides)
    return ecotour.Program({"fit": fit}, judge, {"train": points()}, config.batch_size)


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Provide the demo."""
    return ecotour.Demo("A line through noisy points", Config, build)
