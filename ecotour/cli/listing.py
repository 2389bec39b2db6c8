"""``ecotour list``: every demo, from metadata alone; with ``--load``, whether it can be loaded."""

from __future__ import annotations

import argparse

from ecotour.discovery import registry


def main(arguments: argparse.Namespace) -> int:
    """Print the demos; broken ones too, with the reason."""
    entries = registry.find(arguments.disable)
    if arguments.load:
        from ecotour.discovery import apart

        entries = [apart.proved(entry, arguments.timeout) for entry in entries]
    if arguments.json:
        import json

        print(json.dumps({"schema": 1, "demos": [e._asdict() for e in entries]}, indent=1))
        return 0
    if not entries:
        print("no demos are installed; try: pip install ecotour-gan")
        return 0
    rows = [("DEMO", "DISTRIBUTION", "VERSION", "STATUS")]
    rows += [
        (e.name, e.distribution, e.version, e.status + (f": {e.reason}" if e.reason else ""))
        for e in entries
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join([*(text.ljust(w) for text, w in zip(row, widths, strict=False)), row[3]]))
    return 0
