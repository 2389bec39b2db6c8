"""Sinks from other distributions: found by their metadata, switched on by a flag of their name.

The entry-point group is ``ecotour.sinks``; an entry called ``tensorboard`` is the flag
``--tensorboard`` of ``ecotour run`` and ``ecotour resume``. Its help is the distribution's own
description, so that showing it imports nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ecotour.discovery import registry
from ecotour.errors import PluginError

if TYPE_CHECKING:
    from ecotour.contract.plan import Plan
    from ecotour.sinks import Sink

GROUP = "ecotour.sinks"

LISTENERS: list[Sink] = []
"""Further sinks for each run of this process. (For the test kit.)"""


def find() -> list[registry.Entry]:
    """Every sink that an installed distribution announces, in the order of their names."""
    return registry.find(group=GROUP)


def make(names: Iterable[str], run_dir: Path, plan: Plan) -> list[Sink]:
    """The sinks that a user asked for, and those of the test kit.

    Raises:
        PluginError: One cannot be had; the message says why.
    """
    entries = {entry.name: entry for entry in find()}
    return [_made(entries[name], run_dir, plan) for name in names] + LISTENERS


def _made(entry: registry.Entry, run_dir: Path, plan: Plan) -> Sink:
    import pluggy

    from ecotour.contract import hookspecs

    what = f"sink {entry.name!r} ({entry.provenance})"
    if entry.status != "installed":
        raise PluginError(f"{what} is {entry.status}: {entry.reason}")
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(importlib.import_module(entry.module))
        manager.check_pending()
        sink: Sink | None = manager.hook.ecotour_sink(run_dir=run_dir, plan=plan)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = " ".join(str(error).split())
        raise PluginError(f"{what} cannot be used: {type(error).__name__}: {text}") from error
    if not callable(sink) or not callable(getattr(sink, "close", None)):
        raise PluginError(f"{what} cannot be used: its hook ecotour_sink did not return a sink")
    return sink
