# %% [markdown]
# # Equinox: a model is a tree
#
# In [Equinox](https://docs.kidger.site/equinox/) a model is a *PyTree*: a dataclass whose fields
# are arrays, functions and further models. JAX's transformations want trees of arrays. So the
# whole library is about one thing: to say which leaves of a tree you mean.
#
# **What you will see.** A network learns the same function twice: once every array is trained, once
# its last layer alone. What a last layer can reach at best is known from linear algebra, so one
# sees what training the others is worth. Then the trained model is operated on: one input after the
# other is cut off, and the error that this must cause is known.
"""Equinox: a model is a tree, trained in part and operated on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import ecotour
from ecotour import exhibits

NOISE = 0.1
STEPS = 1500


# %% The flags
@dataclass(frozen=True)
class Config:
    """What can be changed from the command line."""

    width: int = ecotour.flag(32, "units of each of the two hidden layers", at_least=1)
    batch_size: int = ecotour.flag(64, "points a step", at_least=1, at_most=4096)
    learning_rate: float = ecotour.flag(0.01, "Adam's step size, which falls to 0", above=0)


# %% The data
# The function uses two of a point's three coordinates; the network does not know which.
def truth(x: Any) -> Any:
    """From points `[..., 3]` to values `[...]`: sin(3 x0) + x1²."""
    return np.sin(3 * x[..., 0]) + x[..., 1] ** 2


def points(split: str, seed: int, noise: float) -> ecotour.Dataset:
    """Return `x` `[4096, 3]`, even in -1 … 1, and `y` `[4096]`, both float32."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (4096, 3))
    y = truth(x) + noise * generator.normal(size=4096)
    info = ecotour.DataInfo("points in a cube", "synthetic", split, 4096)
    return ecotour.Dataset(info, {"x": x.astype(np.float32), "y": y.astype(np.float32)})


