"""Part two: a panel of optimizers on the same digits, the same network, the same seeds.

Each optimizer is a named step of the run. All of them begin at the same weights and see the same
batches in the same order, since the runner derives both from the run's seed alone.
"""

# %% [markdown]
# ## The classifier, in Haiku
#
# A small multilayer perceptron, so that ten trainings fit into a coffee break. `hk.transform`
# turns the function into a pair of pure ones: `init(key, image) -> params` and
# `apply(params, image) -> logits`.

# %%
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

import ecotour


def classifier(hidden: int) -> hk.Transformed:
    """The network: image ``uint8 [B, 28, 28, 1]`` to logits ``float32 [B, 10]``."""

    def forward(image: jax.Array) -> jax.Array:
        pixels = image.reshape(image.shape[0], -1).astype(jnp.float32) / 255
        return hk.nets.MLP([hidden, 10])(pixels)

    return hk.without_apply_rng(hk.transform(forward))


def cross_entropy(
    net: hk.Transformed, params: Any, image: jax.Array, label: jax.Array
) -> jax.Array:
    """The mean softmax cross-entropy of a batch: ``float32 []``."""
    logits = net.apply(params, image)
    labels = label.astype(jnp.int32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def accuracy(net: hk.Transformed, params: Any, image: jax.Array, label: jax.Array) -> jax.Array:
    """The share of digits that are recognised: ``float32 []``."""
    return (net.apply(params, image).argmax(axis=-1) == label.astype(jnp.int32)).mean()


# %% [markdown]
# ## The panel
#
# Learning rates come from one grid (1 and 3 times the powers of ten), the best of each optimizer
# after 400 steps. `adamw by hand` is the same optimizer as `adamw`, put together from the parts
# that Optax makes it of: first the direction, then the pull towards zero, last the step size.

# %%
PEAK = 0.03


def schedule(steps: int) -> optax.Schedule:
    """A tenth of the steps to warm up, the rest down to zero along a cosine."""
    return optax.schedules.warmup_cosine_decay_schedule(0.0, PEAK, steps // 10, steps)


def by_hand(steps: int) -> optax.GradientTransformation:
    """AdamW (Loshchilov and Hutter, 2019) as a chain of three gradient transformations."""
    return optax.chain(
        optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8),
        optax.add_decayed_weights(1e-4),
        optax.scale_by_learning_rate(schedule(steps)),
    )


PANEL: Mapping[str, Callable[[int], optax.GradientTransformation]] = {
    "sgd": lambda steps: optax.sgd(0.3),
    "momentum": lambda steps: optax.sgd(0.1, momentum=0.9),
    "rmsprop": lambda steps: optax.rmsprop(0.01),
    "adam": lambda steps: optax.adam(0.01),
    "adamw": lambda steps: optax.adamw(schedule(steps), weight_decay=1e-4),
    "adamw by hand": by_hand,
    "lion": lambda steps: optax.lion(0.001),
    "lookahead": lambda steps: optax.lookahead(optax.adam(0.01), sync_period=5, slow_step_size=0.5),
}


# %% [markdown]
# ## State and metrics
#
# S models with different first weights are trained at once: every array has the seed as leading
# axis, and `vmap` takes care of it. Each seed takes its own slice of the batch.


# %%
class Training(NamedTuple):
    """The state of one named step.

    Attributes:
        params: The weights, each ``float32 [S, …]``; for Lookahead a fast and a slow copy.
        optimizer: The optimizer's state, each leaf with S as leading axis.
        taken: ``int32 []``, steps so far.
        images: ``int32 [S]``, images whose gradient was computed so far; one that was computed
            twice counts twice.
        accuracy: ``float32 [S]``, on the held-out digits when last looked at.
        pool: For L-BFGS alone, the batch of ``uint8 [M, …]`` that it has gathered.
    """

    params: Any
    optimizer: Any
    taken: jax.Array
    images: jax.Array
    accuracy: jax.Array
    pool: Any = ()


def weights(params: Any) -> Any:
    """The weights to predict with: Lookahead trains the fast ones and predicts with the slow."""
    return params.slow if isinstance(params, optax.LookaheadParams) else params


@cache
def held_out() -> tuple[np.ndarray, np.ndarray]:
    """The 2,000 test digits of the package, ``uint8``, on which the curves are measured."""
    arrays = ecotour.datasets.load("mnist", split="test", source="embedded").arrays
    return arrays["image"], arrays["label"]


EVERY = 10


def look(net: hk.Transformed, training: Training) -> Training:
    """Measure the held-out accuracy at step 1 and then every 10 steps; otherwise keep the last."""
    # behind the barrier XLA does not compute with the constant digits while it compiles
    image, label = jax.lax.optimization_barrier(tuple(map(jnp.asarray, held_out())))

    def measured(training: Training) -> jax.Array:
        params = weights(training.params)
        return jax.vmap(lambda p: accuracy(net, p, image, label))(params)

    due = (training.taken % EVERY == 0) | (training.taken == 1)
    now = jax.lax.cond(due, measured, lambda training: training.accuracy, training)
    return training._replace(accuracy=now)


def report(losses: jax.Array, training: Training) -> dict[str, jax.Array]:
    """Metrics as scalars: mean, lowest and highest over the seeds."""
    spread = {"loss": losses, "held-out accuracy": training.accuracy}
    metrics = {name: values.mean() for name, values in spread.items()}
    metrics |= {f"{name}, lowest": values.min() for name, values in spread.items()}
    metrics |= {f"{name}, highest": values.max() for name, values in spread.items()}
    return metrics | {"images differentiated": training.images.astype(jnp.float32).mean()}


LOWER_IS_BETTER = {"loss": True, "held-out accuracy": False}


# %% [markdown]
# ## Init and step
#
# What is the same for all of the first-order optimizers: S models begin at weights from S keys,
# and `vmap` over `update(params, state, image, label) -> (params, state, loss)` trains them.


# %%
Update = Callable[[Any, Any, jax.Array, jax.Array], tuple[Any, Any, jax.Array]]


def first_weights(net: hk.Transformed, key: jax.Array, batch: Any, seeds: int) -> Any:
    """Weights of S models, each leaf ``float32 [S, …]``.

    By `lax.map`, one model after the other: XLA compiles the drawing of random numbers twice as
    fast as it does under `vmap`, and that is most of what an init costs.
    """
    return jax.lax.map(lambda key: net.init(key, batch["image"][:1]), jax.random.split(key, seeds))


def begin(params: Any, states: Any, seeds: int) -> Training:
    """The state before step 1."""
    none = jnp.zeros(seeds, jnp.float32)
    return Training(params, states, jnp.int32(0), none.astype(jnp.int32), none)


def train(net: hk.Transformed, update: Update, seeds: int) -> Callable[..., Any]:
    """The jitted step that trains S models, each on its own slice of the batch."""

    @jax.jit
    def step(training: Training, batch: Any, key: jax.Array) -> tuple[Training, Any]:
        del key
        slices = {name: x.reshape(seeds, -1, *x.shape[1:]) for name, x in batch.items()}
        params, states, losses = jax.vmap(update)(
            training.params, training.optimizer, slices["image"], slices["label"]
        )
        training = training._replace(
            params=params,
            optimizer=states,
            taken=training.taken + 1,
            images=training.images + slices["label"].shape[1],
        )
        training = look(net, training)
        return training, report(losses, training)

    return step


def trainer(name: str, *, hidden: int, seeds: int, steps: int) -> ecotour.Step:
    """The named step of one optimizer of the panel."""
    net, optimizer = classifier(hidden), PANEL[name](steps)
    looking_ahead = name == "lookahead"

    def init(key: jax.Array, batch: Any) -> Training:
        params = first_weights(net, key, batch, seeds)
        if looking_ahead:
            params = optax.LookaheadParams.init_synced(params)
        return begin(params, jax.vmap(optimizer.init)(params), seeds)

    def update(params: Any, state: Any, image: jax.Array, label: jax.Array) -> Any:
        trained = params.fast if looking_ahead else params
        loss = partial(cross_entropy, net, image=image, label=label)
        value, gradient = jax.value_and_grad(loss)(trained)
        # Adam raises a float to the power of its int32 count; strict promotion would refuse.
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    return ecotour.Step(init, train(net, update, seeds), steps, lower_is_better=LOWER_IS_BETTER)
