"""Part one: paths of optimizers over functions of two variables.

Two variables are few enough to see everything. Each function here has a minimum that is known in
closed form, and each is hard in a way of its own: a bent valley, a plateau, a saddle, a valley
100 times steeper across than along.
"""

# %% [markdown]
# ## An optimizer in Optax is a pair of functions
#
# A *gradient transformation* has `init(params) -> state` and
# `update(gradient, state, params) -> (updates, state)`. It never sees the function that is to be
# minimised and it changes nothing: `optax.apply_updates` adds the updates to the parameters. So
# the same three lines drive every optimizer below, and `vmap` can run many of them at once.

# %%
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ecotour

# %% [markdown]
# ## The functions, where one starts, and where the minima are


# %%
class Surface(NamedTuple):
    """``height`` of a point ``[2]``, the start, the minima ``[K, 2]``, and the window to draw."""

    height: Callable[[jax.Array], jax.Array]
    start: tuple[float, float]
    minima: tuple[tuple[float, float], ...]
    lowest: float
    window: tuple[float, float, float, float]


def rosenbrock(point: jax.Array) -> jax.Array:
    """A bent valley with an almost flat floor (Rosenbrock, 1960)."""
    x, y = point
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def beale(point: jax.Array) -> jax.Array:
    """A plateau between steep walls (Beale, 1958)."""
    x, y = point
    return (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2


def saddle(point: jax.Array) -> jax.Array:
    """A saddle at the origin, with a minimum on either side of it."""
    x, y = point
    return x**2 - y**2 + y**4 / 2


def tilted_bowl(point: jax.Array) -> jax.Array:
    """A quadratic of condition number 100, turned so that no coordinate is a principal axis.

    An optimizer that scales each coordinate by itself (Adam, RMSProp) would straighten it out if
    it were not turned.
    """
    x, y = point
    along, across = 0.8 * x + 0.6 * y, 0.8 * y - 0.6 * x
    return (along**2 + 100 * across**2) / 2


SURFACES: Mapping[str, Surface] = {
    "rosenbrock": Surface(rosenbrock, (-1.2, 1.0), ((1.0, 1.0),), 0.0, (-1.8, 1.8, -1.2, 2.4)),
    "beale": Surface(beale, (1.0, 1.5), ((3.0, 0.5),), 0.0, (-0.5, 4.2, -1.0, 2.2)),
    # a hair beside the ridge: exactly on it the gradient never points to either minimum
    "saddle": Surface(
        saddle, (-1.5, 1e-3), ((0.0, 1.0), (0.0, -1.0)), -0.5, (-1.8, 1.2, -1.6, 1.6)
    ),
    "tilted bowl": Surface(tilted_bowl, (-2.0, 1.5), ((0.0, 0.0),), 0.0, (-2.6, 1.4, -1.4, 2.2)),
}

# %% [markdown]
# ## The panel, on equal terms
#
# A comparison at one learning rate says more about the rate than about the optimizer. So each one
# runs with every rate of the same grid, all rates at once under `vmap`, and shows the best. L-BFGS
# has no rate to choose: its line search finds one at each step, and pays for it with evaluations.
#
# An optimizer is a light closure over its hyperparameters, and these may be traced arrays: so
# `vmap` over the learning rate is `vmap` over a function that builds the optimizer and uses it.

# %%
RATES = tuple(float(rate) for rate in np.geomspace(1e-4, 1.0, 13))

PANEL: Mapping[str, Callable[..., optax.GradientTransformation]] = {
    "sgd": optax.sgd,
    "momentum": lambda learning_rate: optax.sgd(learning_rate, momentum=0.9, nesterov=True),
    "rmsprop": optax.rmsprop,
    "adam": optax.adam,
    "lion": optax.lion,
    "lbfgs": lambda learning_rate: optax.lbfgs(),
}


class Walks(NamedTuple):
    """The state: on each of F surfaces a walk for each of R learning rates.

    Attributes:
        points: ``float32 [F, R, 2]``, where they are.
        optimizer: Of the optimizer, each leaf with ``[F, R]`` as leading axes.
        paths: ``float32 [F, R, T + 1, 2]``, where they have been; what is to come is NaN.
        evaluations: ``int32 [F, R, T + 1]``, gradients evaluated on the way to each point.
        taken: ``int32 []``, steps so far.
    """

    points: jax.Array
    optimizer: Any
    paths: jax.Array
    evaluations: jax.Array
    taken: jax.Array


# %% [markdown]
# ## Init and step
#
# `vmap` runs all rates at once. Over the surfaces goes `lax.map`, one after the other: they are
# different functions, chosen by `lax.switch`, and under `vmap` a switch computes all its branches.


# %%
def height(surface: jax.Array, point: jax.Array) -> jax.Array:
    """The height of ``point`` ``[2]`` on the surface of that number: ``float32 []``."""
    return jax.lax.switch(surface, [known.height for known in SURFACES.values()], point)


def walker(name: str, capacity: int) -> ecotour.Step:
    """The step that walks with optimizer ``name`` over all surfaces, remembering T points."""
    optimizer, searching = PANEL[name], name == "lbfgs"
    rates = np.array([np.nan] if searching else RATES, np.float32)
    lowest = np.array([[surface.lowest] for surface in SURFACES.values()], np.float32)

    def init(key: jax.Array, batch: Any) -> Walks:
        del key, batch  # the walks are the same in every run
        starts = jnp.array([surface.start for surface in SURFACES.values()], jnp.float32)
        points = jnp.tile(starts[:, None], (1, len(rates), 1))
        begin = jax.vmap(lambda rate, point: optimizer(rate).init(point))
        states = jax.vmap(partial(begin, rates))(points)
        # L-BFGS begins with weakly typed leaves, which its first update makes strong: without
        # this the second step would be compiled anew
        states = jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), states)
        paths = jnp.full((*points.shape[:2], capacity + 1, 2), jnp.nan, jnp.float32)
        evaluations = jnp.zeros(paths.shape[:-1], jnp.int32)
        return Walks(points, states, paths.at[:, :, 0].set(points), evaluations, jnp.int32(0))

    def every(one: Callable[..., Any], *given: Any) -> Any:
        # a line search saves gradients by `cond`, which `vmap` would turn into a selection between
        # two results that are both computed
        return jax.lax.map(lambda each: one(*each), given) if searching else jax.vmap(one)(*given)

    def move(surface: jax.Array, rate: jax.Array, point: jax.Array, state: Any) -> Any:
        here = partial(height, surface)
        if not searching:
            gradient = jax.grad(here)(point)
            # Adam raises a float to the power of its int32 count; strict promotion would refuse.
            with jax.numpy_dtype_promotion("standard"):
                updates, state = optimizer(rate).update(gradient, state, point)
            return optax.apply_updates(point, updates), state, jnp.int32(1)
        # the line search has already evaluated the point that it chose: its value and gradient
        # wait in the state, and only the very first ones are computed here
        first = jnp.isinf(optax.tree.get(state, "value")).astype(jnp.int32)
        value, gradient = optax.value_and_grad_from_state(here)(point, state=state)
        updates, state = optimizer(rate).update(
            gradient, state, point, value=value, grad=gradient, value_fn=here
        )
        searched = optax.tree.get(state, "num_linesearch_steps")
        return optax.apply_updates(point, updates), state, first + searched

    @jax.jit
    def step(walks: Walks, batch: Any, key: jax.Array) -> tuple[Walks, dict[str, jax.Array]]:
        del batch, key

        def on_surface(given: tuple[jax.Array, jax.Array, Any]) -> Any:
            surface, points, states = given
            points, states, spent = every(partial(move, surface), rates, points, states)
            return points, states, spent, jax.vmap(partial(height, surface))(points)

        numbers = jnp.arange(len(SURFACES))
        points, states, spent, heights = jax.lax.map(
            on_surface, (numbers, walks.points, walks.optimizer)
        )
        now = walks.taken + 1
        # beyond T points a longer run goes on, but its path is no longer written down
        paths = walks.paths.at[:, :, now].set(points, mode="drop")
        total = walks.evaluations[:, :, walks.taken] + spent
        evaluations = walks.evaluations.at[:, :, now].set(total, mode="drop")
        gaps = jnp.nanmin(heights - lowest, axis=1)
        metrics = {f"{where} gap": gap for where, gap in zip(SURFACES, gaps, strict=True)}
        return Walks(points, states, paths, evaluations, now), metrics

    gaps = {f"{where} gap": True for where in SURFACES}
    return ecotour.Step(init, step, steps=capacity, lower_is_better=gaps)


