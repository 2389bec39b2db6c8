"""``ecotour new``: a complete plugin to begin from."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ecotour.authoring.scaffold import create


def main(arguments: argparse.Namespace) -> int:
    """Write the plugin, and say what to do with it."""
    plugin = create(arguments.name, None if arguments.dir is None else Path(arguments.dir))
    if arguments.json:
        document = {
            "schema": 1,
            "demo": plugin.name,
            "distribution": plugin.distribution,
            "module": plugin.module,
            "directory": str(plugin.directory),
            "files": [str(path) for path in plugin.files],
        }
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
        return 0
    where = plugin.directory
    print(
        f"{where}: the plugin of demo {plugin.name}, in {plugin.module}/demo.py\n\n"
        f"  pip install -e {where}\n"
        f"  ecotour run {plugin.name}\n"
        f"  ecotour check {plugin.name}\n"
        f"  pytest {where}"
    )
    return 0
