"""A demo that asks for two CPU devices and spreads its batch over as many as there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecotour


@dataclass(frozen=True)
class Config:
    """No flags."""


def init(key: jax.Array, batch: Any) -> jax.Array:
    """Weights of a linear model, ``[16]``."""
    return jnp.zeros(16)


def step(weights: jax.Array, batch: Any, key: jax.Array) -> Any:
    """Descend on 64 fresh examples whose truth is the weights 0 … 15."""
    inputs = jax.random.normal(key, (64, 16))
    mesh = jax.sharding.Mesh(np.array(jax.local_devices()), ("batch",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    inputs = jax.lax.with_sharding_constraint(inputs, spread)

    def loss(weights: jax.Array) -> jax.Array:
        return jnp.mean((inputs @ (weights - jnp.arange(16.0))) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.05 * gradient, {"loss": value}


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Provide the demo."""

    def build(config: Config) -> ecotour.Program:
        steps = {"descend": ecotour.Step(jax.jit(init), jax.jit(step), 40)}
        return ecotour.Program(steps, judge)

    return ecotour.Demo("Spreads its batch.", Config, build, cpu_devices=2)


def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Whether the weights are found."""
    error = float(jnp.abs(outcome.states["descend"] - jnp.arange(16.0)).max())
    return ecotour.Verdict((ecotour.Check.at_most("largest error", error, 0.5),))