# %% [markdown]
# ## Who arrives
#
# A walk *arrives* when it is within 0.05 of a minimum and stays there. The best rate is the one
# that arrives first; where none does, the one that ends nearest.


# %%
ARRIVED = 0.05


def distances(surface: Surface, path: np.ndarray) -> np.ndarray:
    """From points ``[..., 2]`` to the nearest minimum: ``[...]``; infinite where a walk blew up."""
    # in float64, where the square of the largest float32 is still a number
    away = path[..., None, :].astype(np.float64) - np.array(surface.minima)
    apart = np.linalg.norm(away, axis=-1).min(axis=-1)
    return np.where(np.isfinite(apart), apart, np.inf)


def arrivals(surface: Surface, path: np.ndarray) -> np.ndarray:
    """For paths ``[R, T, 2]``, the step from which each stays near a minimum; infinite if never."""
    outside = distances(surface, path) > ARRIVED
    last_outside = np.where(outside.any(axis=1), path.shape[1] - 1 - outside[:, ::-1].argmax(1), -1)
    return np.where(outside[:, -1], np.inf, last_outside + 1.0)


def best_walks(states: Mapping[str, Walks], where: str) -> dict[str, dict[str, Any]]:
    """Of each optimizer its best walk on one surface: path, arrival, rate, evaluations."""
    number, surface = list(SURFACES).index(where), SURFACES[where]
    best = {}
    for name, walks in states.items():
        paths = np.asarray(walks.paths[number])[:, : int(walks.taken) + 1]
        arrived = arrivals(surface, paths)
        # NumPy sorts by the last key first: arrival, and where that is equal, the final distance
        chosen = int(np.lexsort((distances(surface, paths[:, -1]), arrived))[0])
        steps = int(arrived[chosen]) if np.isfinite(arrived[chosen]) else None
        spent = None if steps is None else int(walks.evaluations[number, chosen, steps])
        best[name] = {
            "path": paths[chosen],
            "rate": None if len(paths) == 1 else RATES[chosen],
            "steps": steps,
            "gradients": spent,
            "arriving": None if len(paths) == 1 else int(np.isfinite(arrived).sum()),
        }
    return best
