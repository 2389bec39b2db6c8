"""The demo as the runner sees it: states that keep their kind, one compile, a strict verdict."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import ecotour
from ecotour_rlax import catch, demo, gallery, price, values

CONFIG = demo.Config(seeds=4, boards=3, hidden=8)
KEY = jax.random.key(5)


@pytest.fixture(scope="module")
def program() -> ecotour.Program:
    return demo.build(CONFIG)


def kind(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), tree)


@pytest.mark.parametrize("name", demo.AGENTS)
def test_state_keeps_its_kind_and_metrics_are_scalars(program, name):
    step = program.steps[name]
    state = jax.eval_shape(step.init, KEY, None)
    after, metrics = jax.eval_shape(step.step, state, None, KEY)
    assert kind(after) == kind(state)
    assert {x.shape for x in jax.tree.leaves(state)} <= {
        (4, *shape) for shape in [(), (1,), (3,), (8,), (50, 8), (8, 3), (8, 1)]
    }
    assert set(metrics) == {"greedy_return", "greedy_low", "greedy_high", "acting_return"}
    assert all(kind(x) == ((), jnp.float32, False) for x in metrics.values())


@pytest.mark.parametrize("name", ["q_lambda", "ppo"])
def test_one_compile_and_the_same_bits_from_the_same_key(program, name):
    step = program.steps[name]
    runs = []
    for seed in (0, 0, 1):
        state = jax.jit(step.init)(jax.random.key(seed), None)
        for number in range(3):
            state, metrics = step.step(state, None, jax.random.fold_in(KEY, number))
        runs.append([np.asarray(x) for x in jax.tree.leaves((state, metrics))])
    assert step.step._cache_size() == 1
    assert all(np.array_equal(a, b) for a, b in zip(runs[0], runs[1], strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(runs[0], runs[2], strict=True))
    assert all(np.isfinite(x).all() for x in runs[0] if x.dtype == np.float32)


def test_seeds_are_strangers_to_each_other(program):
    state = jax.jit(program.steps["ppo"].init)(KEY, None)
    first = np.asarray(state.params["hidden"]["w"])
    assert len(np.unique(first.reshape(4, -1), axis=0)) == 4


def test_interquartile_mean_is_scipys_trimmed_mean():
    values = np.random.default_rng(0).normal(size=(5, 32)).astype(np.float32)
    wanted = stats.trim_mean(values, 0.25, axis=1)
    np.testing.assert_allclose(demo.interquartile_mean(jnp.asarray(values)), wanted, atol=1e-6)


def test_the_band_covers_the_mean_as_often_as_it_says():
    """Of 400 draws of 32 seeds from a normal distribution; a bootstrap of 32 is a little narrow."""
    draws = np.random.default_rng(2).normal(size=(400, 32)).astype(np.float32)
    metrics = jax.jit(jax.vmap(lambda x: demo.measure(x, x)))(draws)
    covered = (np.asarray(metrics["greedy_low"]) <= 0) & (np.asarray(metrics["greedy_high"]) >= 0)
    assert 0.88 <= covered.mean() <= 0.98


def outcome(program: ecotour.Program, value: float, rate: float) -> ecotour.Outcome:
    """What a run would leave behind whose every metric stays at ``value``."""

    def series(value: float) -> ecotour.Series:
        return ecotour.Series(np.arange(1, 4), np.full(3, value))

    names = ("greedy_return", "greedy_low", "greedy_high", "acting_return")
    history = {agent: {name: series(value) for name in names} for agent in demo.AGENTS}
    history["price_of_python"] = {
        "from_python": series(1.0),
        "one_seed_fused": series(rate),
        "all_seeds_fused": series(rate),
    }
    states = {"q_lambda": jax.jit(program.steps["q_lambda"].init)(KEY, None)}
    ledger = {name: {"steady_ms": {"p50": None, "p95": None}} for name in history}
    return ecotour.Outcome(states, history, {}, KEY, ledger)


def test_untrained_agents_fail(program):
    verdict = program.judge(outcome(program, value=-0.6, rate=1.0))
    passed = {check.name for check in verdict.checks if check.passed}
    # what is said to fail does; nothing else passes
    assert passed == {"return while acting, restarting_epsilon", "greedy return, large_plain"}
    assert len(verdict.checks) > len(demo.AGENTS)


def test_agents_that_never_fail_fail_too(program):
    verdict = program.judge(outcome(program, value=1.0, rate=100.0))
    failed = {check.name for check in verdict.checks if not check.passed}
    assert failed == {
        "return while acting, restarting_epsilon",
        "greedy return, large_plain",
        "mean error of the values of q_lambda",
        "greedy return while learning, gain by V-trace's correction",
    }


def test_every_agent_is_in_a_picture():
    shown = {name for _, names in gallery.FAMILIES.values() for name in names}
    assert shown | {"restarting_epsilon"} == set(demo.AGENTS)
    assert set(demo.AGENTS) >= demo.SHOWN_ONLY


def test_the_best_values_are_those_of_value_iteration():
    """By dynamic programming over the rules, from the bottom row up."""
    discount = 0.9
    value = np.zeros((catch.ROWS, 5))
    for row in reversed(range(9)):
        for paddle in range(5):
            after = [min(max(paddle + move, 0), 4) for move in (-1, 0, 1)]
            if row == 8:
                value[row, paddle] = max(1.0 if p == 0 else -1.0 for p in after)
            else:
                value[row, paddle] = discount * max(value[row + 1, p] for p in after)
    np.testing.assert_allclose(values.best_values(discount), value[:9], rtol=1e-12)


def test_the_film_shows_ball_and_paddle():
    balls = jax.vmap(catch.start)(jnp.arange(5))
    boards, _ = jax.vmap(lambda b: catch.play(lambda board: jnp.int32(1), b))(balls)
    frames = np.asarray(gallery.film(boards, "").frames)
    m, cell = gallery.MARGIN, gallery.CELL
    assert frames.shape == (10, 10 * cell + 2 * m, 5 * (5 * cell + 2 * m) + 4 * m, 3)
    assert (frames >= 0).all()
    assert (frames <= 1).all()

    def colour(frame, game, row, column):
        x = 2 * m + game * (5 * cell + 2 * m) + m + column * cell + cell // 2
        return frames[frame, m + row * cell + cell // 2, x]

    for game in range(5):
        np.testing.assert_allclose(colour(4, game, 4, game), gallery.BALL)
        np.testing.assert_allclose(colour(4, game, 9, 2), gallery.PADDLE)
    np.testing.assert_allclose(colour(9, 2, 9, 2), gallery.CAUGHT)
    np.testing.assert_allclose(colour(9, 0, 9, 2), gallery.PADDLE)


def test_moves_from_python_add_up_to_an_episode():
    rng = np.random.default_rng(0)
    whole = catch.Trajectory(
        *(jnp.asarray(rng.normal(size=(2, n, *rest))) for n, *rest in [(10, 4), (9,), (10, 3)]),
        *(jnp.asarray(rng.normal(size=(2, 9))) for _ in range(2)),
    )
    pieces = [
        catch.Trajectory(
            whole.observation[:, t : t + 2],
            whole.action[:, t : t + 1],
            whole.policy[:, t : t + 2],
            whole.reward[:, t : t + 1],
            whole.discount[:, t : t + 1],
        )
        for t in range(9)
    ]
    for a, b in zip(price.join(pieces), whole, strict=True):
        np.testing.assert_array_equal(a, b)


def test_importing_the_demo_imports_no_tensorflow_and_hides_it_from_nobody():
    code = (
        "import importlib.util, sys; import ecotour_rlax.demo; "
        "assert 'tensorflow' not in sys.modules; "
        "print(importlib.util.find_spec('tensorflow') is not None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    installed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import importlib.util as u; print(u.find_spec('tensorflow') is not None)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == installed.stdout
