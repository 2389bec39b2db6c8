"""A run that is shorter than a check's horizon is measured and not judged, wherever it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
import runs
from programs import line_init, plan
from runs import ecotour

from ecotour import Check, Program, Step, Verdict, events
from ecotour.authoring.export import _outcome
from ecotour.checking.targets import subject_of
from ecotour.drawing import account
from ecotour.errors import ContractError
from ecotour.running.runner import run
from ecotour.sphinx import tables
from ecotour.trust.drift import _checks
from ecotour.trust.records import Record

DEMO = """
import dataclasses, ecotour, jax, jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class Config:
    goal: int = ecotour.flag(30, "what to reach")

def build(config):
    init = lambda key, batch: jnp.zeros((), jnp.int32)
    step = lambda state, batch, key: (state + 1, {"count": state})
    def judge(outcome):
        count = int(outcome.states["up"])
        return ecotour.Verdict((
            ecotour.Check.at_least("count", count, config.goal),
            ecotour.Check.at_least("half", count, config.goal / 2, horizon=15),
            ecotour.Check.equals("always", True, True, horizon=1),
        ))
    return ecotour.Program({"up": ecotour.Step(init, step, 30)}, judge)

@ecotour.hookimpl
def ecotour_demo():
    return ecotour.Demo("Counts", Config, build)
"""


@pytest.fixture
def demo(workdir: Path) -> str:
    (workdir / "counting.py").write_text(DEMO)
    return "./counting.py"


def results(out: str) -> list[tuple[Any, Any, Any]]:
    checks = runs.record(Path(out))["checks"]
    return [(check["value"], check["horizon"], check["passed"]) for check in checks]


def test_a_short_run_is_measured_not_judged_and_can_be_gone_on_with(
    demo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ecotour("run", demo, "--steps", 5, "--out", "r", "--strict") == 3
    assert results("r") == [(5, 30, None), (5, 15, None), (True, 1, True)]
    said = capsys.readouterr().err
    assert "1 of 3 checks passed, 2 too early to judge: 5 of 30 steps" in said
    assert "not passed" not in said
    assert "ecotour resume r --steps 30" in said
    page = Path("r/report.html").read_text("utf-8")
    assert page.count('<td class="open">too early to judge</td>') == 2
    assert "ecotour resume r --steps 30" in page
    assert 'class="state open"' in page
    assert ecotour("report", "r", "--json") == 0
    assert [c["passed"] for c in json.loads(capsys.readouterr().out)["checks"]] == [
        None,
        None,
        True,
    ]

    assert ecotour("resume", "r", "--steps", 20, "--strict") == 3  # past the horizon of one
    assert results("r") == [(20, 30, None), (20, 15, True), (True, 1, True)]
    assert ecotour("resume", "r", "--steps", 30, "--strict") == 0
    assert [passed for _, _, passed in results("r")] == [True] * 3
    assert "ecotour resume" not in Path("r/report.html").read_text("utf-8")


def test_a_run_at_full_length_or_beyond_is_judged_as_ever(
    demo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([], ["--steps", 30], ["--steps", 31]):
        assert ecotour("run", demo, *words, "--goal", 90, "--strict", "--quiet") == 3
    assert ecotour("run", demo, "--goal", 90, "--out", "full") == 0
    assert results("full") == [(30, 30, False), (30, 15, False), (True, 1, True)]
    assert "2 of 3 checks not passed" in capsys.readouterr().err


def verdict_of(steps: int | None, *checks: Check, **named: int) -> Verdict:
    program = Program(
        {name: Step(line_init_without_data, counting, total) for name, total in named.items()},
        lambda _: Verdict(checks),
    )
    found = list(run(program, plan(steps)))
    return next(event.verdict for event in found if isinstance(event, events.Judged))


def line_init_without_data(key: Any, batch: Any) -> Any:
    return line_init(key, batch)


def counting(state: Any, batch: Any, key: Any) -> Any:
    return state, {"one": jnp.float32(1)}


@pytest.mark.parametrize(
    ("steps", "horizon", "named", "wanted"),
    [
        (None, None, {"a": 2, "b": 4}, (4, True)),
        (3, None, {"a": 2, "b": 4}, (4, None)),  # one of several named steps is short
        (4, None, {"a": 2, "b": 4}, (4, True)),
        (3, 3, {"a": 2, "b": 4}, (3, True)),
        (2, 3, {"a": 2, "b": 4}, (3, None)),
        (None, 99, {"a": 2, "b": 4}, (4, True)),  # a run at full length is judged
    ],
)
def test_the_horizon_of_several_named_steps(
    steps: int | None, horizon: int | None, named: dict[str, int], wanted: tuple[int, bool | None]
) -> None:
    check = Check.at_most("x", 1, 2, horizon=horizon)
    (judged,) = verdict_of(steps, check, **named).checks
    assert (judged.horizon, judged.passed) == wanted


def test_a_result_is_one_of_python_s_own_truth_values() -> None:
    (judged,) = verdict_of(None, Check("x", 1.0, ">= 0", jnp.bool_(True)), a=1).checks
    assert judged.passed is True


@pytest.mark.parametrize("horizon", [0, -1, 2.5, "soon", True])
def test_a_horizon_that_is_none_is_named(horizon: Any) -> None:
    with pytest.raises(ContractError, match=r"check 'x' the horizon .*, not a number of steps"):
        verdict_of(None, Check.at_most("x", 1, 2, horizon=horizon), a=1)


def test_check_still_asks_whether_the_checks_can_fail(demo: str) -> None:
    from ecotour.checking.conduct import checks_cannot_fail
    from ecotour.discovery import registry

    _, found = registry.load_file(Path(demo))
    assert list(checks_cannot_fail(subject_of(found, ["--goal", "90"]))) == []
    assert list(checks_cannot_fail(subject_of(found, ["--goal", "0"])))


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([None], "too early to judge: 200 of 5,000 steps"),
        ([None, None], "too early to judge: 200 of 5,000 steps"),
        ([None, True], "1 of 2 checks passed, 1 too early to judge: 200 of 5,000 steps"),
        ([None, False], "1 of 2 checks not passed, 1 too early to judge: 200 of 5,000 steps"),
        ([True], "the check passed"),
        ([False, True], "1 of 2 checks not passed"),
        ([], "no verdict"),
    ],
)
def test_the_verdict_in_a_phrase(results: list[bool | None], said: str) -> None:
    checks = [
        {"name": str(n), "value": 1, "want": ">= 2", "passed": passed, "horizon": 5000}
        for n, passed in enumerate(results)
    ]
    record = {"checks": checks, "totals": {"update": 200}}
    assert account.verdict(record) == said


def test_a_documentation_record_of_a_short_run_says_so_too() -> None:
    early = {"name": "x", "value": 1.0, "want": ">= 2", "passed": None, "horizon": 9}
    judged = early | {"passed": False}
    (difference,) = _checks([judged], [early])
    assert str(difference) == "check 'x': recorded not passed, now too early to judge"
    exported = "\n".join(_outcome(Record(Path(), {"checks": [early]}, ())))
    assert "| x | 1 | >= 2 | too early |" in exported
    shown = [node.astext() for node in tables.verdict({"checks": [early], "totals": {"up": 3}})]
    assert "too early" in shown[0]
    assert shown[1] == "The recorded run: too early to judge: 3 of 9 steps."
