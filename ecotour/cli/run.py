"""``ecotour run``: load one demo, claim a directory, drive the events into the sinks."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.cli import drive, process
from ecotour.cli.parser import make_parser
from ecotour.contract import flags
from ecotour.contract.plan import Plan
from ecotour.discovery import registry
from ecotour.errors import EcotourError, PluginError, UsageError
from ecotour.rundir import claim
from ecotour.running import ledger

if TYPE_CHECKING:
    from ecotour.contract.demo import Demo, Program


def main(arguments: argparse.Namespace) -> int:
    """Run a demo; the exit code says how it ended."""
    began = ledger.process_start()
    wanted = arguments.eager and not arguments.help
    with process.stdout_for_json(arguments.json) as stdout, process.eager(wanted):
        out = None if arguments.out is None else Path(arguments.out)
        if not arguments.help:
            claim.check(out, Path(arguments.demo).stem)
        entry, demo = load(arguments.demo, arguments.disable, arguments.provider)
        if arguments.help:
            print(help_text(arguments.demo, demo), file=stdout)
            return 0
        _, commands = make_parser(sinks=True)
        own = [o for a in commands.choices["run"]._actions for o in a.option_strings]
        config = flags.parse(demo.config, arguments.rest, own)
        plan = Plan(
            demo=entry.name,
            distribution=entry.provenance,
            config=config,
            steps=arguments.steps,
            seed=arguments.seed,
            log_every=arguments.log_every,
            checkpoint_every=arguments.checkpoint_every,
            data=arguments.data,
            data_dir=_existing(arguments.data_dir),
            stop_on_nonfinite=arguments.stop_on_nonfinite,
            source_file=source_file(entry),
            source_hash=source_hash(entry),
            about=demo.summary,
        )
        process.split_cpu(demo.cpu_devices)
        program = build(demo, config, entry.name)
        return drive.drive(
            program,
            plan,
            began=began,
            out=out,
            command=arguments.words,
            options=drive.Options(
                arguments.quiet, arguments.strict, arguments.json, tuple(arguments.sinks)
            ),
            stdout=stdout,
        )


def load(name: str, disable: list[str], provider: str | None) -> tuple[registry.Entry, Demo]:
    """Load the demo that a user named: an installed one, or one in a file.

    Raises:
        EcotourError: It cannot be found or loaded.
    """
    if name.endswith(".py") or "/" in name or "\\" in name:
        return registry.load_file(Path(name))
    entry = registry.pick(name, disable, provider)
    return entry, registry.load(entry)


def source_file(entry: registry.Entry) -> Path | None:
    """The file of a demo that is not an installed one."""
    return Path(entry.distribution).resolve() if entry.version == registry.FILE else None


def source_hash(entry: registry.Entry) -> str:
    """The SHA-256 of the source of the module that has the hook; empty where there is none."""
    file = getattr(sys.modules.get(entry.module), "__file__", None)
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
    except OSError:
        return ""


def build(demo: Demo, config: Any, name: str) -> Program:
    """Build the program; what goes wrong in it is said in one line.

    Raises:
        PluginError: ``build`` failed, or returned something else than a program.
        UsageError: The configuration has no program (``build`` raised ValueError).
    """
    from ecotour.contract.demo import Program

    try:
        program = demo.build(config)
    except EcotourError:
        raise
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"{name}: build failed: {type(error).__name__}: {error}") from error
    if not isinstance(program, Program) or not program.steps:
        raise PluginError(f"{name}: build must return an ecotour.Program with at least one step")
    return program


def help_text(name: str, demo: Demo) -> str:
    """The help of ``run`` for one demo: every run's flags, then the demo's own."""
    _, commands = make_parser(sinks=True)
    lines = [commands.choices["run"].format_help().rstrip(), "", f"flags of {name}:"]
    for flag in flags.describe(demo.config):
        default = flag.default
        if isinstance(default, tuple):
            default = shlex.join(map(str, default))
        facts = ", ".join([f"default: {default}", *flag.bounds_in_words])
        lines.append(f"  {flag.name} {flag.kind}")
        lines.append(f"                        {flag.help} ({facts})")
    return "\n".join(lines)


def _existing(directory: str | None) -> Path | None:
    if directory is None:
        return None
    path = Path(directory)
    if not path.is_dir():
        raise UsageError(f"--data-dir {directory}: there is no such directory")
    return path
