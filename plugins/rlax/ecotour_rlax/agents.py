# %% [markdown]
# # From a loss to an agent
#
# An agent is a loss, a way to act, and a few numbers. What they share is here: the network, the
# state of one seed, acting, learning. It is written for **one** seed; `demo.py` runs 32 of them
# with `jax.vmap`.

# %%
"""What all agents share: the network, acting, learning; one seed at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import haiku as hk
import jax
import jax.numpy as jnp
import optax

from ecotour_rlax import catch
from ecotour_rlax.imports import rlax
from ecotour_rlax.losses import Experience, Outputs, popart_targets

Params: TypeAlias = Any

# %% [markdown]
# ## How an agent acts
# From the network's three numbers and epsilon to three probabilities. An agent that knows the
# values of the actions takes the best one, and with probability epsilon any of the three. An agent
# that has a policy takes the softmax of its logits and needs no epsilon.


# %%
def epsilon_greedy(preferences: jax.Array, epsilon: jax.Array) -> Any:
    """The best action, or any with probability ``epsilon``."""
    # distrax, on which this rests, divides a bool by an int; strict promotion would refuse that.
    with jax.numpy_dtype_promotion("standard"):
        return rlax.epsilon_greedy(epsilon).probs(preferences)


def softmax(preferences: jax.Array, epsilon: jax.Array) -> Any:
    """The softmax of the logits; ``epsilon`` is not used."""
    return rlax.softmax().probs(preferences)


# %% [markdown]
# ## Exploring less and less
# Epsilon starts at 1 (all random) and falls on a straight line to 0.01 within 1,000 steps of a
# board. In RLax's own example for Catch the step counter is part of the actor's state, and that is
# made anew at the start of each episode: the counter never passes 9 and epsilon never leaves 0.99.
# `restarting` is that schedule; what it costs is measured below.


# %%
EPSILON = optax.linear_schedule(init_value=1.0, end_value=0.01, transition_steps=1000)


def falling(steps: jax.Array, row: jax.Array) -> Any:
    """Epsilon after ``steps`` steps in all: what the schedule says."""
    return EPSILON(steps)


def restarting(steps: jax.Array, row: jax.Array) -> Any:
    """Epsilon after ``row`` steps of this episode: the fault of the example."""
    return EPSILON(row)


# %% [markdown]
# ## The agent


# %%
@dataclass(frozen=True)
class Agent:
    """What tells one agent from another.

    Attributes:
        loss: From experience to a scalar.
        acts: From preferences ``[ACTIONS]`` and epsilon to probabilities ``[ACTIONS]``.
        learning_rate: Adam's.
        epochs: Gradient steps on the same episodes.
        older_every: Updates after which the older copy of the parameters is renewed.
        acts_older: Whether the older copy acts, as in an actor that lags behind its learner.
        reward_scale: What the rewards are multiplied by before the agent sees them.
        epsilon: The schedule: from all steps and the steps of this episode to epsilon.
        popart: Whether the values' units are learned.
    """

    loss: Callable[[Experience], jax.Array]
    acts: Callable[[jax.Array, jax.Array], Any]
    learning_rate: float = 1e-2
    epochs: int = 1
    older_every: int = 1
    acts_older: bool = False
    reward_scale: float = 1.0
    epsilon: Callable[[jax.Array, jax.Array], Any] = falling
    popart: bool = False


class Learner(NamedTuple):
    """The state of one seed.

    Attributes:
        params: Haiku's parameters, float32, and under ``duals`` the two multipliers of V-MPO,
            which every other agent leaves as they are.
        older: A copy of them from some updates ago.
        optimizer: Adam's two moments for each parameter, and its count.
        statistics: PopArt's shift, scale and second moment, ``float32 [1]`` each.
        boards: The boards on which this seed plays, three ``int32 [B]``.
        updates: How often it has learned, ``int32 []``.
    """

    params: Params
    older: Params
    optimizer: Any
    statistics: Any
    boards: catch.Board
    updates: jax.Array


# %% [markdown]
# ## The network
# A picture of 50 numbers, one layer of 64 units, and two heads: three preferences, one value.
# Haiku turns this function into two pure ones: `init(key, picture) -> params` and
# `apply(params, picture) -> (preferences, value)`.


# %%
def make_network(hidden: int) -> hk.Transformed:
    """Return the network; ``apply`` maps ``[ROWS, COLUMNS]`` to ``[ACTIONS]`` and ``[]``."""

    def forward(picture: jax.Array) -> Outputs:
        units = jax.nn.relu(hk.Linear(hidden, name="hidden")(jnp.ravel(picture)))
        preferences = hk.Linear(catch.ACTIONS, name="preferences")(units)
        value = hk.Linear(1, name="value")(units)
        return Outputs(preferences, value[0])

    return hk.without_apply_rng(hk.transform(forward))


# %% [markdown]
# ## The beginning
# The same for all agents, so that one compilation serves them all.


# %%
def begin(key: jax.Array, network: hk.Transformed, boards: int) -> Learner:
    """Return the state of one seed before its first update."""
    params_key, balls_key = jax.random.split(key)
    balls = jax.random.randint(balls_key, (boards,), 0, catch.COLUMNS)
    params = network.init(params_key, jnp.zeros((catch.ROWS, catch.COLUMNS)))
    params["duals"] = {"temperature": jnp.float32(1.0), "alpha": jnp.float32(1.0)}
    statistics = popart(boards, disabled=True)[0]()
    optimizer = optax.adam(0.0).init(params)
    learner = Learner(
        params, params, optimizer, statistics, jax.vmap(catch.start)(balls), jnp.int32(0)
    )
    # A copy of each: the runner donates the state, and one buffer cannot be given away twice.
    copied: Learner = jax.tree.map(jnp.copy, learner)
    return copied


def popart(boards: int, disabled: bool = False) -> Any:
    """Return RLax's PopArt: its initial statistics and its update.

    RLax adds up the corrections of all the returns in a batch where one would expect their mean;
    dividing the rate by their number makes it a mean.
    """
    rate = None if disabled else 0.05 / (boards * catch.EPISODE)
    return rlax.popart(1, rate, scale_lb=1e-2, scale_ub=1e6)


# %% [markdown]
# ## Acting and learning
# `act` plays on all boards of the seed, `learn` takes the gradient step. PopArt comes first: it
# looks at the returns, moves their mean and spread, and rescales the last layer so that nothing
# that the network says changes.


# %%
class Seed:
    """Acting and learning, for one seed of one agent."""

    def __init__(self, agent: Agent, network: hk.Transformed, boards: int, discount: float) -> None:
        """Remember what does not change; whatever does is in a `Learner`."""
        self.agent = agent
        self.network = network
        self.boards = boards
        self.discount = discount
        self.optimizer = optax.adam(agent.learning_rate)
        self.popart = popart(boards, disabled=not agent.popart)[1]

    def policy(self, learner: Learner) -> catch.Policy:
        """Return how this seed acts now: from a board to probabilities."""
        params = learner.older if self.agent.acts_older else learner.params

        def policy(board: catch.Board) -> Any:
            steps = learner.updates * catch.EPISODE + board.ball_row
            epsilon = self.agent.epsilon(steps, board.ball_row)
            preferences = self.network.apply(params, catch.observe(board)).preferences
            return self.agent.acts(preferences, epsilon)

        return policy

    def act(self, learner: Learner, chance: jax.Array) -> tuple[Learner, catch.Trajectory]:
        """Play T steps on each board: ``chance`` ``[B, T, 2]`` to trajectories ``[B, T, …]``."""
        boards, played = jax.vmap(catch.unroll, in_axes=(None, 0, 0))(
            self.policy(learner), learner.boards, chance
        )
        return learner._replace(boards=boards), played

    def experience(
        self, params: Params, older: Params, played: catch.Trajectory, statistics: Any
    ) -> Experience:
        """Return what the networks say of the observations, and what came of them."""
        outputs = jax.vmap(jax.vmap(self.network.apply, (None, 0)), (None, 0))
        now, then = outputs(params, played.observation), outputs(older, played.observation)
        return Experience(now, then, played, statistics, params["duals"])

    def learn(self, learner: Learner, played: catch.Trajectory) -> Learner:
        """Return the state after learning from ``played``."""
        params, statistics, optimizer = learner.params, learner.statistics, learner.optimizer
        played = played._replace(
            reward=played.reward * self.agent.reward_scale,
            discount=played.discount * self.discount,
        )
        older = optax.periodic_update(
            params, learner.older, learner.updates, self.agent.older_every
        )
        if self.agent.popart:
            targets = popart_targets(self.experience(params, older, played, statistics))
            last, statistics = self.popart(
                params["preferences"], statistics, targets, jnp.zeros(targets.shape, jnp.int32)
            )
            params = params | {"preferences": last}

        def loss(params: Params) -> jax.Array:
            return self.agent.loss(self.experience(params, older, played, statistics))

        for _ in range(self.agent.epochs):
            gradient = jax.grad(loss)(params)
            # Adam raises a float to the power of its int32 count; strict promotion would refuse.
            with jax.numpy_dtype_promotion("standard"):
                updates, optimizer = self.optimizer.update(gradient, optimizer)
            params = optax.apply_updates(params, updates)
        return Learner(params, older, optimizer, statistics, learner.boards, learner.updates + 1)


# %% [markdown]
# ## What it has learned
# The player without chance, on all five balls; the mean of its returns is exact.


# %%
def greedy_games(network: hk.Transformed, params: Params) -> tuple[catch.Board, jax.Array]:
    """Return that player's boards ``[COLUMNS, EPISODE + 1]`` and returns ``float32 [COLUMNS]``."""

    def choose(board: catch.Board) -> jax.Array:
        return jnp.argmax(network.apply(params, catch.observe(board)).preferences)

    balls = jax.vmap(catch.start)(jnp.arange(catch.COLUMNS))
    return jax.vmap(lambda ball: catch.play(choose, ball))(balls)
