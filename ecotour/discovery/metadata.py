"""What installed distributions say of themselves, read although it may be damaged.

Nothing but their metadata is read, so no plugin and no JAX is imported. `announced` reads the files
of installed distributions itself: `importlib.metadata` takes longer to import than all the rest of
``ecotour list`` takes to run.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ecotour.machine import names

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

SEARCH: list[str] | None = None
"""Where to look for distributions; on ``sys.path``, if ``None``. (For the test kit.)"""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a demo may be called."""

EntryStatus: TypeAlias = Literal["installed", "ok", "disabled", "incompatible", "broken"]


class Entry(NamedTuple):
    """What the metadata says of a demo.

    Attributes:
        name: What users type.
        distribution: The name of the distribution that provides it.
        version: That distribution's version.
        module: The module with the hook.
        status: Whether it can be asked for. ``installed`` is all that metadata can tell; ``ok``
            is one that was loaded (`ecotour.discovery.apart`).
        reason: Why not, in one line; empty where it can.
        summary: What the distribution says of itself, in one line.
    """

    name: str
    distribution: str
    version: str
    module: str
    status: EntryStatus = "installed"
    reason: str = ""
    summary: str = ""

    @property
    def provenance(self) -> str:
        """Distribution and version, as events and records carry it."""
        return f"{self.distribution} {self.version}"


def announced(group: str) -> Iterator[Entry]:
    """Entries as they stand in the metadata, each distribution once, each with its own status."""
    seen = set()
    for folder in _folders():
        try:
            points = _read(folder, "entry_points.txt")
        except (OSError, ValueError):  # it has none; or it is somebody else's, and damaged
            continue
        if f"[{group}]" not in points:
            continue
        name, entries = _entries(folder, points, group)
        if canonical(name) not in seen:  # else an earlier place on the path hides this one
            seen.add(canonical(name))
            yield from entries


def _folders() -> Iterator[str]:
    """Where the metadata of installed distributions lie, in the order of the path."""
    for place in dict.fromkeys(sys.path if SEARCH is None else SEARCH):
        try:
            names = sorted(os.listdir(place or "."))
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield os.path.join(place, name)


def _read(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


@contextlib.contextmanager
def forgiving() -> Iterator[None]:
    """Let no damaged distribution stop a library that asks for everybody's entry points.

    JAX does so as it starts, to find its plugins, and Matplotlib, to find its backends. For both
    of them `importlib.metadata.entry_points` raises if it cannot read a single one.
    """
    from importlib import metadata

    strict = metadata.entry_points

    def entry_points(**wanted: Any) -> Any:
        try:
            return strict(**wanted)
        except Exception:  # noqa: BLE001 - a damaged file may raise anything
            sound = [points for points in _everybodys().values() if not isinstance(points, str)]
            return metadata.EntryPoints(itertools.chain(*sound)).select(**wanted)

    metadata.entry_points = entry_points
    try:
        yield
    finally:
        metadata.entry_points = strict


def damaged() -> dict[str, str]:
    """The distributions whose entry points cannot be read: the cause by the name."""
    return {name: points for name, points in _everybodys().items() if isinstance(points, str)}


def _everybodys() -> dict[str, EntryPoints | str]:
    """The entry points of each distribution by its name, or why they cannot be read."""
    from importlib import metadata

    found: dict[str, EntryPoints | str] = {}
    for distribution in metadata.distributions():
        folder = str(getattr(distribution, "_path", "unknown"))
        name = canonical(_headers_of(folder)["Name"][0])
        if name in found:  # an earlier place on the path hides this one
            continue
        try:
            found[name] = distribution.entry_points
        except Exception as error:  # noqa: BLE001
            found[name] = cause(error)
    return found


_SECTION = re.compile(r"\[(?P<group>[^\]]*)\]")
_POINT = re.compile(r"(?P<name>[^=]*[^=\s])\s*=\s*(?P<module>[\w.]+)\s*(:[\w.\s]+)?(\[.*\])?")


def _points(text: str, group: str) -> set[tuple[str, str]]:
    """Name and module of each entry point of ``group`` in an ``entry_points.txt``.

    Raises:
        ValueError: A line of it says nothing.
    """
    found, now = set(), ""
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if section := _SECTION.fullmatch(line):
            now = section["group"]
        elif now == group:
            point = _POINT.fullmatch(line)
            if point is None:
                raise ValueError(f"what is {line!r}?")
            found.add((point["name"], point["module"]))
    return found


def _entries(folder: str, text: str, group: str) -> tuple[str, list[Entry]]:
    """A distribution's name, and what its entry points announce in ``group``."""
    headers = _headers_of(folder)
    name = headers["Name"][0]
    version = headers.get("Version", ["unknown"])[0]
    try:
        points = _points(text, group)
    except ValueError as error:
        reason = f"its entry_points.txt cannot be read: {cause(error)}: reinstall {name}"
        return name, [Entry(name, name, version, "", "broken", reason)]
    misfit = _misfit(headers.get("Requires-Dist", []))
    found = []
    for point, module in sorted(points):
        entry = Entry(point, name, version, module, summary=headers.get("Summary", [""])[0])
        if not NAME.fullmatch(point):
            reason = f"{name} announces {point!r}, which cannot be typed: letters, digits and . _ -"
            # and neither can it be printed as it is
            entry = entry._replace(name=repr(point)[1:-1], status="broken", reason=reason)
        elif names.is_device(point):
            reason = f"{name} announces {point!r}, the name of a device on Windows: rename the demo"
            entry = entry._replace(status="broken", reason=reason)
        elif misfit:
            entry = entry._replace(status="incompatible", reason=misfit)
        elif not _exists(module):
            reason = (
                f"{name} announces module {module!r}, which is not there: "
                f"reinstall or uninstall {name}"
            )
            entry = entry._replace(status="broken", reason=reason)
        found.append(entry)
    return name, found


def _headers_of(folder: str) -> dict[str, list[str]]:
    """The headers of METADATA by name; the name of its directory, where it has none."""
    found: dict[str, list[str]] = {}
    text = ""
    for file in ("METADATA", "PKG-INFO"):
        with contextlib.suppress(OSError, ValueError):
            text = _read(folder, file)
            break
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(": ")
        if colon:
            found.setdefault(name, []).append(value.strip())
    return {"Name": [os.path.basename(folder)]} | found


def _misfit(requires: list[str]) -> str:
    """Why this ecotour is not the one that a distribution requires, or nothing."""
    from ecotour.machine.version import __version__

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


def canonical(name: str) -> str:
    """A distribution's name in the one spelling that all of its spellings have in common."""
    return re.sub(r"[-_.]+", "-", name).lower()


def cause(error: BaseException) -> str:
    """What was raised, in one line."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = (str(error).strip().splitlines() or ["no message"])[0]
    return f"{type(error).__name__}: {text}"
