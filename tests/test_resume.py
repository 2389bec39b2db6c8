"""A resumed run is the run that would have been; whatever does not match is refused in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import programs
import pytest
import runs
from kill_harness import essence
from runs import DEMO, STEPS, ecotour

from ecotour import Step, events
from ecotour.contract import flags
from ecotour.errors import CheckpointError
from ecotour.rundir.checkpoint import Store
from ecotour.running import stopwatch
from ecotour.running.history import History
from ecotour.running.runner import Resume, run
from ecotour.sinks.checkpoints import Checkpoints


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 24 steps that nobody touched."""
    out = tmp_path_factory.mktemp("straight") / "run"
    assert ecotour("run", DEMO, *STEPS, "--out", out) == 0
    return out


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run with two checkpoints of each named step."""
    out = tmp_path_factory.mktemp("broken") / "run"
    take = Checkpoints._take
    with pytest.MonkeyPatch.context() as patch:  # so quick a run skips checkpoints otherwise
        patch.setattr(Checkpoints, "_take", lambda self, *a: (take(self, *a), self.wait()))
        assert ecotour("run", DEMO, *STEPS, "--out", out) == 0
    assert Store(out).steps("second") == [20, 24]
    return out


@pytest.fixture
def broken_off(finished: Path, tmp_path: Path) -> Path:
    """The same run as it is when a process dies in the last steps of its second named step."""
    out = Path(shutil.copytree(finished, tmp_path / "broken-off"))
    shutil.rmtree(out / "checkpoints" / "second" / "0000000024")
    lines = (out / "metrics.jsonl").read_text().splitlines(keepends=True)
    assert json.loads(lines[-1])["step"] == 24
    (out / "metrics.jsonl").write_text("".join(lines[:-1]) + lines[-1][:20])
    runs.rewrite(out, status="running", checks=[])
    return out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 1) -> str:
    """Carry out a command line that is refused, and return the one line that says so."""
    capsys.readouterr()
    assert ecotour(*arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("ecotour: ")
    return lines[0]


def same(out: Path, other: Path) -> None:
    found, wanted = essence(out), essence(other)
    for part in wanted:
        assert found[part] == wanted[part], part


def test_a_killed_run_goes_on_to_the_very_same_end(broken_off: Path, straight: Path) -> None:
    assert ecotour("resume", broken_off, "--quiet") == 0
    same(broken_off, straight)
    record = runs.record(broken_off)
    # as they were given, however this process was started
    first, second = (part["command"] for part in record["parts"])
    assert first[:-1] == ["ecotour", "run", DEMO, *STEPS, "--out"]
    assert second == ["ecotour", "resume", str(broken_off), "--quiet"]
    assert record["warnings"] == []
    assert (broken_off / "report.html").exists()


def test_a_longer_run_is_the_long_run(tmp_path: Path, straight: Path) -> None:
    out = tmp_path / "short"
    short = ["--steps", "11", *STEPS[2:]]
    assert ecotour("run", DEMO, *short, "--out", out) == 0
    assert [row["step"] for row in runs.rows(out)] == [1, 3, 6, 9, 11] * 2
    assert ecotour("resume", out, "--quiet", "--steps", "24") == 0
    assert runs.rows(out) == runs.rows(straight)
    assert essence(out)["states"] == essence(straight)["states"]
    assert essence(out)["checks"] == essence(straight)["checks"]


def test_a_run_broken_off_before_its_first_checkpoint_starts_anew(
    broken_off: Path, straight: Path
) -> None:
    shutil.rmtree(broken_off / "checkpoints")
    (broken_off / "metrics.jsonl").unlink()
    assert ecotour("resume", broken_off, "--quiet") == 0
    same(broken_off, straight)


def test_a_moved_copy_goes_on_where_it_is_now(
    broken_off: Path, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "another place" / "Kopie-é"
    shutil.copytree(broken_off, copy)
    before = runs.tree(broken_off)
    monkeypatch.chdir(copy.parent)
    assert ecotour("resume", "Kopie-é", "--quiet") == 0
    assert runs.tree(broken_off) == before
    same(copy, straight)


def test_a_finished_run_has_nothing_to_do(
    straight: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = runs.tree(straight)
    for more in ([], ["--steps", "24"]):
        assert ecotour("resume", straight, *more) == 0
        said = capfd.readouterr()
        assert said.out == ""
        assert "nothing to do" in said.err
        assert "--steps N" in said.err
    assert ecotour("resume", straight, "--json") == 0
    assert json.loads(capfd.readouterr().out)["status"] == "finished"
    assert runs.tree(straight) == before


def test_fewer_steps_than_are_done_are_refused(
    broken_off: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, "resume", broken_off, "--steps", "9", code=2)
    assert "first has already done 24 steps" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"config": {"rate": 0.06}}, "config rate 0.05, and this is 0.06"),
        ({"config": {"rate": -1.0}}, "rate"),
        ({"config": {"rat": 0.05}}, "configuration in its run.json"),
        ({"seed": 1}, "seed 0, and this is 1"),
        ({"source_file": "/no/such/demo.py"}, "/no/such/demo.py, which is gone"),
        ({"source_file": None, "demo": "no-such-demo"}, "not installed: install"),
        (
            {"source_file": None, "demo": "gan", "distribution": "ecotour-gan 0.0.9"},
            "install ecotour-gan==0.0.9",
        ),
        ({"totals": {"third": 24}}, "has the steps third"),
        ({"schema": 9}, "schema 9"),
    ],
)
def test_what_does_not_match_is_refused_in_one_line(
    changes: dict[str, Any], said: str, broken_off: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = runs.record(broken_off)
    if "config" in changes:
        changes = {"config": before["config"] | changes["config"]}
    runs.rewrite(broken_off, **changes)
    changed = (broken_off / "run.json").read_bytes()
    assert said in refusal(capsys, "resume", broken_off)
    assert (broken_off / "run.json").read_bytes() == changed


def test_another_precision_is_refused(broken_off: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with jax.default_matmul_precision("float32"):
        said = refusal(capsys, "resume", broken_off)
    assert "matmul precision None, and this is 'float32'" in said


def test_other_data_is_refused(
    broken_off: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = tmp_path / "small.py"
    demo.write_text(Path(DEMO).read_text().replace("3 * x", "4 * x"))
    runs.rewrite(broken_off, source_file=str(demo))
    said = refusal(capsys, "resume", broken_off)
    assert "other data: sha256 of train" in said


def test_a_directory_without_a_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no run.json" in refusal(capsys, "resume", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_source_is_said_and_no_more(
    broken_off: Path, tmp_path: Path, straight: Path
) -> None:
    demo = tmp_path / "small.py"
    demo.write_text(Path(DEMO).read_text() + "\n# a remark\n")
    runs.rewrite(broken_off, source_file=str(demo))
    assert ecotour("resume", broken_off, "--quiet") == 0
    assert any("source has changed" in line for line in runs.record(broken_off)["warnings"])
    same(broken_off, straight)


def test_a_damaged_checkpoint_is_skipped_and_the_one_before_it_taken(
    tmp_path: Path, finished: Path, straight: Path
) -> None:
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    runs.rewrite(out, status="running")
    for file in (out / "checkpoints" / "second" / "0000000024" / "state").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-7])
    assert ecotour("resume", out, "--quiet") == 0
    warnings = runs.record(out)["warnings"]
    assert len(warnings) == 1
    assert "checkpoint of second at step 24 is damaged" in warnings[0]
    assert "going on from step 20" in warnings[0]
    same(out, straight)


def test_a_damaged_row_is_reported_and_a_torn_last_line_is_not(
    broken_off: Path, straight: Path
) -> None:
    file = broken_off / "metrics.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[2] = b'{"step": 6, "of": "first", "lo\x00ss": '
    file.write_bytes(b"\n".join(lines))
    assert ecotour("resume", broken_off, "--quiet") == 0
    warnings = runs.record(broken_off)["warnings"]
    assert [line.split(": ", 1)[1] for line in warnings[:1]] == ["line 3 is damaged and left out"]
    assert "lacks 1 of the 9 rows of first" in warnings[1]
    assert runs.rows(broken_off) == [
        row for row in runs.rows(straight) if (row["of"], row["step"]) != ("first", 6)
    ]
    assert essence(broken_off)["states"] == essence(straight)["states"]


def test_numbers_that_are_none_come_back_as_what_they_were(tmp_path: Path) -> None:
    bad = ["--bad-from", "8", "--log-every", "3", "--checkpoint-every", "4", "--quiet"]
    assert ecotour("run", DEMO, "--steps", "20", *bad, "--out", tmp_path / "a") == 0
    assert ecotour("run", DEMO, "--steps", "14", *bad, "--out", tmp_path / "b") == 0
    assert ecotour("resume", tmp_path / "b", "--steps", "20", "--quiet") == 0
    record = runs.record(tmp_path / "b")
    assert record["nonfinite_since"] == {"first": {"loss": 9}, "second": {"loss": 9}}
    assert record["nonfinite_since"] == runs.record(tmp_path / "a")["nonfinite_since"]
    assert record["checks"] == runs.record(tmp_path / "a")["checks"]
    assert runs.rows(tmp_path / "a") == runs.rows(tmp_path / "b")
    row = next(row for row in runs.rows(tmp_path / "b") if row["step"] == 12)
    assert (row["loss"], row["nonfinite"]) == (None, {"loss": "nan"})
    assert 4 in Store(tmp_path / "b").steps("first")  # the last finite one is kept
    assert 4 in Store(tmp_path / "a").steps("first")
    said = "\n".join(record["warnings"])
    assert said.count("'loss' of 'first'") == 1


def test_a_run_may_end_where_a_metric_is_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    code = ecotour("run", DEMO, *STEPS, "--bad-from", "8", "--stop-on-nonfinite", "--out", out)
    assert code == 1
    assert "'loss'" in capsys.readouterr().err
    record = runs.record(out)
    assert record["status"] == "failed"
    assert record["nonfinite_since"] == {"first": {"loss": 9}}
    assert Store(out).steps("first")[0] == 4


def test_the_account_of_two_parts_is_their_sum() -> None:
    first = {
        "import_s": 1.0, "to_first_step_s": 3.0, "total_s": 9.0,
        "steps": {"a": {"compile_s": 2.0, "compiles": 1, "loop_s": 4.0, "measured": 90,
                        "steady_ms": {"p50": 5.0, "p95": 6.0}, "cache_hit": False}},
    }  # fmt: skip
    second = {
        "import_s": 0.5, "to_first_step_s": 1.0, "total_s": 2.0,
        "steps": {"a": {"compile_s": 1.0, "compiles": 1, "loop_s": 1.0, "measured": 10,
                        "steady_ms": {"p50": 7.0, "p95": 8.0}, "cache_hit": True},
                  "b": {"loop_s": 3.0}},
    }  # fmt: skip
    assert stopwatch.added({}, second) == second
    assert stopwatch.added(first, second) == {
        "import_s": 1.5, "to_first_step_s": 3.0, "total_s": 11.0,
        "steps": {"a": {"compile_s": 3.0, "compiles": 2, "loop_s": 5.0, "measured": 90,
                        "steady_ms": {"p50": 5.0, "p95": 6.0}, "cache_hit": True},
                  "b": {"loop_s": 3.0}},
    }  # fmt: skip


def test_the_totals_in_the_record_grow_with_each_part(broken_off: Path) -> None:
    before = runs.record(broken_off)["ledger"]
    assert ecotour("resume", broken_off, "--quiet") == 0
    after = runs.record(broken_off)["ledger"]
    for key in ("total_s", "import_s", "judge_s"):
        assert after[key] > before[key]
    assert after["steps"]["second"]["compiles"] == 2
    assert after["steps"]["first"] == before["steps"]["first"]


def test_every_kind_of_flag_survives_the_record() -> None:
    config = {"a_b": 1, "t": [2, -3], "yes": True, "no": False, "w": "-x y", "none": None}
    assert flags.words({"t": []}) == ["--empty-t"]
    assert flags.words(config) == [
        "--a-b", "1", "--t=2", "--t=-3", "--yes", "--no-no", "--w=-x y"
    ]  # fmt: skip


def test_a_history_takes_eight_bytes_a_number() -> None:
    history = History()
    for step in range(1, 20_001):
        history.append(step, {"loss": 1.0 / step, "gap": None if step == 7 else 1.0})
    column = history._columns["loss"]
    assert column.itemsize * len(column) == 160_000
    series = history.series()
    assert series["loss"].last == 1 / 20_000
    assert list(history.nonfinite_since()) == [("gap", 7)]
    assert series["gap"].steps.dtype == "int64"


def test_a_step_in_plain_python_whose_state_cannot_be_had_starts_anew() -> None:
    def step(state: Any, batch: Any, key: Any) -> tuple[Any, Any]:
        return [*state, len(state)], {"length": len(state)}

    def restore(of: str, template: Any) -> Any:
        raise CheckpointError("the checkpoint has 2 leaves and the state has 0")

    history = History()
    history.append(1, {"length": 0})
    program = programs.without_data(grows=Step(lambda *_: [], step, 3, compiled=False))
    resume = Resume({"grows": 2}, restore, {"grows": history})
    found = list(run(program, programs.plan(3), resume=resume))
    said = [event.message for event in found if isinstance(event, events.Warned)]
    assert said == ["grows starts anew: the checkpoint has 2 leaves and the state has 0"]
    assert [e.step for e in found if isinstance(e, events.Reported)] == [1, 2, 3]


def test_times_of_steps_are_bounded_and_their_percentiles_stay() -> None:
    generator = np.random.default_rng(0)
    seconds = generator.lognormal(-5, 0.5, 100_000)
    times = stopwatch.StepTimes()
    for one in seconds:
        times.add(one, 1)
    assert len(times.blocks) <= stopwatch.MOST_BLOCKS
    assert times.measured == sum(count for _, count in times.blocks) == 100_000
    for name, share in (("p50", 50), ("p95", 95)):
        assert times.steady()[name] == pytest.approx(1e3 * np.percentile(seconds, share), rel=0.01)
