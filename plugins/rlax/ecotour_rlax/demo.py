# %% [markdown]
# # RLax: the building blocks of reinforcement learning
#
# An agent sees a situation, acts, and now and then gets a reward. It is to find out which actions
# lead to rewards that come much later. RLax holds the mathematics of the known ways to do that, as
# pure functions; it has no agents, no environments and no training loop. This tour builds a dozen
# agents from them and lets them play **Catch**: a ball falls down a board of 10 rows and 5
# columns, and after 9 steps a paddle must be under it (`catch.py`).
#
# **What you will see.**
# - How quickly each agent learns. A player that cannot see the ball gets -0.6 on average, the best
#   one gets +1. Every curve is the *interquartile mean* over 32 seeds, which leaves out the best
#   and the worst quarter, and the band is where it lies with 95% confidence: one seed says little
#   in reinforcement learning.
# - What exploration costs when its schedule is wrong, and why a test of the greedy player does not
#   show it.
# - What happens to the same agent when all rewards are 10,000 times larger, and two cures.
# - How many steps per second a Python loop costs.
#
# Read `catch.py` (the game), `losses.py` and `improvement.py` (what agents learn from) and
# `agents.py` (how one seed acts and learns) beside this file; each is a few pages. `values.py` and
# `price.py` are what is measured besides. `gallery.py` and `imports.py` are no part of the lesson.

# %%
"""RLax's losses at work: a dozen agents play Catch, 32 seeds of each at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour import exhibits
from ecotour_rlax import agents, catch, gallery, improvement, losses, values
from ecotour_rlax.agents import Agent, Learner, Seed, epsilon_greedy, softmax
from ecotour_rlax.price import Price

# %% [markdown]
# ## Configuration
# Each field is a flag: `ecotour run rlax --boards 8`.


# %%
@dataclass(frozen=True)
class Config:
    """What a user may change."""

    seeds: int = ecotour.flag(32, "independent runs of each agent, side by side", at_least=4)
    boards: int = ecotour.flag(16, "boards on which each seed plays at once", at_least=1)
    hidden: int = ecotour.flag(64, "units in the hidden layer", at_least=1)
    discount: float = ecotour.flag(0.99, "worth of a reward one step later", above=0, at_most=1)


UPDATES = 300
"""Updates of each agent; before each, every board plays one episode of 9 steps."""

# %% [markdown]
# ## The agents
# One line each: the loss, how to act, and what is special. Everything else is the same for all, so
# that the curves can be compared.

# %%
LARGE = 10_000.0

AGENTS = {
    # the values of actions; the best one is taken, less and less often a random one
    "q_learning": Agent(losses.q_learning, epsilon_greedy),
    "double_q": Agent(losses.double_q, epsilon_greedy, older_every=5),
    "q_lambda": Agent(losses.q_lambda, epsilon_greedy),
    "expected_sarsa": Agent(losses.expected_sarsa, epsilon_greedy),
    # the same as q_learning, with the schedule of RLax's own example
    "restarting_epsilon": Agent(losses.q_learning, epsilon_greedy, epsilon=agents.restarting),
    # policies
    "reinforce": Agent(losses.reinforce, softmax),
    "actor_critic": Agent(losses.actor_critic, softmax),
    "ppo": Agent(improvement.ppo, softmax, epochs=4),
    "vmpo": Agent(improvement.vmpo, softmax, epochs=4),
    # an actor that lags up to 20 updates behind, with and without correction
    "vtrace": Agent(losses.vtrace, softmax, older_every=20, acts_older=True),
    "uncorrected_lag": Agent(losses.uncorrected, softmax, older_every=20, acts_older=True),
    # the same as q_lambda, with rewards of 10,000
    "large_plain": Agent(losses.q_lambda, epsilon_greedy, reward_scale=LARGE),
    "large_popart": Agent(losses.q_lambda_popart, epsilon_greedy, reward_scale=LARGE, popart=True),
    "large_hyperbolic": Agent(losses.q_lambda_hyperbolic, epsilon_greedy, reward_scale=LARGE),
    "large_logarithm": Agent(losses.q_lambda_logarithm, epsilon_greedy, reward_scale=LARGE),
}

# %% [markdown]
# ## State and metrics
# The state of a step is a `Learner` (see `agents.py`) whose every array has one more leading axis:
# the seed, `[32, …]`. Nobody wrote code for that axis; `jax.vmap` adds it.
#
# Metrics are scalars. `greedy_return` is the interquartile mean over the seeds of the exact mean
# return without exploration; `greedy_low` and `greedy_high` are its 95% confidence interval by
# bootstrap: what it would be in 200 other draws of 32 seeds from these. `acting_return` is what the
# agent got while it explored and learned. Returns are always counted in rewards of 1.


# %%
SHOWN_ONLY = {"uncorrected_lag", "large_plain", "large_hyperbolic"}
"""Agents from which nothing is demanded: they stand beside the ones that must reach 0.95."""


def interquartile_mean(values: jax.Array) -> jax.Array:
    """Return the mean of the middle half, ``[…, S]`` to ``[…]`` (Agarwal et al., 2021)."""
    cut = values.shape[-1] // 4
    return jnp.mean(jnp.sort(values)[..., cut : values.shape[-1] - cut], axis=-1)


def measure(greedy: jax.Array, acting: jax.Array) -> dict[str, jax.Array]:
    """Return the metrics of one update from the seeds' returns, ``float32 [S]`` each."""
    draws = np.random.default_rng(0).integers(len(greedy), size=(200, len(greedy)))
    spread = jnp.sort(interquartile_mean(greedy[draws]))
    return {
        "greedy_return": interquartile_mean(greedy),
        "greedy_low": spread[4],
        "greedy_high": spread[195],
        "acting_return": interquartile_mean(acting),
    }


