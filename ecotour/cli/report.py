"""``ecotour report``: the summary and the page of a run, from its directory alone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ecotour.errors import RecordError
from ecotour.rundir import record
from ecotour.rundir.strict_json import to_json


def main(arguments: argparse.Namespace) -> int:
    """Read the run, write its page anew, and print its summary. Imports no JAX."""
    path = Path(arguments.run)
    known = record.read(path)
    try:
        return _report(path, known, arguments.json)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # written by hand, or by another program: a value is not of the type that it should have
        said = f"{type(error).__name__}: {error}"
        raise RecordError(f"{path / 'run.json'} is damaged: {said}") from error


def _report(path: Path, known: dict[str, Any], as_json: bool) -> int:
    from ecotour.drawing.report import write_report

    try:
        damaged = write_report(path, known)
        known["artifacts"] = known.get("artifacts", {}) | {"report": "report.html"}
    except OSError as error:
        raise RecordError(f"cannot write the page into {path}: {error.strerror}") from error
    for line in dict.fromkeys(damaged):
        print(f"ecotour: {line}", file=sys.stderr)
    if as_json:
        print(to_json(known, indent=1))
        return 0
    from ecotour.sinks.terminal import Terminal

    terminal = Terminal(sys.stdout)
    terminal.summarise(known)
    if isinstance(terminal.failure, OSError):  # here it is the answer
        raise terminal.failure
    return 0
