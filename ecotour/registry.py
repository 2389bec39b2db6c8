"""Finds demos by their metadata, and loads one of them by name.

Two phases: `find` reads nothing but the metadata of installed distributions, so it imports no
plugin and no JAX; `load` imports the one plugin that was asked for. Whatever is wrong with a
plugin is contained: it is reported as broken, with the reason, and all else works. (An endless
loop or an abort at import cannot be contained, which is why only the asked-for one is imported.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ecotour.errors import PluginError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from ecotour.demo import Demo

GROUP = "ecotour.demos"
DISABLE_VARIABLE = "ECOTOUR_DISABLE"
FILE = "file"
"""The version of a demo that is a plain file."""

SEARCH: list[str] | None = None
"""Where to look for distributions; on ``sys.path``, if ``None``. (For the test kit.)"""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a demo may be called."""

EntryStatus: TypeAlias = Literal["ok", "disabled", "incompatible", "broken"]


class LoadError(PluginError):
    """A plugin that cannot be loaded. ``finding`` is what ``ecotour check`` calls the fault."""

    def __init__(self, finding: str, message: str) -> None:
        """Say ``message``."""
        super().__init__(message)
        self.finding = finding


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
        summary: What the distribution says of itself, in one line.
    """

    name: str
    distribution: str
    version: str
    module: str
    status: EntryStatus = "ok"
    reason: str = ""
    summary: str = ""

    @property
    def provenance(self) -> str:
        """Distribution and version, as events and records carry it."""
        return f"{self.distribution} {self.version}"


def find(disable: Iterable[str] = (), *, group: str = GROUP) -> list[Entry]:
    """Every demo that an installed distribution announces, in the order of their names.

    Args:
        disable: Names to mark as disabled, besides those in ``ECOTOUR_DISABLE``.
        group: The entry-point group to look at.
    """
    off = {*disable, *filter(None, re.split(r"[,\s]+", os.environ.get(DISABLE_VARIABLE, "")))}
    by_name: dict[str, list[Entry]] = {}
    for entry in _announced(group):
        by_name.setdefault(entry.name, []).append(entry)
    found = []
    for name in sorted(by_name):
        providers = sorted(by_name[name], key=lambda entry: (entry.distribution, entry.module))
        for entry in providers:
            if name in off:
                entry = replace(entry, status="disabled", reason="disabled by the user")
            elif entry.status == "ok" and len(providers) > 1:
                entry = replace(entry, status="broken", reason=_contested(providers))
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
        if len(chosen) == 1 and entry.reason == _contested(named):
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
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(
            "import-fails",
            f"demo {entry.name!r} ({entry.provenance}) cannot be imported: {_cause(error)}",
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
    directory = str(path.resolve().parent)
    if directory not in sys.path:  # so that it can import its neighbours
        sys.path.insert(0, directory)
    try:
        loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.modules.pop(module_name, None)
        raise LoadError("import-fails", f"{path} cannot be imported: {_cause(error)}") from error
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
            "hook-fails", f"{what}: its hook ecotour_demo failed: {_cause(error)}"
        ) from error
    if not isinstance(demo, Demo):
        raise LoadError(
            "hook-returns",
            f"{what}: its hook ecotour_demo returned {type(demo).__name__}, not ecotour.Demo",
        )
    return demo


def _announced(group: str = GROUP) -> Iterator[Entry]:
    """Entries as they stand in the metadata, each distribution once, each with its own status."""
    from importlib import metadata

    seen = set()
    places: dict[str, Any] = {} if SEARCH is None else {"path": SEARCH}
    for distribution in metadata.distributions(**places):
        try:
            if f"[{group}]" not in (distribution.read_text("entry_points.txt") or ""):
                continue
        except (OSError, ValueError):  # somebody else's distribution, damaged
            continue
        name, entries = _entries(distribution, group)
        if _canonical(name) not in seen:  # else an earlier place on the path hides this one
            seen.add(_canonical(name))
            yield from entries


def _entries(distribution: Distribution, group: str) -> tuple[str, list[Entry]]:
    """A distribution's name, and what it announces in ``group``."""
    try:
        headers = _headers(distribution.read_text("METADATA") or "")
    except (OSError, ValueError):
        headers = {}
    folder = Path(str(getattr(distribution, "_path", "unknown"))).name
    name = headers.get("Name", [folder])[0]
    version = headers.get("Version", ["unknown"])[0]
    try:
        points = {(p.name, p.module) for p in distribution.entry_points if p.group == group}
    except Exception as error:  # noqa: BLE001 - the file may hold anything
        reason = f"its entry_points.txt cannot be read: {_cause(error)}: reinstall {name}"
        return name, [Entry(name, name, version, "", "broken", reason)]
    misfit = _misfit(headers.get("Requires-Dist", []))
    found = []
    for point, module in sorted(points):
        entry = Entry(point, name, version, module, summary=headers.get("Summary", [""])[0])
        if not NAME.fullmatch(point):
            reason = f"{name} announces {point!r}, which cannot be typed: letters, digits and . _ -"
            # and neither can it be printed as it is
            entry = replace(entry, name=repr(point)[1:-1], status="broken", reason=reason)
        elif misfit:
            entry = replace(entry, status="incompatible", reason=misfit)
        elif not _exists(module):
            reason = (
                f"{name} announces module {module!r}, which is not there: "
                f"reinstall or uninstall {name}"
            )
            entry = replace(entry, status="broken", reason=reason)
        found.append(entry)
    return name, found


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
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if not requirement.specifier.contains(__version__, prereleases=True):
            return f"it needs ecotour {requirement.specifier}, and this is {__version__}"
    return ""


def _exists(module: str) -> bool:
    """Whether the top-level package of ``module`` can be found, without importing it."""
    import importlib.util

    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _contested(providers: list[Entry]) -> str:
    """Why none of several providers of one name wins."""
    ordered = sorted(providers, key=lambda entry: (entry.distribution, entry.module))
    names = " and ".join(f"{e.provenance} ({e.module})" for e in ordered)
    if len({_canonical(e.distribution) for e in ordered}) == 1:
        return f"announced twice, by {names}: its author must take one away"
    names = " and ".join(e.provenance for e in ordered)
    return f"provided by {names}: uninstall one, or choose with --provider"


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _cause(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = (str(error).strip().splitlines() or ["no message"])[0]
    return f"{type(error).__name__}: {text}"
