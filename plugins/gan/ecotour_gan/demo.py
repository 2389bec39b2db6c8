"""A generative adversarial network that learns to draw MNIST's digits, written with Haiku.

The one file of the tour's flagship. Read it from top to bottom; ``ecotour run gan`` runs it.
"""

# %% [markdown]
# ## What you will see
#
# Two networks play against each other (Goodfellow et al. 2014, "Generative Adversarial Nets").
# The *generator* turns 20 random numbers, the *latents*, into an image. The *discriminator* looks
# at an image and says whether it is real or drawn. Each is trained to beat the other, and after
# some thousand steps the generator draws digits that it never saw.
#
# Losses do not tell how good the pictures are: at the end a small classifier that knows real
# digits judges 10,000 drawn ones (`verdict.py`).

# %%
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

import ecotour
from ecotour import exhibits
from ecotour_gan import convolutions, gallery, verdict

IMAGE_SIZE = 28
REAL, FAKE = 1, 0  # the discriminator's two classes
Batch: TypeAlias = Mapping[str, jax.Array]  # "image" uint8 [B, 28, 28, 1]; labels are not used

# %% [markdown]
# ## Configuration
#
# Each field is a command-line flag: `ecotour run gan --batch-size 32`.


# %%
@dataclass(frozen=True)
class Config:
    """The architecture of Radford et al. (2015), "DCGAN", at the size of MNIST."""

    batch_size: int = ecotour.flag(64, "real images a step, and as many drawn ones", at_least=1)
    num_latents: int = ecotour.flag(20, "random numbers that make an image", at_least=1)
    learning_rate: float = ecotour.flag(1e-4, "Adam's step size, of both networks", above=0)
    b1: float = ecotour.flag(0.5, "decay of Adam's mean of the gradient", at_least=0, below=1)
    b2: float = ecotour.flag(0.9, "decay of Adam's mean of its square", at_least=0, below=1)
    generator_channels: tuple[int, int] = ecotour.flag(
        (64, 32), "channels of the generator at 7x7 and at 14x14 pixels", at_least=1
    )
    discriminator_channels: tuple[int, ...] = ecotour.flag(
        (8, 16, 32, 64, 128), "channels of the discriminator's layers, strides 2 1 2 …", at_least=1
    )
    convolutions: Literal["auto", "fast", "xla"] = ecotour.flag(
        "auto", "how convolutions are computed: fast on a CPU, XLA's way, or what fits the backend"
    )


# %% [markdown]
# ## State and metrics
#
# All that changes from step to step. Haiku keeps the parameters of a network in a dictionary of
# dictionaries; Optax keeps the running means of Adam in trees of the same shape.


# %%
class State(NamedTuple):
    """394,435 parameters by default, and two running means for each."""

    generator: hk.Params  # 117,889: "generator/linear" w [20, 3136] …
    discriminator: hk.Params  # 276,546: "discriminator/conv2_d" w [5, 5, 1, 8] …
    generator_optimizer: optax.OptState
    discriminator_optimizer: optax.OptState


class Metrics(NamedTuple):
    """Both in nats, means over the batch, scalars."""

    gen_loss: jax.Array  # -log p(real | drawn image); ln 2 where the discriminator can only guess
    disc_loss: jax.Array  # cross-entropy of real plus that of drawn images; there 2 ln 2


# %% [markdown]
# ## The two networks
#
# Plain Haiku modules. A *transposed* convolution of stride 2 doubles height and width, as a
# convolution of stride 2 halves them. It reaches an output pixel with a quarter of its 25 taps
# only, and ReLU halves what arrives: at Haiku's default of variance 1/25 a channel, images would
# start 64 times too faint. So it starts with 8/25 (He et al. 2015, "Delving Deep into
# Rectifiers", counted for the stride), which saves the generator about a thousand steps.


# %%
class Generator(hk.Module):
    """Latents `[B, num_latents]` to images `[B, 28, 28, 1]` in [-1, 1]."""

    def __init__(self, channels: tuple[int, int]) -> None:
        """Take the channels at 7x7 and at 14x14 pixels."""
        super().__init__()
        self.channels = channels

    def __call__(self, latents: jax.Array) -> jax.Array:
        """Draw one image for each row of latents."""
        size, (first, second) = IMAGE_SIZE // 4, self.channels
        x = hk.Linear(size * size * first)(latents)
        x = x.reshape(-1, size, size, first)
        for channels in (second, 1):
            start = hk.initializers.TruncatedNormal(math.sqrt(8 / 25 / x.shape[-1]))
            x = hk.Conv2DTranspose(channels, kernel_shape=5, stride=2, w_init=start)(jax.nn.relu(x))
        return jnp.tanh(x)


