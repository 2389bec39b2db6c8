"""The generator's loss for a discriminator that is very sure, computed both ways."""

import jax
import jax.numpy as jnp

margin = 120.0
logits = jnp.array([margin, 0.0])  # drawn, real: it takes the image for drawn


def two_steps(logits: jax.Array) -> jax.Array:
    """The negative logarithm of the softmax."""
    return -jnp.log(jax.nn.softmax(logits)[1])


def one_step(logits: jax.Array) -> jax.Array:
    """The same quantity through log-softmax."""
    return -jax.nn.log_softmax(logits)[1]


print(two_steps(logits), jax.grad(two_steps)(logits))  # inf [nan nan]
print(one_step(logits), jax.grad(one_step)(logits))  # 120.0 [ 1. -1.]
