"""A demo for the tests of signals and disks: steps that take a moment, in any number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import ecotour


@dataclass(frozen=True)
class Config:
    """How heavy it is."""

    size: int = ecotour.flag(1000, "numbers in the state", at_least=1)
    work: int = ecotour.flag(200, "turns of the loop in a step", at_least=1)


def build(config: Config) -> ecotour.Program:
    """A random walk."""

    def init(key: jax.Array, batch: Any) -> jax.Array:
        return jax.random.normal(key, (config.size,))

    @jax.jit
    def step(state: jax.Array, batch: Any, key: jax.Array) -> tuple[jax.Array, Any]:
        turned = jax.lax.fori_loop(0, config.work, lambda _, x: jnp.sin(x) + 0.1, state)
        moved = turned + 0.01 * jax.random.normal(key, state.shape)
        return moved, {"mean": moved.mean()}

    def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
        mean = outcome.history["walk"]["mean"].last
        return ecotour.Verdict((ecotour.Check.between("mean", mean, -10, 10),))

    walk = ecotour.Step(init, step, 100)
    return ecotour.Program({"walk": walk}, judge)


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """A random walk."""
    return ecotour.Demo("Walks at random.", Config, build)
