# %% [markdown]
# # What each agent learns from
#
# RLax has no agents. It has the parts that tell one agent from another: a TD error says by how
# much a value estimate was wrong, a policy gradient says which action should become likelier. Each
# works on one step (`rlax.q_learning`: five numbers and vectors) or on one sequence
# (`rlax.td_lambda`: T of them), and `jax.vmap` makes of it a function of a whole batch.
#
# RLax's names carry the time: `q_tm1` is the estimate *before* the step (t minus 1), `q_t` the one
# after it, `a_tm1` the action between them, `r_t` and `discount_t` what came of it. Below, that is
# always `[:, :-1]` and `[:, 1:]` of the same array.

# %%
"""The losses of the agents, each from RLax's TD errors and policy gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ecotour_rlax.catch import Trajectory
from ecotour_rlax.imports import rlax

LAMBDA = 0.9
"""How far a reward reaches back: 0 is one step, 1 the whole episode."""


class Outputs(NamedTuple):
    """What a network says of each observation; B boards, T steps.

    Attributes:
        preferences: ``float32 [B, T + 1, ACTIONS]``: values of the actions, or logits.
        value: ``float32 [B, T + 1]``: value of the situation; agents that learn the values of
            actions do not use it.
    """

    preferences: jax.Array
    value: jax.Array


class Experience(NamedTuple):
    """All that a loss may look at.

    Attributes:
        now: What the network says with the parameters that are being learned.
        older: What it says with an older copy of them, the target network.
        played: The trajectories, ``[B, T, …]``; rewards scaled, discounts multiplied by gamma.
        statistics: PopArt's shift and scale of the values, each ``[1]``.
        duals: V-MPO's two multipliers, or empty.
    """

    now: Outputs
    older: Outputs
    played: Trajectory
    statistics: Any
    duals: Mapping[str, jax.Array]


# %% [markdown]
# ## Values of actions
# One-step Q-learning: the value of what was done should be the reward plus the value of the best
# action afterwards. `jax.vmap` twice: over the boards and over the steps.


# %%
def q_learning(e: Experience) -> jax.Array:
    """One-step Q-learning (Watkins, 1989)."""
    q = e.now.preferences
    errors = jax.vmap(jax.vmap(rlax.q_learning))(
        q[:, :-1], e.played.action, e.played.reward, e.played.discount, q[:, 1:]
    )
    return jnp.mean(rlax.l2_loss(errors))


# %% [markdown]
# The maximum of noisy estimates is too high. Double Q-learning lets one network choose the action
# and another one value it.


# %%
def double_q(e: Experience) -> jax.Array:
    """Double Q-learning with a target network (van Hasselt, 2010; van Hasselt et al., 2016)."""
    q = e.now.preferences
    errors = jax.vmap(jax.vmap(rlax.double_q_learning))(
        q[:, :-1],
        e.played.action,
        e.played.reward,
        e.played.discount,
        e.older.preferences[:, 1:],
        q[:, 1:],
    )
    return jnp.mean(rlax.l2_loss(errors))


# %% [markdown]
# The best action afterwards, or the mean over what the agent will really do? Expected SARSA takes
# the mean, and so learns the value of its own policy, exploration included.


# %%
def expected_sarsa(e: Experience) -> jax.Array:
    """Expected SARSA (van Seijen et al., 2009)."""
    q = e.now.preferences
    errors = jax.vmap(jax.vmap(rlax.expected_sarsa))(
        q[:, :-1],
        e.played.action,
        e.played.reward,
        e.played.discount,
        q[:, 1:],
        e.played.policy[:, 1:],
    )
    return jnp.mean(rlax.l2_loss(errors))


# %% [markdown]
# ## Values of actions, many steps at once
# In Catch the reward comes 9 steps after the first decision, and one-step learning needs 9 rounds
# to carry it there. Q(lambda) mixes the returns of all lengths. Watkins' form cuts them where the
# agent explored: what followed says nothing of the greedy policy. Seen backwards these are
# eligibility traces: a reward is credited to all earlier actions, by lambda^distance, up to the
# last one that was not greedy (the two views give the same update; a test holds that).
#
# RLax takes lambda as a sequence, so the cut is one line. It also takes a pair of functions for
# values that are learned in other units: `apply` turns a return into what the network predicts,
# `apply_inv` turns it back. Three such pairs are compared below on rewards of 10,000: two that
# squash the values (10,000 becomes 109 or 9.2), and one that is learned.


# %%
def q_lambda(e: Experience, pair: Any = rlax.IDENTITY_PAIR) -> jax.Array:
    """Watkins' Q(lambda), in the units of ``pair`` (van Hasselt et al., 2019)."""
    q = e.now.preferences

    def errors(q: jax.Array, lambda_: jax.Array, played: Trajectory) -> Any:
        return rlax.transformed_q_lambda(
            q[:-1], played.action, played.reward, played.discount, q[1:], lambda_, tx_pair=pair
        )

    return jnp.mean(rlax.l2_loss(jax.vmap(errors)(q, eligibility(e), e.played)))


def eligibility(e: Experience) -> jax.Array:
    """Return lambda for each step, ``float32 [B, T]``: 0 where the next action was not greedy."""
    greedy = jnp.argmax(e.now.preferences[:, 1:-1], axis=-1) == e.played.action[:, 1:]
    return jnp.pad(jnp.where(greedy, LAMBDA, 0.0), ((0, 0), (0, 1)))


