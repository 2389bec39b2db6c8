"""Part two, continued: an optimizer that searches along a line."""

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
from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

import ecotour
from ecotour_optax import digits
from ecotour_optax.digits import Training

POOLED = 16
MEMORY = 10


def trainer(*, hidden: int, seeds: int, steps: int) -> ecotour.Step:
    """The named step of L-BFGS on the first `POOLED` batches."""
    net, optimizer = digits.classifier(hidden), optax.lbfgs(memory_size=MEMORY)

    def init(key: jax.Array, batch: Any) -> Training:
        params = digits.first_weights(net, key, batch, seeds)
        # weakly typed leaves would make the second step compile anew
        states = jax.vmap(optimizer.init)(params)
        states = jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), states)
        pool = {name: jnp.tile(x, (POOLED,) + (1,) * (x.ndim - 1)) for name, x in batch.items()}
        return digits.begin(params, states, seeds)._replace(pool=pool)

    def gather(training: Training, batch: Any) -> tuple[Training, jax.Array]:
        size = batch["label"].shape[0]
        pool = {
            name: jax.lax.dynamic_update_slice_in_dim(
                training.pool[name], batch[name], training.taken * size, axis=0
            )
            for name in batch
        }
        loss = partial(digits.cross_entropy, net, image=batch["image"], label=batch["label"])
        losses = jax.vmap(loss)(training.params)
        return training._replace(pool=pool), losses

    def descend(training: Training, batch: Any) -> tuple[Training, jax.Array]:
        loss = partial(digits.cross_entropy, net, **training.pool)

        def one(given: tuple[Any, Any]) -> Any:
            params, state = given
            first = jnp.isinf(optax.tree.get(state, "value")).astype(jnp.int32)
            value, gradient = optax.value_and_grad_from_state(loss)(params, state=state)
            updates, state = optimizer.update(
                gradient, state, params, value=value, grad=gradient, value_fn=loss
            )
            spent = first + optax.tree.get(state, "num_linesearch_steps").astype(jnp.int32)
            return optax.apply_updates(params, updates), state, spent, value

        params, states, spent, losses = jax.lax.map(one, (training.params, training.optimizer))
        images = training.images + spent * training.pool["label"].shape[0]
        return training._replace(params=params, optimizer=states, images=images), losses

    @jax.jit
    def step(training: Training, batch: Any, key: jax.Array) -> tuple[Training, Any]:
        del key
        gathering = training.taken < POOLED
        training, losses = jax.lax.cond(gathering, gather, descend, training, batch)
        training = digits.look(net, training._replace(taken=training.taken + 1))
        return training, digits.report(losses, training)

    return ecotour.Step(init, step, steps, lower_is_better=digits.LOWER_IS_BETTER)
