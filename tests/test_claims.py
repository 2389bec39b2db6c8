"""One owner a directory: real processes at the same moment, dead ones, and files of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import runs

from ecotour.errors import RecordError
from ecotour.rundir.claim import RunDirectory
from ecotour.rundir.metric_rows import Rows, iterate_rows, order_rows, read_rows

CLAIM = """
import pathlib, sys, time
from ecotour.rundir import record
from ecotour.rundir.claim import RunDirectory
from ecotour.errors import RecordError
import filelock
import os
print("ready", flush=True)
sys.stdin.readline()
out = pathlib.Path(sys.argv[1]) if sys.argv[1] else None
try:
    directory = RunDirectory.claim(out, "demo")
except RecordError as error:
    print("refused", error)
else:
    record.write(directory.path, {"schema": 1, "owner": {"pid": os.getpid(), "host": "h"}})
    print("owns", directory.path, flush=True)
    sys.stdin.readline()
"""


def claimers(count: int, out: str, place: Path) -> list[subprocess.Popen[str]]:
    """Processes that stand ready to claim; a line on their input lets them."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIM, out],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=place,
        )
        for _ in range(count)
    ]
    for process in started:
        assert answer(process) == "ready"
    return started


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def end(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.communicate("\n")


def test_eight_at_once_get_eight_directories(tmp_path: Path) -> None:
    processes = claimers(8, "", tmp_path)
    go(processes)
    got = sorted(answer(process) for process in processes)
    end(processes)
    assert got == [f"owns ecotour-runs/demo-00{number}" for number in range(1, 9)]


def test_of_eight_that_want_the_same_one_one_gets_it(tmp_path: Path) -> None:
    processes = claimers(8, "here/it", tmp_path)
    go(processes)
    got = sorted(answer(process) for process in processes)
    end(processes)
    assert got[0] == "owns here/it"
    assert all("here/it" in line and line.startswith("refused") for line in got[1:])


def test_the_owner_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    (owner,) = claimers(1, "run", tmp_path)
    go([owner])
    assert answer(owner) == "owns run"
    before = runs.tree(tmp_path)
    for attempt in (
        lambda: RunDirectory.claim(tmp_path / "run", "demo"),
        lambda: RunDirectory.reopen(tmp_path / "run"),
    ):
        with pytest.raises(RecordError, match=f"in use by process {owner.pid} on h"):
            attempt()
    assert runs.tree(tmp_path) == before
    end([owner])


def test_the_claim_of_a_dead_process_is_no_obstacle(tmp_path: Path) -> None:
    (owner,) = claimers(1, "run", tmp_path)
    go([owner])
    assert answer(owner) == "owns run"
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    (tmp_path / "run" / ".report.html.123.part").write_text("torn")
    with pytest.raises(RecordError, match="already holds a run: continue it with `ecotour resume"):
        RunDirectory.claim(tmp_path / "run", "demo")
    directory = RunDirectory.reopen(tmp_path / "run")
    assert not list(tmp_path.rglob("*.part"))
    directory.release()


def test_a_directory_with_files_of_others_is_not_touched(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("years of work")
    (theirs / ".lock").write_text("theirs too")
    before, when = runs.tree(theirs), theirs.stat().st_mtime_ns
    with pytest.raises(RecordError, match=r"not empty \(it holds thesis.tex\)"):
        RunDirectory.claim(theirs, "demo")
    assert (runs.tree(theirs), theirs.stat().st_mtime_ns) == (before, when)


def test_an_empty_directory_is_taken_and_given_back_empty(tmp_path: Path) -> None:
    directory = RunDirectory.claim(tmp_path / "a" / "b", "demo")
    assert directory.path == tmp_path / "a" / "b"
    directory.abandon()
    assert not (tmp_path / "a" / "b").exists()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RecordError, match="Not a directory: choose another --out"):
            RunDirectory.claim(out, "demo")


def test_a_row_is_in_the_file_whole_or_not_at_all(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "metrics.jsonl")
    rows.append({"step": 1, "of": "a", "x": 1.0})
    with runs.no_file_above(60):
        for step in (2, 3):
            with pytest.raises(OSError, match="File too large"):
                rows.append({"step": step, "of": "a", "x": float("nan")})
        assert len(read_rows(tmp_path)[0]) == 1
        assert (tmp_path / "metrics.jsonl").read_bytes().endswith(b"}\n")
    assert rows.waiting > 0
    rows.retry()
    rows.close()
    found, damaged = read_rows(tmp_path)
    assert ([row["step"] for row in found], damaged) == ([1, 2, 3], [])
    assert found[2]["x"] is None


def test_many_rows_are_read_and_every_damaged_one_is_counted(tmp_path: Path) -> None:
    lines = [b'{"step": %d, "of": "a"}\n' % step for step in range(1, 10_001)]
    lines[4095] = b"\xff\n"
    lines[4999] = b'{"step": "5000", "of": "a"}\n'
    lines[9998] = b'{"step": 1, "of": "a"}{"step": 2, "of": "a"}\n'
    (tmp_path / "metrics.jsonl").write_bytes(b"".join(lines) + b'{"step": 10001, "o')
    damaged: list[str] = []
    steps = [row["step"] for row in iterate_rows(tmp_path, damaged)]
    assert steps == [n for n in range(1, 10_001) if n not in (4096, 5000, 9999)]
    assert [line.split(": ")[1] for line in damaged] == [
        f"line {n} is damaged and left out" for n in (4096, 5000, 9999)
    ]


def test_rows_are_put_in_the_order_of_the_program(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "metrics.jsonl")
    for of, step in (("a", 1), ("b", 1), ("a", 2), ("b", 2)):
        rows.append({"step": step, "of": of})
    rows.close()
    order_rows(tmp_path, ["a", "b"])
    found = [(row["of"], row["step"]) for row in read_rows(tmp_path)[0]]
    assert found == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
