"""The correct training, in pieces: flags, data, step. Each fault and each tool replaces a piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecotour

DEVICES = 4


# %% The flags


@dataclass(frozen=True)
class Config:
    """The demo's flags."""

    examples_per_device: int = ecotour.flag(16, "of the four; a batch has all", at_least=8)
    noise: float = ecotour.flag(0.01, "standard deviation of the gradient's noise", above=0.0)
    timed_steps: int = ecotour.flag(300, "steps over which a guard is timed", at_least=10)

    @property
    def batch_size(self) -> int:
        """Examples a step: those of four devices, whether or not they are there."""
        return DEVICES * self.examples_per_device


# %% The data
# A linear rule on four features, scaled to length 1. Most rows are whole. A few have weight 0, as
# padding has, and a few have no feature at all: a correct step takes both in its stride.
FEATURES = 4
TRUTH = np.array([1.0, -2.0, 3.0, 0.5])


def make_examples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Return ``inputs`` [N, 4], ``targets`` [N] and ``weights`` [N], all float32."""
    inputs = generator.normal(size=(count, FEATURES))
    unit = inputs / np.linalg.norm(inputs, axis=-1, keepdims=True)
    targets = unit @ TRUTH + 0.01 * generator.normal(size=count)
    arrays = {"inputs": inputs, "targets": targets, "weights": np.ones(count)}
    return {name: array.astype(np.float32) for name, array in arrays.items()}


# %% The training step, piece by piece
# State: params {weights [4]}, velocity of the same shape, rate [], all float32, number [] int32.
# Metrics: loss [], and the distance [] of the weights from the true ones.
# Each piece is a function of its own, since each fault replaces one of them.
def normalise(inputs: jax.Array) -> jax.Array:
    """[B, 4] -> [B, 4], rows of length 1; a row of zeros stays one."""
    return inputs / (jnp.linalg.norm(inputs, axis=-1, keepdims=True) + 1e-6)


def predict(params: Mapping[str, jax.Array], inputs: jax.Array) -> jax.Array:
    """[B, 4] -> [B]."""
    return inputs @ params["weights"]


def mean_weight(weights: jax.Array, over_devices: Callable[[Any], Any]) -> jax.Array:
    """[B] -> []: the mean weight of the whole batch, wherever its parts are."""
    return over_devices(weights.mean())


def first_rate() -> jax.Array:
    """float32 []: the learning rate before step 1."""
    return jnp.float32(0.5)


def cool(rate: jax.Array) -> jax.Array:
    """float32 [] -> float32 []: a little less at each step."""
    return rate * jnp.float32(0.98)


def remember(params: Any, velocity: Any, rate: Any, number: Any) -> dict[str, Any]:
    """What of the state is new after a step."""
    return {"params": params, "velocity": velocity, "rate": rate, "number": number}


@jax.jit
def draw_noise(key: jax.Array) -> jax.Array:
    """float32 [4], standard normal; compiled by itself, so that the step below stays small."""
    return jax.random.normal(key, (FEATURES,), jnp.float32)


@dataclass(frozen=True)
class Training:
    """A training in pieces; those above unless a fault or a tool puts another in their place.

    ``compile`` makes the step callable, ``over_devices`` is the mean over devices (there is one),
    ``record`` the type of the state, ``farewell(call)`` a last word to what ``compile`` returned,
    ``context`` the JAX settings during the loop.
    """

    noise: float = 0.01
    normalise: Callable[..., Any] = normalise
    predict: Callable[..., Any] = predict
    mean_weight: Callable[..., Any] = mean_weight
    first_rate: Callable[..., Any] = first_rate
    cool: Callable[..., Any] = cool
    remember: Callable[..., Any] = remember
    step_key: Callable[..., Any] = jax.random.fold_in
    compile: Callable[..., Any] = jax.jit
    over_devices: Callable[..., Any] = lambda value: value
    record: Callable[..., Any] = dict
    farewell: Callable[..., Any] = lambda call: None
    context: Callable[..., Any] = nullcontext

    def begin(self) -> Any:
        """Return the state before step 1."""
        params, velocity = ({"weights": jnp.zeros(FEATURES, jnp.float32)} for _ in range(2))
        rate, number = self.first_rate(), jnp.zeros((), jnp.int32)
        return self.record(params=params, velocity=velocity, rate=rate, number=number)

    def step(self) -> Callable[[Any, Any, jax.Array], tuple[Any, jax.Array]]:
        """Return ``(state, batch, noise [4]) -> (state, loss [])``: momentum, noisy gradients."""

        def train_step(state: Any, batch: Any, noise: jax.Array) -> Any:
            def loss_of(params: Any) -> jax.Array:
                predictions = self.predict(params, self.normalise(batch["inputs"]))
                errors = batch["weights"] * (predictions - batch["targets"]) ** 2
                return errors.mean() / self.mean_weight(batch["weights"], self.over_devices)

            loss, gradients = jax.value_and_grad(loss_of)(state["params"])
            loss, gradients = self.over_devices((loss, gradients))
            gradients = {"weights": gradients["weights"] + self.noise * noise}
            velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], gradients)
            rate = self.cool(state["rate"])
            params = jax.tree.map(lambda p, v: p - rate * v, state["params"], velocity)
            new = self.remember(params, velocity, rate, state["number"] + 1)
            # `{**old, **new}` makes a new dict; a chex.dataclass is made from its fields by name
            return type(state)(**{**state, **new}), loss

        return train_step
