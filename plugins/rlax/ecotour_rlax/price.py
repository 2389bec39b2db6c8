# %% [markdown]
# # The price of a Python loop
#
# The same agent does the same work, driven in three ways. In the first, Python asks for one move
# at a time, as most reinforcement learning code does, and then for an update. In the second, nine
# moves and the update are one compiled program, for one seed; in the third for all seeds.
#
# This cannot be a pure, compiled step: it looks at a clock. `ecotour` calls it as it is.

# %%
"""Environment steps per second: from Python, fused, and fused for all seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ecotour_rlax import catch
from ecotour_rlax.agents import Learner, Seed


# %%
def from_python(seed: Seed) -> Callable[[Learner, jax.Array], Learner]:
    """Return an update whose moves are asked for one by one. Each move is compiled, as is usual."""
    move = jax.jit(lambda learner, key: seed.act(learner, catch.chance(key, seed.boards, 1)))
    learn = jax.jit(lambda learner, pieces: seed.learn(learner, join(pieces)))

    def update(learner: Learner, key: jax.Array) -> Learner:
        pieces = []
        for move_key in jax.random.split(key, catch.EPISODE):
            learner, piece = move(learner, move_key)
            pieces.append(piece)
        updated: Learner = learn(learner, pieces)
        return updated

    return update


def join(pieces: list[catch.Trajectory]) -> catch.Trajectory:
    """Return trajectories of one step each as one of T steps."""
    whole: catch.Trajectory = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *pieces)
    every_other = slice(None, None, 2)  # the last observation of one is the first of the next
    last = pieces[-1]
    return whole._replace(
        observation=jnp.append(whole.observation[:, every_other], last.observation[:, 1:], axis=1),
        policy=jnp.append(whole.policy[:, every_other], last.policy[:, 1:], axis=1),
    )


# %%
def fused(seed: Seed) -> Callable[[Learner, jax.Array], Learner]:
    """Return an update as one function: nine moves, then learning."""

    def update(learner: Learner, key: jax.Array) -> Learner:
        chance = catch.chance(key, seed.boards, catch.EPISODE)
        return seed.learn(*seed.act(learner, chance))

    return update


# %% [markdown]
# The three take turns, so that whatever else the machine does slows all of them alike. Dispatch is
# asynchronous: without `block_until_ready` one would measure how fast work is handed over.


# %%
class Price:
    """The three ways, as a step that measures them."""

    def __init__(self, seed: Seed, seeds: int, begin: Callable[[jax.Array], Learner]) -> None:
        """Compile nothing yet."""
        self.begin = begin
        self.seeds = seeds
        steps = seed.boards * catch.EPISODE
        self.ways: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
            "from_python": (from_python(seed), steps),
            "one_seed_fused": (jax.jit(fused(seed)), steps),
            "all_seeds_fused": (jax.jit(jax.vmap(fused(seed))), steps * seeds),
        }

    def init(self, key: jax.Array, batch: None) -> dict[str, Learner]:
        """Return a learner for each way, after an update that compiles it."""
        again = jax.random.clone  # the same key on purpose: these learners are for the clock only
        keys = jax.random.split(again(key), self.seeds)
        one, many = jax.jit(self.begin)(again(key)), jax.jit(jax.vmap(self.begin))(keys)
        state = {"from_python": one, "one_seed_fused": one, "all_seeds_fused": many}
        return self.step(state, batch, key)[0]

    def step(
        self, state: dict[str, Learner], batch: None, key: jax.Array
    ) -> tuple[dict[str, Learner], dict[str, Any]]:
        """Return the learners after one update each, and environment steps per second."""
        again = jax.random.clone
        keys = {"all_seeds_fused": jax.random.split(again(key), self.seeds)}
        after, rates = {}, {}
        for name, (update, steps) in self.ways.items():
            given = keys.get(name, again(key))
            began = time.perf_counter()
            after[name] = update(state[name], given)
            jax.block_until_ready(after[name])
            rates[name] = jnp.float32(steps / (time.perf_counter() - began))
        return after, rates
