"""The runner: what it yields, what it promises of the numbers, what it makes of broken steps."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import programs
import pytest

from ecotour import Step, Verdict, events, exhibits
from ecotour.contract.plan import Plan, view_points
from ecotour.errors import ContractError, PluginError
from ecotour.running.history import History
from ecotour.running.runner import Resume, run


def rows(found: list[events.Event]) -> list[tuple[str, int, dict[str, float]]]:
    return [(e.of, e.step, dict(e.metrics)) for e in found if isinstance(e, events.Reported)]


def carry_out(program: Any, plan: Plan, **given: Any) -> tuple[list[events.Event], Any]:
    """All events, the states of snapshots copied as a sink must; and the last state."""
    found, state = [], None
    for event in run(program, plan, **given):
        if isinstance(event, events.Snapshot):
            state = jax.tree.map(np.array, event.state)
        found.append(event)
    return found, state


def test_the_events_come_in_the_promised_order() -> None:
    view = lambda state, key: {"w": exhibits.Table(("w",), (), "Nothing.")}  # noqa: E731
    found, _ = carry_out(programs.line(view=view), programs.plan(3))
    kinds = [type(event).__name__ for event in found]
    assert kinds == [
        *("Started", "DataReady", "StepBegun", "Compiled", "Viewed"),
        *("Reported", "Viewed", "Reported", "Viewed", "Reported", "Viewed"),
        *("Snapshot", "StepEnded", "Judged", "Ended"),
    ]
    assert found[-1].status == "finished"
    assert found[-2].verdict.summary == "A line."


def test_the_numbers_are_those_of_the_same_descent_in_numpy() -> None:
    found, state = carry_out(programs.line(), programs.plan(9, seed=5))
    keys = jax.random.split(jax.random.key(5), 5)
    data = programs.line_data().arrays
    w = float(jax.random.normal(keys[0], ()))
    b = 0.0
    losses = []
    for step in range(1, 10):
        epoch, place = divmod(step - 1, 3)
        order = jax.random.permutation(jax.random.fold_in(keys[2], epoch), jnp.arange(12))
        chosen = np.asarray(order)[place * 4 : place * 4 + 4]
        x, y = data["x"][chosen].astype(np.float64), data["y"][chosen].astype(np.float64)
        residual = w * x + b - y
        losses.append(np.mean(residual**2))
        noise = 0.01 * float(jax.random.normal(jax.random.fold_in(keys[1], step), ()))
        w += noise - programs.RATE * np.mean(2 * residual * x)
        b += noise - programs.RATE * np.mean(2 * residual)
    assert [step for _, step, _ in rows(found)] == list(range(1, 10))
    np.testing.assert_allclose([m["loss"] for _, _, m in rows(found)], losses, rtol=2e-5)
    np.testing.assert_allclose([state["w"], state["b"]], [w, b], rtol=2e-5)


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    one, state = carry_out(programs.line(), programs.plan(7))
    two, again = carry_out(programs.line(), programs.plan(7))
    other, _ = carry_out(programs.line(), programs.plan(7, seed=1))
    assert rows(one) == rows(two)
    assert rows(one) != rows(other)
    jax.tree.map(np.testing.assert_array_equal, state, again)


def test_looking_reporting_and_saving_change_no_number() -> None:
    def view(state: Any, key: jax.Array) -> dict[str, Any]:
        state["w"] + jax.random.normal(key, ())
        return {}

    plain, state = carry_out(programs.line(), programs.plan(20, log_every=20))
    busy, same = carry_out(
        programs.line(view=view), programs.plan(20, log_every=1, checkpoint_every=3)
    )
    assert rows(plain)[-1] == rows(busy)[-1]
    jax.tree.map(np.testing.assert_array_equal, state, same)
    snapshots = [e.step for e in busy if isinstance(e, events.Snapshot)]
    assert snapshots == [3, 6, 9, 12, 15, 18, 20]


@pytest.mark.parametrize("total", [1, 2, 3, 99, 250, 1000, 5000])
def test_the_first_and_the_last_step_are_reported_and_looked_at(total: int) -> None:
    points = view_points(total)
    assert points[0] == 0
    assert points[-1] == total
    assert list(points) == sorted(set(points))
    assert len(points) <= 17
    assert 1 <= programs.plan().log_interval(total) <= 100


def test_reports_come_at_the_interval_and_last() -> None:
    found, _ = carry_out(programs.line(), programs.plan(10, log_every=4))
    assert [step for _, step, _ in rows(found)] == [1, 4, 8, 10]


@pytest.mark.parametrize("broken_off", [1, 5, 6])
def test_a_resumed_run_is_the_run_that_would_have_been(broken_off: int) -> None:
    straight, end = carry_out(programs.line(), programs.plan(11))
    first: list[events.Event] = []
    saved = None

    def stop() -> bool:
        return any(e.step == broken_off for e in first if isinstance(e, events.Reported))

    for event in run(programs.line(), programs.plan(11), stop=stop):
        first.append(event)
        if isinstance(event, events.Snapshot):
            saved = jax.tree.map(np.array, event.state)
    assert first[-1].status == "interrupted"
    done = [e for e in first if isinstance(e, events.Snapshot)][-1].step
    assert done == broken_off
    history = History()
    for _, step, metrics in rows(first):
        history.append(step, metrics)
    restore = lambda _, state: jax.tree.map(jnp.array, saved)  # noqa: E731
    resume = Resume({"fit": done}, restore, {"fit": history})
    second, resumed_end = carry_out(programs.line(), programs.plan(11), resume=resume)
    assert rows(first) + rows(second) == rows(straight)
    jax.tree.map(np.testing.assert_array_equal, end, resumed_end)
    assert second[-1].status == "finished"


def test_named_steps_run_one_after_the_other_on_equal_terms() -> None:
    def init(key: jax.Array, batch: Any) -> jax.Array:
        return jax.random.normal(key, ())

    @jax.jit
    def step(state: jax.Array, batch: Any, key: jax.Array) -> Any:
        return state, {"state": state, "noise": jax.random.normal(key, ())}

    program = programs.without_data(a=Step(init, step, 3), b=Step(init, step, 3))
    found, _ = carry_out(program, programs.plan(None))
    reported = rows(found)
    assert [(of, step) for of, step, _ in reported] == [(n, i) for n in "ab" for i in (1, 2, 3)]
    assert [m for _, _, m in reported[:3]] == [m for _, _, m in reported[3:]]
    assert [(e.of, e.step) for e in found if isinstance(e, events.Snapshot)] == [("a", 3), ("b", 3)]


def test_a_weak_type_costs_one_recompile_which_is_explained() -> None:
    @jax.jit
    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        return {"x": state["x"] + jnp.float32(1)}, {"x": state["x"]}

    found, state = carry_out(
        programs.without_data(s=Step(lambda key, batch: {"x": 0.0}, step, 5)), programs.plan(5)
    )
    recompiled = [e for e in found if isinstance(e, events.Recompiled)]
    assert [e.reason for e in recompiled] == ["state['x']: float32[] (weak) -> float32[]"]
    assert found[-1].ledger["steps"]["s"]["compiles"] == 2
    assert state["x"] == 5.0
    assert [m["x"] for _, _, m in rows(found)] == [0, 1, 2, 3, 4]


def test_a_state_that_grows_at_every_step_is_refused_with_the_leaf() -> None:
    @jax.jit
    def step(state: jax.Array, batch: Any, key: jax.Array) -> Any:
        return jnp.concatenate([state, state[:1]]), {"length": jnp.float32(len(state))}

    program = programs.without_data(s=Step(lambda key, batch: jnp.zeros(2), step, 50))
    with pytest.raises(ContractError, match=r"state: float32\[5\] -> float32\[6\]"):
        carry_out(program, programs.plan(50))


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (lambda: {"grad": jnp.zeros(3)}, r"metric 'grad' of step 's' has shape \(3,\) at step 1"),
        (lambda: jnp.float32(1), "as metrics at step 1: return a dict"),
        (lambda: {"step": jnp.float32(1)}, "'step' is taken"),
        (lambda: {"word": "loss"}, "metric 'word' of step 's' is a str at step 1"),
        (
            lambda: {"z": jnp.complex64(1j)},
            "metric 'z' of step 's' has dtype complex64 at step 1: .*jnp.abs of it",
        ),
        (lambda: {"z": 1j}, "metric 'z' of step 's' is a complex at step 1"),
        (
            lambda: {"k": jax.random.key(0)},
            "metric 'k' of step 's' has dtype key<fry> at step 1: .*leave the key out",
        ),
        (
            lambda: {"k": jax.random.PRNGKey(0)},
            r"metric 'k' of step 's' has shape \(2,\) at step 1",
        ),
        (
            lambda: {"f": np.zeros((), jnp.float6_e2m3fn)},
            "metric 'f' of step 's' has dtype float6_e2m3fn at step 1: .*jnp.float32",
        ),
        (lambda: {"f": np.zeros((), "m8[s]")}, r"metric 'f' of step 's' has dtype timedelta64"),
        (lambda: {"f": np.zeros((), object)}, r"metric 'f' of step 's' has dtype object"),
        (lambda: {"f": np.zeros((), "U1")}, r"metric 'f' of step 's' has dtype <U1"),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_no_scalar_is_refused_at_step_1(metrics: Any, said: str, compiled: bool) -> None:
    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        return state, metrics()

    program = programs.without_data(
        s=Step(lambda key, batch: jnp.float32(0), step, 4, compiled=compiled)
    )
    with pytest.raises(ContractError, match=said):
        carry_out(program, programs.plan(4))


NUMBERS = [
    *("bool", "int2", "int4", "int8", "int16", "int32", "uint2", "uint4", "uint8", "uint16"),
    *("uint32", "float16", "bfloat16", "float32", "float4_e2m1fn", "float8_e3m4", "float8_e4m3"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    "float8_e8m0fnu",
]


@pytest.mark.parametrize("compiled", [True, False])
def test_every_dtype_of_a_number_is_a_metric(compiled: bool) -> None:
    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        return state, {name: state.astype(jnp.dtype(name)) for name in NUMBERS}

    program = programs.without_data(
        s=Step(lambda key, batch: jnp.float32(1), step, 2, compiled=compiled)
    )
    found, _ = carry_out(program, programs.plan(2))
    assert rows(found)[-1] == ("s", 2, dict.fromkeys(NUMBERS, 1.0))


def test_a_metric_that_is_no_number_later_on_is_refused_with_its_step() -> None:
    def step(state: int, batch: Any, key: jax.Array) -> Any:
        return state + 1, {"m": 1.0 if state < 2 else np.complex64(1)}

    program = programs.without_data(s=Step(lambda key, batch: 0, step, 4, compiled=False))
    with pytest.raises(ContractError, match="metric 'm' of step 's' has dtype complex64 at step 3"):
        carry_out(program, programs.plan(4, log_every=1))


@pytest.mark.parametrize(
    ("leaf", "said"), [(jnp.tanh, "a function"), ("tanh", "a value of type str")]
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_state_with_more_than_arrays_is_refused_with_the_leaf(
    leaf: Any, said: str, when: str
) -> None:
    def model(leaf: Any) -> dict[str, Any]:
        return {"weight": jnp.float32(0), "activation": leaf}

    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        return model(leaf), {"loss": jnp.float32(0)}

    first = model(leaf if when == "before" else jnp.float32(0))
    program = programs.without_data(s=Step(lambda key, batch: first, step, 4))
    place = re.escape("state['activation']")
    with pytest.raises(ContractError, match=f"of step 's' holds {said} at {place}"):
        carry_out(program, programs.plan(4))


class Halt(BaseException):
    """What no `except Exception` sees."""


@pytest.mark.parametrize("error", [ValueError("boom\nsecond line"), SystemExit(0), Halt("now")])
def test_whatever_a_step_raises_is_a_failed_run_with_one_line(error: BaseException) -> None:
    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        raise error

    found: list[events.Event] = []
    with pytest.raises(PluginError, match=type(error).__name__) as caught:
        found.extend(run(programs.line(step=step), programs.plan(4)))
    assert found[-1].status == "failed"
    assert found[-1].error == str(caught.value)
    assert "\n" not in found[-1].error


def test_a_metric_that_is_not_finite_is_warned_of_once_and_can_end_the_run() -> None:
    @jax.jit
    def step(state: jax.Array, batch: Any, key: jax.Array) -> Any:
        return state + 1, {"m": jnp.where(state >= 3, jnp.nan, state)}

    program = programs.without_data(s=Step(lambda key, batch: jnp.float32(1), step, 6))
    found, _ = carry_out(program, programs.plan(6))
    warned = [e.message for e in found if isinstance(e, events.Warned)]
    assert warned == ["metric 'm' of 's' is nan at step 3"]
    assert found[-1].status == "finished"
    assert math.isnan(rows(found)[-1][2]["m"])
    with pytest.raises(ContractError, match="nan at step 3"):
        carry_out(program, programs.plan(6, stop_on_nonfinite=True))


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (None, "returned nothing, not an ecotour.Verdict"),
        ((), "returned a value of type tuple, not an ecotour.Verdict"),
        (Verdict((True,)), "has a value of type bool among its checks"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_verdict_is_a_failed_run_with_one_line(verdict: Any, said: str) -> None:
    program = dataclasses.replace(programs.line(), judge=lambda _: verdict)
    found: list[Any] = []
    with pytest.raises(ContractError, match=f"the judge of line {said}"):
        found += (event for event in run(program, programs.plan(2)))
    assert not any(isinstance(event, events.Judged) for event in found)
    assert found[-1].status == "failed"


def test_what_is_no_mapping_of_exhibits_is_warned_of_and_not_shown() -> None:
    program = programs.line(view=lambda state, key: [3])
    program = dataclasses.replace(program, judge=lambda _: Verdict((), [3]))  # type: ignore[arg-type]
    found, _ = carry_out(program, programs.plan(4))
    warned = [event.message for event in found if isinstance(event, events.Warned)]
    said = "shows a value of type list, not a mapping from names to exhibits"
    assert warned == [f"the view of 'fit' {said}", f"the judge {said}"]
    assert not [event for event in found if isinstance(event, events.Viewed)]
    assert found[-1].status == "finished"


def test_an_eager_step_is_called_as_it_is_once_a_step() -> None:
    calls: list[int] = []

    def step(state: list[int], batch: Any, key: jax.Array) -> Any:
        calls.append(len(state))
        return [*state, 1], {"length": len(state)}

    def judge(outcome: Any) -> Verdict:
        assert outcome.states["s"] == [1, 1, 1, 1]
        return Verdict(())

    program = programs.without_data(
        judge=judge, s=Step(lambda key, batch: [], step, 4, compiled=False)
    )
    found = list(run(program, programs.plan(4)))
    assert calls == [0, 1, 2, 3]
    assert found[-1].ledger["steps"]["s"]["compile_s"] is None
    assert found[-1].ledger["steps"]["s"]["measured"] == 3


def test_a_buffer_that_stands_in_the_state_twice_can_be_donated() -> None:
    def init(key: jax.Array, batch: Any) -> Any:
        x = jnp.ones(3)
        return {"online": x, "target": x}

    @jax.jit
    def step(state: Any, batch: Any, key: jax.Array) -> Any:
        return {"online": state["online"] + 1, "target": state["target"]}, {"s": state["online"][0]}

    found, state = carry_out(programs.without_data(s=Step(init, step, 3)), programs.plan(3))
    assert found[-1].status == "finished"
    np.testing.assert_array_equal(state["target"], np.ones(3))


def test_the_time_that_the_consumer_takes_is_booked_apart() -> None:
    import time

    ledger: dict[str, Any] = {}
    for event in run(programs.line(), programs.plan(3)):
        if isinstance(event, events.Reported):
            time.sleep(0.2)
        if isinstance(event, events.Ended):
            ledger = dict(event.ledger)
    assert ledger["sinks_s"] >= 0.6
    parts = ("import_s", "data_s", "init_s", "compile_s", "loop_s", "view_s", "judge_s", "sinks_s")
    assert sum(ledger[part] for part in parts) <= ledger["total_s"]


def test_a_warning_about_the_data_is_an_event_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from ecotour import datasets

    def resolve(source: Any, choice: str, data_dir: Any) -> Any:
        warnings.warn("the copy is damaged", stacklevel=2)
        return source

    monkeypatch.setattr(datasets, "resolve", resolve)
    found, _ = carry_out(programs.line(), programs.plan(1))
    assert [e.message for e in found if isinstance(e, events.Warned)] == ["the copy is damaged"]
