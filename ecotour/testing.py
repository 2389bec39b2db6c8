"""The test kit for authors of demos.

A plugin's test file is three lines::

    from ecotour.testing import assert_contract

    def test_the_contract() -> None:
        assert_contract("my-demo")

With pytest there are fixtures besides (`ecotour.pytest_plugin`): ``only_demos`` hides what happens
to be installed, ``throwaway`` builds plugins for one test, ``run_demo`` runs a demo and hands back
its events and its record.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.discovery import metadata, registry

if TYPE_CHECKING:
    from ecotour.checking.table import Report
    from ecotour.contract.demo import Demo
    from ecotour.contract.events import Event


@dataclass(frozen=True)
class Ran:
    """A run: the exit code of ``ecotour run``, the events in order, the record, the directory.

    ``error`` is the line that the run failed with, or empty.
    """

    code: int
    events: list[Event]
    record: dict[str, Any]
    run_dir: Path
    error: str = ""


def assert_contract(demo: str | Path | Demo, *flags: str) -> Report:
    """Fail with one line a finding where ``ecotour check`` has any.

    Args:
        demo: An installed demo's name or a file, which are checked in a process of their own; or
            a `ecotour.Demo`, which is checked in this one, on the devices that it has.
        flags: Words of a command line for the demo's own flags, such as ``"--width", "8"``.

    Raises:
        AssertionError: There are findings.
        EcotourError: There is no such demo.
    """
    from ecotour.checking.table import fill
    from ecotour.contract.demo import Demo

    if isinstance(demo, Demo):
        from ecotour.checking.proving import prove
        from ecotour.checking.settings import settings
        from ecotour.checking.targets import subject_of

        subject = subject_of(demo, flags)
        subject.once("before", settings)
        report = prove(subject)
    else:
        from ecotour.checking.apart import check

        report = check(str(demo), flags)
    if report.found:
        fill()  # the findings' own words
        raise AssertionError("\n".join(["", *(found.line for found in report.found)]))
    return report


def install(
    site: Path,
    name: str,
    source: str | None,
    *,
    distribution: str = "",
    version: str = "1.0",
    requires: Sequence[str] = ("ecotour",),
    group: str = registry.GROUP,
    summary: str = "",
) -> str:
    """Put a distribution with one module and one entry point into a directory of modules.

    Args:
        site: The directory; made if it is not there.
        name: The entry point's name: the demo's, or the sink's.
        source: The module's; ``None`` leaves the entry point without a module.
        distribution: The distribution's name; ``throwaway-NAME`` by default.
        version: Its version.
        requires: What it says it needs.
        group: The entry point's group.
        summary: The distribution's.

    Returns:
        The module's name.
    """
    distribution = distribution or f"throwaway-{name}"
    module = distribution.replace("-", "_").lower()
    site.mkdir(parents=True, exist_ok=True)
    if source is not None:
        (site / f"{module}.py").write_text(source, encoding="utf-8")
    info = site / f"{module}-{version}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\nSummary: {summary}\n"
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    (info / "METADATA").write_text(head + needs, encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n", encoding="utf-8")
    return module


@contextlib.contextmanager
def only(*sites: Path) -> Iterator[None]:
    """Let discovery see the distributions in ``sites`` and no other."""
    before, path, modules = metadata.SEARCH, list(sys.path), set(sys.modules)
    metadata.SEARCH = [str(site) for site in sites]
    sys.path[:0] = metadata.SEARCH
    try:
        yield
    finally:
        metadata.SEARCH, sys.path[:] = before, path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if any(Path(file).is_relative_to(site) for site in sites):
                del sys.modules[name]


def run(demo: str | Path, out: Path, *flags: str) -> Ran:
    """Do what ``ecotour run`` does, in this process.

    Args:
        demo: An installed demo's name, or a file.
        out: The run's directory.
        flags: As on the command line.
    """
    from ecotour import cli
    from ecotour.rundir.record import read
    from ecotour.sinks.extension import LISTENERS

    listener = _Listener()
    said = io.StringIO()
    LISTENERS.append(listener)
    try:
        with contextlib.redirect_stderr(said):
            code = cli.main(["run", str(demo), "--out", str(out), "--quiet", *flags])
    finally:
        LISTENERS.remove(listener)
    lines = [line for line in said.getvalue().splitlines() if line.startswith("ecotour: ")]
    error = lines[-1].removeprefix("ecotour: ") if lines and code else ""
    record = read(out) if (out / "run.json").exists() else {}
    return Ran(code, listener.seen, record, out, error)


class _Listener:
    """A sink that keeps the events."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.seen.append(event)

    def close(self) -> None:
        """Nothing to close."""
