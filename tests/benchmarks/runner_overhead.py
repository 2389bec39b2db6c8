"""What the runner adds to a step: it, against the same compiled step in a bare loop.

With the record of metrics and, for the GAN, checkpoints at their default pace (one in 500 steps is
about one in 30 seconds).

The small step takes about 50 µs of work; the large one is the GAN's. Both loops are driven in
turns, within one process, so that a busy moment falls on both.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ecotour import Program, Step, Verdict, events
from ecotour.cli.process import split_cpu
from ecotour.contract.plan import Plan
from ecotour.discovery import registry
from ecotour.rundir.claim import RunDirectory
from ecotour.rundir.continuation import identity
from ecotour.running.drivers import IN_FLIGHT
from ecotour.running.runner import run
from ecotour.running.stages import count_devices, place
from ecotour.sinks.checkpoints import Checkpoints
from ecotour.sinks.recorder import Recorder

SMALL = 88
"""Side of the matrices of the small step: some 50 µs on the machine that this was written on."""


@dataclass(frozen=True)
class Config:
    """No flags."""


def small() -> Program:
    """A step of about 50 µs: one product of two matrices."""

    def init(key: jax.Array, batch: Any) -> jax.Array:
        return jnp.eye(SMALL)

    @jax.jit
    def step(state: jax.Array, batch: Any, key: jax.Array) -> Any:
        state = jnp.tanh(state @ state)
        return state, {"corner": state[0, 0]}

    return Program({"small": Step(init, step, 10)}, lambda outcome: Verdict(()))


def through_the_runner(program: Program, steps: int, checkpoint_every: int | None = None) -> float:
    """Seconds a step, reporting to a real record on disk; start-up and first step left out."""
    plan = Plan(
        "small", "benchmark 0", Config(), steps=steps, checkpoint_every=checkpoint_every or steps
    )
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory.claim(Path(folder) / "run", "small")
        recorder = Recorder(directory, plan, ["benchmark"], print)
        checkpoints = Checkpoints(directory.path, identity(plan), print)
        began = 0.0
        for event in run(program, plan):
            recorder(event)
            if checkpoint_every:
                checkpoints(event)
            if isinstance(event, events.Reported) and event.step == 1:
                began = time.perf_counter()
            if isinstance(event, events.StepEnded):
                seconds = time.perf_counter() - began
        checkpoints.close()
        recorder.close()
        directory.release()
    return seconds / (steps - 1)


def in_a_bare_loop(program: Program, batch: Any, steps: int) -> float:
    """Seconds a step of the compiled step alone, driven as a user would; metrics fetched once."""
    (step,) = program.steps.values()
    key = jax.random.key(0)
    state = jax.tree.map(jnp.copy, jax.jit(step.init)(key, batch))
    compiled = jax.jit(step.step, donate_argnums=0).lower(state, batch, key).compile()
    state, batch, key = place(compiled, (state, batch, key))
    state, metrics = compiled(state, batch, key)
    jax.block_until_ready(state)
    began = time.perf_counter()
    spread = count_devices(compiled) > 1
    for number in range(steps - 1):
        state, metrics = compiled(state, batch, key)
        if spread and number % IN_FLIGHT == 0:  # as the runner does, and must
            jax.block_until_ready(state)
    jax.block_until_ready((state, metrics))
    return (time.perf_counter() - began) / (steps - 1)


def alternate(ours: Callable[[], float], bare: Callable[[], float], rounds: int) -> dict[str, Any]:
    """Medians of both and of their ratios, side by side."""
    pairs = [(ours(), bare()) for _ in range(rounds)]
    ratios = sorted(a / b for a, b in pairs)
    return {
        "runner_us": 1e6 * statistics.median(a for a, _ in pairs),
        "bare_us": 1e6 * statistics.median(b for _, b in pairs),
        "ratio": statistics.median(ratios),
        "ratio_low_high": [ratios[0], ratios[-1]],
    }


def measure() -> dict[str, Any]:
    """The small step and the GAN's."""
    split_cpu(2)  # as `ecotour run gan` does
    program = small()
    steps = 10_000
    found = {
        "step of some 50 µs": alternate(
            lambda: through_the_runner(program, steps),
            lambda: in_a_bare_loop(program, None, steps),
            rounds=7,
        )
    }
    demo = registry.load(registry.pick("gan"))
    gan = demo.build(demo.config())
    batch = {
        "image": jnp.zeros((64, 28, 28, 1), jnp.uint8),
        "label": jnp.zeros((64,), jnp.uint8),
    }
    # a step of the runner makes its batch too, and looks at 17 sample grids in a whole run: with
    # these few steps views would weigh ten times more than they do, so they are left out
    steps = 500
    quiet = Program(
        {"update": Step(gan.steps["update"].init, gan.steps["update"].step, steps)},
        lambda outcome: Verdict(()),
        gan.data,
        gan.batch_size,
    )
    found["GAN"] = alternate(
        lambda: through_the_runner(quiet, steps, checkpoint_every=400),
        lambda: in_a_bare_loop(gan, batch, steps),
        rounds=3,
    )
    return found


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
