"""The GAN against an independent computation, its documented size, and its judge."""

from __future__ import annotations

import math
from typing import Any

import gan_in_numpy as apart
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ecotour import Dataset, Outcome, datasets
from ecotour_gan import demo

KEY = jax.random.key(0)


def batch_of(size: int, step: int = 0) -> dict[str, jax.Array]:
    train = datasets.load("mnist", "train", "embedded").arrays
    chosen = slice(step * size, (step + 1) * size)
    return {name: jnp.asarray(array[chosen]) for name, array in train.items()}


def doubles(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def size(tree: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def test_the_networks_have_the_documented_number_of_parameters() -> None:
    state = jax.eval_shape(lambda: demo.init(demo.Config(), KEY, batch_of(2)))
    assert (size(state.generator), size(state.discriminator)) == (117_889, 276_546)


def test_pixels_are_scaled_to_the_range_of_tanh_and_not_wrapped() -> None:
    scaled = demo.scale(np.array([0, 127, 128, 200, 255], np.uint8))
    np.testing.assert_allclose(scaled, [-1, -1 / 255, 1 / 255, 145 / 255, 1], atol=1e-7)
    assert scaled.dtype == jnp.float32


@pytest.mark.parametrize("form", ["fast", "xla"])
def test_three_steps_agree_with_numpy_in_double_precision(form: Any) -> None:
    """Losses, gradients (through Adam's means) and updates, computed apart in gan_in_numpy."""
    config = demo.Config(batch_size=6, convolutions=form)
    state = jax.jit(demo.init, static_argnums=0)(config, KEY, batch_of(6))
    generator, discriminator = doubles(state.generator), doubles(state.discriminator)
    adams = [apart.Adam(config.learning_rate, config.b1, config.b2) for _ in range(2)]
    for step in range(3):
        key = jax.random.fold_in(KEY, step)
        batch = batch_of(6, step)
        for_discriminator, for_generator = jax.random.split(key)
        latents = [
            np.asarray(jax.random.normal(k, (6, 20)), np.float64)
            for k in (for_discriminator, for_generator)
        ]
        real = np.asarray(batch["image"], np.float64) / 127.5 - 1
        # the discriminator: real and drawn images in one batch, each loss a mean of its own half
        fake, _ = apart.generate(generator, latents[0])
        logits, kept = apart.discriminate(discriminator, np.concatenate([real, fake]))
        real_loss, real_g = apart.cross_entropy(logits[:6], 1)
        fake_loss, fake_g = apart.cross_entropy(logits[6:], 0)
        disc_g, _ = apart.discriminate_back(discriminator, kept, np.concatenate([real_g, fake_g]))
        # the generator, against the discriminator before its update
        fake, drawn = apart.generate(generator, latents[1])
        logits, kept = apart.discriminate(discriminator, fake)
        gen_loss, g = apart.cross_entropy(logits, 1)
        _, image_g = apart.discriminate_back(discriminator, kept, g)
        gen_g = apart.generate_back(generator, drawn, image_g)

        with jax.numpy_dtype_promotion("standard"):  # Optax's own bias correction needs it
            state, metrics = demo.step(config, state, batch, key)
        np.testing.assert_allclose(metrics["disc_loss"], real_loss + fake_loss, rtol=2e-6)
        np.testing.assert_allclose(metrics["gen_loss"], gen_loss, rtol=2e-6)
        discriminator = adams[0].update(discriminator, disc_g)
        generator = adams[1].update(generator, gen_g)
        means = [state.discriminator_optimizer[0].mu, state.generator_optimizer[0].mu]
        for adam, mean in zip(adams, means, strict=True):
            for (name, leaf), expected in adam.m.items():
                scale = np.abs(expected).max()
                np.testing.assert_allclose(mean[name][leaf], expected, atol=2e-5 * scale)
        for ours, expected in ((state.generator, generator), (state.discriminator, discriminator)):
            for name, leaves in expected.items():
                for leaf, value in leaves.items():
                    # where a gradient is all but zero Adam's step is a sign, so a few may differ
                    close = np.isclose(ours[name][leaf], value, rtol=1e-5, atol=1e-6)
                    assert close.mean() > 0.999, (name, leaf, close.mean())


def test_the_numpy_gradient_is_that_of_finite_differences() -> None:
    """So the independent computation is right by itself, and not merely equal to ours."""
    config = demo.Config(batch_size=2, discriminator_channels=(3, 4), generator_channels=(4, 3))
    state = demo.init(config, KEY, batch_of(2))
    generator, discriminator = doubles(state.generator), doubles(state.discriminator)
    latents = np.random.default_rng(0).standard_normal((2, 20))

    def loss() -> float:
        fake, _ = apart.generate(generator, latents)
        return apart.cross_entropy(apart.discriminate(discriminator, fake)[0], 1)[0]

    fake, drawn = apart.generate(generator, latents)
    logits, kept = apart.discriminate(discriminator, fake)
    disc_g, image_g = apart.discriminate_back(
        discriminator, kept, apart.cross_entropy(logits, 1)[1]
    )
    gen_g = apart.generate_back(generator, drawn, image_g)
    rng = np.random.default_rng(1)
    for params, gradient in ((generator, gen_g), (discriminator, disc_g)):
        for name, leaves in params.items():
            for leaf, value in leaves.items():
                place = tuple(rng.integers(0, n) for n in value.shape)
                old, h = value[place], 1e-6
                value[place] = old + h
                above = loss()
                value[place] = old - h
                below = loss()
                value[place] = old
                expected = (above - below) / (2 * h)
                np.testing.assert_allclose(
                    gradient[name][leaf][place], expected, rtol=1e-4, atol=1e-9
                )


def test_a_discriminator_that_is_very_sure_gives_a_finite_loss_and_gradient() -> None:
    logits = jnp.array([[200.0, -200.0]])
    value, gradient = jax.value_and_grad(demo.cross_entropy)(logits, demo.REAL)
    assert value == 400.0
    np.testing.assert_array_equal(gradient, [[1.0, -1.0]])
    assert not np.isfinite(-jnp.log(jax.nn.softmax(logits)[0, 1]))  # the form that is avoided


def test_the_guides_are_the_losses_of_a_discriminator_that_can_only_guess() -> None:
    guides = demo.build(demo.Config()).steps["update"].guides
    undecided = jnp.zeros((4, 2))
    real, fake = (demo.cross_entropy(undecided, truth) for truth in (demo.REAL, demo.FAKE))
    assert math.isclose(guides["gen_loss"][0], real, rel_tol=1e-6)
    assert math.isclose(guides["disc_loss"][0], real + fake, rel_tol=1e-6)


def test_the_view_draws_the_same_latents_each_time() -> None:
    config = demo.Config(discriminator_channels=(2,), generator_channels=(4, 2))
    state = demo.init(config, KEY, batch_of(2))
    first, second = (demo.view(config, state, KEY)["samples"].pixels for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (64, 28, 28, 1)
    assert 0 <= first.min() <= first.max() <= 1


@pytest.mark.parametrize("poison", [False, True])
def test_an_untrained_or_diverged_generator_fails_the_verdict(poison: bool) -> None:
    config = demo.Config(discriminator_channels=(2,), generator_channels=(4, 2))
    state = demo.init(config, KEY, batch_of(2))
    if poison:
        state = state._replace(generator=optax.tree.scale(math.nan, state.generator))
    data: dict[str, Dataset] = {
        split: datasets.load("mnist", split, "embedded") for split in ("train", "test")
    }
    found = demo.judge(config, Outcome({"update": state}, {}, data, KEY, {}))
    assert not all(check.passed for check in found.checks)
    assert not found.checks[0].passed
