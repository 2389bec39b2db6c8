"""``ecotour report``: the summary and the page of a run, from its directory alone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ecotour import record
from ecotour.errors import RecordError


def main(arguments: argparse.Namespace) -> int:
    """Read the run, write its page anew, and print its summary. Imports no JAX."""
    path = Path(arguments.run)
    known = record.read(path)
    from ecotour.sinks.report import write_report

    try:
        damaged = write_report(path, known)
        known["artifacts"] = known.get("artifacts", {}) | {"report": "report.html"}
    except OSError as error:
        raise RecordError(f"cannot write the page into {path}: {error.strerror}") from error
    for line in dict.fromkeys(damaged):
        print(f"ecotour: {line}", file=sys.stderr)
    if arguments.json:
        print(record.to_json(known, indent=1))
        return 0
    from ecotour.sinks.terminal import Terminal

    Terminal(sys.stdout).summarise(known)
    return 0
