"""The steps by hand, and the judge on right and wrong findings."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import ecotour
import ecotour_jax.demo as demo
from ecotour_jax import bookkeeping, calculus, devices, hlo, machine, measure


def test_newtons_method_finds_the_minimum_in_six_steps() -> None:
    step = demo.newton_step(demo.Config())
    state = step.init(jax.random.key(0), None)
    heights = []
    for _ in range(6):
        state, metrics = step.step(state, None, jax.random.key(0))
        heights.append(float(metrics["newton_height"]))
    np.testing.assert_allclose(np.asarray(state["newton"]), [1.0, 1.0], atol=1e-3)
    # the first two steps as they are in float64 by hand: gradient, Hessian, solve
    p = np.array([-1.2, 1.0])
    for height in heights[:2]:
        x, y = p
        slope = np.array([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])
        curve = np.array([[2 - 400 * (y - 3 * x**2), -400 * x], [-400 * x, 200.0]])
        p = p - np.linalg.solve(curve, slope)
        by_hand = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        np.testing.assert_allclose(height, by_hand, rtol=1e-2)


def test_a_measuring_step_fills_rows_and_then_rests() -> None:
    step = bookkeeping.measuring_step(
        lambda row, key: [row, 10 * row], 2, 2, lambda row: {"a": row[1]}
    )
    state = step.init(jax.random.key(0), None)
    seen = []
    for _ in range(3):
        state, metrics = step.step(state, None, jax.random.key(0))
        seen.append(metrics["a"])
    assert seen == [0, 10, 10]
    np.testing.assert_array_equal(state["rows"], [[0, 0], [1, 10]])


def test_an_answer_survives_as_bytes() -> None:
    step = bookkeeping.answer_step(lambda key: {"text": "→", "numbers": [1.5]})
    state, _ = step.step(step.init(jax.random.key(0), None), None, jax.random.key(0))
    assert state["answer"].shape == (bookkeeping.ANSWER_BYTES,)
    assert bookkeeping.answer_of(state) == {"text": "→", "numbers": [1.5]}


@pytest.fixture(scope="module")
def passes() -> list[list[str]]:
    texts = machine.stages()
    return [["before any pass", texts["hlo_before"]], ["x", ""], ["fusion", texts["hlo_after"]]]


def findings(passes: list[list[str]]) -> dict[str, Any]:
    dumped = {"passes": [*passes[:1], *passes[2:], passes[2]], "llvm": "define", "kernels": 2}
    dumped |= {"machine_code": "c3", "code_bytes": 200}
    spread = [
        [{"error": 1e-7, "all_reduces": 1.0, "devices": float(n), "ms": 1.0} for n in (1, 2, 4)]
        for _ in devices.WAYS
    ]

    def answer(value: Any) -> Any:
        step = bookkeeping.answer_step(lambda key: value)
        return step.step(step.init(jax.random.key(0), None), None, jax.random.key(0))[0]

    digits = np.full((calculus.FORMULAS, len(calculus.OPERATORS), 2), [7.0, 15.0])
    digits[:, -1] = 4.0, 10.0
    directions = [[1.0, 1.0, float(n), float(m), 1e-7] for n, m in measure.SHAPES]
    rows = {
        "derivatives": digits.reshape(calculus.FORMULAS, -1),
        "directions": np.array(directions),
        "examples": np.full((len(measure.BATCHES), 6), 1e-7),
        "compilation": np.full((len(measure.LENGTHS), 4), 1e-7),
    }
    states = {name: {"done": np.int32(9), "rows": table} for name, table in rows.items()}
    states["newton"] = {"newton": np.ones(2, np.float32), "descent": np.zeros(2, np.float32)}
    return states | {"machine": answer(dumped), "devices": answer(spread)}


def verdict(states: dict[str, Any]) -> ecotour.Verdict:
    series = ecotour.Series(np.arange(1, 4), np.array([0.5, 0.9, 1.0]))
    names = ("newton_x", "newton_y", "descent_x", "descent_y")
    history = {"newton": dict.fromkeys(names, series)}
    return demo.judge(ecotour.Outcome(states, history, {}, jax.random.key(1), {}))


def failed(states: dict[str, Any]) -> list[str]:
    return [check.name for check in verdict(states).checks if not check.passed]


def test_the_right_findings_pass(passes: list[list[str]]) -> None:
    result = verdict(findings(passes))
    assert [check.name for check in result.checks if not check.passed] == []
    graph = result.exhibits["graph after"]
    assert len(graph.labels) == len(graph.positions)
    operations = {row[0]: row[1:] for row in result.exhibits["operations"].rows}
    assert operations["all"][0] == sum(hlo.operations(passes[0][1]).values())


@pytest.mark.parametrize(
    ("step", "place", "wrong", "name"),
    [
        ("derivatives", (2, 0), 3.0, "fewest digits, float32"),
        ("derivatives", (2, 1), 11.5, "fewest digits, float64"),
        ("derivatives", (1, -1), 14.9, "more than finite differences"),
        ("directions", (1, 2), 1e9, "forward does less work"),
        ("directions", (3, 4), 1e-2, "forward and reverse differ"),
        ("examples", (0, 3), 1e-2, "vmap and loop"),
        ("examples", (1, 5), 1e-2, "closed form"),
        ("compilation", (2, 2), 1e-2, "op by op and jit"),
    ],
)
def test_each_check_can_fail(
    passes: list[list[str]], step: str, place: tuple[int, int], wrong: float, name: str
) -> None:
    states = findings(passes)
    states[step]["rows"][place] = wrong
    (only,) = failed(states)
    assert name in only


def test_a_minimum_that_was_missed_fails(passes: list[list[str]]) -> None:
    states = findings(passes)
    states["newton"]["newton"] = np.array([0.9, 1.0], np.float32)
    (only,) = failed(states)
    assert only.startswith("Newton")


def test_the_hook_announces_the_demo() -> None:
    program = demo.ecotour_demo().build(demo.Config())
    assert list(program.steps)[0:2] == ["newton", "derivatives"]
    assert len(program.steps) == 7


def test_a_process_that_ends_badly_says_why_in_one_line() -> None:
    with pytest.raises(RuntimeError, match="ended badly: ValueError") as caught:
        bookkeeping.run_apart("ecotour_jax.devices", "no seed", xla_flags="")
    assert "\n" not in str(caught.value)
