"""Helpers of the tests that run the command line: in this process, or in one of their own."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ecotour import cli

DEMO = str(Path(__file__).parent / "demos" / "small.py")
STEPS = ["--steps", "24", "--log-every", "3", "--checkpoint-every", "4", "--quiet"]


def ecotour(*arguments: object) -> int:
    """Carry out a command line here, and return its exit code."""
    return cli.main([str(argument) for argument in arguments])


def start(*arguments: object, **given: Any) -> subprocess.Popen[str]:
    """Start a command line in a process of its own, whose standard error can be read."""
    command = [sys.executable, "-m", "ecotour", *map(str, arguments)]
    given = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True} | given
    return subprocess.Popen(command, **given)


def bound_by_permissions() -> list[str]:
    """What to put before a command so that permissions bind it, also where root runs the tests."""
    if os.geteuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip(
            "permissions do not bind root, and there is no setpriv (util-linux) to drop that"
        )
    dropped = "-dac_override,-dac_read_search"
    words = ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"permissions do not bind root here: {tried.stderr.strip()}")
    return words


@contextlib.contextmanager
def read_only(*places: Path) -> Iterator[None]:
    """Take the right to write from directories and all that is in them, and give it back after."""
    entries = [entry for place in places for entry in (place, *place.rglob("*"))]
    for entry in entries:
        entry.chmod(entry.stat().st_mode & ~0o222)
    try:
        yield
    finally:
        for entry in entries:
            entry.chmod(entry.stat().st_mode | 0o200)


def record(out: Path) -> dict[str, Any]:
    """What ``run.json`` holds."""
    found: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
    return found


def rewrite(out: Path, **changes: Any) -> None:
    """Change ``run.json``."""
    (out / "run.json").write_text(json.dumps(record(out) | changes), encoding="utf-8")


def rows(out: Path) -> list[dict[str, Any]]:
    """The rows of ``metrics.jsonl``, without their times."""
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "elapsed_s"} for line in lines]


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until ``condition`` holds while ``process`` runs; ten minutes are forever."""
    deadline = time.monotonic() + 600
    while not condition():
        assert process.poll() is None, f"ended with {process.returncode}: {process.stderr}"
        assert time.monotonic() < deadline, "this takes forever"
        time.sleep(0.02)


@contextlib.contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Let this process write no file beyond ``size`` bytes: EFBIG, as a quota would have it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def tree(path: Path) -> dict[str, tuple[int, bytes]]:
    """All files below ``path``: time of change and content."""
    return {
        str(file.relative_to(path)): (file.stat().st_mtime_ns, file.read_bytes())
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def environment(**given: str) -> dict[str, str]:
    """This process's environment with some variables set."""
    return {**os.environ, **given}