# %% [markdown]
# ## Init and step
# `jax.vmap` turns the functions of one seed into functions of 32. `jax.jit` compiles the whole
# step, from the first move on 512 boards to the last new parameter, into one program. All chance of
# an update is drawn at once, from the step's own key.


# %%
def make_step(agent: Agent, config: Config, network: hk.Transformed, init: Any) -> ecotour.Step:
    """Return the named step of one agent."""
    seed = Seed(agent, network, config.boards, config.discount)

    def one_seed(learner: Learner, chance: jax.Array) -> tuple[Learner, jax.Array, jax.Array]:
        learner, played = seed.act(learner, chance)
        learner = seed.learn(learner, played)
        acting = jnp.mean(jnp.sum(played.reward, axis=1))
        return learner, jnp.mean(agents.greedy_games(network, learner.params)[1]), acting

    @jax.jit
    def step(state: Learner, batch: None, key: jax.Array) -> tuple[Learner, dict[str, jax.Array]]:
        chance = catch.chance(key, config.seeds, config.boards, catch.EPISODE)
        state, greedy, acting = jax.vmap(one_seed)(state, chance)
        return state, measure(greedy, acting)

    return ecotour.Step(
        init,
        step,
        UPDATES,
        guides={"greedy_return": (-0.6, "blind"), "acting_return": (-0.6, "blind")},
        lower_is_better={"greedy_return": False, "acting_return": False},
    )


# %% [markdown]
# ## View
# What Q(lambda) believes while it learns: the value of the best action for a ball in the leftmost
# column, by the ball's row and the paddle's column. The true values are a cone: where the paddle
# can no longer get there in time the value is negative. (`values.py` has the arithmetic.)
#
# ## The program
# All agents begin alike, so `init` is one function. The last step is not an agent: it measures
# what a Python loop costs.


# %%
def build(config: Config) -> ecotour.Program:
    """Return the program."""
    network = agents.make_network(config.hidden)

    def begin(key: jax.Array) -> Learner:
        return agents.begin(key, network, config.boards)

    def init(key: jax.Array, batch: None) -> Learner:
        return jax.vmap(begin)(jax.random.split(key, config.seeds))

    steps = {name: make_step(agent, config, network, init) for name, agent in AGENTS.items()}

    believed = jax.jit(lambda state: values.believed_values(network, state.params))

    def view(state: Learner, key: jax.Array) -> dict[str, exhibits.Exhibit]:
        return {"values": gallery.value_map(believed(state), "as Q(lambda) believes", gallery.RARE)}

    steps["q_lambda"] = replace(steps["q_lambda"], view=view)

    seed = Seed(AGENTS["q_learning"], network, config.boards, config.discount)
    price = Price(seed, config.seeds, begin)
    steps["price_of_python"] = ecotour.Step(price.init, price.step, 20, compiled=False)
    return ecotour.Program(
        steps,
        judge=lambda outcome: judge(outcome, config, network),
        notes={
            "environment": f"Catch {catch.ROWS}x{catch.COLUMNS}, synthetic, written in JAX",
            "seeds": f"{config.seeds} seeds of each agent, {config.boards} boards each",
        },
    )


