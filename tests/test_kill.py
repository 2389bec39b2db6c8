"""The short form of the kill harness; the long one is run by hand, see `tests/kill_harness.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kill_harness


def test_runs_that_are_killed_at_random_come_out_the_same(tmp_path: Path) -> None:
    command = [sys.executable, kill_harness.__file__, "--kills", "5", "--seed", "11"]
    finished = subprocess.run(
        [*command, "--fresh", "0.2", "--workdir", str(tmp_path / "work")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "5 kills" in finished.stdout
    assert "all came out bit for bit the same" in finished.stdout


def test_the_harness_sees_a_difference(tmp_path: Path) -> None:
    """A test that cannot fail proves nothing: one bit of one row is enough for it."""
    import json

    out = tmp_path / "run"
    (out / "checkpoints" / "a" / "0000000002" / "about").mkdir(parents=True)
    (out / "checkpoints" / "a" / "0000000002" / "about" / "metadata").write_text('{"leaves": [1]}')
    (out / "run.json").write_text(
        json.dumps({"status": "finished", "error": None, "checks": [], "metrics": {}, "best": {}})
    )
    row = {"step": 1, "of": "a", "loss": 0.1, "elapsed_s": 1.0}
    (out / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    wanted = kill_harness.essence(out)
    (out / "metrics.jsonl").write_text(json.dumps(row | {"elapsed_s": 2.0}) + "\n")
    assert kill_harness.essence(out) == wanted
    (out / "metrics.jsonl").write_text(json.dumps(row | {"loss": 0.1 + 2**-56}) + "\n")
    assert kill_harness.essence(out) != wanted
