"""Peak memory of a whole run of the GAN, verdict and report included, and of a bare loop."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

BARE = """
import jax, jax.numpy as jnp
from ecotour.discovery import registry
from ecotour.cli.process import split_cpu
from ecotour.running.stages import place
split_cpu(2)
demo = registry.load(registry.pick("gan"))
program = demo.build(demo.config())
(step,) = program.steps.values()
key = jax.random.key(0)
batch = {"image": jnp.zeros((64, 28, 28, 1), jnp.uint8), "label": jnp.zeros((64,), jnp.uint8)}
state = jax.tree.map(jnp.copy, jax.jit(step.init)(key, batch))
compiled = jax.jit(step.step, donate_argnums=0).lower(state, batch, key).compile()
state, batch, key = place(compiled, (state, batch, key))
for _ in range(100):
    state, metrics = compiled(state, batch, key)
    jax.block_until_ready(state)
"""


def peak_bytes(command: list[str]) -> int:
    """Peak resident memory of ``command`` or of the largest process that it starts."""
    watch = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", watch, *command], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024)


def measure() -> dict[str, Any]:
    """Both peaks in bytes, and their ratio. The number of steps does not matter to either."""
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-m", "ecotour", "run", "gan", "--quiet", "--data", "embedded"]
        ours = peak_bytes([*run, "--steps", "100", "--out", f"{folder}/run"])
        bare = peak_bytes([sys.executable, "-c", BARE])
    return {"run_bytes": ours, "bare_loop_bytes": bare, "ratio": ours / bare}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
