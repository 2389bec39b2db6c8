"""One program on 1, 2 and 4 devices: ``python -m ecotour_jax.devices SEED`` prints JSON.

A process of its own, because the number of host devices is fixed when JAX starts. The parent
forces four through ``XLA_FLAGS``; "devices" are then threads of one CPU, which is enough to see
the programs and their results, and not to see them get faster.
"""

# %%
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ecotour_jax.bookkeeping import run_apart
from ecotour_jax.measure import median_ms

COUNTS = (1, 2, 4)
BATCH, FEATURES, HIDDEN = 64, 8, 16


# %% The program: the gradient of a mean over a batch
def loss(params: Any, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Inputs [B, 8], targets [B] -> []: mean squared error of one hidden layer."""
    hidden = jnp.tanh(inputs @ params["in"])
    return jnp.mean((hidden @ params["out"] - targets) ** 2)


def gradient_in_numpy(params: Any, inputs: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """The same gradient by hand, in float64."""
    inputs, targets, first, last = (
        np.asarray(one, np.float64) for one in (inputs, targets, params["in"], params["out"])
    )
    hidden = np.tanh(inputs @ first)
    error = 2.0 * (hidden @ last - targets) / len(targets)
    back = np.outer(error, last) * (1.0 - hidden**2)
    return {"in": inputs.T @ back, "out": hidden.T @ error}


# %% Three ways to say the same
def with_jit(mesh: Mesh, params: Any, inputs: jax.Array, targets: jax.Array) -> Any:
    """The program is the one for a single device; the data says where it lies, XLA does the rest.

    The mean over the batch crosses devices, so XLA puts in the all-reduce by itself.
    """
    split = NamedSharding(mesh, PartitionSpec("batch"))
    whole = NamedSharding(mesh, PartitionSpec())
    step = jax.jit(jax.grad(loss))
    return step, (
        jax.device_put(params, whole),
        jax.device_put(inputs, split),
        jax.device_put(targets, split),
    )


def with_shard_map(mesh: Mesh, params: Any, inputs: jax.Array, targets: jax.Array) -> Any:
    """The program of one device, and the mean over devices written out."""
    batch, whole = PartitionSpec("batch"), PartitionSpec()

    def of_one_device(params: Any, inputs: jax.Array, targets: jax.Array) -> Any:
        # Parameters that are the same on all devices have a gradient that is summed over them, so
        # the loss of this device must be its part of the mean.
        return jax.grad(lambda p: jax.lax.pmean(loss(p, inputs, targets), "batch"))(params)

    step = jax.shard_map(of_one_device, mesh=mesh, in_specs=(whole, batch, batch), out_specs=whole)
    return jax.jit(step), (params, inputs, targets)


def with_pmap(mesh: Mesh, params: Any, inputs: jax.Array, targets: jax.Array) -> Any:
    """The older name: the devices are an axis of the data, and the result has one entry each."""

    def of_one_device(params: Any, inputs: jax.Array, targets: jax.Array) -> Any:
        return jax.lax.pmean(jax.grad(loss)(params, inputs, targets), "batch")

    step = jax.pmap(
        of_one_device, axis_name="batch", in_axes=(None, 0, 0), devices=list(mesh.devices)
    )
    inputs, targets = (x.reshape(mesh.size, -1, *x.shape[1:]) for x in (inputs, targets))
    return step, (params, inputs, targets)


MAKERS: dict[str, Callable[..., Any]] = {
    "jit": with_jit,
    "shard_map": with_shard_map,
    "pmap": with_pmap,
}
WAYS = tuple(MAKERS)


# %% What is measured
def measure(way: str, count: int, seed: int) -> dict[str, float]:
    """Run one way on ``count`` devices: its error, its all-reduces, its time.

    ``error`` is the largest difference from the gradient by hand, over that gradient's largest
    entry.
    """
    generator = np.random.default_rng(seed)
    shapes = {"in": (FEATURES, HIDDEN), "out": (HIDDEN,)}
    params = {k: generator.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    inputs = generator.normal(size=(BATCH, FEATURES)).astype(np.float32)
    targets = generator.normal(size=BATCH).astype(np.float32)
    mesh = Mesh(np.array(jax.devices()[:count]), ("batch",))
    step, arguments = MAKERS[way](mesh, params, inputs, targets)
    compiled = step.lower(*arguments).compile()
    result = step(*arguments)
    used = len(jax.tree.leaves(result)[0].sharding.device_set)
    if way == "pmap":
        result = jax.tree.map(lambda x: x[0], result)
    want = gradient_in_numpy(params, inputs, targets)
    errors = [
        np.max(np.abs(np.asarray(result[k]) - want[k])) / np.max(np.abs(want[k])) for k in want
    ]
    text = compiled.as_text()
    return {
        "error": float(max(errors)),
        "all_reduces": float(text.count(" all-reduce(") + text.count(" all-reduce-start(")),
        "devices": float(used),
        "ms": median_ms(step, *arguments, repeats=50),
    }


# %% In the parent
def ask(key: jax.Array) -> Any:
    """Start the child and return its numbers: for each way and count, what `measure` returns."""
    seed = int(np.asarray(jax.random.key_data(key))[-1])
    flags = "--xla_force_host_platform_device_count=4"
    return json.loads(run_apart("ecotour_jax.devices", str(seed), xla_flags=flags))


if __name__ == "__main__":
    numbers = [[measure(way, count, int(sys.argv[1])) for count in COUNTS] for way in WAYS]
    json.dump(numbers, sys.stdout)
