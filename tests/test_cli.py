"""The commands as their users type them: real processes, exit codes, the promised JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE_DEMO = """
import dataclasses, ecotour, jax, jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class Config:
    goal: int = ecotour.flag(3, "what to reach", at_least=1)
    mishap: str = ecotour.flag("", "what goes wrong")

def build(config):
    if config.mishap == "build":
        raise RuntimeError("no")
    print("a demo that is not quiet")
    def init(key, batch):
        return jnp.zeros((), jnp.int32)
    @jax.jit
    def step(state, batch, key):
        value = jnp.where(state >= 1, jnp.nan, 1.0) if config.mishap == "nan" else state
        return state + 1, {"count": value}
    def judge(outcome):
        if config.mishap == "judge":
            raise SystemExit("no")
        return ecotour.Verdict([ecotour.Check.at_least("count", outcome.states["up"], config.goal)])
    return ecotour.Program({"up": ecotour.Step(init, step, 3)}, judge)

@ecotour.hookimpl
def ecotour_demo():
    return ecotour.Demo("Counts", Config, build)
"""

RECORD_KEYS = {
    *("schema", "demo", "distribution", "status", "run_dir", "steps", "seed", "config", "data"),
    *("ledger", "metrics", "nonfinite", "checks", "artifacts", "environment"),
}
LEDGER_KEYS = {"import_s", "data_s", "init_s", "to_first_step_s", "total_s", "steps"}
STEP_KEYS = {
    *("trace_s", "lower_s", "compile_s", "first_s", "steady_ms", "measured", "compiles"),
    *("flops", "peak_bytes"),
}


def ecotour(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ecotour", *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


@pytest.fixture
def file_demo(workdir: Path) -> str:
    (workdir / "counting.py").write_text(FILE_DEMO)
    return "./counting.py"


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_run_prints_one_document_of_the_promised_form(file_demo: str) -> None:
    done = ecotour("run", file_demo, "--json", "--out", "here", "--seed", "7")
    assert done.returncode == 0, done.stderr
    record = strict(done.stdout)  # what the demo prints is on the other stream
    assert "a demo that is not quiet" in done.stderr
    assert record.keys() >= RECORD_KEYS
    assert record["ledger"].keys() >= LEDGER_KEYS
    assert record["ledger"]["steps"]["up"].keys() >= STEP_KEYS
    assert (record["schema"], record["demo"], record["status"]) == (1, "counting", "finished")
    assert (record["steps"], record["seed"]) == (3, 7)
    assert record["config"] == {"goal": 3, "mishap": ""}
    (check,) = record["checks"]
    assert check == {"name": "count", "value": 3, "want": ">= 3", "passed": True, "horizon": 3}
    assert record["metrics"] == {"up": {"count": 2}}
    assert record["ledger"]["steps"]["up"]["compiles"] == 1
    for artifact in record["artifacts"].values():
        assert (Path("here") / artifact).is_file()
    on_disk = strict(Path("here/run.json").read_text(encoding="utf-8"))
    assert on_disk["metrics"] == record["metrics"]
    rows = [strict(line) for line in Path("here/metrics.jsonl").read_text().splitlines()]
    assert [(row["of"], row["step"], row["count"]) for row in rows] == [
        ("up", 1, 0),
        ("up", 2, 1),
        ("up", 3, 2),
    ]
    assert f'<p class="lead">{record["about"]}</p>' in Path("here/report.html").read_text("utf-8")
    reported = ecotour("report", "here", "--json")
    assert strict(reported.stdout)["checks"] == record["checks"]
    assert ecotour("report", "here").returncode == 0


def test_the_verdict_counts_only_when_it_is_asked_for(file_demo: str) -> None:
    assert ecotour("run", file_demo, "--goal", "9").returncode == 0
    assert ecotour("run", file_demo, "--goal", "9", "--strict").returncode == 3
    assert sorted(path.name for path in Path("ecotour-runs").iterdir()) == [
        "counting-001",
        "counting-002",
    ]


@pytest.mark.parametrize(
    ("mishap", "said"), [("build", "build failed: RuntimeError: no"), ("judge", "SystemExit: no")]
)
def test_a_failed_run_is_one_line_and_exit_1(file_demo: str, mishap: str, said: str) -> None:
    done = ecotour("run", file_demo, "--mishap", mishap, "--json", "--quiet")
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.rstrip().endswith("`ecotour --debug …` shows where")
    assert "Traceback" not in done.stderr
    assert strict(done.stdout)["status"] == "failed"
    if mishap == "judge":
        traced = ecotour("run", file_demo, "--mishap", mishap, "--debug")
        assert "Traceback" in traced.stderr


def test_help_after_a_demos_name_has_the_demos_own_flags(workdir: Path, file_demo: str) -> None:
    done = ecotour("run", file_demo, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--seed N" in done.stdout
    assert re.search(r"--goal int\n +what to reach \(default: 3, at least 1\)", done.stdout)
    assert "--goal" not in ecotour("run", "--help").stdout
    assert [path.name for path in workdir.iterdir()] == ["counting.py"]


def test_a_number_that_is_none_is_null_and_named(file_demo: str) -> None:
    done = ecotour("run", file_demo, "--mishap", "nan", "--json")
    record = strict(done.stdout)
    assert record["metrics"] == {"up": {"count": None}}
    assert record["nonfinite"] == ["up.count"]
    assert "nan at step 2" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run gna", "unknown demo 'gna': did you mean gan?"),
        ("rnu gan", "unknown command 'rnu': did you mean run?"),
        ("run gan --steps 0", "'0' is not a whole number from 1 to"),
        ("run gan --steps -5", "--steps"),
        ("run gan --steps 1.5", "'1.5' is not a whole number"),
        ("run gan --steps 99999999999999", "not a whole number from 1 to 1,000,000,000"),
        ("run gan --seed -1", "--seed"),
        ("run gan --data full", "unknown value of --data 'full': choose from auto, embedded, tfds"),
        ("run gan --data-dir /nowhere/at/all", "/nowhere/at/all"),
        ("run gan --batch-sze 3", "unknown flag '--batch-sze': did you mean --batch-size?"),
        ("run gan --batch-size 0", "0 is not at least 1"),
        ("run gan --stesp 3", "did you mean --steps?"),
        ("run nowhere.py", "no such file: nowhere.py"),
        ("run", "arguments are required: DEMO"),
        ("report nowhere", "nowhere"),
        ("list --jsn", "did you mean --json?"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_before_anything_is_written(
    workdir: Path, arguments: str, said: str
) -> None:
    done = ecotour(*arguments.split())
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert list(workdir.iterdir()) == []


def test_a_batch_that_the_data_cannot_fill_is_refused(workdir: Path) -> None:
    done = ecotour("run", "gan", "--batch-size", "20000", "--data", "embedded", "--out", "here")
    assert done.returncode == 2
    assert "choose a batch size from 1 to 10000" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_flagship_runs_shows_and_reports_where_tensorflow_cannot_be_imported(
    workdir: Path,
) -> None:
    """Thin networks, so that it is quick; the same code."""
    stub = workdir / "stub"
    for name in ("tensorflow", "tensorflow_datasets"):
        (stub / name).mkdir(parents=True)
        (stub / name / "__init__.py").write_text("raise ImportError('not here')")
    path = {"PYTHONPATH": str(stub)}
    thin = ["--discriminator-channels", "2", "3", "--generator-channels", "4", "2"]
    command = ["run", "gan", "--data", "embedded", "--out", "here", "--json", *thin]
    done = ecotour(*command, "--steps", "4", "--batch-size", "8", **path)
    assert done.returncode == 0, done.stderr
    record = strict(done.stdout)
    assert record["data"]["source"] == "embedded"
    assert (record["data"]["split"], record["data"]["examples"]) == ("train", 10_000)
    assert set(record["metrics"]["update"]) == {"gen_loss", "disc_loss"}
    assert {check["name"] for check in record["checks"]} >= {"classifier score", "MNIST-FD"}
    assert "tensorflow" not in record["environment"] or record["environment"]["tensorflow"]
    page = Path("here/report.html").read_text(encoding="utf-8")
    assert "embedded subset (10,000 of 60,000 examples)" in page
    for arguments in (["list"], ["show", "gan"], ["report", "here"]):
        assert ecotour(*arguments, **path).returncode == 0
    again = ecotour(*[*command[:5], "again", *command[6:]], "--steps", "4", "--batch-size", "8")
    assert strict(again.stdout)["metrics"] == record["metrics"]
    assert strict(again.stdout)["ledger"]["steps"]["update"]["cache_hit"] is True
    assert strict(again.stdout)["checks"] == record["checks"]


def test_show_and_doctor_speak_json_too(workdir: Path) -> None:
    shown = strict(ecotour("show", "gan", "--json").stdout)
    assert {"name": "--batch-size", "kind": "int", "default": 64}.items() <= shown["flags"][
        0
    ].items()
    assert Path(shown["source"]).name == "demo.py"
    examined = strict(ecotour("doctor", "--json", ECOTOUR_DISABLE="chex,jraph,optax,rlax").stdout)
    assert examined["can_run"] is True
    assert "ecotour" in ecotour("--version").stdout


NAMELESS = "x" * 300
NESTED = "[" * 200_000


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "gan", "--out", NAMELESS], 1),
        (["run", "gan", "--data-dir", NAMELESS], 2),
        (["run", f"{NAMELESS}.py"], 2),
        (["export", NAMELESS, "--to", "markdown"], 2),
        (["drift", "--records", NAMELESS], 2),
        (["report", NAMELESS], 1),
        (["run", "gan", "--out", ""], 2),
        (["report", ""], 2),
        (["export", "gan", "--to", "markdown", "--records", ""], 2),
    ],
)
def test_a_path_that_can_be_none_is_one_line_and_one_document(
    workdir: Path, arguments: list[str], code: int
) -> None:
    done = ecotour(*arguments, "--json")
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert "File name too long" in done.stderr or "is empty" in done.stderr
    assert strict(done.stdout)["status"] == "failed"
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ledger", True),
        ("ledger", {"steps": 3}),
        ("ledger", {"to_first_step_s": "soon"}),
        ("ledger", {"total_s": 10**400}),
        ("artifacts", []),
        ("progress", {"up": None}),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_record_with_a_value_of_another_type_is_damaged_and_said_to_be(
    workdir: Path, form: list[str], key: str, value: Any
) -> None:
    made = {"schema": 1, "demo": "x", "status": "finished", "totals": {"up": 3}, key: value}
    (workdir / "run.json").write_text(json.dumps(made))
    done = ecotour("report", ".", *form)
    assert done.returncode == 1
    assert done.stderr.startswith("ecotour: run.json is damaged: ")
    assert len(done.stderr.splitlines()) == 1
    assert [strict(text)["status"] for text in [done.stdout] if form] == ["failed"] * len(form)


def test_files_that_nest_without_end_are_damaged_and_no_more(workdir: Path) -> None:
    (workdir / "run.json").write_text('{"schema": 1, "demo": "x"}')
    (workdir / "metrics.jsonl").write_text('{"of": "up", "step": 1, "a": 1}\n' + NESTED + "\n")
    (workdir / "exhibits").mkdir()
    (workdir / "exhibits" / "deep.json").write_text(NESTED)
    done = ecotour("report", ".", "--json")
    assert done.returncode == 0, done.stderr
    assert "line 2 is damaged and left out" in done.stderr
    assert "deep.json: maximum recursion depth exceeded" in done.stderr
    (workdir / "run.json").write_text(NESTED)
    done = ecotour("report", ".", "--json")
    assert done.returncode == 1
    assert done.stderr.startswith("ecotour: run.json is damaged: maximum recursion depth")
    assert strict(done.stdout)["status"] == "failed"


def test_no_name_gives_orders_to_the_terminal(workdir: Path) -> None:
    (workdir / "run.json").write_text(json.dumps({"schema": "\x1b[31m\u202ered"}))
    done = ecotour("report", ".")
    assert done.stderr == (
        "ecotour: run.json has schema ?[31m?red, and this ecotour reads schema 1\n"
    )


def test_a_directory_that_is_gone_is_said_in_one_line(workdir: Path) -> None:
    command = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m ecotour run gan --json'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "ecotour: cannot write to ecotour-runs: No such file or directory: choose another --out\n"
    )
    assert strict(done.stdout)["status"] == "failed"


def test_an_unknown_backend_is_one_line_and_leaves_nothing(file_demo: str, workdir: Path) -> None:
    done = ecotour("run", file_demo, "--out", "run", "--json", JAX_PLATFORMS="nonsense")
    assert done.returncode == 1
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("ecotour: ")]
    assert said.startswith("ecotour: JAX does not start with JAX_PLATFORMS=nonsense: ")
    assert "Traceback" not in done.stderr
    assert strict(done.stdout)["status"] == "failed"
    assert not (workdir / "run").exists()


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "class_('Odd', (Exception,), {})('no')"])
def test_what_nobody_foresaw_is_one_line_and_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: str
) -> None:
    from ecotour import cli
    from ecotour.cli import report

    def fail(_: Any) -> int:
        raise eval(raised, {"class_": type})

    monkeypatch.setattr(report, "main", fail)
    code = cli.main(["report", "x", "--json"])
    told = capsys.readouterr()
    assert code == (130 if raised == "KeyboardInterrupt" else 1)
    assert told.err in (
        "ecotour: interrupted\n",
        "ecotour: Odd: no: this was not foreseen; `ecotour --debug …` shows where\n",
    )
    assert strict(told.out)["status"] == "failed"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_stream_that_takes_nothing_is_no_traceback(workdir: Path) -> None:
    for words, code in (("list --json", 1), ("show gan", 1), ("report nowhere --json", 1)):
        command = f"{sys.executable} -m ecotour {words} > /dev/full"
        done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == code
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr
