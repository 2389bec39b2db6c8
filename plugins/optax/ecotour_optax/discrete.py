"""Part four: gradients of a function that has none.

A knapsack is filled by yes-or-no decisions. Its value jumps; its gradient is zero wherever it
exists. `optax.perturbations` makes a smooth function of it, whose gradient can be estimated.
"""

# %% [markdown]
# ## Eight items, 256 ways to pack
#
# Item i weighs WEIGHT[i] and is worth VALUE[i]; each unit of weight beyond the capacity costs 2. A
# state of mind about it is `logits [8, 2]`, column 0 for "take it" and column 1 for "leave it"; the
# larger one decides.

# %%
from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax.perturbations import make_perturbed_fun

import ecotour

WEIGHT = np.array([3, 5, 7, 4, 6, 9, 2, 8], np.float32)
VALUE = np.array([4, 7, 9, 5, 8, 13, 2, 10], np.float32)
CAPACITY, PENALTY = 20.0, 2.0
PACKS = np.array(list(itertools.product([0, 1], repeat=len(WEIGHT))), np.float32)


def worth(packed: jax.Array) -> jax.Array:
    """The worth of ``packed`` ``float32 [8]``, 1 for taken and 0 for left: ``float32 []``."""
    return packed @ VALUE - PENALTY * jnp.maximum(packed @ WEIGHT - CAPACITY, 0.0)


def decide(logits: jax.Array) -> jax.Array:
    """The pack that ``logits`` ``float32 [8, 2]`` stand for: ``float32 [8]``."""
    return (logits[:, 0] > logits[:, 1]).astype(jnp.float32)


def value(logits: jax.Array) -> jax.Array:
    """The worth of the decision: a step function of ``logits``, ``float32 []``."""
    return worth(decide(logits))


WORTHS = PACKS @ VALUE - PENALTY * np.maximum(PACKS @ WEIGHT - CAPACITY, 0)
BEST = float(WORTHS.max())

# %% [markdown]
# ## Smoothed by noise
#
# `make_perturbed_fun(value, n, sigma)` is the mean of `value(logits + sigma * noise)` over n draws.
# With Gumbel noise the larger of two logits wins with the probability of a softmax. So here the
# smooth function, and its gradient, can be had exactly as well, by adding up all 256 packs: the
# truth that the estimator is judged by.
#
# The gradient is estimated as the score function does: mean of value times the gradient of the
# log-density of the noise (Williams' REINFORCE). With `use_baseline` the value at the unperturbed
# logits is subtracted first. That changes nothing in the mean, and it calms the noise as long as
# that value is near the mean: on the edge of a cliff (say, if a pack too heavy were worth nothing)
# it is not, and the baseline makes matters worse.

# %%
SIGMA = 1.0


def exact(logits: jax.Array) -> jax.Array:
    """The mean worth under Gumbel noise, over all packs and their probabilities: ``float32 []``."""
    taking = jax.nn.softmax(logits / SIGMA, axis=-1)[:, 0]
    chances = jnp.where(PACKS == 1, taking, 1 - taking).prod(axis=-1)
    return chances @ WORTHS


# %% [markdown]
# ## The first step: pack the knapsack
#
# 32 runs at once climb the estimated gradient with Adam. Optax minimises; to climb, negate.
#
# The steps are small, for whoever decides early decides on little evidence: six packs are worth
# just one less than the best. In 300 steps of 0.1 a third of the runs end at the best pack, in 300
# of 0.03 three quarters, in 900 of 0.01 nearly all.

# %%
RUNS, SAMPLES = 32, 64
CLIMBER = optax.adam(0.01)


class Packing(NamedTuple):
    """The state of ``knapsack``: ``logits`` ``float32 [R, 8, 2]``, and Adam's moments."""

    logits: jax.Array
    optimizer: Any


def init_packing(key: jax.Array, batch: Any) -> Packing:
    """All undecided."""
    del key, batch
    logits = jnp.zeros((RUNS, len(WEIGHT), 2), jnp.float32)
    return Packing(logits, jax.vmap(CLIMBER.init)(logits))


@jax.jit
def pack(packing: Packing, batch: Any, key: jax.Array) -> tuple[Packing, dict[str, jax.Array]]:
    """One step uphill in each run."""
    del batch
    smooth = make_perturbed_fun(value, SAMPLES, SIGMA)

    def one(key: jax.Array, logits: jax.Array, state: Any) -> Any:
        downhill = jax.grad(lambda logits: -smooth(key, logits))(logits)
        # Adam raises a float to the power of its int32 count; strict promotion would refuse.
        with jax.numpy_dtype_promotion("standard"):
            updates, state = CLIMBER.update(downhill, state, logits)
        return optax.apply_updates(logits, updates), state

    keys = jax.random.split(key, RUNS)
    logits, states = jax.vmap(one)(keys, packing.logits, packing.optimizer)
    means, decided = jax.vmap(exact)(logits), jax.vmap(value)(logits)
    return Packing(logits, states), {
        "mean worth": means.mean(),
        "mean worth, lowest": means.min(),
        "mean worth, highest": means.max(),
        "worth as decided": decided.mean(),
        "share of runs at the best pack": (decided == BEST).mean(),
    }


KNAPSACK = ecotour.Step(
    init_packing,
    pack,
    steps=900,
    guides={"mean worth": (BEST, "the best pack"), "worth as decided": (BEST, "the best pack")},
    lower_is_better={"mean worth": False},
)

# %% [markdown]
# ## The second step: how good is the estimate?
#
# At one fixed point the gradient is estimated again and again, from 4, 32 and 256 samples, with
# the baseline and without. Theory: no bias, and a variance that falls like 1 / samples.

# %%
COUNTS, DRAWS = (4, 32, 256), 16
POINT = np.where(np.arange(len(WEIGHT))[:, None] % 2 == [[0, 1]], 0.5, -0.5).astype(np.float32)


class Tally(NamedTuple):
    """The state of ``estimator``, for each of K sample counts, with (1) and without (0) baseline.

    Attributes:
        draws: ``float32 []``, estimates so far.
        total: ``float32 [2, K, 8, 2]``, the sum of their errors.
        squares: ``float32 [2, K]``, the sum of their squared distances from the truth.
    """

    draws: jax.Array
    total: jax.Array
    squares: jax.Array


def init_tally(key: jax.Array, batch: Any) -> Tally:
    """Nothing drawn yet."""
    del key, batch
    zeros = jnp.zeros((2, len(COUNTS), *POINT.shape), jnp.float32)
    return Tally(jnp.float32(0), zeros, zeros.sum(axis=(2, 3)))


@jax.jit
def draw(tally: Tally, batch: Any, key: jax.Array) -> tuple[Tally, dict[str, jax.Array]]:
    """Another 16 estimates of each kind."""
    del batch
    point = jnp.asarray(POINT)
    true = jax.grad(exact)(point)
    errors = []
    kinds = list(itertools.product((False, True), COUNTS))
    for of_kind, (baseline, count) in zip(jax.random.split(key, len(kinds)), kinds, strict=True):
        smooth = make_perturbed_fun(value, count, SIGMA, use_baseline=baseline)
        estimate = jax.vmap(jax.grad(smooth, argnums=1), in_axes=(0, None))
        errors.append(estimate(jax.random.split(of_kind, DRAWS), point) - true[None])
    error = jnp.stack(errors).reshape(2, len(COUNTS), DRAWS, *POINT.shape)
    tally = Tally(
        tally.draws + DRAWS,
        tally.total + error.sum(axis=2),
        tally.squares + jnp.square(error).sum(axis=(2, 3, 4)),
    )
    names = [f"variance, {n} samples" for n in COUNTS]
    with_it = tally.squares[1] / tally.draws
    return tally, dict(zip(names, with_it, strict=True))


ESTIMATOR = ecotour.Step(init_tally, draw, steps=200)


# %% [markdown]
# ## What theory says, and what was found


# %%
def facts(tally: Tally) -> dict[str, float]:
    """Slope of the variance over the samples, the bias in standard errors, the baseline's gain."""
    draws = float(tally.draws)
    if not draws:
        return dict.fromkeys(("slope", "bias", "gain"), float("nan"))
    variance = np.asarray(tally.squares) / draws
    slope = np.polyfit(np.log(COUNTS), np.log(variance[1]), 1)[0]
    # a squared mean error over its expectation under no bias; 1 on average, 16 entries each
    mean = np.asarray(tally.total)[1] / draws
    bias = np.sqrt((np.square(mean).sum(axis=(1, 2)) / (variance[1] / draws)).max())
    gain = (variance[0] / variance[1]).mean()
    return {"slope": float(slope), "bias": float(bias), "gain": float(gain)}