def q_lambda_hyperbolic(e: Experience) -> jax.Array:
    """Q(lambda) on ``sign(x) (sqrt(|x| + 1) - 1) + 0.001 x`` (Pohlen et al., 2018)."""
    return q_lambda(e, rlax.SIGNED_HYPERBOLIC_PAIR)


def q_lambda_logarithm(e: Experience) -> jax.Array:
    """Q(lambda) on ``sign(x) log(|x| + 1)`` of the returns."""
    return q_lambda(e, rlax.SIGNED_LOGP1_PAIR)


# %% [markdown]
# PopArt learns the units instead: it follows the mean and the spread of the returns and lets the
# network predict (return - mean) / spread. Each time these two change, the last layer is changed
# the other way, so that no prediction changes ("preserving outputs precisely").


# %%
def popart_pair(statistics: Any) -> Any:
    """Return PopArt's units as a pair of functions, like any other."""

    def normalize(x: jax.Array) -> Any:
        return rlax.normalize(statistics, x, jnp.zeros(x.shape, jnp.int32))

    def unnormalize(x: jax.Array) -> Any:
        return rlax.unnormalize(statistics, x, jnp.zeros(x.shape, jnp.int32))

    return rlax.TxPair(normalize, unnormalize)


def q_lambda_popart(e: Experience) -> jax.Array:
    """Q(lambda) in the units of PopArt (van Hasselt et al., 2016)."""
    return q_lambda(e, popart_pair(e.statistics))


def popart_targets(e: Experience) -> Any:
    """Return the returns that Q(lambda) aims at, in reward units, ``float32 [B, T]``."""
    best = popart_pair(e.statistics).apply_inv(jnp.max(e.now.preferences[:, 1:], axis=-1))
    return jax.vmap(rlax.lambda_returns)(e.played.reward, e.played.discount, best, eligibility(e))


# %% [markdown]
# ## Policies
# A policy gradient needs no values: make likelier what was followed by a high return.
# RLax's policy losses take a sequence and a weight for each of its steps.


# %%
ENTROPY = 0.01
"""How much a policy is paid for staying undecided, in units of reward."""


def policy_gradient(e: Experience, advantage: jax.Array) -> jax.Array:
    """Policy gradient and entropy bonus; ``advantage`` is ``float32 [B, T]``."""
    logits = e.now.preferences[:, :-1]
    weight = jnp.ones_like(advantage)
    policy = jax.vmap(rlax.policy_gradient_loss)(logits, e.played.action, advantage, weight)
    entropy = jax.vmap(rlax.entropy_loss)(logits, weight)
    return jnp.mean(policy + ENTROPY * entropy)


def reinforce(e: Experience) -> jax.Array:
    """REINFORCE (Williams, 1992): the advantage is the return itself. Whole episodes only."""
    nothing = jnp.zeros_like(e.played.reward)
    returns = jax.vmap(rlax.discounted_returns)(e.played.reward, e.played.discount, nothing)
    return policy_gradient(e, returns)


# %% [markdown]
# A critic says what return was to be expected; better or worse than that is what counts.


# %%
def actor_critic(e: Experience) -> jax.Array:
    """Actor-critic with TD(lambda) errors as advantages (A2C: Mnih et al., 2016)."""
    v = e.now.value
    errors = jax.vmap(rlax.td_lambda, in_axes=(0, 0, 0, 0, None))(
        v[:, :-1], e.played.reward, e.played.discount, v[:, 1:], LAMBDA
    )
    return policy_gradient(e, errors) + jnp.mean(rlax.l2_loss(errors))


# %% [markdown]
# ## Learning from what an older policy did
# Actors in another process lag behind the learner. The ratio of the two policies' probabilities
# says how much an action still counts; V-trace clips it at 1. Without the correction the agent
# believes that it did what the older policy did.


# %%
def importance_ratios(e: Experience) -> Any:
    """Return pi(action) / mu(action), ``float32 [B, T]``; mu is the policy that acted."""
    acted = jnp.log(e.played.policy[:, :-1])
    return rlax.categorical_importance_sampling_ratios(
        e.now.preferences[:, :-1], acted, e.played.action
    )


def vtrace(e: Experience, corrected: bool = True) -> jax.Array:
    """V-trace actor-critic (IMPALA: Espeholt et al., 2018)."""
    v = e.now.value
    ratios = jax.lax.stop_gradient(importance_ratios(e))
    if not corrected:
        ratios = jnp.ones_like(ratios)
    # RLax 0.1.9 multiplies a bool mask by a float in here; strict promotion would refuse that.
    with jax.numpy_dtype_promotion("standard"):
        out = jax.vmap(rlax.vtrace_td_error_and_advantage)(
            v[:, :-1], v[:, 1:], e.played.reward, e.played.discount, ratios
        )
    return policy_gradient(e, out.pg_advantage) + jnp.mean(rlax.l2_loss(out.errors))


def uncorrected(e: Experience) -> jax.Array:
    """The same with all ratios set to 1: what it costs to ignore the lag."""
    return vtrace(e, corrected=False)
