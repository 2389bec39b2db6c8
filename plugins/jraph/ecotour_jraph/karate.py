"""Part one: Zachary's karate club, 100 networks at once. The table of ties is in `club.py`."""

# %% [markdown]
# ## Two of 34 members tell
#
# The loss knows two members only, Mr. Hi and John A. All else comes from the ties: the network
# passes their labels on to those who meet each other. Learning from few labels and a whole graph
# is called *semi-supervised* (Kipf & Welling 2017 show it on this very graph).
#
# Each member ends with two logits: Mr. Hi's club, John A.'s club. Jraph's own example of this
# network leaves the self edges out of its second layer; `no-self-edges` does so too, to see what
# that costs.

# %%
from __future__ import annotations

from functools import partial
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import optax

import ecotour
from ecotour import exhibits
from ecotour_jraph import club, gallery
from ecotour_jraph.descent import Training, descend
from ecotour_jraph.layers import Attention, Convolution

KINDS = ("convolution", "no-self-edges", "attention")
STEPS = 120
optimizer = optax.adam(1e-2)


def network(kind: str) -> hk.Transformed:
    """`apply(params, graph)` gives logits `float32 [34, 2]`."""

    def two_layers(graph: jraph.GraphsTuple) -> jax.Array:
        if kind == "attention":
            first, second = Attention(16), Attention(2, heads=1)
        else:
            first, second = Convolution(16), Convolution(2, self_edges=kind == "convolution")
        hidden = first(graph)
        logits: jax.Array = second(hidden._replace(nodes=jax.nn.relu(hidden.nodes))).nodes
        return logits

    return hk.without_apply_rng(hk.transform(two_layers))


def loss_of(params: hk.Params, kind: str) -> tuple[jax.Array, jax.Array]:
    """Cross-entropy in nats over the two known members, and all logits `[34, 2]`."""
    logits = network(kind).apply(params, club.graph())
    known = logits[jnp.array([club.MR_HI, club.JOHN_A])]
    truth = jnp.array([0, 1])
    losses = optax.losses.softmax_cross_entropy_with_integer_labels(known, truth)
    return losses.mean(), logits


# %% [markdown]
# ## A hundred networks, one program
#
# How good is *a* network? That depends on its first weights, so one asks a hundred. `jax.vmap`
# takes a function written for one network and runs it over all: each array of the parameters has
# one more axis in front, e.g. `w [34, 16]` becomes `w [100, 34, 16]`.


# %%
def init(kind: str, seeds: int, key: jax.Array, batch: Any) -> Training:
    """`seeds` networks, each from a key of its own."""

    def one(key: jax.Array) -> Training:
        params = network(kind).init(key, club.graph())
        return Training(params, optimizer.init(params))

    return jax.vmap(one)(jax.random.split(key, seeds))


@partial(jax.jit, static_argnames="kind")
def step(
    kind: str, state: Training, batch: Any, key: jax.Array
) -> tuple[Training, dict[str, jax.Array]]:
    """Update all networks once.

    Metrics: mean loss, mean accuracy over all 34 members, and the accuracy that a tenth and that
    nine tenths of the networks do not exceed.
    """
    state, loss, logits = jax.vmap(partial(descend, optimizer, partial(loss_of, kind=kind)))(state)
    accuracy = jnp.mean(logits.argmax(axis=-1) == club.club[None], axis=-1)  # [seeds]
    low, high = jnp.quantile(accuracy, jnp.array([0.1, 0.9]))
    return state, {
        "loss": loss.mean(),
        "accuracy": accuracy.mean(),
        "accuracy_p10": low,
        "accuracy_p90": high,
    }


@partial(jax.jit, static_argnames="kind")
def beliefs(kind: str, params: hk.Params) -> jax.Array:
    """The probability of John A.'s club that each network gives each member, `[seeds, 34]`."""
    return jax.vmap(lambda one: jax.nn.softmax(loss_of(one, kind)[1])[:, 1])(params)


# %% [markdown]
# ## What to look at
#
# The club, coloured by what the networks believe on average. A ring marks whom most of them place
# wrongly: everybody at random at first, then hardly anyone but member 9, who changed sides.


# %%
def view(kind: str, state: Training, key: jax.Array) -> dict[str, exhibits.Exhibit]:
    """The club as the networks see it."""
    return {"club": gallery.club_picture(beliefs(kind, state.params))}


def step_of(kind: str, seeds: int) -> ecotour.Step:
    """The named step of one kind of network."""
    return ecotour.Step(
        init=partial(init, kind, seeds),
        step=partial(step, kind),
        steps=STEPS,
        view=partial(view, kind),
        lower_is_better={"loss": True, "accuracy": False},
    )
