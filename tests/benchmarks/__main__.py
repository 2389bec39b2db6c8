"""Every benchmark of the project in one go.

    python tests/benchmarks [NAME …] [--json FILE]

Prints, and saves on demand, what each module's ``measure()`` returns: figures, ratios and their
spread, with the machine that they were measured on. No test asserts any of them. Peers (torch,
gymnax) are measured where they are installed and named as absent where they are not.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("gan_step", "runner_overhead", "startup", "ledger_adds_up", "peak_memory", "catch_steps")


def main() -> None:
    """Run the chosen benchmarks, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    from ecotour import environment

    found: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": environment.describe(),
    }
    for name in arguments.names or NAMES:
        if name not in NAMES:
            parser.error(f"unknown benchmark {name!r}: choose from {', '.join(NAMES)}")
        print(f"{name} …", flush=True)
        found[name] = importlib.import_module(name).measure()
        print(json.dumps(found[name], indent=1), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
