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


def cross_entropy(net: hk.Transformed, params: Any, image: jax.Array, label: jax.Array) -> jax.Array:
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
Make = Callable[[jax.Array], optax.GradientTransformation]
Update = Callable[[Any, Any, jax.Array, jax.Array], tuple[Any, Any, jax.Array]]


def begin(net: hk.Transformed, make: Make, key: jax.Array, batch: Any, seeds: int) -> Training:
    """S new models; ``make`` gives each its optimizer, with a key for those that draw noise."""

    def one(key: jax.Array) -> tuple[Any, Any]:
        weight_key, noise_key = jax.random.split(key)
        params = net.init(weight_key, batch["image"][:1])
        return params, make(noise_key).init(params)

    params, states = jax.vmap(one)(jax.random.split(key, seeds))
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
        training = begin(net, lambda key: optax.identity(), key, batch, seeds)
        params = training.params
        if looking_ahead:
            params = optax.LookaheadParams.init_synced(params)
        return training._replace(params=params, optimizer=jax.vmap(optimizer.init)(params))

    def update(params: Any, state: Any, image: jax.Array, label: jax.Array) -> Any:
        trained = params.fast if looking_ahead else params
        loss = partial(cross_entropy, net, image=image, label=label)
        value, gradient = jax.value_and_grad(loss)(trained)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    return ecotour.Step(init, train(net, update, seeds), steps, lower_is_better=LOWER_IS_BETTER)


# %% [markdown]
# ## Differentially private SGD
#
# Nobody who sees the trained weights, or even all weights on the way, shall be able to tell
# whether one particular image took part. So each image's own gradient is clipped to a norm of at
# most `clip`, and noise that drowns any single one is added to their sum (Abadi et al., 2016).
# That takes the gradient of every example by itself: `vmap` of `grad`, one line in JAX.


# %%
def private_trainer(
    *, hidden: int, seeds: int, steps: int, clip: float, noise: float
) -> ecotour.Step:
    """The named step of DP-SGD: noise of standard deviation ``noise * clip`` on each sum."""
    net = classifier(hidden)

    def make(key: jax.Array) -> optax.GradientTransformation:
        # the optimizer carries its key in its state: with one key for all, the S models would
        # be trained under the same noise
        return optax.chain(
            optax.contrib.differentially_private_aggregate(clip, noise, key),
            optax.scale_by_learning_rate(PRIVATE_RATE),
        )

    def init(key: jax.Array, batch: Any) -> Training:
        return begin(net, make, key, batch, seeds)

    def update(params: Any, state: Any, image: jax.Array, label: jax.Array) -> Any:
        def loss(params: Any, image: jax.Array, label: jax.Array) -> jax.Array:
            return cross_entropy(net, params, image[None], label[None])

        each = jax.vmap(jax.value_and_grad(loss), in_axes=(None, 0, 0))
        values, gradients = each(params, image, label)
        updates, state = make(jax.random.key(0)).update(gradients, state, params)
        return optax.apply_updates(params, updates), state, values.mean()

    return ecotour.Step(init, train(net, update, seeds), steps, lower_is_better=LOWER_IS_BETTER)


PRIVATE_RATE = 0.3


def privacy_cost(*, noise: float, share: float, steps: int, delta: float) -> float:
    """Epsilon after ``steps`` noisy sums, each over a Poisson sample of a ``share`` of the images.

    By the accountant of privacy loss distributions in dp-accounting. With ``share`` 1 there is no
    credit for sampling. Neighbouring data sets differ in one image that is there or is not.
    """
    import dp_accounting

    mechanism: Any = dp_accounting.GaussianDpEvent(noise)
    if share < 1:
        mechanism = dp_accounting.PoissonSampledDpEvent(share, mechanism)
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(mechanism, steps)
    return float(accountant.get_epsilon(delta))


# %% [markdown]
# ## L-BFGS
#
# A quasi-Newton method learns the curvature from differences of successive gradients, and its
# line search compares losses: both make sense only for one function that stays the same. A new
# batch at each step is a new function. So L-BFGS first gathers a pool of batches, without moving,
# and then minimises the loss on the whole pool.
#
# The seeds go one after the other (`lax.map`), for two reasons. Under `vmap` all line searches
# last as long as the longest of them. And `value_and_grad_from_state` saves a gradient by `cond`,
# which `vmap` turns into a selection between two results that are both computed.

# %%
POOLED = 16
MEMORY = 10


def quasi_newton_trainer(*, hidden: int, seeds: int, steps: int) -> ecotour.Step:
    """The named step of L-BFGS on the first `POOLED` batches."""
    net, optimizer = classifier(hidden), optax.lbfgs(memory_size=MEMORY)

    def init(key: jax.Array, batch: Any) -> Training:
        training = begin(net, lambda key: optimizer, key, batch, seeds)
        # weakly typed leaves would make the second step compile anew
        states = jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), training.optimizer)
        pool = {name: jnp.tile(x, (POOLED,) + (1,) * (x.ndim - 1)) for name, x in batch.items()}
        return training._replace(optimizer=states, pool=pool)

    def gather(training: Training, batch: Any) -> tuple[Training, jax.Array]:
        size = batch["label"].shape[0]
        pool = {
            name: jax.lax.dynamic_update_slice_in_dim(
                training.pool[name], batch[name], training.taken * size, axis=0
            )
            for name in batch
        }
        losses = jax.vmap(partial(cross_entropy, net, **batch))(training.params)
        return training._replace(pool=pool), losses

    def descend(training: Training, batch: Any) -> tuple[Training, jax.Array]:
        loss = partial(cross_entropy, net, **training.pool)

        def one(given: tuple[Any, Any]) -> Any:
            params, state = given
            first = jnp.isinf(optax.tree.get(state, "value")).astype(jnp.int32)
            value, gradient = optax.value_and_grad_from_state(loss)(params, state=state)
            updates, state = optimizer.update(
                gradient, state, params, value=value, grad=gradient, value_fn=loss
            )
            spent = first + optax.tree.get(state, "num_linesearch_steps")
            return optax.apply_updates(params, updates), state, spent, value

        params, states, spent, losses = jax.lax.map(one, (training.params, training.optimizer))
        images = training.images + spent * training.pool["label"].shape[0]
        return training._replace(params=params, optimizer=states, images=images), losses

    @jax.jit
    def step(training: Training, batch: Any, key: jax.Array) -> tuple[Training, Any]:
        del key
        gathering = training.taken < POOLED
        training, losses = jax.lax.cond(gathering, gather, descend, training, batch)
        training = look(net, training._replace(taken=training.taken + 1))
        return training, report(losses, training)

    return ecotour.Step(init, step, steps, lower_is_better=LOWER_IS_BETTER)
