"""Part two, continued: learning that does not give away whom it learned from."""

# %% [markdown]
# ## Differentially private SGD
#
# Nobody who sees the trained weights, or even all weights on the way, shall be able to tell
# whether one particular image took part. So each image's own gradient is clipped to a norm of at
# most `clip`, and noise that drowns any single one is added to their sum (Abadi et al., 2016).
# That takes the gradient of every example by itself: `vmap` of `grad`, one line in JAX.

# %%
from __future__ import annotations

import math
from typing import Any

import jax
import optax

import ecotour
from ecotour_optax import digits
from ecotour_optax.digits import Training

RATE = 0.3


def trainer(*, hidden: int, seeds: int, steps: int, clip: float, noise: float) -> ecotour.Step:
    """The named step of DP-SGD: noise of standard deviation ``noise * clip`` on each sum."""
    net = digits.classifier(hidden)

    def make(key: jax.Array) -> optax.GradientTransformation:
        # the optimizer carries its key in its state: with one key for all, the S models would
        # be trained under the same noise
        return optax.chain(
            optax.contrib.differentially_private_aggregate(clip, noise, key),
            optax.scale_by_learning_rate(RATE),
        )

    def init(key: jax.Array, batch: Any) -> Training:
        params = digits.first_weights(net, key, batch, seeds)
        noise_keys = jax.random.split(jax.random.fold_in(key, 1), seeds)
        states = jax.vmap(lambda key, params: make(key).init(params))(noise_keys, params)
        return digits.begin(params, states, seeds)

    def update(params: Any, state: Any, image: jax.Array, label: jax.Array) -> Any:
        def loss(params: Any, image: jax.Array, label: jax.Array) -> jax.Array:
            return digits.cross_entropy(net, params, image[None], label[None])

        each = jax.vmap(jax.value_and_grad(loss), in_axes=(None, 0, 0))
        values, gradients = each(params, image, label)
        # what an update draws comes from the key in the state, not from the one given here
        updates, state = make(jax.random.key(0)).update(gradients, state, params)
        return optax.apply_updates(params, updates), state, values.mean()

    return ecotour.Step(
        init, digits.train(net, update, seeds), steps, lower_is_better=digits.LOWER_IS_BETTER
    )


# %% [markdown]
# ## What it costs
#
# Epsilon bounds how much more likely any outcome may become by one image's presence: a factor of
# e^epsilon, but for a chance of delta. Most papers count as if each image entered each batch by a
# coin of its own (Poisson sampling); that secrecy lowers the price a lot. Where batches are cut
# from a shuffled epoch, as almost everywhere and here, the credit is not due (Chua et al., 2024).


# %%
def epsilon(*, noise: float, share: float, steps: int, delta: float) -> float:
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


def costs(
    *, steps: int, examples: int, seeds: int, batch_size: int, noise: float, delta: float
) -> dict[str, float]:
    """Epsilon of one model after ``steps``, by both accounts: ``poisson`` and ``shuffled``.

    In a shuffled epoch each image is in at most one of the sums, so an epoch as a whole costs
    what a single noisy sum over all images does.
    """
    found = {"steps": steps, "delta": delta, "poisson": 0.0, "shuffled": 0.0}
    if steps:
        epochs = math.ceil(steps / (examples // (seeds * batch_size)))
        share = min(1.0, batch_size / examples)
        found["poisson"] = epsilon(noise=noise, share=share, steps=steps, delta=delta)
        found["shuffled"] = epsilon(noise=noise, share=1.0, steps=epochs, delta=delta)
    return found
