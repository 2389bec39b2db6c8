"""The flagship's training step, written out in each way that `gan_step` compares.

The network stands here once more, not imported from the demo: a peer must stay what it is when
the demo changes. Each maker imports its own library and returns two functions: one asks for a step
(or, where steps are fused, for `FUSED` of them), the other waits for all that were asked for.
"""

from collections.abc import Callable
from typing import Any

from turns import Peer

BATCH, LATENTS = 64, 20
GENERATOR = (32, 1)
FUSED = 10
"""Steps in one dispatch of the peers that fuse them."""
DISCRIMINATOR = ((8, 2), (16, 1), (32, 2), (64, 1), (128, 2))


def useful_gflop() -> float:
    """Arithmetic of one step in GFLOP: products with the zeros of SAME padding are not counted.

    A layer's two gradients cost as much as its forward pass. The discriminator runs forward three
    times (real, fake, and the generator's fake); backward to its weights twice, to its images
    three times except for the first layer, whose images need a gradient only once. The generator
    runs forward twice and backward once, to weights and, but for its first layer, to inputs.
    """

    def axis(size: int, stride: int, taps: int = 5) -> int:
        out = -(-size // stride)
        low = max((out - 1) * stride + taps - size, 0) // 2
        reads = (stride * o + k - low for o in range(out) for k in range(taps))
        return sum(0 <= pixel < size for pixel in reads)

    total, size, channels = 0, 28, 1
    for number, (width, stride) in enumerate(DISCRIMINATOR):
        layer = axis(size, stride) ** 2 * channels * width
        total += layer * (3 + 2 + (1 if number == 0 else 3))
        size, channels = -(-size // stride), width
    total += size * size * channels * 2 * (3 + 2 + 3)
    total += LATENTS * 7 * 7 * 64 * (2 + 1)
    size, channels = 7, 64
    for width in GENERATOR:
        size *= 2
        total += axis(size, 2) ** 2 * channels * width * (2 + 1 + 1)
        channels = width
    return 2 * BATCH * total / 1e9


def haiku_step(lowering_name: str, together: bool, fused: int = 1) -> Peer:
    """Our step, or the public example's, on JAX's default device.

    ``together``: real and fake images as one batch; ``fused``: steps in one dispatch.
    """
    import haiku as hk
    import jax
    import jax.numpy as jnp
    import optax

    from ecotour.cli.process import split_cpu
    from ecotour.running.stages import place
    from ecotour_gan.convolutions import lowering

    if lowering_name != "xla":
        split_cpu(2)  # as `ecotour run gan` does

    def generator(latents: jax.Array) -> jax.Array:
        x = hk.Linear(7 * 7 * 64)(latents).reshape(-1, 7, 7, 64)
        for width in GENERATOR:
            x = hk.Conv2DTranspose(width, kernel_shape=5, stride=2)(jax.nn.relu(x))
        return jnp.tanh(x)

    def discriminator(x: jax.Array) -> jax.Array:
        for width, stride in DISCRIMINATOR:
            x = jax.nn.leaky_relu(hk.Conv2D(width, kernel_shape=5, stride=stride)(x), 0.2)
        return hk.Linear(2)(hk.Flatten()(x))

    generate = hk.without_apply_rng(hk.transform(generator))
    discriminate = hk.without_apply_rng(hk.transform(discriminator))
    adam = optax.adam(1e-4, b1=0.5, b2=0.9)

    def cross_entropy(logits: jax.Array, label: int) -> jax.Array:
        return -jax.nn.log_softmax(logits)[:, label].mean()

    def update(state: Any, real: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        generator_params, discriminator_params, generator_adam, discriminator_adam = state
        fake_key, chance_key = jax.random.split(key)

        def fakes(params: Any, key: jax.Array) -> jax.Array:
            return generate.apply(params, jax.random.normal(key, (BATCH, LATENTS)))

        def discriminator_loss(params: Any) -> jax.Array:
            fake = fakes(generator_params, fake_key)
            if together:
                both = jnp.stack([real, fake], axis=1).reshape(-1, 28, 28, 1)
                logits = discriminate.apply(params, both).reshape(-1, 2, 2)
                real_logits, fake_logits = logits[:, 0], logits[:, 1]
            else:
                real_logits = discriminate.apply(params, real)
                fake_logits = discriminate.apply(params, fake)
            return cross_entropy(real_logits, 1) + cross_entropy(fake_logits, 0)

        def generator_loss(params: Any) -> jax.Array:
            fake = fakes(params, chance_key)
            return cross_entropy(discriminate.apply(discriminator_params, fake), 1)

        with lowering(lowering_name):
            losses, gradients = zip(
                jax.value_and_grad(generator_loss)(generator_params),
                jax.value_and_grad(discriminator_loss)(discriminator_params),
                strict=True,
            )
        updates, generator_adam = adam.update(gradients[0], generator_adam)
        generator_params = optax.apply_updates(generator_params, updates)
        updates, discriminator_adam = adam.update(gradients[1], discriminator_adam)
        discriminator_params = optax.apply_updates(discriminator_params, updates)
        state = generator_params, discriminator_params, generator_adam, discriminator_adam
        return state, losses

    def updates_fused(state: Any, real: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        def one(state: Any, key: jax.Array) -> tuple[Any, Any]:
            return update(state, real, key)

        return jax.lax.scan(one, state, jax.random.split(key, fused))

    key = jax.random.key(0)
    real = jnp.tanh(jax.random.normal(key, (BATCH, 28, 28, 1)))
    params = (
        generate.init(key, jnp.zeros((BATCH, LATENTS))),
        discriminate.init(key, real),
    )
    state: Any = (*params, adam.init(params[0]), adam.init(params[1]))
    program = update if fused == 1 else updates_fused
    compiled = jax.jit(program, donate_argnums=0).lower(state, real, key).compile()
    state, real, key = place(compiled, (state, real, key))

    def step() -> None:
        nonlocal state
        state, _ = compiled(state, real, key)

    return step, lambda: jax.block_until_ready(state)


def torch_step(channels_last: bool, device: str = "cpu", compiled: bool = False) -> Peer:
    """PyTorch's step, eager or with both networks compiled.

    On a GPU with the choices that are quickest there and keep the numbers that JAX's defaults have:
    cuDNN may search for the best algorithm, and products may be made in TF32.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    layout = torch.channels_last if channels_last else torch.contiguous_format

    class Same(nn.Module):
        """SAME padding of a 5x5 kernel as JAX counts it: the odd zero behind the image."""

        def __init__(self, size: int, stride: int) -> None:
            super().__init__()
            total = max((-(-size // stride) - 1) * stride + 5 - size, 0)
            self.low, self.high = total // 2, total - total // 2

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.pad(x, (self.low, self.high, self.low, self.high))

    layers: list[nn.Module] = []
    size, channels = 28, 1
    for width, stride in DISCRIMINATOR:
        total = max((-(-size // stride) - 1) * stride + 5 - size, 0)
        if total % 2:
            layers += [Same(size, stride), nn.Conv2d(channels, width, 5, stride)]
        else:
            layers += [nn.Conv2d(channels, width, 5, stride, padding=total // 2)]
        layers += [nn.LeakyReLU(0.2)]
        size, channels = -(-size // stride), width
    layers += [nn.Flatten(), nn.Linear(size * size * channels, 2)]
    discriminator: Any = nn.Sequential(*layers).to(device, memory_format=layout)
    generator: Any = nn.Sequential(
        nn.Linear(LATENTS, 7 * 7 * 64),
        nn.Unflatten(1, (64, 7, 7)),
        nn.ReLU(),
        nn.ConvTranspose2d(64, GENERATOR[0], 5, 2, padding=2, output_padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(GENERATOR[0], GENERATOR[1], 5, 2, padding=2, output_padding=1),
        nn.Tanh(),
    ).to(device, memory_format=layout)
    generator_adam, discriminator_adam = (
        torch.optim.Adam(net.parameters(), 1e-4, betas=(0.5, 0.9))
        for net in (generator, discriminator)
    )
    if compiled:
        discriminator, generator = torch.compile(discriminator), torch.compile(generator)
    real = torch.tanh(torch.randn(BATCH, 1, 28, 28)).to(device, memory_format=layout)
    zeros, ones = (torch.full((BATCH,), label, dtype=torch.long, device=device) for label in (0, 1))

    def fakes() -> torch.Tensor:
        return generator(torch.randn(BATCH, LATENTS, device=device))

    def step() -> None:
        with torch.no_grad():
            fake = fakes()
        discriminator_loss = functional.cross_entropy(
            discriminator(real), ones
        ) + functional.cross_entropy(discriminator(fake), zeros)
        # Gradients by name: backward() would also fill the other network's.
        discriminator_gradients = torch.autograd.grad(
            discriminator_loss, list(discriminator.parameters())
        )
        for parameter in discriminator.parameters():
            parameter.requires_grad_(False)
        generator_loss = functional.cross_entropy(discriminator(fakes()), ones)
        generator_gradients = torch.autograd.grad(generator_loss, list(generator.parameters()))
        for parameter, gradient in zip(
            discriminator.parameters(), discriminator_gradients, strict=True
        ):
            parameter.requires_grad_(True)
            parameter.grad = gradient
        for parameter, gradient in zip(generator.parameters(), generator_gradients, strict=True):
            parameter.grad = gradient
        discriminator_adam.step()
        generator_adam.step()

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    return step, wait


def _matrix_product_step() -> Peer:
    """2048 x 2048 x 2048: what this machine's matrix product reaches through XLA."""
    import jax
    import jax.numpy as jnp

    one = jnp.ones((2048, 2048))
    product = jax.jit(lambda a, b: a @ b)

    made = one

    def step() -> None:
        nonlocal made
        made = product(one, one)

    return step, lambda: jax.block_until_ready(made)


MAKERS: dict[str, Callable[[], Peer]] = {
    "ecotour": lambda: haiku_step("fast", together=True),
    "haiku": lambda: haiku_step("xla", together=False),
    "torch": lambda: torch_step(channels_last=False),
    "torch_channels_last": lambda: torch_step(channels_last=True),
    "matrix_product": _matrix_product_step,
}
