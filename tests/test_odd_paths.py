"""Paths that are not UTF-8: to the system a name is bytes, and to Python a text with surrogates."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import lines
import pytest
from runs import ecotour, record, rows

ODD = os.fsdecode(b"odd\xff")
SHOWN = r"odd\udcff"

pytestmark = pytest.mark.skipif(
    sys.platform == "darwin", reason="this system's names are UTF-8, always"
)


def test_a_run_can_be_kept_resumed_and_reported_there(
    workdir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = workdir / ODD
    assert ecotour("run", lines.FILE, "--steps", 5, "--out", out, "--json") == 0
    told = capfd.readouterr()
    assert "warning" not in told.err
    assert f"{SHOWN}/report.html" in told.err
    assert json.loads(told.out)["run_dir"] == str(out), "read back it is the same path"
    assert SHOWN in (out / "run.json").read_text("utf-8")
    assert record(out)["run_dir"] == str(out)

    assert ecotour("resume", out, "--steps", 8, "--quiet") == 0
    assert "step 5" not in capfd.readouterr().err, "it went on from the checkpoint"
    straight = workdir / "straight"
    assert ecotour("run", lines.FILE, "--steps", 8, "--out", straight, "--quiet") == 0
    assert rows(out)[-1] == rows(straight)[-1]

    assert ecotour("report", out, "--json") == 0
    assert json.loads(capfd.readouterr().out)["run_dir"] == str(out)
    assert (out / "report.html").read_text("utf-8")
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("ecotour-checkpoints-*"))


def test_a_current_directory_and_a_data_directory(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workdir / ODD).mkdir()
    monkeypatch.chdir(workdir / ODD)
    assert ecotour("run", lines.FILE, "--steps", 3, "--data-dir", Path.cwd(), "--quiet") == 0
    assert record(Path("ecotour-runs/line-001"))["data_dir"] == str(workdir / ODD)
    assert ecotour("resume", "ecotour-runs/line-001", "--steps", 4, "--quiet") == 0


def test_records_pages_and_plugins(workdir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run, records = lines.make_run(workdir / "run", "--steps", "5"), workdir / ODD / "records"
    assert lines.keep(run, records).is_dir()
    capfd.readouterr()
    assert ecotour("export", run, "--to", "markdown", "--out", workdir / ODD / "page") == 0
    assert SHOWN in capfd.readouterr().out
    assert ecotour("new", "my-demo", "--dir", workdir / ODD / "plugin", "--json") == 0
    assert json.loads(capfd.readouterr().out)["directory"] == str(workdir / ODD / "plugin")


@pytest.mark.parametrize("command", ["run", "show", "check", "record"])
def test_a_demos_file_is_refused_since_xla_cannot_name_it(
    workdir: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = lines.copy_to(workdir / ODD)
    assert ecotour(command, file) == 2
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert f"{SHOWN}/line.py: XLA cannot compile what lies below a name that is not UTF-8" in told
    assert not (workdir / "ecotour-runs").exists()


def test_a_run_whose_demo_has_moved_there_is_refused(
    workdir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = lines.copy_to(workdir / "here")
    run = lines.make_run(workdir / "run", "--steps", "5", file=file)
    shutil.move(workdir / "here", workdir / ODD)
    text = (run / "run.json").read_text("utf-8").replace("/here/line.py", f"/{SHOWN}/line.py")
    (run / "run.json").write_text(text, "utf-8")
    capfd.readouterr()
    assert ecotour("resume", run, "--steps", 6, "--quiet") == 2
    assert "is not UTF-8" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["report", ODD], ["resume", ODD, "--json"], ["run", ODD], [ODD], ["new", ODD]],
    ids=str,
)
def test_whatever_is_wrong_is_said_in_one_line(
    workdir: Path, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert ecotour(*words) in (1, 2)
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert SHOWN in told
    assert "not foreseen" not in told