# %% [markdown]
# ## Judge
# The bounds come from 5 whole runs with different seeds; an untrained agent misses them all. What
# is said to fail is checked as well: whoever says "this does not work" may be wrong about it.


# %%
def judge(outcome: ecotour.Outcome, config: Config, network: hk.Transformed) -> ecotour.Verdict:
    """Return the verdict."""
    history = outcome.history
    greedy = {name: history[name]["greedy_return"].last for name in AGENTS}
    acting = {name: history[name]["acting_return"].last for name in AGENTS}
    price = {way: float(np.median(s.values)) for way, s in history["price_of_python"].items()}
    lag = [history[name]["greedy_return"].values.mean() for name in ("vtrace", "uncorrected_lag")]
    gain = lag[0] - lag[1]
    q_lambda = outcome.states["q_lambda"].params
    believed, true = values.believed_values(network, q_lambda), values.best_values(config.discount)
    winning = values.visited() & (true > 0)  # what is lost the agent hardly ever sees
    error = np.abs(np.asarray(believed) - true)[winning].mean()

    at_least, at_most = ecotour.Check.at_least, ecotour.Check.at_most
    checks = [
        at_least(f"greedy return, {name}", greedy[name], 0.95)
        for name in AGENTS
        if name not in SHOWN_ONLY
    ]
    checks += [
        at_least("return while acting, q_learning", acting["q_learning"], 0.85),
        at_most("return while acting, restarting_epsilon", acting["restarting_epsilon"], -0.4),
        at_most("greedy return, large_plain", greedy["large_plain"], 0.7),
        at_least("greedy return while learning, gain by V-trace's correction", gain, 0.08),
        at_most("mean error of the values of q_lambda", error, 0.1),
        at_least(
            "all seeds fused, in speeds of a Python loop",
            price["all_seeds_fused"] / price["from_python"],
            3.0,
        ),
    ]

    first_seed = jax.tree.map(lambda x: x[0], q_lambda)
    boards, _ = agents.greedy_games(network, first_seed)
    return ecotour.Verdict(
        checks,
        {
            "results": gallery.results(history, list(AGENTS)),
            **gallery.families(history),
            "exploration": gallery.exploration(history, "q_learning", "restarting_epsilon"),
            "price_of_python": exhibits.Bars(
                [way.replace("_", " ") for way in price],
                list(price.values()),
                "Environment steps per second of the same agent, learning included; medians.",
                "steps per second",
            ),
            "believed_values": gallery.value_map(believed, "as Q(lambda) believes", gallery.RARE),
            "true_values": gallery.value_map(true, "as it is"),
            "episode": gallery.film(
                boards,
                "One seed of Q(lambda), trained, on all five "
                "balls. Early on the paddle may wander: every way that arrives in time is worth "
                "the same.",
            ),
        },
        f"{sum(greedy[name] >= 0.95 for name in AGENTS)} of {len(AGENTS)} agents catch (almost) "
        f"every ball. With its epsilon restarted in each episode Q-learning still gets "
        f"{acting['restarting_epsilon']:.2f} while acting, though without exploration it would get "
        f"{greedy['restarting_epsilon']:.2f}.",
    )


# %% [markdown]
# ## The hook
# How the runner finds all this: the entry point names this module, the module has this function.


# %%
@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Return the demo."""
    return ecotour.Demo(
        summary="A dozen agents from RLax's losses learn Catch, 32 seeds of each at once.",
        config=Config,
        build=build,
        teaches=(
            "What tells the known reinforcement learning algorithms apart is a few lines each: the "
            "TD error or the policy gradient, which RLax provides as pure functions. You see how "
            "fast each learns and how sure one can be of that, what a wrong exploration schedule "
            "costs, how values are kept in range when rewards are large, and why agent, "
            "environment and learning belong into one compiled program."
        ),
    )
