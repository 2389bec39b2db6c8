"""The flagship's training step, side by side with what a user would pick instead.

    python tests/benchmarks/gan_step.py [--steps 40] [--json FILE]

One network, one loss, one optimizer, one batch of 64, four ways: through `ecotour_gan`'s faster
convolutions, as plain Haiku, and in PyTorch eager with either memory format (left out where torch
is not installed). Each runs in a process of its own and waits while another measures; they take
turns in blocks of five steps, so that a busy moment of the machine falls on all of them. Reported
are medians, and medians of the ratios of blocks that stand side by side.

The network is written out here once more, not imported: a peer must stay what it is when the
demo changes.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

BATCH, LATENTS, BLOCK = 64, 20, 5
GENERATOR = (32, 1)
DISCRIMINATOR = ((8, 2), (16, 1), (32, 2), (64, 1), (128, 2))
PEERS = ("ecotour", "haiku", "torch", "torch_channels_last")


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


def _haiku_step(lowering_name: str, together: bool) -> Callable[[], None]:
    """Our step, or the public example's; ``together``: real and fake images as one batch."""
    import haiku as hk
    import jax
    import jax.numpy as jnp
    import optax

    from ecotour_gan.convolutions import lowering

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
                logits = discriminate.apply(params, jnp.concatenate([real, fake]))
                real_logits, fake_logits = jnp.split(logits, 2)
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

    key = jax.random.key(0)
    real = jnp.tanh(jax.random.normal(key, (BATCH, 28, 28, 1)))
    params = (
        generate.init(key, jnp.zeros((BATCH, LATENTS))),
        discriminate.init(key, real),
    )
    state: Any = (*params, adam.init(params[0]), adam.init(params[1]))
    compiled = jax.jit(update, donate_argnums=0).lower(state, real, key).compile()

    def step() -> None:
        nonlocal state, key
        state, losses = compiled(state, real, key)
        jax.block_until_ready(losses)

    return step


def _torch_step(channels_last: bool) -> Callable[[], None]:
    import torch
    from torch import nn
    from torch.nn import functional

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
    discriminator = nn.Sequential(*layers).to(memory_format=layout)
    generator = nn.Sequential(
        nn.Linear(LATENTS, 7 * 7 * 64),
        nn.Unflatten(1, (64, 7, 7)),
        nn.ReLU(),
        nn.ConvTranspose2d(64, GENERATOR[0], 5, 2, padding=2, output_padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(GENERATOR[0], GENERATOR[1], 5, 2, padding=2, output_padding=1),
        nn.Tanh(),
    ).to(memory_format=layout)
    generator_adam, discriminator_adam = (
        torch.optim.Adam(net.parameters(), 1e-4, betas=(0.5, 0.9))
        for net in (generator, discriminator)
    )
    real = torch.tanh(torch.randn(BATCH, 1, 28, 28)).to(memory_format=layout)
    zeros, ones = (torch.full((BATCH,), label, dtype=torch.long) for label in (0, 1))

    def fakes() -> torch.Tensor:
        return generator(torch.randn(BATCH, LATENTS))

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

    return step


def _matrix_product_step() -> Callable[[], None]:
    """2048 x 2048 x 2048: what this machine's matrix product reaches through XLA."""
    import jax
    import jax.numpy as jnp

    one = jnp.ones((2048, 2048))
    product = jax.jit(lambda a, b: a @ b)

    def step() -> None:
        product(one, one).block_until_ready()

    return step


MAKERS: dict[str, Callable[[], Callable[[], None]]] = {
    "ecotour": lambda: _haiku_step("fast", together=True),
    "haiku": lambda: _haiku_step("xla", together=False),
    "torch": lambda: _torch_step(channels_last=False),
    "torch_channels_last": lambda: _torch_step(channels_last=True),
    "matrix_product": _matrix_product_step,
}


def _work(name: str) -> None:
    """A peer: makes its step, then times as many as each line of stdin asks for."""
    begin = time.perf_counter()
    step = MAKERS[name]()
    step()
    print(json.dumps(time.perf_counter() - begin), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - begin))
        print(json.dumps(times), flush=True)


