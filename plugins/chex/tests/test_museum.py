"""Every fault with every tool: symptoms, claims, and that nothing is changed for good."""

from __future__ import annotations

import os
import subprocess
import sys

import chex
import jax
import numpy as np
import pytest

from ecotour_chex import apart, bookkeeping
from ecotour_chex.faults import FAULTS, Fault
from ecotour_chex.tools import APART, HERE
from ecotour_chex.training import TRUTH, Config

SEED = np.array([17, 4], np.uint32)
CONFIG = Config(timed_steps=10)

CAUGHT: dict[str, dict[str, int]] = {
    "no fault": {},
    "hidden broadcast": {"assert_shape": 1, "fake_pmap_and_jit": 1},
    "promotion to float64": {"assert_trees_all_equal_dtypes": 1, "assert_max_traces": 2},
    "NaN at step n": {"assert_tree_all_finite": 4, "chexify": 4},
    "retrace at each step": {"assert_max_traces": 2},
    "reused key": {"comparator: key is new": 2, "jax.debug_key_reuse": 2},
    "weak type changes": {"assert_max_traces": 2},
    "donated buffer used again": {"comparator: buffer alive": 1},
    "tree changes structure": {
        "assert_trees_all_equal_dtypes": 1,
        "assert_trees_all_equal_structs": 1,
        "dataclass": 1,
        "assert_max_traces": 2,
    },
    "static argument": {"assert_max_traces": 2},
    "jit differs from no jit": {"variants": 2, "fake_pmap_and_jit": 2},
    "wrong mean over devices": {"fake_pmap_and_jit": 3},
}
"""All that is caught, and at which step; what is not here stays silent, or crashes by itself."""

SYMPTOMS: dict[str, tuple[float, float]] = {
    "promotion to float64": (40, 76),  # 9 float32 and an int32; 9 float64 and an int32
    "NaN at step n": (0, 4),
    "retrace at each step": (1, bookkeeping.VISIT_STEPS),
    "reused key": (0, bookkeeping.VISIT_STEPS - 1),
    "weak type changes": (1, 2),
    "donated buffer used again": (0, bookkeeping.VISIT_STEPS),
    "tree changes structure": (4, 5),
    "static argument": (1, bookkeeping.VISIT_STEPS),
}
"""What the labels measure, where it is a count: without the fault, and with it."""


BY_NAME = {fault.name: fault for fault in bookkeeping.ROWS}


@pytest.mark.parametrize("fault", bookkeeping.ROWS, ids=lambda fault: fault.name)
def test_each_tool_says_what_is_pinned(fault: Fault) -> None:
    found = bookkeeping.try_tools(fault, HERE, CONFIG, SEED)
    each = zip(found["kind"], found["at"], found["says"], strict=True)
    tried = {tool.name: one for tool, one in zip(HERE, each, strict=True)}
    caught = {name: at for name, (kind, at, _) in tried.items() if kind == bookkeeping.CAUGHT}
    here = {tool.name for tool in HERE}
    assert caught == {name: at for name, at in CAUGHT[fault.name].items() if name in here}
    crashed = {name for name, (kind, _, _) in tried.items() if kind == bookkeeping.STOPPED}
    if fault.name == "donated buffer used again":
        # the variants choose themselves how to compile, so nothing is donated there
        assert crashed == here - set(caught) - {"variants"}
        assert "deleted" in tried["no tool"][2]
    else:
        assert not crashed


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_has_the_symptom_on_its_label(fault: Fault) -> None:
    clean, spoilt = bookkeeping.symptom(fault, CONFIG, SEED)
    assert clean < fault.beyond <= spoilt
    if fault.name in SYMPTOMS:
        assert (clean, spoilt) == SYMPTOMS[fault.name]


def test_the_hidden_broadcast_learns_nothing_but_the_mean() -> None:
    # the loss over all pairs splits into (mean prediction - mean target)² and two variances, so
    # its best weights make all predictions equal: those nearest to zero
    _, spoilt = bookkeeping.symptom(BY_NAME["hidden broadcast"], CONFIG, SEED)
    truth = np.linalg.norm(TRUTH)
    assert abs(spoilt - truth) < 0.2 * truth


def test_the_error_over_devices_is_that_of_the_weights_of_its_parts() -> None:
    # by hand: every device divides by its own mean weight, then all count alike
    batch = bookkeeping.conditions(SEED, CONFIG, 4)[0][2]
    inputs, targets = np.float64(batch["inputs"]), np.float64(batch["targets"])
    unit = inputs / (np.linalg.norm(inputs, axis=-1, keepdims=True) + 1e-6)
    each = -2.0 * targets[:, None] * unit * batch["weights"][:, None]
    right = each.sum(0) / batch["weights"].sum()
    parts = each.reshape(4, 16, 4).sum(1) / batch["weights"].reshape(4, 16).sum(1)[:, None]
    by_hand = 100.0 * np.linalg.norm(parts.mean(0) - right) / np.linalg.norm(right)
    _, measured = bookkeeping.symptom(BY_NAME["wrong mean over devices"], CONFIG, SEED)
    np.testing.assert_allclose(measured, by_hand, rtol=1e-4)


