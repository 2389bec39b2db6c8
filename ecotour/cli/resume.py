"""``ecotour resume``: go on with a run that was broken off, or make a finished one longer."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ecotour.cli import drive, loading, process
from ecotour.cli.job import Job, Options
from ecotour.contract import flags
from ecotour.contract.plan import Plan
from ecotour.discovery import registry
from ecotour.drawing import page
from ecotour.errors import CheckpointError, RecordError, UnknownNameError, UsageError
from ecotour.rundir import claim, record
from ecotour.rundir.strict_json import to_json
from ecotour.running import stopwatch

if TYPE_CHECKING:
    from ecotour.contract.demo import Demo, Program


def main(arguments: argparse.Namespace) -> int:
    """Resume a run; the exit code says how it ended."""
    began = stopwatch.process_start()
    path = Path(arguments.run)
    with process.stdout_for_json(arguments.json) as stdout:
        known = record.read(path)
        if nothing_to_do(known, arguments.steps):
            print(
                f"{path} is finished: nothing to do. To make it longer: "
                f"ecotour resume {path} --steps N, with N above {known.get('steps', 0)}",
                file=sys.stderr,
            )
            if arguments.json:
                stdout.write(to_json(known, indent=1) + "\n")
            return 0
        with process.eager(page.was_eager(known)), process.stop_signals() as stop:
            directory = claim.RunDirectory.reopen(path)
            try:
                job = job_of(arguments, known, path, began, stdout)
            except BaseException:
                directory.release()
                raise
            return drive.carry_out(job, directory, stop)


def job_of(
    arguments: argparse.Namespace,
    known: Mapping[str, Any],
    path: Path,
    began: float,
    stdout: IO[str],
) -> Job:
    """What is left to do of the run in ``path``, whose record is ``known``.

    Raises:
        EcotourError: It cannot be gone on with; the message says why.
    """
    from ecotour.rundir import continuation

    entry, demo = load(known, path, arguments.disable)
    plan = plan_of(known, path, entry, demo, arguments.steps)
    process.split_cpu(demo.cpu_devices)
    program = loading.build(demo, plan.config, entry.name)
    found = continuation.find(path, known, plan, totals_of(known, path, program, plan))
    check_data(path, program, plan, found.data)
    return Job(program, plan, arguments.words, began, stdout, Options.of(arguments), known, found)


def nothing_to_do(known: Mapping[str, Any], steps: int | None) -> bool:
    """Whether a run is finished and no longer than was asked for."""
    if known.get("status") != "finished":
        return False
    return steps is None or all(total == steps for total in (known.get("totals") or {}).values())


def load(known: Mapping[str, Any], path: Path, disable: list[str]) -> tuple[registry.Entry, Demo]:
    """Load the demo that made a run.

    Raises:
        RecordError: It is not there any more, or in another version.
        EcotourError: It cannot be loaded.
    """
    name, file = str(known.get("demo")), known.get("source_file")
    if file:
        if not Path(file).is_file():
            raise RecordError(f"{path} was made by the demo in {file}, which is gone: put it back")
        return registry.load_file(Path(file))
    distribution, _, version = str(known.get("distribution")).rpartition(" ")
    try:
        entry = registry.pick(name, disable, distribution)
    except UnknownNameError as error:
        raise RecordError(
            f"{path} was made by demo {name!r} of {distribution} {version}, which is not "
            f"installed: install {distribution}=={version}"
        ) from error
    if entry.version != version:
        raise RecordError(
            f"{path} was made by {distribution} {version}, and {entry.version} is installed: "
            f"install {distribution}=={version}"
        )
    return entry, registry.load(entry)


def plan_of(
    known: Mapping[str, Any], path: Path, entry: registry.Entry, demo: Demo, steps: int | None
) -> Plan:
    """What is asked for now: the same as before, but for the number of steps.

    Raises:
        RecordError: The record does not hold a plan for this demo.
    """
    sources = {info.get("source") for info in (known.get("datasets") or {}).values()}
    try:
        asked = known.get("config") or {}
        config = flags.parse(demo.config, flags.words(asked))
        made = json.loads(to_json(flags.plain(config)))
        for other in (k for k in {**made, **asked} if made.get(k) != asked.get(k)):
            raise UsageError(f"{other} was {asked.get(other)!r} and is {made.get(other)!r} now")
        data_dir = known.get("data_dir")
        return Plan(
            demo=entry.name,
            distribution=entry.provenance,
            config=config,
            steps=steps or known.get("steps_asked"),
            seed=int(known["seed"]),
            log_every=None,
            checkpoint_every=known.get("checkpoint_every"),
            # what `auto` stood for is what it stands for
            data=next(iter(sources & {"embedded", "tfds"}), known.get("data_choice") or "auto"),
            data_dir=None if data_dir is None else Path(data_dir),
            stop_on_nonfinite=bool(known.get("stop_on_nonfinite")),
            source_file=loading.source_file(entry),
            source_hash=loading.source_hash(entry),
            about=demo.summary,
        )
    except (UsageError, KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"{path}: the configuration in its run.json is not one of {entry.provenance}: {error}"
        ) from error


def totals_of(known: Mapping[str, Any], path: Path, program: Program, plan: Plan) -> dict[str, int]:
    """By named step, how many steps are asked for now.

    Raises:
        RecordError: The program has other named steps than the run.
    """
    before = known.get("totals")
    if before is not None and list(before) != list(program.steps):
        raise RecordError(
            f"{path} has the steps {', '.join(before)}, and {plan.demo} has "
            f"{', '.join(program.steps)} now: the demo is another one"
        )
    return {name: plan.steps or step.steps for name, step in program.steps.items()}


def check_data(path: Path, program: Program, plan: Plan, before: Mapping[str, Any]) -> None:
    """Refuse data that is not what the checkpoints were made with.

    Raises:
        CheckpointError: It is other data, or altered.
    """
    from ecotour import datasets
    from ecotour.sinks.checkpoints import fingerprint

    for name, source in program.data.items():
        now = fingerprint(datasets.resolve(source, plan.data, plan.data_dir))
        was = before.get(name, now)
        for key in now:
            if was.get(key) != now[key]:
                raise CheckpointError(
                    f"{path} was made with other data: {key} of {name} was {was.get(key)} and is "
                    f"{now[key]} now"
                )
