"""Full, small and read-only disks, homes that are not there: one line, and nothing is lost."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import runs
from runs import DEMO, STEPS, ecotour

from ecotour.rundir.checkpoint import Store

ENDLESS = str(Path(__file__).parent / "demos" / "endless.py")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of two megabytes. Only root may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    for mount in (["mount"], ["sudo", "-n", "mount"]):
        options = ["-t", "tmpfs", "-o", "size=2m,mode=777", "tmpfs", str(disk)]
        try:
            if subprocess.run([*mount, *options], capture_output=True, check=False).returncode == 0:
                break
        except FileNotFoundError:
            continue
    else:
        pytest.skip("mounting a file system needs root, and sudo asks for a password")
    yield disk
    subprocess.run([*mount[:-1], "umount", "-l", str(disk)], check=True)


def fill(disk: Path, leave: int = 0) -> Path:
    """Fill a disk up to ``leave`` bytes; a run may take some of what is free meanwhile."""
    filler = disk / "filler"
    while True:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        try:
            filler.write_bytes(b"x" * max(0, free - leave))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        if filler.exists():
            return filler


def test_a_full_disk_is_refused_before_anything_is_written(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(small_disk)
    assert ecotour("run", DEMO, *STEPS, "--out", small_disk / "run") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert str(small_disk / "run") in lines[0]
    assert "No space left on device" in lines[0]
    assert [file.name for file in small_disk.iterdir()] == ["filler"]


def test_a_disk_that_fills_up_costs_no_row_and_no_checkpoint_that_was(
    small_disk: Path, tmp_path: Path
) -> None:
    out = small_disk / "run"
    process = runs.start(
        "run", ENDLESS, "--steps", 10**6, "--log-every", 10, "--checkpoint-every", 50,
        "--size", 20_000, "--out", out,
    )  # fmt: skip
    runs.wait_for(lambda: bool(Store(out).steps("walk")), process)
    first = Store(out).steps("walk")[0]
    filler = fill(small_disk)
    assert process.stderr is not None
    said = ""
    while "cannot write" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    assert str(out) in said
    assert "No space left on device" in said
    assert Store(out).steps("walk")[0] >= first
    filler.unlink()
    before = Store(out).steps("walk")[-1]
    runs.wait_for(lambda: Store(out).steps("walk")[-1] > before, process)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143
    last = Store(out).steps("walk")[-1]
    assert [row["step"] for row in runs.rows(out)] == [1, *range(10, last + 1, 10)]
    assert any("No space left" in line for line in runs.record(out)["warnings"])
    assert not list(out.rglob("*.part"))
    assert not list(out.rglob("*tmp*"))


def test_a_disk_that_stays_full_is_a_failure_and_what_was_there_stays(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert ecotour("run", DEMO, *STEPS, "--out", out) == 0
    before = runs.record(out)
    states = runs.tree(out / "checkpoints")
    with runs.no_file_above(1500):  # metrics.jsonl and run.json are longer
        assert ecotour("resume", out, "--steps", 90, "--quiet") == 1
    after = runs.record(out)  # still whole
    assert after["status"] in ("running", before["status"])
    assert states.items() <= runs.tree(out / "checkpoints").items()
    assert not list(out.rglob("*.part"))
    assert ecotour("resume", out, "--steps", 90, "--quiet") == 0


def test_a_quota_says_path_and_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    with runs.no_file_above(100):
        assert ecotour("run", DEMO, *STEPS, "--out", out) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"cannot write {out / 'run.json'} (" in lines[0]
    assert "bytes): File too large" in lines[0]
    assert not out.exists()


def test_a_read_only_disk_is_refused_early(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=False)
    if run.returncode:
        subprocess.run(["sudo", "-n", "mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert ecotour("run", "no-such-demo-either", "--out", small_disk / "run") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"cannot write to {small_disk / 'run'}: Read-only file system" in lines[0]


@pytest.mark.parametrize("home", ["missing", "read-only", "a file"])
@pytest.mark.parametrize("cache", ["by default", "chosen"])
def test_a_home_that_takes_nothing_costs_the_cache_and_no_more(
    home: str, cache: str, tmp_path: Path
) -> None:
    place = Path("/proc/no-home")  # where not even root can make a directory
    if home == "read-only":
        place = tmp_path / "home"
        place.mkdir()
    elif home == "a file":
        place = tmp_path / "home"
        place.write_text("")
    given = runs.environment(HOME=str(place))
    for name in ("ECOTOUR_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR"):
        given.pop(name, None)
    if cache == "chosen":
        given["ECOTOUR_CACHE_DIR"] = str(tmp_path / "cache")
    out = tmp_path / "run"
    with runs.read_only(*[place] * (home == "read-only")):
        done = subprocess.run(
            [*runs.bound_by_permissions(), sys.executable, "-m", "ecotour", "run", DEMO, *STEPS,
             "--out", str(out)],
            env=given, cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = done.stderr.splitlines()
    if cache == "chosen":
        assert lines == []
    else:
        assert len(lines) == 1
        assert lines[0].startswith("warning: compiled programs cannot be kept in ")
        assert lines[0].endswith(": set ECOTOUR_CACHE_DIR")
    assert runs.record(out)["status"] == "finished"
    assert (out / "report.html").exists()
    assert not place.is_dir() or list(place.iterdir()) == []
