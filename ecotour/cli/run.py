"""``ecotour run``: load one demo, claim a directory, drive the events into the sinks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ecotour.cli import drive, loading, process
from ecotour.cli.demo_help import help_text
from ecotour.cli.job import Job, Options
from ecotour.cli.parser import own_flags
from ecotour.contract import flags
from ecotour.contract.plan import Plan
from ecotour.errors import UsageError
from ecotour.rundir import claim
from ecotour.running import stopwatch

if TYPE_CHECKING:
    from ecotour.contract.demo import Demo
    from ecotour.discovery.registry import Entry


def main(arguments: argparse.Namespace) -> int:
    """Run a demo; the exit code says how it ended."""
    began = stopwatch.process_start()
    wanted = arguments.eager and not arguments.help
    with process.stdout_for_json(arguments.json) as stdout, process.eager(wanted):
        out = None if arguments.out is None else Path(arguments.out)
        if not arguments.help:
            claim.check(out, Path(arguments.demo).stem)
        entry, demo = loading.load(arguments.demo, arguments.disable, arguments.provider)
        if arguments.help:
            print(help_text(arguments.demo, demo), file=stdout)
            return 0
        plan = plan_of(arguments, entry, demo)
        process.split_cpu(demo.cpu_devices)
        program = loading.build(demo, plan.config, entry.name)
        job = Job(program, plan, arguments.words, began, stdout, Options.of(arguments))
        with process.stop_signals() as stop:
            directory = claim.RunDirectory.claim(out, plan.demo)
            return drive.carry_out(job, directory, stop)


def plan_of(arguments: argparse.Namespace, entry: Entry, demo: Demo) -> Plan:
    """What the user asked for, checked.

    Raises:
        UsageError: A flag of the demo's is wrong, or there is no such directory of data.
    """
    return Plan(
        demo=entry.name,
        distribution=entry.provenance,
        config=flags.parse(demo.config, arguments.rest, own_flags("run", sinks=True)),
        steps=arguments.steps,
        seed=arguments.seed,
        log_every=arguments.log_every,
        checkpoint_every=arguments.checkpoint_every,
        data=arguments.data,
        data_dir=_existing(arguments.data_dir),
        stop_on_nonfinite=arguments.stop_on_nonfinite,
        source_file=loading.source_file(entry),
        source_hash=loading.source_hash(entry),
        about=demo.summary,
    )


def _existing(directory: str | None) -> Path | None:
    if directory is None:
        return None
    path = Path(directory)
    if not path.is_dir():
        raise UsageError(f"--data-dir {directory}: there is no such directory")
    return path
