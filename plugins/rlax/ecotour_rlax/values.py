# %% [markdown]
# # True values, and believed ones
# Catch is small enough to know what every situation is worth.
#
# With `left` steps to go the paddle can be under the ball if it is at most that many columns away.
# Then the best player gets +1 at the last of these steps, which is worth discount^(left - 1) now;
# otherwise it gets -1.

# %%
"""What situations are worth, and what the network says of it."""

from __future__ import annotations

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from ecotour_rlax import catch


def best_values(discount: float, ball_column: int = 0) -> np.ndarray:
    """Return the true value of each situation, ``float64 [EPISODE, COLUMNS]``."""
    left = catch.EPISODE - np.arange(catch.EPISODE)[:, None]
    distance = np.abs(np.arange(catch.COLUMNS)[None, :] - ball_column)
    value: np.ndarray = np.where(distance <= left, 1.0, -1.0) * discount ** (left - 1.0)
    return value


def believed_values(network: hk.Transformed, params: Any) -> jax.Array:
    """Return what the network says of them, a mean over the seeds, ``float32 [EPISODE, COLUMNS]``.

    ``params`` have the seeds as leading axis.
    """
    rows, paddles = jnp.arange(catch.EPISODE), jnp.arange(catch.COLUMNS)

    def value(params: Any, row: jax.Array, paddle: jax.Array) -> jax.Array:
        picture = catch.observe(catch.Board(row, jnp.int32(0), paddle))
        return jnp.max(network.apply(params, picture).preferences)

    by_paddle = jax.vmap(value, (None, None, 0))
    by_row = jax.vmap(by_paddle, (None, 0, None))
    mean: jax.Array = jnp.mean(jax.vmap(by_row, (0, None, None))(params, rows, paddles), axis=0)
    return mean


def visited() -> np.ndarray:
    """Return where a paddle that starts in the middle can be, ``bool [EPISODE, COLUMNS]``."""
    distance = np.abs(np.arange(catch.COLUMNS)[None, :] - catch.COLUMNS // 2)
    return distance <= np.arange(catch.EPISODE)[:, None]
