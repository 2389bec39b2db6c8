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

import chex
import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour_chex import bookkeeping
from ecotour_chex.faults import NO_FAULT, SIDE_EFFECT, WRONG_MEAN, Fault
from ecotour_chex.tools import APART, BY_HAND, visits_by_variant
from ecotour_chex.training import Config
from ecotour_chex.visit import PADDED_STEP, on_devices

TIMED = (*APART, BY_HAND)
VARIANTS = ("without_jit", "with_jit", "without_device", "with_device", "with_pmap")
TESTED = (NO_FAULT, SIDE_EFFECT)
SPREAD = (NO_FAULT, WRONG_MEAN)


# %% Four devices, and four that are not there
def compare_devices(fault: Fault, config: Config, seed: np.ndarray) -> list[float]:
    """The error of the padded step on real and on fake devices, and how far these two are apart.

    Returns:
        Two errors in % of the update's length, and the largest difference of a parameter.
    """
    training = bookkeeping.trainings(fault, config)()
    batches, _ = bookkeeping.conditions(seed, config, PADDED_STEP + 1)
    batch, noise = batches[PADDED_STEP - 1], jnp.zeros(4, jnp.float32)
    real = on_devices(training)(training.begin(), batch, noise)["params"]["weights"]
    with chex.fake_pmap():
        fake = on_devices(training)(training.begin(), batch, noise)["params"]["weights"]
    one = training.step()(training.begin(), batch, noise)[0]["params"]["weights"]
    size = np.linalg.norm(one)
    errors = [100.0 * float(np.linalg.norm(np.asarray(x)[0] - one) / size) for x in (real, fake)]
    return [*errors, float(np.abs(np.asarray(real) - np.asarray(fake)).max())]


def run_variants(fault: Fault, config: Config, seed: np.ndarray) -> list[int]:
    """The step at which the test failed under each of `VARIANTS`; 0 where it passed."""
    make = bookkeeping.trainings(fault, config)
    batches, key = bookkeeping.conditions(seed, config, 4)
    seen = visits_by_variant(make, batches[:2], key, **dict.fromkeys(VARIANTS, True))
    return [seen[name].raised_at for name in VARIANTS]


# %% In the child
def report(config: Config, seed: np.ndarray) -> dict[str, Any]:
    """Lists of numbers in the order of `ROWS`, `APART`, `TIMED`, `SPREAD`, `TESTED`, `VARIANTS`."""
    rows = [bookkeeping.tried_row(fault, APART, config, seed) for fault in bookkeeping.ROWS]
    return {
        **{name: [row[name] for row in rows] for name in rows[0]},
        "ms": [bookkeeping.time_guard(tool, config, seed) for tool in TIMED],
        "devices": [compare_devices(fault, config, seed) for fault in SPREAD],
        "variants": [run_variants(fault, config, seed) for fault in TESTED],
    }


# %% In the parent
def apart_step(config: Config) -> ecotour.Step:
    """Start the child and take its answer."""

    def init(key: jax.Array, batch: Any) -> dict[str, np.ndarray]:
        return {
            "seed": np.asarray(jax.random.key_data(key)),
            **bookkeeping.no_findings(APART),
            "ms": np.zeros((len(TIMED), 2)),
            "devices": np.full((len(SPREAD), 3), np.nan),
            "variants": np.zeros((len(TESTED), len(VARIANTS)), np.int32),
        }

    def step(found: Mapping[str, Any], batch: Any, key: jax.Array) -> Any:
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
        answer["says"] = [bookkeeping.as_bytes(text) for text in answer["says"]]
        new = {name: np.asarray(value, found[name].dtype) for name, value in answer.items()}
        return {**found, **new}, {"caught": np.sum(new["kind"] == bookkeeping.CAUGHT)}

    return ecotour.Step(init, step, steps=1, compiled=False)


if __name__ == "__main__":
    words = np.array([int(word) for word in sys.argv[2:]], np.uint32)
    json.dump(report(Config(**json.loads(sys.argv[1])), words), sys.stdout)
