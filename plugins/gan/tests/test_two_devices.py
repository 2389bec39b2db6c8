"""One step with its batch over two CPU devices, against the same step on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

SCRIPT = """
import json, re, sys
import jax, jax.numpy as jnp
from ecotour.discovery import registry
demo = registry.load(registry.pick("gan"))
config = demo.config(batch_size=int(sys.argv[1]))
program = demo.build(config)
update = program.steps["update"]
key = jax.random.key(3)
image = jax.random.randint(key, (config.batch_size, 28, 28, 1), 0, 256).astype(jnp.uint8)
state = jax.jit(update.init)(key, {"image": image})
compiled = jax.jit(update.step).lower(state, {"image": image}, key).compile()
places, _ = compiled.input_shardings
state, losses = compiled(*jax.device_put((state, {"image": image}, key), places))
norms = {jax.tree_util.keystr(path): float(jnp.linalg.norm(leaf.ravel()))
         for path, leaf in jax.tree_util.tree_leaves_with_path(state) if leaf.ndim}
print(json.dumps({
    "losses": {name: float(value) for name, value in losses.items()},
    "norms": norms,
    "note": program.notes["convolutions"],
    "talk": sorted(set(re.findall(r"(all-[a-z]+|collective-[a-z]+)\\\\(", compiled.as_text()))),
}))
"""


def one_step(devices: int, batch_size: int) -> Any:
    """What the script printed."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("\\\\", "\\"), str(batch_size)],
        env={**os.environ, "JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("batch_size", "talk"), [(16, ["all-reduce"]), (15, None)])
def test_the_numbers_are_those_of_one_device(batch_size: int, talk: list[str] | None) -> None:
    one, two = one_step(1, batch_size), one_step(2, batch_size)
    assert one["note"] == "fast"
    assert two["note"] == "fast, the batch over 2 devices"
    assert one["talk"] == []
    if talk is not None:  # sums over the devices, and no image goes from one to the other
        assert two["talk"] == talk
    for part in ("losses", "norms"):
        assert one[part].keys() == two[part].keys()
        wanted, found = ([at[part][name] for name in one[part]] for at in (one, two))
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-6)
