"""The run directory: claim it, write it so that no half file is ever seen, read it back.

::

    run.json        what was asked, what came of it; rewritten whole, by rename
    metrics.jsonl   one row a report, appended
    exhibits/       what the demo showed, as JSON and pictures
    checkpoints/    states, through Orbax
    report.html     the page
    .lock           held by the process that owns the directory

JSON is strict here: a number that is not finite is ``null``, and ``nonfinite`` names its place.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.errors import RecordError

if TYPE_CHECKING:
    import filelock

SCHEMA = 1
DEFAULT_PARENT = Path("ecotour-runs")


class RunDirectory:
    """A directory that this process owns until `release`."""

    def __init__(self, path: Path, lock: filelock.FileLock) -> None:
        """Wrap a directory whose ``lock`` is held; use `claim` to get one."""
        self.path = path
        self._lock = lock

    @classmethod
    def claim(cls, out: Path | None, demo: str) -> RunDirectory:
        """Own a fresh directory: ``out``, or the next free ``ecotour-runs/<demo>-NNN``.

        Raises:
            RecordError: It holds something already, is in use, or cannot be written.
        """
        try:
            path = _next_free(DEFAULT_PARENT, demo) if out is None else _make(out)
            directory = cls._own(path)
            held = [entry.name for entry in path.iterdir() if entry.name != ".lock"]
        except OSError as error:
            where = out or DEFAULT_PARENT
            raise RecordError(f"cannot write to {where}: {error.strerror or error}") from error
        if held:
            directory.release()
            if "run.json" in held:
                mend = f"continue it with `ecotour resume {path}`, or choose another --out"
                raise RecordError(f"{path} already holds a run: {mend}")
            (path / ".lock").unlink(missing_ok=True)
            raise RecordError(
                f"{path} is not empty (it holds {sorted(held)[0]}): choose a new --out"
            )
        return directory

    @classmethod
    def reopen(cls, path: Path) -> RunDirectory:
        """Own a directory that holds a run.

        Raises:
            RecordError: There is no run in it, or another process owns it.
        """
        read(path)
        try:
            return cls._own(path)
        except OSError as error:
            raise RecordError(f"cannot write to {path}: {error.strerror or error}") from error

    @classmethod
    def _own(cls, path: Path) -> RunDirectory:
        import filelock

        lock = filelock.FileLock(path / ".lock", timeout=0)
        try:
            lock.acquire()
        except filelock.Timeout:
            owner = _owner(path)
            raise RecordError(
                f"{path} is in use by {owner}: wait for it, or choose another --out"
            ) from None
        return cls(path, lock)

    def write_text(self, name: str, text: str) -> Path:
        """Write a file whole, under a temporary name first, and return its path."""
        target = self.path / name
        temporary = target.with_name(f".{target.name}.part")
        target.parent.mkdir(exist_ok=True)
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        return target

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Write ``run.json``."""
        self.write_text("run.json", to_json(record, indent=1) + "\n")

    def release(self) -> None:
        """Give the directory up."""
        self._lock.release()


def read(path: Path) -> dict[str, Any]:
    """The record of the run in ``path``, with ``run_dir`` as the directory is called now.

    Raises:
        RecordError: There is none, or it cannot be understood.
    """
    file = path / "run.json"
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"{path} holds no run: there is no run.json in it") from None
    except NotADirectoryError:
        raise RecordError(f"{path} is not a run's directory") from None
    except OSError as error:
        raise RecordError(f"cannot read {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise RecordError(f"{file} is damaged: {error}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else "none"
        raise RecordError(f"{file} has schema {found}, and this ecotour reads schema {SCHEMA}")
    return record | {"run_dir": str(path)}


def read_rows(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of ``metrics.jsonl`` in ``path``, and a line on each that had to be left out.

    A last line that was torn off, as a killed process leaves it, is left out without a word.
    """
    file = path / "metrics.jsonl"
    if not file.exists():
        return [], []
    lines = file.read_bytes().split(b"\n")
    rows, damaged = [], []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            row = json.loads(line)
            if not (isinstance(row, dict) and isinstance(row["step"], int) and row["of"]):
                raise ValueError
            rows.append(row)
        except (ValueError, KeyError):
            if number < len(lines):
                damaged.append(f"{file}: line {number} is damaged and left out")
    return rows, damaged


def to_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON: what is not finite is null; tuples are lists, paths are strings."""
    return json.dumps(_clean(value), allow_nan=False, ensure_ascii=False, indent=indent)


def nonfinite(value: Any, place: str = "") -> list[str]:
    """Where in ``value`` the numbers stand that are not finite, e.g. ``update.gen_loss``."""
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)  # type: ignore[assignment]
    else:
        return [place] if isinstance(value, float) and not math.isfinite(value) else []
    return [
        found
        for key, item in items
        for found in nonfinite(item, f"{place}.{key}" if place else str(key))
    ]


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def _make(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _next_free(parent: Path, demo: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    taken = [entry.name.removeprefix(f"{demo}-") for entry in parent.glob(f"{demo}-*")]
    number = max((int(text) for text in taken if text.isdigit()), default=0) + 1
    while True:
        path = parent / f"{demo}-{number:03d}"
        try:
            path.mkdir()  # the one who makes it has it, however many start together
            return path
        except FileExistsError:
            number += 1


def _owner(path: Path) -> str:
    try:
        owner = json.loads((path / "run.json").read_text(encoding="utf-8"))["owner"]
        return f"process {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run that is just starting"
