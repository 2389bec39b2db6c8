"""Part three: second derivatives, by Optax's utilities and by JAX's own.

Optax deprecated its `second_order` utilities in 0.2.7 and will remove them in 0.2.9. They are a
good place to see what such utilities are made of, and where one of them misleads.
"""

# %% [markdown]
# ## A problem small enough to write down its whole Hessian
#
# Softmax regression on digits averaged down to 7x7 pixels: 500 parameters, so a Hessian of
# 500 x 500. A network of a million parameters would need 4 terabytes for it; hence the utilities:
#
# - `hvp` multiplies the Hessian by a vector without forming it, for about two gradients;
# - `hessian_diag` takes the diagonal, for as many products as there are parameters;
# - `fisher_diag` squares the gradient of a log-likelihood.

# %%
from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

import ecotour

AVAILABLE = hasattr(getattr(optax, "second_order", None), "hvp")
"""Whether this Optax still has the utilities; without them the demo leaves this part out."""

SIDE, CLASSES = 7, 10


def _logits(pixels: jax.Array) -> jax.Array:
    return hk.Linear(CLASSES)(pixels)


regression = hk.without_apply_rng(hk.transform(_logits))


def shrink(image: jax.Array) -> jax.Array:
    """From image ``uint8 [B, 28, 28, 1]`` to the means of its 4x4 patches: ``float32 [B, 49]``."""
    # with 64 bits switched on float64, as the unit vectors of Optax's hessian_diag are then
    patches = image.reshape(image.shape[0], SIDE, 4, SIDE, 4).astype(float) / 255
    return patches.mean(axis=(2, 4)).reshape(image.shape[0], SIDE * SIDE)


def negative_log_likelihood(params: Any, pixels: jax.Array, label: jax.Array) -> jax.Array:
    """The mean over the batch of ``-log p(label | pixels)``: ``float32 []``."""
    logits = regression.apply(params, pixels)
    labels = label.astype(jnp.int32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


# %% [markdown]
# ## What the Hessian is good for: Newton's method
#
# Newton's step solves H d = gradient. The conjugate-gradient method solves it with products alone,
# so `hvp` is all it needs. A small ridge keeps H invertible, and half a step is taken at a time,
# since each batch shows another H.

# %%
RIDGE, PART_OF_STEP = 1e-2, 0.5


def ridge_loss(params: Any, pixels: jax.Array, label: jax.Array) -> jax.Array:
    """What Newton's method minimises: the likelihood and ``RIDGE / 2`` times the squared norm."""
    penalty = optax.tree.norm(params, squared=True) * (RIDGE / 2)
    return negative_log_likelihood(params, pixels, label) + penalty


class Fit(NamedTuple):
    """The state: the weights, and the curvature that the last step saw.

    Attributes:
        params: Of the regression; P = 500 numbers in all.
        hessian: ``float32 [P]``, the diagonal of the Hessian of `ridge_loss`.
        fisher: ``float32 [P]``, the diagonal of the observed Fisher information.
    """

    params: Any
    hessian: jax.Array
    fisher: jax.Array


# %% [markdown]
# ## Init and step
#
# Every step compares Optax with JAX at the present weights. An *error* is the largest difference
# over the largest true entry.
#
# One comparison is a warning. `fisher_diag` of a whole batch squares the **mean** gradient; the
# Fisher information is the mean of the **squared** gradients of single examples. They are far
# apart, and at a minimum the first is zero. Mapped over examples with `vmap`, it is right.


# %%
def relative_error(found: jax.Array, true: jax.Array) -> jax.Array:
    """``max |found - true| / max |true|``: ``float32 []``."""
    return jnp.abs(found - true).max() / jnp.abs(true).max()


def hvp(vector: jax.Array, params: Any, pixels: jax.Array, label: jax.Array) -> jax.Array:
    """Optax's product of the Hessian of `ridge_loss` with ``vector``: ``float32 [P]``."""
    product = optax.second_order.hvp(ridge_loss, vector, params, pixels, label)
    return ravel_pytree(product)[0]


def init(key: jax.Array, batch: Any) -> Fit:
    """Weights from ``key``; no curvature seen yet."""
    params = regression.init(key, shrink(batch["image"][:1]))
    flat, _ = ravel_pytree(params)
    return Fit(params, jnp.zeros_like(flat), jnp.zeros_like(flat))


@jax.jit
def step(fit: Fit, batch: Any, key: jax.Array) -> tuple[Fit, dict[str, jax.Array]]:
    """Measure the curvature in both ways, then take half of Newton's step."""
    pixels, label = shrink(batch["image"]), batch["label"]
    flat, unravel = ravel_pytree(fit.params)

    # JAX's own, written out in full, and by the other way round (reverse over reverse, where Optax
    # goes forward over reverse): the same formula twice, XLA would compute only once
    hessian = jax.jacrev(jax.grad(lambda flat: ridge_loss(unravel(flat), pixels, label)))(flat)

    def log_likelihoods(flat: jax.Array) -> jax.Array:
        one = jax.vmap(lambda x, y: -negative_log_likelihood(unravel(flat), x[None], y[None]))
        return one(pixels, label)

    fisher = jnp.square(jax.jacfwd(log_likelihoods)(flat)).mean(axis=0)

    # Optax's, which says at each use that it will be gone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        vector = jax.random.normal(key, flat.shape)
        product = hvp(vector, fit.params, pixels, label)
        diagonal = optax.second_order.hessian_diag(ridge_loss, fit.params, pixels, label)
        fisher_of = lambda x, y: optax.second_order.fisher_diag(  # noqa: E731
            negative_log_likelihood, fit.params, x, y
        )
        of_each = jax.vmap(lambda x, y: fisher_of(x[None], y[None]))(pixels, label).mean(axis=0)
        of_batch = fisher_of(pixels, label)
        gradient, _ = ravel_pytree(jax.grad(ridge_loss)(fit.params, pixels, label))
        direction, _ = jax.scipy.sparse.linalg.cg(
            lambda v: hvp(v, fit.params, pixels, label), gradient, maxiter=20
        )

    metrics = {
        "loss": negative_log_likelihood(fit.params, pixels, label),
        "hvp error": relative_error(product, hessian @ vector),
        "hessian_diag error": relative_error(diagonal, jnp.diagonal(hessian)),
        "fisher_diag error, by example": relative_error(of_each, fisher),
        "fisher_diag of the batch, share of the truth": of_batch.sum() / fisher.sum(),
    }
    return Fit(unravel(flat - PART_OF_STEP * direction), diagonal, of_each), metrics


STEP = ecotour.Step(init, step, steps=40, lower_is_better={"loss": True})
