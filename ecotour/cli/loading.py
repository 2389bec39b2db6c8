"""From what a user named to a program: the demo loaded, its source noted, its program built."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.discovery import registry
from ecotour.errors import EcotourError, PluginError, UsageError
from ecotour.machine import variables

if TYPE_CHECKING:
    from ecotour.contract.demo import Demo, Program


def load(name: str, disable: list[str], provider: str | None) -> tuple[registry.Entry, Demo]:
    """Load the demo that a user named: an installed one, or one in a file.

    Raises:
        EcotourError: It cannot be found or loaded.
    """
    if name.endswith(".py") or "/" in name or "\\" in name:
        entry, demo = registry.load_file(Path(name))
    else:
        entry = registry.pick(name, disable, provider)
        demo = registry.load(entry)
    for line in variables.misspelt():
        print(f"ecotour: {line}", file=sys.stderr)
    return entry, demo


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