def test_a_visit_changes_no_process_wide_setting() -> None:
    def settings() -> object:
        names = ("jax_enable_x64", "jax_numpy_dtype_promotion", "jax_disable_jit")
        names += ("jax_debug_key_reuse", "jax_debug_nans")
        values = [getattr(jax.config, name) for name in names]
        return values, jax.pmap, jax.jit, jax.lax.pmean, dict(os.environ), np.geterr()

    before = settings()
    for fault in ("promotion to float64", "reused key", "wrong mean over devices"):
        bookkeeping.try_tools(BY_NAME[fault], HERE, CONFIG, SEED)
    assert settings() == before
    with pytest.raises(AssertionError):
        chex.assert_equal(1, 2)  # assertions are still enabled


def test_steps_fill_rows_and_then_rest() -> None:
    museum_step, key = bookkeeping.museum_step(CONFIG), jax.random.wrap_key_data(SEED)
    found = museum_step.init(key, None)
    first, metrics = museum_step.step(found, None, key)
    assert int(first["done"]) == 1
    assert int(found["done"]) == 0  # the state that went in is left alone
    assert metrics == {"caught": 0, "stopped": 0, "silent": len(HERE)}
    shapes = jax.tree.map(lambda x: (x.shape, x.dtype), found)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), first) == shapes
    full = {**first, "done": np.asarray(len(bookkeeping.ROWS), np.int32)}
    again, _ = museum_step.step(full, None, key)
    chex.assert_trees_all_equal(full, again)


def test_guards_are_timed() -> None:
    costs, key = bookkeeping.costs_step(CONFIG), jax.random.wrap_key_data(SEED)
    after, metrics = costs.step(costs.init(key, None), None, key)
    assert after["ms"][0, 0] > 0
    assert metrics["bare_ms"] == after["ms"][0, 0]


def test_a_message_survives_as_bytes() -> None:
    assert bookkeeping.as_text(bookkeeping.as_bytes("two → one")) == "two → one"
    assert len(bookkeeping.as_bytes("x" * 5000)) == bookkeeping.MESSAGE_BYTES


def test_the_process_apart_finds_what_is_pinned() -> None:
    step, key = apart.apart_step(CONFIG), jax.random.wrap_key_data(SEED)
    found = step.init(key, None)
    answer, _ = step.step(found, None, key)
    assert {n: (v.shape, v.dtype) for n, v in answer.items()} == {
        n: (v.shape, v.dtype) for n, v in found.items()
    }
    names = [tool.name for tool in APART]
    for row, fault in enumerate(bookkeeping.ROWS):
        kind = dict(zip(names, answer["kind"][row], strict=True))
        at = dict(zip(names, answer["at"][row], strict=True))
        if fault.name == "NaN at step n":
            assert (kind["chexify"], at["chexify"]) == (bookkeeping.CAUGHT, 4)
            # without waiting, the alarm comes with a later step, or at the end of the loop
            assert kind["chexify, not waiting"] == bookkeeping.CAUGHT
            assert at["chexify, not waiting"] in (5, 6)
        elif fault.name == "donated buffer used again":
            assert set(kind.values()) == {bookkeeping.STOPPED}
        else:
            assert set(kind.values()) == {bookkeeping.SILENT}
    said = {
        fault.name: bookkeeping.as_text(says)
        for fault, says in zip(bookkeeping.ROWS, answer["says"], strict=True)
    }
    assert "assert_tree_all_finite" in said.pop("NaN at step n")
    assert not any(said.values())
    (right, right_fake, gap), (wrong, wrong_fake, wrong_gap) = answer["devices"]
    assert max(right, right_fake) < 1e-3
    assert max(gap, wrong_gap) < 1e-6
    np.testing.assert_allclose(wrong, wrong_fake, rtol=1e-4)
    assert wrong > 1.0
    fails = dict(zip(apart.VARIANTS, answer["variants"][1], strict=True))
    assert fails == {"without_jit": 0, "with_jit": 2, "without_device": 0, "with_device": 0,
                     "with_pmap": 2}  # fmt: skip
    assert not answer["variants"][0].any()


def test_a_child_that_fails_says_why_in_one_line() -> None:
    step, key = apart.apart_step(CONFIG), jax.random.wrap_key_data(SEED)
    bad = {**step.init(key, None), "seed": np.array([1.5])}
    with pytest.raises(RuntimeError, match="ended badly: ValueError") as caught:
        step.step(bad, None, key)
    assert "\n" not in str(caught.value)


def test_why_chexify_is_tried_apart() -> None:
    # the day Chex is quiet at the end of a process, the two columns can come home
    code = (
        "import chex, jax, jax.numpy as jnp\n"
        "f = chex.chexify(jax.jit(lambda x: (chex.assert_tree_all_finite(x), x)[1]))\n"
        "f(jnp.ones(2)); f.wait_checks(); chex.block_until_chexify_assertions_complete()\n"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "were not inspected" in child.stderr
