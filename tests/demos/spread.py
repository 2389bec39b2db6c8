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


def init(key: jax.Array, batch: Any) -> dict[str, Any]:
    """Weights of a linear model, ``[16]``, and a leaf that no step reads."""
    return {"weights": jnp.zeros(16), "idle": jnp.zeros(3), "nothing": None}


def step(state: dict[str, Any], batch: Any, key: jax.Array) -> Any:
    """Descend on 64 examples whose truth is the weights 0 … 15; the key is not used."""
    weights = state["weights"]
    inputs = jnp.sin(jnp.arange(64 * 16.0) ** 2).reshape(64, 16)
    mesh = jax.sharding.Mesh(np.array(jax.local_devices()), ("batch",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    inputs = jax.lax.with_sharding_constraint(inputs, spread)

    def loss(weights: jax.Array) -> jax.Array:
        return jnp.mean((inputs @ (weights - jnp.arange(16.0))) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    new = state | {"weights": weights - 0.5 * gradient, "idle": jnp.ones(3)}
    return new, {"loss": value}


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Provide the demo."""

    def build(config: Config) -> ecotour.Program:
        steps = {"descend": ecotour.Step(jax.jit(init), jax.jit(step), 40)}
        return ecotour.Program(steps, judge)

    return ecotour.Demo("Spreads its batch.", Config, build, cpu_devices=2)


def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Whether the weights are found."""
    error = float(jnp.abs(outcome.states["descend"]["weights"] - jnp.arange(16.0)).max())
    return ecotour.Verdict((ecotour.Check.at_most("largest error", error, 0.5),))
