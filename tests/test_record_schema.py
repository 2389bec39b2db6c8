"""``run.json`` and ``metrics.jsonl`` from anybody's hand: a wrong field is named, nothing falls."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import DEMO, ecotour

from ecotour.cli import resume
from ecotour.contract.plan import Plan
from ecotour.discovery import registry
from ecotour.errors import EcotourError, RecordError
from ecotour.rundir import continuation, record, schema
from ecotour.rundir.metric_rows import read_history, read_rows
from ecotour.trust import keep
from ecotour.trust.identity import identify

CASES = int(os.environ.get("ECOTOUR_FUZZ_CASES", "200"))
"""Of each fuzz test. With 2,000 they take some minutes."""

PUBLISHED = Path(__file__).parent.parent / "docs" / "reference" / "run.schema.json"
fuzz = settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, and a copy of it without pictures beside it."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert ecotour("run", DEMO, "--steps", 4, "--out", out, "--quiet") == 0
    bare = out.with_name("bare")
    bare.mkdir()
    shutil.copy(out / "run.json", bare)
    return out


@pytest.fixture(scope="module")
def bare(run: Path) -> Path:
    return run.with_name("bare")


@pytest.fixture(scope="module")
def sound(run: Path) -> dict[str, Any]:
    return runs.record(run)


def test_the_published_schema_is_the_one_that_is_used_and_is_one() -> None:
    assert PUBLISHED.read_bytes() == schema.FILE.read_bytes()
    jsonschema.Draft202012Validator.check_schema(json.loads(PUBLISHED.read_text("utf-8")))


def test_what_a_run_writes_is_sound_and_every_key_of_it_is_in_the_schema(
    sound: dict[str, Any],
) -> None:
    assert schema.fault(sound) == ""
    assert set(sound) <= set(json.loads(PUBLISHED.read_text("utf-8"))["properties"])


def test_a_demo_that_says_odd_things_still_leaves_a_sound_record(workdir: Path) -> None:
    source = Path(DEMO).read_text("utf-8")
    for old, new in (
        ("ecotour.Verdict(\n", "ecotour.Verdict(exhibits={}, summary=('a', 3), checks=\n"),
        ('ecotour.Check.at_least("rows", rows, 1)', "ecotour.Check(7, 'text', None, 1)"),
        ("        batch_size=8,\n", "        batch_size=8, notes={3: [1], 'b': None},\n"),
        ('"Fits a line, twice."', "{'no': 'text'}"),
    ):
        assert old in source
        source = source.replace(old, new)
    Path("odd.py").write_text(source)
    assert ecotour("run", "./odd.py", "--steps", 2, "--out", "r", "--quiet") == 0
    assert schema.fault(runs.record(Path("r"))) == ""
    assert ecotour("report", "r", "--json") == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": 5}, "status is 5, not one of running, finished, interrupted, failed"),
        ({"status": "done"}, 'status is "done", not one of'),
        ({"demo": "../../etc"}, 'demo is "../../etc", not a demo\'s name'),
        ({"demo": ".."}, "not a demo's name"),
        ({"demo": "a\\b"}, "not a demo's name"),
        ({"demo": "gan\n"}, "not a demo's name"),
        ({"seed": "0"}, 'seed is "0", not a whole number from 0 to 4294967295'),
        ({"seed": True}, "seed is true, not a whole number"),
        ({"steps_asked": "4"}, 'steps_asked is "4", not a whole number from 1, or null'),
        ({"checkpoint_every": 0}, "checkpoint_every is 0"),
        ({"stop_on_nonfinite": "no"}, 'stop_on_nonfinite is "no", not true or false'),
        ({"data_dir": 3}, "data_dir is 3, not a text or null"),
        ({"totals": {"first": 1.5}}, "totals.first is 1.5, not a whole number"),
        ({"ledger": {"total_s": "long"}}, 'ledger.total_s is "long", not a finite number or null'),
        ({"ledger": {"steps": {"first": 3}}}, "ledger.steps.first is 3, not an object"),
        ({"checks": [{"name": "x"}]}, "checks[0] lacks value"),
        ({"checks": {}}, "checks is {}, not a list of checks"),
        ({"artifacts": {"report": "../../etc/passwd"}}, "not a path in the run's directory"),
        ({"artifacts": {"report": "/etc/passwd"}}, "not a path in the run's directory"),
        ({"data": []}, "data is [], not an object"),
        ({"config": 3}, "config is 3, not an object"),
        ({"config": json.loads("[" * 60 + "]" * 60)}, "nested more than 50 levels deep"),
    ],
)
@pytest.mark.parametrize(
    "command", [["report"], ["resume"], ["record", DEMO, "--from"], ["export"]]
)
def test_a_wrong_field_is_named_in_one_line_by_all_who_read_it(
    command: list[str], change: dict[str, Any], said: str, bare: Path, sound: dict[str, Any],
    workdir: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    shutil.copytree(bare, "r")
    (Path("r") / "run.json").write_text(json.dumps(sound | change))
    before = runs.tree(workdir)
    words = [*command, "r", *(["--to", "markdown"] if command == ["export"] else [])]
    assert ecotour(*words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"ecotour: {Path('r/run.json')} is damaged: ")
    assert said in line
    assert runs.tree(workdir) == before


@pytest.mark.parametrize("rate", ["0.05", "fast", [0.05], None, {"a": 1}])
def test_a_text_where_a_flag_s_number_belongs_is_refused_before_anything_runs(
    rate: Any, bare: Path, sound: dict[str, Any], workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bare, "r")
    changed = sound | {"config": sound["config"] | {"rate": rate}}
    (Path("r") / "run.json").write_text(json.dumps(changed))
    for words in (["resume", "r", "--steps", 9], ["record", DEMO, "--from", "r"],
                  ["export", "r", "--to", "markdown"]):  # fmt: skip
        assert ecotour(*words) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "rate" in line
        assert "the configuration in its run.json is not one of" in line
    assert runs.record(Path("r")) == changed


def test_an_older_record_and_a_newer_one_are_read(bare: Path, sound: dict[str, Any]) -> None:
    for name in ("unshown", "about", "nonfinite_since", "best", "guides", "parts", "datasets"):
        assert schema.fault({k: v for k, v in sound.items() if k != name}) == ""
    older = copy.deepcopy(sound)
    for check in older["checks"]:
        del check["horizon"]
    assert schema.fault(older) == ""
    assert schema.fault({"schema": 1}) == ""
    newer = sound | {"heat": [1, {"a": None}]}
    newer["ledger"] = newer["ledger"] | {"joules": {"cpu": 3}}
    assert schema.fault(newer) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([10**400, 2**63, -1, 0, "../..", "", "\ud800", "\x1b[31m", "<b>", "nan"])
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["first", "loss", "step", "steps", "a/b"]) | st.text(), inner,
                      max_size=3),
    max_leaves=5,
)  # fmt: skip


@st.composite
def damaged(draw: Callable[..., Any], document: Any) -> Any:
    """``document`` with one or two places replaced, removed or added to."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        place = document
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inner = place[key]
            if isinstance(inner, dict | list) and draw(st.booleans()):
                place = inner
                continue
            if draw(st.integers(0, 9)) == 0:
                del place[key]
            else:
                place[key] = draw(JSON)
            break
    return document


