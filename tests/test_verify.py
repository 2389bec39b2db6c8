"""A recorded run done again: same bits, close, diverged at a step, or not to be repeated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from lines import copy_to, keep, make_run

from ecotour import cli
from ecotour.rundir.frozen import digests, freeze
from ecotour.trust.verify import compare

ROWS = [{"step": s, "of": "fit", "loss": 1 / s, "elapsed_s": 0.1 * s} for s in (1, 10, 100, 500)]
STATE = {"fit": {"step": 500, "leaves": {"[0]": "aa", "[1]": "bb"}}}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a demo in a file, which lies beside it."""
    place = tmp_path_factory.mktemp("made")
    copy_to(place)
    return make_run(place / "run", "--steps", "30", "--batch-size", "16", file=place / "line.py")


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoiled."""
    return Path(shutil.copytree(original, tmp_path / "run"))


def changed(run: Path, **changes: Any) -> Path:
    file = run / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return run


def rows_with(step: int, **changes: Any) -> list[dict[str, Any]]:
    return [row | changes if row["step"] == step else row for row in ROWS]


def test_the_same_run_is_the_same_to_the_last_bit(
    run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", str(run), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["verdict"], found["reports"], found["leaves"]) == ("same bits", 30, 1)
    assert found["causes"] == []
    assert found["parting"] is None
    assert found["command"][:2] == ["ecotour", "run"]
    assert "16" in found["command"]


def test_a_record_for_documentation_and_fewer_steps(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = keep(original, original.parent / "records", file=original.parent / "line.py")
    assert cli.main(["verify", str(kept), "--steps", "12"]) == 0
    said = capsys.readouterr().out
    assert "same bits (12 reports compared)" in said
    assert "no digest of that state" in said


def test_another_seed_diverges_at_step_1_and_is_named(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", str(changed(run, seed=1))]) == 4
    assert "diverged at step 1: fit.loss was " in capsys.readouterr().out


def test_an_edited_row_and_an_edited_digest_are_named(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run / "metrics.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[6]["loss"] *= 1.1
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli.main(["verify", str(run)]) == 4
    assert "diverged at step 7: fit.loss" in capsys.readouterr().out
    rows[6]["loss"] /= 1.1 - 1e-6
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = json.loads((run / "run.json").read_text())["digests"]
    known["fit"]["leaves"] = dict.fromkeys(known["fit"]["leaves"], "0")
    assert cli.main(["verify", str(changed(run, digests=known))]) == 0
    said = capsys.readouterr().out
    assert ": close (30 reports, 1 leaf of" in said
    assert "the first leaf that is not the same: fit: state" in said


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"source_file": None, "demo": "no-such-demo"}, "cannot be repeated: unknown demo"),
        ({"config": {"learning_rate": 0.1, "colour": 3}}, "cannot be repeated: unknown flag"),
        ({"config": {"learning_rate": -1.0}}, "for --learning-rate"),
        ({"schema": 7}, "has schema 7"),
    ],
)
def test_what_cannot_be_repeated_says_what_is_missing(
    run: Path, changes: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", str(changed(run, **changes))]) == 1
    said = capsys.readouterr()
    assert line in said.err
    assert len(said.err.splitlines()) == 1
    assert not said.out


def test_a_run_that_was_not_compiled_is_verified_uncompiled(
    original: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = original.parent / "line.py"
    run = make_run(tmp_path / "eager", "--steps", "3", "--eager", file=file)
    assert cli.main(["verify", str(run), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert "--eager" in found["command"]
    assert found["verdict"] == "same bits"


def test_steps_beyond_the_record_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", str(run), "--steps", "31"]) == 2
    assert "--steps 31: the last report is of step 30" in capsys.readouterr().err


def test_fewer_steps_than_there_are_reports_of_and_no_run_at_all(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "metrics.jsonl").write_text("")
    assert cli.main(["verify", str(run)]) == 1
    assert "has no reports" in capsys.readouterr().err
    assert cli.main(["verify", str(tmp_path / "nowhere")]) == 1
    assert "holds no run" in capsys.readouterr().err


def test_the_first_parting_counts_and_the_tolerance_grows_with_the_steps() -> None:
    assert compare(ROWS, ROWS, STATE, STATE).verdict == "same bits"
    assert compare(ROWS, rows_with(1, elapsed_s=9.0), {}, {}).verdict == "same bits"
    tiny = compare(ROWS, rows_with(1, loss=1.00001), STATE, STATE)
    assert (tiny.verdict, tiny.largest) == ("close", {"fit.loss": pytest.approx(1e-5, rel=1e-3)})
    small = compare(rows_with(1, loss=1e-6), rows_with(1, loss=3e-6), {}, {})
    assert (small.verdict, small.largest) == ("close", {"fit.loss": pytest.approx(2 / 3)})
    near = compare(ROWS, rows_with(500, loss=0.0025), STATE, STATE)
    assert (near.verdict, near.largest) == ("close", {"fit.loss": pytest.approx(0.2)})
    early = compare(ROWS, rows_with(10, loss=0.11), STATE, STATE)
    assert early.verdict == "diverged"
    assert early.parting is not None
    assert (early.parting.step, early.parting.then, early.parting.now) == (10, 0.1, 0.11)
    gone = compare(ROWS, rows_with(100, loss=None), {}, {})
    assert gone.parting is not None
    assert gone.parting.now is None
    renamed = compare(ROWS, [{**ROWS[0], "error": 2.0}], {}, {})
    assert renamed.parting is not None
    assert renamed.parting.metric == "error"


def test_a_record_in_nine_digits_is_compared_in_nine_digits() -> None:
    value = float(np.float32(1) / np.float32(3))
    kept = [{"step": 1, "of": "fit", "loss": float(f"{value:.9g}")}]
    now = [{"step": 1, "of": "fit", "loss": value}]
    assert compare(kept, now, {}, {}, digits=9).verdict == "same bits"
    other = [{"step": 1, "of": "fit", "loss": float(np.nextafter(np.float32(value), 1))}]
    assert compare(kept, other, {}, {}, digits=9).verdict == "close"


def test_a_digest_is_of_dtype_shape_and_bytes() -> None:
    def of(leaf: Any) -> str:
        (found,) = digests(freeze({"a": leaf})).values()
        return found

    zeros = jnp.zeros(4, jnp.float32)
    assert of(zeros) == of(np.zeros(4, np.float32))  # wherever it lies
    others = [-zeros, zeros.reshape(2, 2), jnp.zeros(4, jnp.int32), jnp.zeros(2), 0, 0.0, False]
    assert len({of(zeros), *map(of, others)}) == 1 + len(others)
