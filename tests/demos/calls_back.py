"""A demo for the tests whose step calls back into Python, where something is raised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.experimental
import jax.numpy as jnp

import ecotour


@dataclass(frozen=True)
class Config:
    """What is raised in step 3."""

    interrupt: bool = ecotour.flag(False, "an interrupt, and not an error")
    through: str = ecotour.flag("pure", "which callback of JAX: pure, io")


def build(config: Config) -> ecotour.Program:
    """Count, and raise."""

    def raises(count: Any) -> Any:
        if count < 2:
            return count
        raise KeyboardInterrupt if config.interrupt else ValueError("out of paper")

    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        if config.through == "pure":
            back = jax.pure_callback(raises, shape, state)
        else:
            back = jax.experimental.io_callback(raises, shape, state)
        return state + 1, {"back": back}

    made = ecotour.Step(lambda key, batch: jnp.float32(0), step, 4)
    return ecotour.Program({"s": made}, lambda outcome: ecotour.Verdict(()))


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Counts, and raises."""
    return ecotour.Demo("Counts, and raises.", Config, build)