def measure(steps: int = 40) -> dict[str, Any]:
    """Times every peer, in turns.

    Args:
        steps: timed steps of each peer, rounded up to whole blocks of five; at least 30 for a
            figure that is to be quoted.

    Returns:
        ``ms``: median, quartiles and the time to the first step of each peer; ``ratios``: of
        ecotour to each of the others, with quartiles; the useful arithmetic of a step, this
        machine's matrix-product rate and the share of it that a step reaches; the machine.
    """
    names = [*PEERS, "matrix_product"]
    if find_spec("torch") is None:
        names = [name for name in names if not name.startswith("torch")]
    workers = {}
    # Not together: a compilation takes all cores, and its time is reported.
    first: dict[str, float] = {}
    times: dict[str, list[list[float]]] = {name: [] for name in names}
    try:
        for name in names:
            worker = subprocess.Popen(
                [sys.executable, __file__, "--peer", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            workers[name] = worker
            first[name] = _answer(worker, name)
        for block in range(-1, -(-steps // BLOCK)):
            # The order turns round from block to block, for the sake of what follows whom.
            for name in names if block % 2 else reversed(names):
                worker = workers[name]
                assert worker.stdin is not None
                worker.stdin.write(f"{BLOCK}\n")
                worker.stdin.flush()
                measured = _answer(worker, name)
                if block >= 0:  # the first block is warm-up
                    times[name].append(measured)
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()
    rate = 2 * 2048**3 / 1e6 / statistics.median(chain(*times["matrix_product"]))
    ours = list(chain(*times["ecotour"]))
    return {
        "ms": {
            name: _spread(list(chain(*blocks))) | {"first_step_s": round(first[name], 2)}
            for name, blocks in times.items()
        },
        "ratios": {
            name: _spread(
                [
                    statistics.median(a) / statistics.median(b)
                    for a, b in zip(times["ecotour"], times[name], strict=True)
                ]
            )
            for name in names
            if name not in ("ecotour", "matrix_product")
        },
        "useful_gflop": round(useful_gflop(), 3),
        "matrix_product_gflops": round(rate, 1),
        "share_of_matrix_product": round(
            useful_gflop() / (statistics.median(ours) / 1e3) / rate, 3
        ),
        "machine": _machine(),
    }


def _answer(worker: "subprocess.Popen[str]", name: str) -> Any:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"the peer {name!r} ended early; run it alone: --peer {name}")
    return json.loads(line)


def _spread(values: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 3), "p25": round(low, 3), "p75": round(high, 3)}


def _machine() -> dict[str, Any]:
    from importlib.metadata import version

    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line for line in info.read_text().splitlines() if line.startswith("model name"))
        cpu = next(lines, cpu).partition(":")[2].strip()
    packages = ("jax", "dm-haiku", "optax", *(["torch"] if find_spec("torch") else []))
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def main() -> None:
    """Measures and prints; with ``--json`` also writes the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=40, help="timed steps of each peer")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--peer", choices=MAKERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        _work(arguments.peer)
        return
    figures = measure(arguments.steps)
    for name, row in figures["ms"].items():
        print(
            f"{name:20s} {row['median']:8.1f} ms   quartiles {row['p25']:.1f} to {row['p75']:.1f}"
            f"   first step after {row['first_step_s']:.1f} s"
        )
    for name, row in figures["ratios"].items():
        print(
            f"ecotour / {name:20s} {row['median']:.3f}   quartiles {row['p25']:.3f} to"
            f" {row['p75']:.3f}"
        )
    print(f"useful arithmetic    {figures['useful_gflop']} GFLOP a step")
    print(f"matrix product       {figures['matrix_product_gflops']} GFLOP/s")
    print(f"share of that rate   {figures['share_of_matrix_product']:.0%}")
    print(figures["machine"])
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
