"""One update of a network's parameters, the same for every network of this stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import haiku as hk
import jax
import optax


class Training(NamedTuple):
    """What a step changes: parameters, and Adam's running means of their gradients."""

    params: hk.Params
    optimizer: optax.OptState


def descend(
    optimizer: optax.GradientTransformation,
    loss: Callable[..., tuple[jax.Array, Any]],
    state: Training,
    *inputs: Any,
) -> tuple[Training, jax.Array, Any]:
    """Go down the gradient of `loss(params, *inputs) -> (loss, more)` once.

    Returns the new state, and the loss `float32 []` and `more` from before the update.
    """
    (value, more), gradient = jax.value_and_grad(loss, has_aux=True)(state.params, *inputs)
    # Adam raises a float to the power of its int32 count; strict promotion would refuse.
    with jax.numpy_dtype_promotion("standard"):
        updates, means = optimizer.update(gradient, state.optimizer)
    return Training(optax.apply_updates(state.params, updates), means), value, more