class Discriminator(hk.Module):
    """Images `[B, 28, 28, 1]` to two logits `[B, 2]`: drawn, real."""

    def __init__(self, channels: tuple[int, ...]) -> None:
        """Take the channels of each layer; every other one, from the first, halves the image."""
        super().__init__()
        self.channels = channels

    def __call__(self, images: jax.Array) -> jax.Array:
        """Judge each image."""
        x = images
        for layer, channels in enumerate(self.channels):
            x = hk.Conv2D(channels, kernel_shape=5, stride=1 if layer % 2 else 2)(x)
            x = jax.nn.leaky_relu(x, negative_slope=0.2)
        return hk.Linear(2)(hk.Flatten()(x))


# %% [markdown]
# ## From modules to functions
#
# `hk.transform` turns a function that makes modules into two pure ones: `init(key, inputs)` gives
# the parameters, `apply(params, inputs)` the outputs. JAX can differentiate and compile them.


# %%
def generator_of(config: Config) -> hk.Transformed:
    """`apply(params, latents)` draws images."""
    channels = config.generator_channels
    return hk.without_apply_rng(hk.transform(lambda latents: Generator(channels)(latents)))


def discriminator_of(config: Config) -> hk.Transformed:
    """`apply(params, images)` gives two logits for each."""
    channels = config.discriminator_channels
    return hk.without_apply_rng(hk.transform(lambda images: Discriminator(channels)(images)))


def draw(config: Config, params: hk.Params, key: jax.Array, count: int) -> jax.Array:
    """Images `[count, 28, 28, 1]` from fresh latents, standard normal."""
    latents = jax.random.normal(key, (count, config.num_latents), jnp.float32)
    return generator_of(config).apply(params, latents)


def scale(image: jax.Array | np.ndarray) -> jax.Array:
    """Pixels `uint8` 0 … 255 to `float32` -1 … 1, as tanh gives them."""
    return jnp.asarray(image, jnp.float32) / 127.5 - 1.0


# %% [markdown]
# ## Losses
#
# Both are cross-entropies over the two logits. The generator maximises the log-probability that
# its images are taken for real. Written as `-log(softmax(logits))` that overflows once the
# discriminator is very sure (logits some 100 apart): an infinite loss, then NaN everywhere. Optax
# goes through log-softmax, which is finite for all finite logits.


# %%
def cross_entropy(logits: jax.Array, truth: int) -> jax.Array:
    """Mean over a batch whose every image is of the class `truth`, in nats."""
    labels = jnp.full(logits.shape[:-1], truth, dtype=jnp.int32)
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def discriminator_loss(
    params: hk.Params, generator: hk.Params, real: jax.Array, key: jax.Array, config: Config
) -> jax.Array:
    """How badly real images and freshly drawn ones are told apart."""
    fake = draw(config, generator, key, len(real))
    # one batch of both, by turns: wherever it is cut in two, each half has as many of either
    both = jnp.stack([real, fake], axis=1).reshape(-1, *real.shape[1:])
    logits = discriminator_of(config).apply(params, both).reshape(-1, 2, 2)
    return cross_entropy(logits[:, 0], REAL) + cross_entropy(logits[:, 1], FAKE)


def generator_loss(
    params: hk.Params, discriminator: hk.Params, key: jax.Array, config: Config
) -> jax.Array:
    """How seldom freshly drawn images are taken for real."""
    fake = draw(config, params, key, config.batch_size)
    return cross_entropy(discriminator_of(config).apply(discriminator, fake), REAL)


# %% [markdown]
# ## Before the first step


# %%
def adam(config: Config) -> optax.GradientTransformation:
    """Adam (Kingma & Ba 2014), of both networks."""
    return optax.adam(config.learning_rate, b1=config.b1, b2=config.b2)


def init(config: Config, key: jax.Array, batch: Batch) -> State:
    """Random parameters, and running means of zero."""
    generator_key, discriminator_key = jax.random.split(key)
    latents = jnp.zeros((1, config.num_latents), jnp.float32)
    generator = generator_of(config).init(generator_key, latents)
    discriminator = discriminator_of(config).init(discriminator_key, scale(batch["image"]))
    optimizer = adam(config)
    return State(generator, discriminator, optimizer.init(generator), optimizer.init(discriminator))


# %% [markdown]
# ## One step
#
# Both gradients are taken at the old parameters of the other network: the discriminator's update
# comes first, but the generator still plays against the discriminator *before* it, as in the
# public Haiku example of this network. Each loss draws latents of its own.
#
# `convolutions.lowering` changes how a convolution is computed, not what it is: XLA's own is
# several times slower on a CPU, above all in the gradients. It also gives half of the batch to each
# of two cores, if JAX sees them as two devices (`cpu_devices`, in the last cell).


