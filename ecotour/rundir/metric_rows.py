"""The rows of a run, ``metrics.jsonl``: appended whole, read back however many there are."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ecotour.contract.events import NOT_METRICS
from ecotour.contract.plan import MAX_STEPS
from ecotour.rundir.files import write_whole
from ecotour.rundir.strict_json import to_json

if TYPE_CHECKING:
    from ecotour.running.history import History


class Rows:
    """``metrics.jsonl``, appended to. A row is in the file whole or not at all."""

    def __init__(self, path: Path) -> None:
        """Append to ``path``, which is made with the first row."""
        self.path = path
        self._file: IO[bytes] | None = None
        self._waiting: list[bytes] = []

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row. Where an earlier one could not be written, that is tried first.

        Raises:
            OSError: It cannot be written now; it is kept in memory for the next attempt.
        """
        self._waiting.append((to_json(row) + "\n").encode())
        self.retry()

    def retry(self) -> None:
        """Write what waits.

        Raises:
            OSError: It still cannot be written.
        """
        while self._waiting:
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)
            line, good = self._waiting[0], self._file.tell()
            try:
                written = 0
                while written < len(line):  # a disk that fills takes a part before it refuses
                    written += self._file.write(line[written:])
            except OSError:
                self._file.truncate(good)
                self._file.seek(good)
                raise
            del self._waiting[0]

    def sync(self) -> None:
        """Wait until the rows are on the disk, whatever happens to the machine then."""
        self.retry()
        if self._file is not None:
            os.fsync(self._file.fileno())

    @property
    def waiting(self) -> int:
        """Bytes that could not be written so far."""
        return sum(map(len, self._waiting))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_rows(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of ``metrics.jsonl`` in ``path``, and a line on each that had to be left out.

    A last line that was torn off, as a killed process leaves it, is left out without a word.
    """
    damaged: list[str] = []
    return list(iterate_rows(path, damaged)), damaged


def iterate_rows(path: Path, damaged: list[str]) -> Iterator[dict[str, Any]]:
    """The rows one by one, however many there are; see `read_rows`."""
    return itertools.chain.from_iterable(_chunks(path, damaged))


def read_history(path: Path) -> tuple[dict[str, History], list[str]]:
    """What ``metrics.jsonl`` in ``path`` holds, in columns by named step; see `read_rows`.

    A hundred bytes a row become eight a number, so that a million rows are soon read and held.
    """
    from ecotour.running.history import History  # and NumPy with it

    damaged: list[str] = []
    history: dict[str, History] = {}
    for rows in _chunks(path, damaged):
        for of in dict.fromkeys(row["of"] for row in rows):
            own = [row for row in rows if row["of"] == of]
            history.setdefault(of, History()).extend(own, NOT_METRICS)
    return history, damaged


def _chunks(path: Path, damaged: list[str]) -> Iterator[list[dict[str, Any]]]:
    file = path / "metrics.jsonl"
    if not file.exists():
        return
    number = 0
    with file.open("rb") as stream:
        while lines := list(itertools.islice(stream, 4096)):
            try:  # one call for many lines takes half the time of many calls
                rows = json.loads(b"[" + b",".join(lines) + b"]")
                if len(rows) != len(lines):
                    raise ValueError
            except (ValueError, RecursionError):
                rows = [_parse(line) for line in lines]
            good = [row for row in rows if _sound(row)]
            if len(good) < len(rows):
                kept = set(map(id, good))
                for place, row in enumerate(rows, start=1):
                    torn = place == len(rows) and not lines[-1].endswith(b"\n")
                    if id(row) not in kept and not torn:
                        line = number + place
                        damaged.append(f"{file}: line {line} is damaged and left out")
            number += len(rows)
            yield good


def order_rows(path: Path, order: Sequence[str]) -> None:
    """Write the rows of ``metrics.jsonl`` in ``path`` by named step, where they are not so.

    Raises:
        OSError: They cannot be written; they are as they were.
    """
    damaged: list[str] = []
    place = {of: number for number, of in enumerate(order)}
    places = [place.get(row["of"], -1) for row in iterate_rows(path, damaged)]
    if damaged or all(a <= b for a, b in itertools.pairwise(places)):
        return
    rows = sorted(iterate_rows(path, damaged), key=lambda row: place.get(row["of"], -1))
    lines = [to_json(row) + "\n" for row in rows]
    write_whole(path / "metrics.jsonl", "".join(lines).encode(), durable=True)


def _sound(row: Any) -> bool:
    """Whether a line holds a row: who reported, after which step, and numbers besides."""
    if not isinstance(row, dict) or type(row.get("of")) is not str:
        return False
    step, strange = row.get("step"), row.get("nonfinite", {})
    if type(step) is not int or not 0 <= step <= MAX_STEPS or not isinstance(strange, dict):
        return False
    return all(value in ("nan", "inf", "-inf") for value in strange.values()) and all(
        value is None or (type(value) in (int, float, bool) and abs(value) <= sys.float_info.max)
        for name, value in row.items()
        if name not in ("of", "nonfinite")
    )


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return object()
