"""Every benchmark of the project in one go.

    python tests/benchmarks [NAME …] [--json FILE]

Prints, and saves on demand, what each module's ``measure()`` returns, in a process of its own:
figures, ratios and their spread, with the machine that they were measured on, and at the end all of
it as one table (docs/benchmarks.md shows the saved one). No test asserts any of them. Peers (torch,
gymnax: the dependency group `peers`) are measured where they are installed, and named where they
are not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = (
    "gan_step",
    "runner_overhead",
    "startup",
    "ledger_adds_up",
    "peak_memory",
    "catch_steps",
    "gan_gpu",
)
HERE = Path(__file__).parent
ONE = "import json, sys, {name}; json.dump({name}.measure(), open(sys.argv[1], 'w'))"


def measure(name: str) -> Any:
    """What one benchmark found; how many devices JAX has is settled once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, "-c", ONE.format(name=name), str(file)]
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
        subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": path})
        return json.loads(file.read_text())


def main() -> None:
    """Run the chosen benchmarks, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    import peers
    import table

    from ecotour.machine import environment

    compared = ("torch", "gymnax")
    installed = peers.versions(*compared)
    absent = [name for name in compared if name not in installed]
    found: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": environment.describe(),
        "load_before": [round(value, 2) for value in os.getloadavg()],
        "peers": installed,
        "peers_absent": absent,
    }
    for name in arguments.names or NAMES:
        if name not in NAMES:
            parser.error(f"unknown benchmark {name!r}: choose from {', '.join(NAMES)}")
        print(f"{name} …", flush=True)
        found[name] = measure(name)
        print(json.dumps(found[name], indent=1), flush=True)
    made = table.rows(found)
    print(table.text(made))
    if absent:
        print(f"not installed, so nothing was compared with them: {', '.join(absent)}")
    for what, why in found.get("gan_gpu", {}).get("not_measured", {}).items():
        print(f"gan_gpu: {what} not measured: {why}")
    found["table"] = [row._asdict() for row in made]
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
