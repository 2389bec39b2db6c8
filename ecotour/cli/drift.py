"""``ecotour drift``: whether the recorded demos still do what the documentation shows."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from pathlib import Path
from typing import Any

from ecotour.cli import process
from ecotour.cli.loading import build, load
from ecotour.drawing import page
from ecotour.errors import EcotourError, RecordError, UnknownNameError
from ecotour.machine import environment
from ecotour.rundir.strict_json import to_json
from ecotour.trust import child, drift
from ecotour.trust.identity import identify
from ecotour.trust.records import Record, find, read

DRIFTED = 1
QUICK_STEPS = 10


def main(arguments: argparse.Namespace) -> int:
    """Compare; 0 where nothing drifted, 1 where something did."""
    directory = Path(arguments.records)
    paths = {path.name: path for path in find(directory)}
    if not paths:
        raise RecordError(f"{directory} holds no records: make one with `ecotour record DEMO`")
    for name in arguments.demos:
        if name not in paths:
            raise UnknownNameError("record", name, paths, f"in {directory}")
    found = []
    with process.stdout_for_json(arguments.json, is_product=True) as stdout:
        for name in arguments.demos or paths:
            one = _compare(read(paths[name]), arguments, directory)
            found.append(one)
            if not arguments.json:
                _tell(one)
        if arguments.json:
            document = {"schema": 1, "tolerances": drift.TOLERANCES, "records": found}
            stdout.write(to_json(document, indent=1) + "\n")
    return DRIFTED if any(one["differences"] for one in found) else 0


def _compare(old: Record, arguments: argparse.Namespace, directory: Path) -> dict[str, Any]:
    name = str(old.document["demo"])
    entry, demo = load(_place(old), arguments.disable, None)
    identity = identify(entry, demo, build(demo, demo.config(), name))
    differences = list(drift.of_identity(old, identity))
    if not arguments.sources:
        differences += _run_again(old, arguments)
    now = drift.record_form(environment.describe())
    return {
        "demo": name,
        "record": str(old.path),
        "recorded": old.document.get("recorded"),
        "pages": [str(path) for path in drift.pages(directory.parent, name)],
        "differences": [
            {"quantity": d.quantity, "old": d.old, "new": d.new, "allowed": d.allowed}
            for d in differences
        ],
        "versions": [list(row) for row in drift.versions(old, now)],
    }


def _place(old: Record) -> str:
    """What ``ecotour run`` takes: the demo's name, or its file."""
    if old.document.get("module"):
        return str(old.document["demo"])
    return str(old.source().absolute())


def _run_again(old: Record, arguments: argparse.Namespace) -> list[drift.Difference]:
    words = [_place(old), *shlex.split(page.repeat_command(old.document))[3:]]
    totals = (old.document.get("totals") or {}).values()
    steps = arguments.steps or (QUICK_STEPS if arguments.quick else None)
    whole = steps is None or steps >= max(totals, default=0)
    if not whole:
        words += ["--steps", str(steps), "--log-every", "1"]  # the last --steps counts
    elif intervals := set((old.document.get("log_every") or {}).values()):
        words += ["--log-every", str(min(intervals))]
    with tempfile.TemporaryDirectory(prefix="ecotour-drift-") as scratch:
        run_dir = Path(scratch) / "run"
        limits = {"seconds": arguments.time_limit, "megabytes": arguments.memory_limit}
        try:
            child.run(words, run_dir, **limits)
        except EcotourError as error:
            return [drift.Difference("the run", "finished", str(error))]
        return list(drift.of_run(old, run_dir, whole=whole))


def _tell(one: dict[str, Any]) -> None:
    places = ", ".join(one["pages"]) or "no page"
    if not one["differences"]:
        print(f"{one['demo']}: as recorded on {one['recorded']} ({places})")
        return
    print(f"{one['demo']}: drifted from {one['record']}, shown on {places}")
    for each in one["differences"]:
        print(f"  {drift.Difference(**each)}")
    if one["versions"]:
        print("  why it may have: what was otherwise then")
        for name, old, new in one["versions"]:
            print(f"    {name}: {old} → {new}")
    else:
        print("  versions and hardware are the same as then: look at the code")
    print(f"  if it is meant to be so: ecotour record {one['demo']}", flush=True)
