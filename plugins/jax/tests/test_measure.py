"""What is measured is the same thing measured in several ways."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from ecotour_jax import devices, measure


@pytest.mark.parametrize(("inputs", "outputs"), [(4, 16), (64, 16), (16, 64)])
def test_both_directions_give_one_jacobian_and_cost_as_they_should(
    inputs: int, outputs: int
) -> None:
    row = measure.compare_directions(inputs, outputs, jax.random.key(0), repeats=3)
    forward, reverse, gap = row[2:]
    assert gap < 1e-5
    assert (forward < reverse) == (inputs < outputs)


@pytest.mark.parametrize("batch", [1, 8])
def test_per_example_gradients(batch: int) -> None:
    row = measure.compare_batching(batch, jax.random.key(1), repeats=3)
    assert all(time > 0 for time in row[:3])
    assert max(row[3:]) < 1e-5


def test_op_by_op_and_jit_agree() -> None:
    op_by_op, jitted, gap, seconds = measure.compare_compilation(64, jax.random.key(2), repeats=3)
    assert min(op_by_op, jitted, seconds) > 0
    assert gap < 1e-5


def test_the_gradient_by_hand_is_jaxs() -> None:
    generator = np.random.default_rng(3)
    params = {"in": generator.normal(size=(8, 16)), "out": generator.normal(size=16)}
    inputs, targets = generator.normal(size=(64, 8)), generator.normal(size=64)
    with jax.enable_x64(True):
        got = jax.grad(devices.loss)(params, inputs, targets)
    want = devices.gradient_in_numpy(params, inputs, targets)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-10, atol=1e-12)


def test_one_program_on_one_two_and_four_devices() -> None:
    rows = np.array([[list(one.values()) for one in way] for way in devices.ask(jax.random.key(4))])
    error, all_reduces, used, _ = np.moveaxis(rows, -1, 0)
    assert error.shape == (3, 3)
    assert error.max() < 1e-5
    np.testing.assert_array_equal(used, [[1, 2, 4]] * 3)
    assert (all_reduces[:, 1:] >= 1).all()
    assert all_reduces[0, 0] == 0  # jit on one device has nothing to reduce
