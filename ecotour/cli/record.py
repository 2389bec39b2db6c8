"""``ecotour record``: run a demo at its documented size, and keep what the documentation needs."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from ecotour.cli import process, resume
from ecotour.cli.loading import build, load
from ecotour.cli.parser import own_flags
from ecotour.contract import flags
from ecotour.errors import UsageError
from ecotour.rundir import record
from ecotour.rundir.strict_json import to_json
from ecotour.trust import child, keep
from ecotour.trust.identity import Identity, identify


def main(arguments: argparse.Namespace) -> int:
    """Record a demo, or keep a run that is there already."""
    with process.stdout_for_json(arguments.json, is_product=True) as stdout:
        entry, demo = load(arguments.demo, arguments.disable, arguments.provider)
        config = flags.parse(demo.config, arguments.rest, own_flags("record"))
        identity = identify(entry, demo, build(demo, config, entry.name))
        target = Path(arguments.records) / entry.name
        if arguments.source is not None:
            if arguments.rest or (arguments.steps, arguments.seed) != (None, None):
                raise UsageError("--from keeps a run as it is: drop the flags that change one")
            path = Path(arguments.source)
            known = record.read(path)
            if known.get("demo") == entry.name:
                resume.plan_of(known, path, entry, demo, None)  # refuses another configuration
            kept, remarks = keep.keep(path, target, identity)
        else:
            kept, remarks = _run_and_keep(arguments, identity, target)
        for line in remarks:
            print(f"ecotour: {line}", file=sys.stderr)
        size = sum(file.stat().st_size for file in kept.iterdir())
        if arguments.json:
            document: dict[str, Any] = {
                "schema": 1, "status": "finished", "record": str(kept), "bytes": size,
                "remarks": remarks,
            }  # fmt: skip
            stdout.write(to_json(document, indent=1) + "\n")
        elif not arguments.quiet:
            print(f"{kept}: {size / 1000:,.0f} kB; look at it, and commit it")
    return 0


def _run_and_keep(
    arguments: argparse.Namespace, identity: Identity, target: Path
) -> tuple[Path, list[str]]:
    words = [arguments.demo, "--seed", str(arguments.seed or 0), "--data", arguments.data]
    if arguments.steps is not None:
        words += ["--steps", str(arguments.steps)]
    if arguments.provider is not None:
        words += ["--provider", arguments.provider]
    words += arguments.rest
    if not arguments.quiet:
        print(f"running: {shlex.join(['ecotour', 'run', *words])}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="ecotour-record-") as scratch:
        run_dir = Path(scratch) / "run"
        child.run(words, run_dir, seconds=arguments.time_limit, megabytes=arguments.memory_limit)
        return keep.keep(run_dir, target, identity)
