"""Start-up times of whole processes, in turns: light commands, and the way to the first step."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RICH = [sys.executable, "-c", "import rich"]
LIBRARIES = [sys.executable, "-c", "import jax, haiku, optax; jax.devices()"]
RUN = ["run", "gan", "--data", "embedded", "--quiet"]
ECOTOUR = [str(Path(sys.executable).with_name("ecotour"))]


def seconds(command: list[str]) -> float:
    """Wall time of one process."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def to_first_step(folder: Path, number: int) -> float:
    """``ledger.to_first_step_s`` of a short run of the GAN."""
    out = folder / str(number)
    subprocess.run(
        [*ECOTOUR, *RUN, "--steps", "1", "--out", str(out)],
        check=True,
        env=os.environ,
    )
    return float(json.loads((out / "run.json").read_text())["ledger"]["to_first_step_s"])


def measure(rounds: int = 11) -> dict[str, Any]:
    """Medians, and medians of ratios side by side."""
    found: dict[str, Any] = {}
    for arguments in (["--help"], ["list"], ["--version"]):
        seconds(RICH), seconds([*ECOTOUR, *arguments])
        pairs = [(seconds([*ECOTOUR, *arguments]), seconds(RICH)) for _ in range(rounds)]
        found["ecotour " + arguments[0]] = {
            "s": statistics.median(a for a, _ in pairs),
            "import_rich_s": statistics.median(b for _, b in pairs),
            "ratio": statistics.median(a / b for a, b in pairs),
        }
    with tempfile.TemporaryDirectory() as folder:
        to_first_step(Path(folder), 0)  # fills the compilation cache
        pairs = [(to_first_step(Path(folder), k), seconds(LIBRARIES)) for k in range(1, 6)]
    found["run gan, to the end of the first step"] = {
        "s": statistics.median(a for a, _ in pairs),
        "import_libraries_s": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(a / b for a, b in pairs),
    }
    return found


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
