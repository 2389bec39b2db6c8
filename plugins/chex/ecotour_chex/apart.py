"""What needs a process of its own: ``python -m ecotour_chex.apart CONFIG SEED…`` prints JSON.

`chex.chexify` leaves a warning behind when a process ends, and the number of devices can be chosen
only before JAX starts. The parent forces four host devices through ``XLA_FLAGS``.
"""

# %%
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from ecotour_chex import museum
from ecotour_chex.demo import Config
from ecotour_chex.faults import FAULTS, SIDE_EFFECT, WRONG_MEAN
from ecotour_chex.tools import APART, Make, Tool, visits_by_variant
from ecotour_chex.visit import PADDED_STEP, Fault, on_devices


# %% The same check as chexify's, as JAX's own documentation does it: jit on the outside
def checkify_inside_jit(make: Make) -> dict[str, Any]:
    """`jax.jit` of `checkify.checkify`, and not the other way round."""

    def compile_checked(step: Any) -> Any:
        def checked(*arguments: Any) -> Any:
            state, loss = step(*arguments)
            finite = jnp.isfinite(state["params"]["weights"]).all()
            checkify.check(finite, "the parameters are not finite")
            return state, loss

        program = jax.jit(checkify.checkify(checked))

        def call(*arguments: Any) -> Any:
            error, result = program(*arguments)
            error.throw()
            return result

        return call

    return {"compile": compile_checked}


BY_HAND = Tool("checkify inside jit, by hand", checkify_inside_jit)
TIMED = (*APART, BY_HAND)

VARIANTS = ("without_jit", "with_jit", "without_device", "with_device", "with_pmap")
TESTED: tuple[Fault | None, ...] = (None, SIDE_EFFECT)
SPREAD: tuple[Fault | None, ...] = (None, WRONG_MEAN)


# %% Four devices, and four that are not there
def compare_devices(fault: Fault | None, config: Config, seed: np.ndarray) -> list[float]:
    """The error of the padded step on real and on fake devices, and how far these two are apart.

    Returns:
        Two errors in % of the update's length, and the largest difference of a parameter.
    """
    import chex

    training = museum.trainings(fault, config)()
    batch = museum.museum_batches(seed, config.batch_size, PADDED_STEP + 1)[PADDED_STEP - 1]
    noise = jnp.zeros(4, jnp.float32)
    real = on_devices(training)(training.begin(), batch, noise)["params"]["weights"]
    with chex.fake_pmap():
        fake = on_devices(training)(training.begin(), batch, noise)["params"]["weights"]
    one = training.step()(training.begin(), batch, noise)[0]["params"]["weights"]
    size = np.linalg.norm(one)
    errors = [100.0 * float(np.linalg.norm(np.asarray(x)[0] - one) / size) for x in (real, fake)]
    return [*errors, float(np.abs(np.asarray(real) - np.asarray(fake)).max())]


def run_variants(fault: Fault | None, config: Config, seed: np.ndarray) -> list[int]:
    """The step at which the test failed under each of `VARIANTS`; 0 where it passed."""
    make = museum.trainings(fault, config)
    batches = museum.museum_batches(seed, config.batch_size, 4)[:2]
    key = museum.key_of(seed)
    seen = visits_by_variant(make, batches, key, **dict.fromkeys(VARIANTS, True))
    return [seen[name].raised_at for name in VARIANTS]


# %% In the child
def report(config: Config, seed: np.ndarray) -> dict[str, Any]:
    """Lists of numbers in the order of `ROWS`, `APART`, `TIMED`, `SPREAD`, `TESTED`, `VARIANTS`."""
    tried = [museum.try_tools(row, APART, config, seed) for row in range(len(museum.ROWS))]
    names = [tool.name for tool in APART]
    (row,) = [number for number, fault in enumerate(FAULTS, 1) if fault.claimed_by in names]
    return {
        "kind": [[kind for kind, _, _ in row] for row in tried],
        "at": [[at for _, at, _ in row] for row in tried],
        "says": tried[row][names.index(FAULTS[row - 1].claimed_by)][2],
        "ms": [museum.time_guard(tool, config, seed) for tool in TIMED],
        "devices": [compare_devices(fault, config, seed) for fault in SPREAD],
        "variants": [run_variants(fault, config, seed) for fault in TESTED],
    }


# %% In the parent
def nothing_asked(key: jax.Array, batch: Any) -> dict[str, np.ndarray]:
    """Return the findings before the child has answered."""
    size = (len(museum.ROWS), len(APART))
    return {
        "seed": np.asarray(jax.random.key_data(key)),
        "kind": np.zeros(size, np.int32),
        "at": np.zeros(size, np.int32),
        "says": np.zeros(museum.MESSAGE_BYTES, np.uint8),
        "ms": np.zeros((len(TIMED), 2)),
        "devices": np.full((len(SPREAD), 3), np.nan),
        "variants": np.zeros((len(TESTED), len(VARIANTS)), np.int32),
    }


def ask(found: Mapping[str, Any], config: Config) -> tuple[Any, dict[str, Any]]:
    """Start the child and take its answer."""
    words = [str(word) for word in np.asarray(found["seed"])]
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    child = subprocess.run(
        [sys.executable, "-m", "ecotour_chex.apart", json.dumps(asdict(config)), *words],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"the process with four devices ended badly: {last}")
    answer = json.loads(child.stdout)
    answer["says"] = museum.as_bytes(answer["says"])
    new = {name: np.asarray(value, found[name].dtype) for name, value in answer.items()}
    return {**found, **new}, {"caught": np.sum(new["kind"] == museum.CAUGHT)}


if __name__ == "__main__":
    words = np.array([int(word) for word in sys.argv[2:]], np.uint32)
    json.dump(report(Config(**json.loads(sys.argv[1])), words), sys.stdout)