def test_a_damaged_record_gives_one_line_or_is_read(
    bare: Path, sound: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_text("utf-8")))
    entry, demo = registry.load_file(Path(DEMO))
    program = demo.build(demo.config())
    identity = identify(entry, demo, program)

    @fuzz
    @given(damaged(sound))
    def every(document: Any) -> None:
        assert (schema.fault(document) == "") == validator.is_valid(document)
        (bare / "run.json").write_text(json.dumps(document))
        for words in (["report", bare], ["report", bare, "--json"], ["resume", bare]):
            if words[0] == "resume" and document.get("status") != "finished":
                continue
            code = ecotour(*words)
            said = capsys.readouterr()
            assert code in (0, 1), said.err
            assert "not foreseen" not in said.err
            assert "Traceback" not in said.err
        try:
            known = record.read(bare)
            keep.keep(bare, bare.with_name("kept"), identity)
        except EcotourError:
            return
        try:
            plan = resume.plan_of(known, bare, entry, demo, None)
            totals = resume.totals_of(known, bare, program, plan)
            assert continuation.find(bare, known, plan, totals).resume.done == {}
        except EcotourError:
            return

    every()


def test_damaged_rows_are_left_out_and_named(run: Path, bare: Path, sound: dict[str, Any]) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows[2] = rows[2] | {"loss": None, "nonfinite": {"loss": "nan"}}
    (bare / "run.json").write_text(json.dumps(sound))
    plan = Plan("small", "x 1", None)

    @fuzz
    @given(damaged(rows), st.binary(max_size=6))
    def every(changed: list[Any], noise: bytes) -> None:
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in changed)
        (bare / "metrics.jsonl").write_bytes(lines + noise)
        read, said = read_rows(bare)
        history, again = read_history(bare)
        assert said == again
        assert len(read) == sum(map(len, history.values()))
        assert len(read) + len(said) >= len(changed)
        remarks: list[str] = []
        done = {"first": 4, "second": 4}
        continuation._rows(bare, {"first": 4, "second": 4}, done, {}, remarks)
        assert plan.demo

    every()
    (bare / "metrics.jsonl").unlink()


@pytest.mark.parametrize(
    "row",
    [
        {"step": 10**30, "of": "first"}, {"step": -1, "of": "first"}, {"step": True, "of": "first"},
        {"step": 1, "of": 3}, {"step": 1, "of": "first", "loss": "0.5"},
        {"step": 1, "of": "first", "loss": [1]}, {"step": 1, "of": "first", "loss": 10**400},
        {"step": 1, "of": "first", "elapsed_s": "soon"},
        {"step": 1, "of": "first", "nonfinite": ["loss"]},
        {"step": 1, "of": "first", "nonfinite": {"loss": "much"}},
    ],
)  # fmt: skip
def test_a_row_of_a_wrong_type_is_damaged(row: Any, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(
        json.dumps({"step": 1, "of": "first", "loss": 1}) + "\n" + json.dumps(row) + "\n"
    )
    read, said = read_rows(tmp_path)
    assert len(read) == 1
    assert said == [f"{tmp_path / 'metrics.jsonl'}: line 2 is damaged and left out"]


def test_a_record_that_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": 1, "seed": NaN}')
    with pytest.raises(RecordError, match=r"run.json is damaged: seed is NaN"):
        record.read(tmp_path)
