"""Who owns a run's directory; and what lies in it.

::

    run.json        what was asked, what came of it; rewritten whole, by rename
    metrics.jsonl   one row a report, appended
    exhibits/       what the demo showed, as JSON and pictures
    checkpoints/    states, through Orbax
    report.html     the page
    .lock           held by the process that owns the directory
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ecotour.errors import RecordError
from ecotour.machine import names
from ecotour.rundir.record import read

if TYPE_CHECKING:
    import filelock

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
        check(out, demo)
        try:
            path = _next_free(DEFAULT_PARENT, demo) if out is None else _make(out)
            directory = cls._own(path)
        except OSError as error:
            raise _unwritable(out or DEFAULT_PARENT, error) from error
        try:
            _refuse_what_it_holds(path)  # again, since it may have been filled meanwhile
        except RecordError:
            directory.release()
            raise
        return directory

    @classmethod
    def reopen(cls, path: Path) -> RunDirectory:
        """Own a directory that holds a run, and clear away what a dead process left half done.

        Raises:
            RecordError: There is no run in it, another process owns it, or it cannot be written.
        """
        read(path)
        try:
            directory = cls._own(path)
            for folder in (path, path / "exhibits"):
                for left in folder.glob(".*.part"):
                    left.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        return directory

    @classmethod
    def _own(cls, path: Path) -> RunDirectory:
        import filelock

        # the system's own lock: it goes with the process, however that ends
        lock = filelock.FileLock(path / ".lock", timeout=0.3, poll_interval=0.05)
        try:
            lock.acquire()
        except filelock.Timeout:
            owner = _owner(path)
            raise RecordError(
                f"{path} is in use by {owner}: wait for it, or choose another --out"
            ) from None
        except NotImplementedError as error:
            raise RecordError(
                f"{path} is on a file system without locks: choose a new --out"
            ) from error
        return cls(path, lock)

    def release(self) -> None:
        """Give the directory up."""
        self._lock.release()

    def abandon(self) -> None:
        """Give it up and remove it, if nothing was written into it."""
        self.release()
        with contextlib.suppress(OSError):
            (self.path / ".lock").unlink(missing_ok=True)
            self.path.rmdir()


def check(out: Path | None, demo: str) -> None:
    """Find out early, and without writing, whether `RunDirectory.claim` would be refused.

    Raises:
        RecordError: It would.
    """
    place = DEFAULT_PARENT if out is None else out
    try:
        way = (place, *place.absolute().parents)
        existing = next(one for one in way if one.exists())
        for new in way[: way.index(existing)]:
            if names.is_device(new.name):
                raise RecordError(
                    f"--out {place}: {new.name!r} is the name of a device on Windows, which then "
                    f"could not hold the run: try {new.name}-run"
                )
        if not existing.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(existing, os.W_OK | os.X_OK):
            read_only = os.statvfs(existing).f_flag & getattr(os, "ST_RDONLY", 0)
            raise OSError(errno.EROFS if read_only else errno.EACCES, "")
        if out is not None and out.exists():
            _refuse_what_it_holds(out)
    except OSError as error:
        raise _unwritable(place, error) from error


def _make(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _refuse_what_it_holds(path: Path) -> None:
    held = sorted(entry.name for entry in path.iterdir() if entry.name != ".lock")
    if "run.json" in held:
        owner = _live_owner(path)
        if owner:
            raise RecordError(f"{path} is in use by {owner}: wait for it, or choose another --out")
        mend = f"continue it with `ecotour resume {path}`, or choose another --out"
        raise RecordError(f"{path} already holds a run: {mend}")
    if held:
        raise RecordError(f"{path} is not empty (it holds {held[0]}): choose a new --out")


def _unwritable(path: Path, error: OSError) -> RecordError:
    why = os.strerror(error.errno) if error.errno else str(error)
    return RecordError(f"cannot write to {path}: {why}: choose another --out")


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


def _live_owner(path: Path) -> str:
    """Who holds the lock of ``path``; nothing if nobody does."""
    import filelock

    if not (path / ".lock").exists():
        return ""
    lock = filelock.FileLock(path / ".lock", timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        return _owner(path)
    except OSError:
        return ""
    lock.release()
    return ""


def _owner(path: Path) -> str:
    try:
        owner = json.loads((path / "run.json").read_text(encoding="utf-8"))["owner"]
        return f"process {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run that is just starting"
