"""Is the ledger true? Two questions that only whole processes can answer.

* The wall time of 2 N steps less that of N must be N times the steady step that was reported.
* The phases of the ledger must add up to the wall time of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PHASES = ("import_s", "data_s", "init_s", "compile_s", "loop_s", "view_s", "judge_s", "sinks_s")


def one(folder: Path, steps: int) -> tuple[float, dict[str, Any]]:
    """Wall seconds of a run of the GAN as a process, and its ledger."""
    out = folder / str(steps)
    command = [sys.executable, "-m", "ecotour", "run", "gan", "--data", "embedded", "--quiet"]
    command += ["--steps", str(steps), "--log-every", "20", "--out", str(out)]
    began = time.perf_counter()
    subprocess.run(command, check=True)
    wall = time.perf_counter() - began
    return wall, json.loads((out / "run.json").read_text())["ledger"]


def measure(steps: int = 300) -> dict[str, Any]:
    """Both answers, as shares of 1."""
    with tempfile.TemporaryDirectory() as folder:
        one(Path(folder), 1)  # fills the compilation cache
        short_wall, _ = one(Path(folder), steps)
        long_wall, ledger = one(Path(folder), 2 * steps)
    steady = ledger["steps"]["update"]["steady_ms"]["p50"]
    return {
        "wall_2N_less_wall_N_s": long_wall - short_wall,
        "N_steady_steps_s": steps * steady / 1e3,
        "ratio": (long_wall - short_wall) / (steps * steady / 1e3),
        "wall_s": long_wall,
        "phases_s": {phase: ledger[phase] for phase in PHASES},
        "phases_share_of_wall": sum(ledger[phase] for phase in PHASES) / long_wall,
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
