"""Measurements: forward against reverse, one example at a time against all, op by op against jit.

Every function here returns plain numbers, so that a step's state is one array.
"""

# %%
from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecotour_jax.machine import standardise


def median_ms(call: Callable[..., Any], *arguments: Any, repeats: int) -> float:
    """Median milliseconds of a call that is waited for; the first one does not count."""
    jax.block_until_ready(call(*arguments))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call(*arguments))
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


# %% Forward against reverse
# A Jacobian of m outputs and n inputs takes n forward passes (a column each) or m backward passes
# (a row each). So few inputs want `jacfwd`, few outputs want `jacrev`.
SIZES = (1, 4, 16, 64, 256, 1024)
FIXED, HIDDEN = 16, 128
SHAPES = tuple((n, FIXED) for n in SIZES) + tuple((FIXED, m) for m in SIZES)
"""Inputs and outputs of each case: first the inputs grow, then the outputs."""


def compare_directions(inputs: int, outputs: int, key: jax.Array, repeats: int) -> list[float]:
    """Jacobian of a network with one hidden layer, ``[inputs] -> [outputs]``, both ways.

    Returns:
        Milliseconds and operations on numbers (XLA's own count), forward and reverse; then the
        largest difference of the two Jacobians over their largest entry.
    """
    first, second, at = jax.random.split(key, 3)
    into = jax.random.normal(first, (inputs, HIDDEN), jnp.float32) / np.float32(inputs**0.5)
    out = jax.random.normal(second, (HIDDEN, outputs), jnp.float32) / np.float32(HIDDEN**0.5)
    x = jax.random.normal(at, (inputs,), jnp.float32)

    def network(x: jax.Array, into: jax.Array, out: jax.Array) -> jax.Array:
        return jnp.tanh(jnp.tanh(x @ into) @ out)

    numbers, results = [], []
    for transform in (jax.jacfwd, jax.jacrev):
        program = jax.jit(transform(network)).lower(x, into, out).compile()
        costs = program.cost_analysis() or {}
        numbers += [
            median_ms(program, x, into, out, repeats=repeats),
            float(costs.get("flops", np.nan)),
        ]
        results.append(np.asarray(program(x, into, out)))
    gap = np.max(np.abs(results[0] - results[1])) / np.max(np.abs(results[0]))
    return [numbers[0], numbers[2], numbers[1], numbers[3], float(gap)]


# %% Gradients of single examples
# `grad` of a mean gives one gradient. Who wants one for each example (to clip or to compare them)
# can loop, or write the loss for a single example and have `vmap` add the batch axis.
BATCHES = (1, 8, 64, 512)


def logistic_loss(weights: jax.Array, inputs: jax.Array, label: jax.Array) -> jax.Array:
    """Weights [16], inputs [16], label [] -> []: log(1 + exp(-label · weightsᵀinputs))."""
    return jnp.logaddexp(0.0, -label * (inputs @ weights))


def compare_batching(batch: int, key: jax.Array, repeats: int) -> list[float]:
    """Per-example gradients by loop and by vmap, and the gradient of the mean.

    Returns:
        Milliseconds by loop, by vmap and for the mean alone; the largest difference of loop and
        vmap, of the mean of the per-example gradients and the gradient of the mean, and of the
        latter from the closed form.
    """
    first, second, third = jax.random.split(key, 3)
    weights = jax.random.normal(first, (16,), jnp.float32)
    inputs = jax.random.normal(second, (batch, 16), jnp.float32)
    labels = jnp.sign(jax.random.normal(third, (batch,), jnp.float32))
    one = jax.jit(jax.grad(logistic_loss))
    each = jax.jit(jax.vmap(jax.grad(logistic_loss), in_axes=(None, 0, 0)))

    def mean_loss(weights: jax.Array) -> jax.Array:
        return jax.vmap(logistic_loss, in_axes=(None, 0, 0))(weights, inputs, labels).mean()

    mean = jax.jit(jax.grad(mean_loss))
    rows, signs = list(inputs), list(labels)

    def loop() -> list[jax.Array]:
        return [one(weights, row, sign) for row, sign in zip(rows, signs, strict=True)]

    looped, mapped = np.stack(loop()), np.asarray(each(weights, inputs, labels))
    averaged = np.asarray(mean(weights))
    x, y, w = (np.asarray(one, np.float64) for one in (inputs, labels, weights))
    known = -(y / (1.0 + np.exp(y * (x @ w))))[:, None] * x
    return [
        median_ms(loop, repeats=max(3, repeats // batch)),
        median_ms(each, weights, inputs, labels, repeats=repeats),
        median_ms(mean, weights, repeats=repeats),
        float(np.max(np.abs(looped - mapped))),
        float(np.max(np.abs(mapped.mean(0) - averaged))),
        float(np.max(np.abs(mapped - known))),
    ]


# %% Op by op against jit
LENGTHS = (64, 1024, 16384, 262144, 1048576)


def compare_compilation(length: int, key: jax.Array, repeats: int) -> list[float]:
    """`machine.standardise` as ten calls and as one program.

    Returns:
        Milliseconds op by op and jitted; the largest difference of the results; the seconds that
        compilation took.
    """
    x = jax.random.normal(key, (length,), jnp.float32)
    start = time.perf_counter()
    program = jax.jit(standardise).lower(x).compile()
    seconds = time.perf_counter() - start
    apart, together = np.asarray(standardise(x)), np.asarray(program(x))
    return [
        median_ms(standardise, x, repeats=repeats),
        median_ms(program, x, repeats=repeats),
        float(np.max(np.abs(apart - together))),
        seconds,
    ]