# %%
@partial(jax.jit, static_argnames="config")
def step(
    config: Config, state: State, batch: Batch, key: jax.Array
) -> tuple[State, dict[str, jax.Array]]:
    """Update both networks once."""
    discriminator_key, generator_key = jax.random.split(key)
    with convolutions.lowering(config.convolutions):
        disc_loss, disc_gradient = jax.value_and_grad(discriminator_loss)(
            state.discriminator, state.generator, scale(batch["image"]), discriminator_key, config
        )
        gen_loss, gen_gradient = jax.value_and_grad(generator_loss)(
            state.generator, state.discriminator, generator_key, config
        )
    update = adam(config).update
    # Adam raises a float to the power of its int32 count; strict promotion would refuse.
    with jax.numpy_dtype_promotion("standard"):
        disc_updates, disc_optimizer = update(disc_gradient, state.discriminator_optimizer)
        gen_updates, gen_optimizer = update(gen_gradient, state.generator_optimizer)
    new_state = State(
        optax.apply_updates(state.generator, gen_updates),
        optax.apply_updates(state.discriminator, disc_updates),
        gen_optimizer,
        disc_optimizer,
    )
    return new_state, Metrics(gen_loss, disc_loss)._asdict()


# %% [markdown]
# ## What to look at meanwhile
#
# The key is the same each time, so the latents are too: one watches the same 64 digits appear.


# %%
@partial(jax.jit, static_argnames=("config", "count"))
def sample(config: Config, params: hk.Params, key: jax.Array, count: int) -> jax.Array:
    """`draw`, compiled, for the viewer and the judge."""
    with convolutions.lowering(config.convolutions):
        return draw(config, params, key, count)


def view(config: Config, state: State, key: jax.Array) -> dict[str, exhibits.Exhibit]:
    """A grid of drawn digits; pixels go from -1 … 1 to 0 … 1."""
    pixels = sample(config, state.generator, key, 64) / 2 + 0.5
    caption = "Drawn from the same 64 points of latent space at each step shown."
    return {"samples": exhibits.Images(pixels, caption)}


# %% [markdown]
# ## The verdict
#
# 10,000 drawn images before a classifier that knows real digits. What is wanted was measured:
# seeds 0 to 4, each on the embedded digits and on all of them, 5,000 steps. The scores of real
# digits and of noise stand beside the generator's.


# %%
def judge(config: Config, outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Judge the last generator."""
    generator = outcome.states["update"].generator
    keys = jax.random.split(outcome.key, 20)
    samples = np.concatenate([sample(config, generator, key, 500) for key in keys])
    finite = int(np.isfinite(samples).all(axis=(1, 2, 3)).sum())
    if finite < len(samples):  # diverged: there is nothing that a classifier could judge
        return ecotour.Verdict([ecotour.Check.at_least("finite images", finite, len(samples))])
    real = {split: np.asarray(scale(data.arrays["image"])) for split, data in outcome.data.items()}
    found = verdict.judge(samples, real["train"], real["test"])
    check = ecotour.Check
    checks = (
        check.at_least("classifier score", found.classifier_score.value, 3.5),
        check.at_least("digits covered", found.digits_covered, 9),
        check.at_most("MNIST-FD", found.mnist_fd, 260.0),
        check.at_most("near copies of training images", found.near_copies, 0.02),
    )
    return ecotour.Verdict(checks, gallery.show(samples, found), gallery.summarise(found))


# %% [markdown]
# ## The program
#
# What the runner needs to know: the step and how often, what to look at, which data, who judges.


# %%
def build(config: Config) -> ecotour.Program:
    """Make the program of one configuration."""
    update = ecotour.Step(
        init=partial(init, config),
        step=partial(step, config),
        steps=5000,
        view=partial(view, config),
        guides={
            "gen_loss": (math.log(2), "equilibrium, ln 2"),
            "disc_loss": (2 * math.log(2), "equilibrium, 2 ln 2"),
        },
    )
    return ecotour.Program(
        steps={"update": update},
        judge=partial(judge, config),
        data={"train": ecotour.Digits("train"), "test": ecotour.Digits("test")},
        batch_size=config.batch_size,
        notes={"convolutions": convolutions.describe(config.convolutions)},
    )


# %% [markdown]
# ## The hook
#
# How ecotour finds all this: `pyproject.toml` names this module, and this function is its answer.


# %%
@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Provide the demo."""
    return ecotour.Demo(
        summary="A Haiku GAN that learns to draw MNIST's digits",
        config=Config,
        build=build,
        teaches=(
            "How two networks are trained against each other with pure functions: Haiku modules "
            "turned into init and apply, losses differentiated with jax.value_and_grad, updates by "
            "Optax, the whole step compiled as one program. And how to judge the result, since "
            "the losses cannot."
        ),
        cpu_devices=2,
    )
