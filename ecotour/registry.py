"""Finds demos by their metadata, and loads one of them by name.

Two phases: `find` reads nothing but the metadata of installed distributions, so it imports no
plugin and no JAX; `load` imports the one plugin that was asked for. Whatever is wrong with a
plugin is contained: it is reported as broken, with the reason, and all else works.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeAlias

from ecotour.errors import PluginError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from ecotour.demo import Demo

GROUP = "ecotour.demos"
DISABLE_VARIABLE = "ECOTOUR_DISABLE"
FILE = "file"
"""The version of a demo that is a plain file."""

EntryStatus: TypeAlias = Literal["ok", "disabled", "incompatible", "broken"]


@dataclass(frozen=True)
class Entry:
    """What the metadata says of a demo.

    Attributes:
        name: What users type.
        distribution: The name of the distribution that provides it.
        version: That distribution's version.
        module: The module with the hook.
        status: Whether it can be asked for.
        reason: Why not, in one line; empty where it can.
    """

    name: str
    distribution: str
    version: str
    module: str
    status: EntryStatus = "ok"
    reason: str = ""

    @property
    def provenance(self) -> str:
        """Distribution and version, as events and records carry it."""
        return f"{self.distribution} {self.version}"


def find(disable: Iterable[str] = ()) -> list[Entry]:
    """Every demo that an installed distribution announces, in the order of their names.

    Args:
        disable: Names to mark as disabled, besides those in ``ECOTOUR_DISABLE``.
    """
    off = {*disable, *filter(None, re.split(r"[,\s]+", os.environ.get(DISABLE_VARIABLE, "")))}
    by_name: dict[str, list[Entry]] = {}
    for entry in _announced():
        by_name.setdefault(entry.name, []).append(entry)
    found = []
    for name in sorted(by_name):
        providers = sorted(by_name[name], key=lambda entry: (entry.distribution, entry.module))
        for entry in providers:
            if name in off:
                entry = replace(entry, status="disabled", reason="disabled by the user")
            elif entry.status == "ok" and len(providers) > 1:
                names = " and ".join(e.provenance for e in providers)
                reason = f"provided by {names}: uninstall one, or choose with --provider"
                entry = replace(entry, status="broken", reason=reason)
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
        chosen = [e for e in named if _canonical(e.distribution) == _canonical(provider)]
        if not chosen:
            raise UnknownNameError("provider", provider, {e.distribution for e in named})
        entry = chosen[0]
        if entry.status == "broken" and len(named) > 1:
            entry = replace(entry, status="ok", reason="")
    else:
        entry = named[0]
    if entry.status == "disabled":
        raise UsageError(f"demo {name!r} is disabled: drop --disable or unset {DISABLE_VARIABLE}")
    if entry.status != "ok":
        raise PluginError(f"demo {name!r} is {entry.status}: {entry.reason}")
    return entry


def load(entry: Entry) -> Demo:
    """Import the plugin of ``entry`` and ask it for its demo.

    Raises:
        PluginError: It cannot be imported, or its hook is missing, misspelt or wrong.
    """
    import importlib

    try:
        module = importlib.import_module(entry.module)
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"demo {entry.name!r} ({entry.provenance}) cannot be imported: {_cause(error)}"
        ) from error
    return demo_of(module, f"demo {entry.name!r} ({entry.provenance})")


def load_file(path: Path) -> tuple[Entry, Demo]:
    """Load the demo in a plain Python file.

    Raises:
        UsageError: There is no such file.
        PluginError: It cannot be imported, or its hook is missing, misspelt or wrong.
    """
    import importlib.machinery
    import importlib.util
    import sys

    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    name = path.stem
    if not name.isidentifier():
        raise UsageError(f"{path}: a demo's file needs a name that Python can import: rename it")
    module_name = f"ecotour_file_{name}"
    entry = Entry(name, str(path), FILE, module_name)
    loader = importlib.machinery.SourceFileLoader(module_name, str(path))
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise PluginError(f"{path} cannot be imported: {_cause(error)}") from error
    return entry, demo_of(module, str(path))


def demo_of(module: ModuleType, what: str) -> Demo:
    """Register ``module`` with pluggy, and return what its hook returns.

    Raises:
        PluginError: The hook is missing, misspelt, has the wrong signature, or returns something
            else; ``what`` begins the message.
    """
    import pluggy

    from ecotour import hookspecs
    from ecotour.demo import Demo

    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        # pluggy leaves such a plugin half registered; the manager is dropped with it
        raise PluginError(f"{what}: {' '.join(str(error).split())}") from error
    if not manager.hook.ecotour_demo.get_hookimpls():
        unmarked = hasattr(module, "ecotour_demo")
        mend = (
            "its ecotour_demo is not marked with @ecotour.hookimpl"
            if unmarked
            else "define a function ecotour_demo() marked with @ecotour.hookimpl"
        )
        raise PluginError(f"{what} has no hook: {mend}")
    try:
        demo = manager.hook.ecotour_demo()
    except (Exception, SystemExit) as error:
        raise PluginError(f"{what}: its hook ecotour_demo failed: {_cause(error)}") from error
    if not isinstance(demo, Demo):
        raise PluginError(
            f"{what}: its hook ecotour_demo returned {type(demo).__name__}, not ecotour.Demo"
        )
    return demo


def _announced() -> Iterator[Entry]:
    """Entries as they stand in the metadata, each distribution once, each with its own status."""
    from importlib import metadata

    seen = set()
    for distribution in metadata.distributions():
        if f"[{GROUP}]" not in (distribution.read_text("entry_points.txt") or ""):
            continue
        headers = _headers(distribution.read_text("METADATA") or "")
        name = headers.get("Name", ["unknown"])[0]
        version = headers.get("Version", ["unknown"])[0]
        if _canonical(name) in seen:  # an earlier place on the path hides this one
            continue
        seen.add(_canonical(name))
        misfit = _misfit(headers.get("Requires-Dist", []))
        for point in distribution.entry_points:
            if point.group != GROUP:
                continue
            entry = Entry(point.name, name, version, point.module)
            if misfit:
                entry = replace(entry, status="incompatible", reason=misfit)
            elif not _exists(point.module):
                reason = (
                    f"{name} announces module {point.module!r}, which is not there: "
                    f"reinstall or uninstall {name}"
                )
                entry = replace(entry, status="broken", reason=reason)
            yield entry


def _headers(text: str) -> dict[str, list[str]]:
    """The headers of a METADATA file by name. (The email package costs more than all the rest.)"""
    found: dict[str, list[str]] = {}
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(": ")
        if colon:
            found.setdefault(name, []).append(value.strip())
    return found


def _misfit(requires: list[str]) -> str:
    """Why this ecotour is not the one that a distribution requires, or nothing."""
    from ecotour import __version__

    for line in requires:
        if not re.match(r"ecotour(?![\w.-])", line, re.IGNORECASE):
            continue
        if line.strip().lower() == "ecotour":  # any version will do
            continue
        from packaging.requirements import InvalidRequirement, Requirement

        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            return f"its requirement {line!r} cannot be read"
        if not requirement.specifier.contains(__version__, prereleases=True):
            return f"it needs ecotour {requirement.specifier}, and this is {__version__}"
    return ""


def _exists(module: str) -> bool:
    """Whether the top-level package of ``module`` can be found, without importing it."""
    import importlib.util

    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _cause(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = (str(error).strip().splitlines() or ["no message"])[0]
    return f"{type(error).__name__}: {text}"
