"""How the measuring steps keep what they find, and how two of them start a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import ecotour


# %% One row of an array per step, in plain Python
# `ecotour.Step(compiled=False)` is called as it is. Each state is `done` [] and `rows` [R, C]; the
# i-th step fills row i. What a row holds stands with the function that measures it.
def measuring_step(
    measure_row: Callable[[int, jax.Array], Any],
    rows: int,
    columns: int,
    summary: Callable[[np.ndarray], dict[str, Any]],
) -> ecotour.Step:
    """Fill a table, one row per step; ``summary`` names what of a row is a metric."""

    def init(key: jax.Array, batch: Any) -> dict[str, np.ndarray]:
        return {"done": np.zeros((), np.int32), "rows": np.full((rows, columns), np.nan)}

    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        done, table = int(state["done"]), np.array(state["rows"])
        if done < rows:  # after the last row there is nothing more to do
            table[done] = np.ravel(measure_row(done, key))
            done += 1
        return {"done": np.asarray(done, np.int32), "rows": table}, summary(table[done - 1])

    return ecotour.Step(init=init, step=step, steps=rows, compiled=False)


# %% An answer in JSON, kept as an array of bytes
ANSWER_BYTES = 2**18


def answer_step(ask: Callable[[jax.Array], Any]) -> ecotour.Step:
    """Ask once, and keep the answer."""

    def init(key: jax.Array, batch: Any) -> dict[str, np.ndarray]:
        return {"answer": np.zeros(ANSWER_BYTES, np.uint8)}

    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        text = json.dumps(ask(key)).encode()
        kept = np.zeros(ANSWER_BYTES, np.uint8)
        kept[: len(text)] = np.frombuffer(text, np.uint8)
        return {"answer": kept}, {"answer_bytes": np.float32(len(text))}

    return ecotour.Step(init=init, step=step, steps=1, compiled=False)


def answer_of(state: Mapping[str, Any]) -> Any:
    """Read what `answer_step` kept."""
    return json.loads(np.asarray(state["answer"], np.uint8).tobytes().rstrip(b"\0"))


# %% A process of its own, since JAX reads its flags as it starts
def run_apart(module: str, *arguments: str, xla_flags: str, **settings: str) -> str:
    """Run ``python -m module`` on the CPU with more of ``XLA_FLAGS``; return what it printed.

    Raises:
        RuntimeError: It ended badly; with the last line of what it said.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} {xla_flags}"
    child = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"the process of {module} ended badly: {last}")
    return child.stdout
