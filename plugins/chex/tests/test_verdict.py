"""The judge, on findings made by hand: it passes the right ones and fails each wrong one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import ecotour
from ecotour_chex import apart, bookkeeping, demo
from ecotour_chex.faults import FAULTS
from ecotour_chex.tools import APART, HERE
from ecotour_chex.training import Config


def findings() -> dict[str, Any]:
    key = jax.random.key(0)
    steps = demo.build(Config()).steps
    states = {name: steps[name].init(key, None) for name in ("museum", "costs", "apart")}
    states["costs"]["ms"][:] = states["apart"]["ms"][:] = 0.1, 0.05
    for row, fault in enumerate(FAULTS, 1):
        for part, tools in (("museum", HERE), ("apart", APART)):
            names = [tool.name for tool in tools]
            if fault.claimed_by in names:
                column = names.index(fault.claimed_by)
                states[part]["kind"][row, column] = bookkeeping.CAUGHT
                states[part]["at"][row, column] = fault.at
        states["museum"]["symptom"][row] = fault.beyond / 2, fault.beyond
        states["museum"]["says"][row] = bookkeeping.as_bytes(f"[Chex] {fault.name} <b>")
    states["apart"]["devices"][:] = [0.0, 0.0, 0.0], [20.0, 20.0, 0.0]
    states["apart"]["variants"][1, [1, 4]] = 2
    return states


def verdict(states: dict[str, Any], distance: float = 0.01) -> ecotour.Verdict:
    series = ecotour.Series(np.array([200]), np.array([distance]))
    history = {"clean": {"distance_from_truth": series}}
    return demo.judge(ecotour.Outcome(states, history, {}, jax.random.key(1), {}))


def failed(states: dict[str, Any], **changes: Any) -> list[str]:
    return [check.name for check in verdict(states, **changes).checks if not check.passed]


def test_the_right_findings_pass() -> None:
    result = verdict(findings())
    assert all(check.passed for check in result.checks)
    assert result.summary == "11 of 11 faults were caught by at least one tool."
    assert next(iter(result.exhibits)) == "museum"


def test_a_clean_run_that_has_not_learned_fails() -> None:
    assert failed(findings(), distance=1.0) == ["clean run: distance from the true weights"]
    assert failed(findings(), distance=float("nan")) == [
        "clean run: distance from the true weights"
    ]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_claim_that_is_not_met_fails(fault: Any) -> None:
    row = 1 + FAULTS.index(fault)
    late, crash = findings(), findings()
    for part in ("museum", "apart"):
        late[part]["at"][row] += 1
        crash[part]["kind"][row] = bookkeeping.STOPPED
    assert failed(late) == failed(crash) == [f"{fault.name}: {fault.claimed_by}, step"]
    healthy = findings()
    healthy["museum"]["symptom"][row, 1] = fault.beyond * 0.9
    sick = findings()
    sick["museum"]["symptom"][row, 0] = fault.beyond
    assert failed(healthy) == failed(sick) == [f"{fault.name}: the symptom shows"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda s: s["museum"]["kind"].__setitem__((0, 2), bookkeeping.CAUGHT), "alarms"),
        (lambda s: s["apart"]["kind"].__setitem__((0, 0), bookkeeping.STOPPED), "alarms"),
        (lambda s: s["apart"]["devices"].__setitem__((0, 0), 0.5), "error of the correct mean"),
        (lambda s: s["apart"]["devices"].__setitem__((1, 1), 0.1), "error of the wrong mean"),
        (lambda s: s["apart"]["devices"].__setitem__((1, 2), 0.1), "real and fake differ"),
        (lambda s: s["apart"]["devices"].__setitem__((0, 2), np.nan), "real and fake differ"),
        (lambda s: s["apart"]["variants"].__setitem__((0, 1), 1), "passed by the correct"),
        (lambda s: s["apart"]["variants"].__setitem__((1, 1), 0), "failed by the one"),
    ],
)
def test_each_other_check_can_fail(change: Callable[[Any], None], name: str) -> None:
    states = copy.deepcopy(findings())
    change(states)
    (only,) = failed(states)
    assert name in only


def test_the_labels_name_every_fault_and_tool() -> None:
    shown = verdict(findings()).exhibits
    heat_map = shown["museum"]
    assert list(heat_map.row_names) == ["no fault", *(fault.name for fault in FAULTS)]
    assert len(set(heat_map.column_names)) == len(bookkeeping.COLUMNS)
    assert max(map(len, heat_map.column_names)) <= 24
    assert sum(cell == "" for row in heat_map.cells for cell in row) == 12 * 14 - 11
    assert len(shown["costs"].rows) == len(HERE) + len(apart.TIMED)
    assert "hidden broadcast → assert_shape" in shown["messages"].text
    assert "def predict_a_column" in shown["broken code"].text
