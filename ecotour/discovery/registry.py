"""Finds demos by their metadata, and loads one of them by name.

Two phases: `find` reads nothing but the metadata of installed distributions, so it imports no
plugin and no JAX; `load` imports the one plugin that was asked for. Whatever is wrong with a
plugin is contained: it is reported as broken, with the reason, and all else works. (An endless
loop or an abort at import cannot be contained, which is why only the asked-for one is imported.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ecotour.discovery.metadata import Entry, announced, canonical, cause
from ecotour.errors import PluginError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from ecotour.contract.demo import Demo

__all__ = ["DISABLE_VARIABLE", "FILE", "GROUP", "Entry", "LoadError", "demo_of", "find", "load",
           "load_file", "pick"]  # fmt: skip

GROUP = "ecotour.demos"
DISABLE_VARIABLE = "ECOTOUR_DISABLE"
FILE = "file"
"""The version of a demo that is a plain file."""


class LoadError(PluginError):
    """A plugin that cannot be loaded. ``finding`` is what ``ecotour check`` calls the fault."""

    def __init__(self, finding: str, message: str) -> None:
        """Say ``message``."""
        super().__init__(message)
        self.finding = finding


def find(disable: Iterable[str] = (), *, group: str = GROUP) -> list[Entry]:
    """Every demo that an installed distribution announces, in the order of their names.

    Args:
        disable: Names to mark as disabled, besides those in ``ECOTOUR_DISABLE``.
        group: The entry-point group to look at.
    """
    off = {*disable, *filter(None, re.split(r"[,\s]+", os.environ.get(DISABLE_VARIABLE, "")))}
    by_name: dict[str, list[Entry]] = {}
    for entry in announced(group):
        by_name.setdefault(entry.name, []).append(entry)
    found = []
    for name in sorted(by_name):
        providers = sorted(by_name[name], key=lambda entry: (entry.distribution, entry.module))
        for entry in providers:
            if name in off:
                entry = entry._replace(status="disabled", reason="disabled by the user")
            elif entry.status == "installed" and len(providers) > 1:
                entry = entry._replace(status="broken", reason=_contested(providers))
            found.append(entry)
    return found


def pick(name: str, disable: Iterable[str] = (), provider: str | None = None) -> Entry:
    """The entry of one demo, if it can be asked for.

    Raises:
        UnknownNameError: There is no such demo; the message has the nearest name.
        UsageError: It is disabled, or ``provider`` does not provide it.
        PluginError: It is incompatible or broken, or provided twice.
    """
    entries = find(disable)
    named = [entry for entry in entries if entry.name == name]
    if not named:
        raise UnknownNameError("demo", name, {e.name for e in entries}, "see `ecotour list`")
    if provider is not None:
        chosen = [e for e in named if canonical(e.distribution) == canonical(provider)]
        if not chosen:
            raise UnknownNameError("provider", provider, {e.distribution for e in named})
        entry = chosen[0]
        if len(chosen) == 1 and entry.reason == _contested(named):
            entry = entry._replace(status="installed", reason="")
    else:
        entry = named[0]
    if entry.status == "disabled":
        raise UsageError(f"demo {name!r} is disabled: drop --disable or unset {DISABLE_VARIABLE}")
    if entry.status != "installed":
        raise PluginError(f"demo {name!r} is {entry.status}: {entry.reason}")
    return entry


def load(entry: Entry) -> Demo:
    """Import the plugin of ``entry`` and ask it for its demo.

    Raises:
        PluginError: It cannot be imported, its hook is missing, misspelt or wrong, or a variable
            of the environment keeps JAX from starting.
    """
    import importlib

    from ecotour.machine import variables

    variables.refuse_faulty()  # or the demo is blamed for it
    try:
        module = importlib.import_module(entry.module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(
            "import-fails",
            f"demo {entry.name!r} ({entry.provenance}) cannot be imported: {cause(error)}",
        ) from error
    return demo_of(module, f"demo {entry.name!r} ({entry.provenance})")


def load_file(path: Path) -> tuple[Entry, Demo]:
    """Load the demo in a plain Python file.

    Raises:
        UsageError: There is no such file, or its path is not UTF-8.
        PluginError: It cannot be imported, its hook is missing, misspelt or wrong, or a variable
            of the environment keeps JAX from starting.
    """
    import importlib.machinery
    import importlib.util
    import sys

    from ecotour.machine import variables

    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    name = path.stem
    if not name.isidentifier():
        raise UsageError(f"{path}: a demo's file needs a name that Python can import: rename it")
    try:
        str(path.resolve()).encode("utf-8")
    except UnicodeEncodeError:
        # XLA keeps the file and line of every operation, and ends in std::bad_cast
        raise UsageError(
            f"{path.resolve()}: XLA cannot compile what lies below a name that is not UTF-8: "
            "rename it, or move the demo"
        ) from None
    module_name = f"ecotour_file_{name}"
    entry = Entry(name, str(path), FILE, module_name)
    loader = importlib.machinery.SourceFileLoader(module_name, str(path))
    variables.refuse_faulty()
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    directory = str(path.resolve().parent)
    if directory not in sys.path:  # so that it can import its neighbours
        sys.path.insert(0, directory)
    try:
        loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.modules.pop(module_name, None)
        raise LoadError("import-fails", f"{path} cannot be imported: {cause(error)}") from error
    return entry, demo_of(module, str(path))


def demo_of(module: ModuleType, what: str) -> Demo:
    """Register ``module`` with pluggy, and return what its hook returns.

    Raises:
        PluginError: The hook is missing, misspelt, has the wrong signature, or returns something
            else; ``what`` begins the message.
    """
    import pluggy

    from ecotour.contract import hookspecs
    from ecotour.contract.demo import Demo

    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        # pluggy leaves such a plugin half registered; the manager is dropped with it
        message = " ".join(str(error).split())
        finding = "hook-misspelt" if "unknown hook" in message else "hook-signature"
        raise LoadError(finding, f"{what}: {message}") from error
    if not manager.hook.ecotour_demo.get_hookimpls():
        unmarked = hasattr(module, "ecotour_demo")
        mend = (
            "its ecotour_demo is not marked with @ecotour.hookimpl"
            if unmarked
            else "define a function ecotour_demo() marked with @ecotour.hookimpl"
        )
        finding = "hook-unmarked" if unmarked else "hook-missing"
        raise LoadError(finding, f"{what} has no hook: {mend}")
    try:
        demo = manager.hook.ecotour_demo()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(
            "hook-fails", f"{what}: its hook ecotour_demo failed: {cause(error)}"
        ) from error
    if not isinstance(demo, Demo):
        raise LoadError(
            "hook-returns",
            f"{what}: its hook ecotour_demo returned {type(demo).__name__}, not ecotour.Demo",
        )
    return demo


def _contested(providers: list[Entry]) -> str:
    """Why none of several providers of one name wins."""
    ordered = sorted(providers, key=lambda entry: (entry.distribution, entry.module))
    names = " and ".join(f"{e.provenance} ({e.module})" for e in ordered)
    if len({canonical(e.distribution) for e in ordered}) == 1:
        return f"announced twice, by {names}: its author must take one away"
    names = " and ".join(e.provenance for e in ordered)
    return f"provided by {names}: uninstall one, or choose with --provider"