# %% The model
# The fields are models themselves. Deep in them lies `tanh`, a leaf of the tree like the arrays, so
# `jax.grad` and `jax.jit` would refuse the model. Equinox has both again with `filter_` before
# their names: they leave alone what is no array.
class Network(eqx.Module):
    """From one point `[3]` to a scalar."""

    hidden: eqx.nn.MLP
    head: eqx.nn.Linear

    def __init__(self, width: int, key: jax.Array) -> None:
        """Draw the weights: two hidden layers of `width` units, and one that is linear."""
        first, second = jax.random.split(key)
        kind: dict[str, Any] = {"activation": jnp.tanh, "final_activation": jnp.tanh}
        self.hidden = eqx.nn.MLP(3, width, width, 1, **kind, dtype=jnp.float32, key=first)
        self.head = eqx.nn.Linear(width, "scalar", dtype=jnp.float32, key=second)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the value at one point."""
        return self.head(self.hidden(x))


@eqx.filter_jit
def predict(model: Callable[[jax.Array], jax.Array], x: Any) -> jax.Array:
    """Call a model on many points `[N, 3]`."""
    return jax.vmap(model)(x)


# %% The arrays and the rest
# A state of ecotour holds arrays. `eqx.partition` cuts a tree in two of the same form, with `None`
# where the other half has a leaf; `eqx.combine` puts the halves together. The rest, what is no
# array, depends on no key: `filter_eval_shape` finds it without drawing a single number.
class State(NamedTuple):
    """All that changes, and the arrays as they were drawn, for the judge."""

    arrays: Network  # hidden [width, 3] [width] [width, width] [width], head [1, width] [1]
    drawn: Network  # the same
    optimizer: optax.OptState  # Adam's two means of each array that is trained


def rest_of(width: int) -> Network:
    """Return the model without its arrays."""
    shapes = eqx.filter_eval_shape(lambda: Network(width, jax.random.key(0)))
    return eqx.filter(shapes, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct))


# %% Which leaves are trained
# A function of a leaf says it, such as `eqx.is_array`, or a tree of `True` and `False`. One is made
# with `eqx.tree_at`: it returns a copy of a tree, with other leaves where a function points to.
def head_only(arrays: Network) -> Network:
    """`True` at the two arrays of the last layer."""
    nothing = jax.tree.map(lambda leaf: False, arrays)
    return eqx.tree_at(lambda tree: (tree.head.weight, tree.head.bias), nothing, (True, True))


# %% One step
# The gradient has the form of the trained half: no gradient and no means of Adam for the other one.
def learner(config: Config, trained: Callable[[Network], Any]) -> ecotour.Step:
    """Return the named step that trains what `trained` points at."""
    rest = rest_of(config.width)
    adam = optax.adam(optax.cosine_decay_schedule(config.learning_rate, STEPS))

    @eqx.filter_jit
    def init(key: jax.Array, batch: Any) -> State:
        arrays = eqx.filter(Network(config.width, key), eqx.is_array)
        optimizer = adam.init(eqx.filter(arrays, trained(arrays)))
        return State(arrays, jax.tree.map(jnp.copy, arrays), optimizer)

    @eqx.filter_jit
    def step(state: State, batch: Any, key: jax.Array) -> tuple[State, dict[str, jax.Array]]:
        learned, frozen = eqx.partition(state.arrays, trained(state.arrays))

        @eqx.filter_value_and_grad
        def loss_of(learned: Network) -> jax.Array:
            model = eqx.combine(learned, frozen, rest)
            return jnp.mean((predict(model, batch["x"]) - batch["y"]) ** 2)

        loss, gradient = loss_of(learned)
        # Adam raises a float to the power of its int32 count; strict promotion would refuse.
        with jax.numpy_dtype_promotion("standard"):
            updates, optimizer = adam.update(gradient, state.optimizer)
        arrays = eqx.combine(eqx.apply_updates(learned, updates), frozen)
        return State(arrays, state.drawn, optimizer), {"loss": loss}

    def view(state: State, key: jax.Array) -> dict[str, exhibits.Exhibit]:
        model, lines = eqx.combine(state.arrays, rest), {}
        for axis in (0, 1):
            x = np.outer(np.linspace(-1, 1, 61), np.eye(3)[axis]).astype(np.float32)
            lines[f"learned, along x{axis}"] = exhibits.Line(x[:, axis], predict(model, x))
            lines[f"truth, along x{axis}"] = exhibits.Line(x[:, axis], truth(x))
        return {"axes": exhibits.Curves(lines, "The network along two axes, and the truth.", "x")}

    guides = {"loss": (NOISE**2, "the variance of the noise")}
    return ecotour.Step(init, step, STEPS, view, guides, seeds_in_parallel=True)


# %% What is known: the best last layer, and the price of each input
# With the hidden layers frozen the network is linear in what it learns: least squares give the best
# weights on the training points. And with the weights of an input set to zero the network sees a 0
# there. If it knows the truth, that costs the root mean square of sin(3 x0), of x1², of nothing.
PRICES = (math.sqrt(1 / 2 - math.sin(6) / 12), math.sqrt(1 / 5), 0.0)


def best_head(model: Network, data: Mapping[str, np.ndarray]) -> Network:
    """Return the model with the last layer that has the least squared error on `data`."""
    columns = np.column_stack([predict(model.hidden, data["x"]), np.ones(len(data["x"]))])
    weights = np.linalg.lstsq(columns, data["y"].astype(np.float64))[0].astype(np.float32)
    best = (weights[None, :-1], weights[-1:])
    return eqx.tree_at(lambda tree: (tree.head.weight, tree.head.bias), model, best)


def cut(model: Network, axis: int) -> Network:
    """Return the model without one of its inputs; the model itself stays as it is."""
    weight = model.hidden.layers[0].weight.at[:, axis].set(0.0)
    return eqx.tree_at(lambda tree: tree.hidden.layers[0].weight, model, weight)


def distance(model: Network, data: Mapping[str, np.ndarray]) -> float:
    """Return the root mean square of what the model misses `y` by."""
    return float(jnp.sqrt(jnp.mean((predict(model, data["x"]) - data["y"]) ** 2)))


# %% The verdict
# The bounds were measured with seeds 0 to 9: errors of 0.019 to 0.027, 2.7 to 5.1 times as large
# with the best last layer, and prices that are 0.001 to 0.025 off.
def judge(config: Config, outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Hold both trainings against what is known."""
    check, test, states = ecotour.Check, outcome.data["test"].arrays, outcome.states
    models = {of: eqx.combine(s.arrays, rest_of(config.width)) for of, s in states.items()}
    models["best head"] = best_head(models["head"], outcome.data["train"].arrays)
    error = {of: distance(model, test) for of, model in models.items()}
    stayed = jax.tree.map(jnp.array_equal, states["head"].arrays, states["head"].drawn)
    checks = [
        check.at_most("all: error", error["all"], 0.035),
        check.at_least("all: gain on the best head", error["best head"] / error["all"], 2.0),
        check.equals("head: arrays that stayed", sum(map(bool, jax.tree.leaves(stayed))), 4),
    ]
    for axis, price in enumerate(PRICES):
        off = abs(distance(cut(models["all"], axis), test) - price)
        checks.append(check.at_most(f"without x{axis}: error off its price", off, 0.035))
    half = eqx.tree_pformat(eqx.filter(states["head"].arrays, head_only(states["head"].arrays)))
    shown = {"half": exhibits.Code(half, "The trained half of `head`, as a tree.", "python")}
    text = "Off by {all:.3f} with all layers trained, by {head:.3f} with the last one alone; "
    text += "the best last layer that there is would be off by {best head:.3f}."
    return ecotour.Verdict(checks, shown, text.format_map(error))


# %% The program and the hook
def build(config: Config) -> ecotour.Program:
    """Make the program of one configuration."""
    learners = {"all": lambda arrays: eqx.is_array, "head": head_only}
    steps = {name: learner(config, trained) for name, trained in learners.items()}
    data = {"train": points("train", 0, NOISE), "test": points("test", 1, 0.0)}
    return ecotour.Program(steps, partial(judge, config), data, config.batch_size)


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Announce the demo."""
    summary = "Equinox: a model is a tree, trained in part and operated on."
    teaches = "How a model that is a tree is cut, differentiated in part, and changed in one place."
    return ecotour.Demo(summary, Config, build, teaches)
