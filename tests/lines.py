"""A finished run of the smallest demo of the documentation, for tests that keep and compare."""

from __future__ import annotations

import shutil
from pathlib import Path

from ecotour import cli

FILE = Path(__file__).parents[1] / "docs" / "examples" / "line.py"


def copy_to(directory: Path) -> Path:
    """The demo's file, in a place of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(FILE, directory / "line.py"))


def make_run(out: Path, *words: str, file: Path = FILE) -> Path:
    """Run it in this process for 200 steps, or as ``words`` say."""
    assert cli.main(["run", str(file), "--out", str(out), "--quiet", *words]) == 0
    return out


def keep(run: Path, records: Path, file: Path = FILE) -> Path:
    """Make a record of a run; its directory."""
    words = ["record", str(file), "--from", str(run), "--records", str(records), "--quiet"]
    assert cli.main(words) == 0
    return records / file.stem
