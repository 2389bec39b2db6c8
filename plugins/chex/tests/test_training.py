"""The correct training, against NumPy and against what is known of it."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecotour_chex import demo
from ecotour_chex.training import Config, Training, make_examples


def some_batch(count: int = 32) -> dict[str, np.ndarray]:
    batch = make_examples(np.random.default_rng(7), count)
    batch["weights"][3:7] = 0.0
    batch["inputs"][0] = 0.0
    return batch


def gradient_by_hand(weights: np.ndarray, batch: dict[str, np.ndarray]) -> np.ndarray:
    """Gradient [4] of the weighted mean squared error, in float64."""
    inputs = np.float64(batch["inputs"])
    unit = inputs / (np.linalg.norm(inputs, axis=-1, keepdims=True) + 1e-6)
    error = unit @ weights - np.float64(batch["targets"])
    counted = np.float64(batch["weights"])
    return 2.0 * (counted * error) @ unit / counted.sum()


def test_a_step_is_momentum_on_the_gradient_by_hand() -> None:
    training, batch = Training(noise=0.25), some_batch()
    state, noise = training.begin(), jnp.array([1.0, -1.0, 2.0, 0.5], jnp.float32)
    step = jax.jit(training.step())
    weights, velocity, rate = np.zeros(4), np.zeros(4), 0.5
    for _ in range(3):
        state, _ = step(state, batch, noise)
        velocity = 0.9 * velocity + gradient_by_hand(weights, batch) + 0.25 * np.asarray(noise)
        rate *= 0.98
        weights = weights - rate * velocity
        np.testing.assert_allclose(state["params"]["weights"], weights, rtol=1e-5)
    np.testing.assert_allclose(state["velocity"]["weights"], velocity, rtol=1e-5)
    assert int(state["number"]) == 3


def test_the_state_keeps_its_shape_types_and_weak_types() -> None:
    training = Training()
    before = training.begin()
    after = jax.eval_shape(training.step(), before, some_batch(), jnp.zeros(4, jnp.float32))[0]
    chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
    weak = [leaf.weak_type for leaf in jax.tree.leaves(before) + jax.tree.leaves(after)]
    assert weak == [False] * 8


def test_padding_counts_for_nothing() -> None:
    training, batch = Training(), some_batch()
    whole = {name: array[batch["weights"] > 0] for name, array in batch.items()}
    noise = jnp.zeros(4, jnp.float32)
    padded, _ = training.step()(training.begin(), batch, noise)
    short, _ = training.step()(training.begin(), whole, noise)
    chex.assert_trees_all_close(padded["params"], short["params"], rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_training_finds_the_rule_behind_the_data(seed: int) -> None:
    program = demo.build(Config())
    clean = program.steps["clean"]
    arrays = program.data["train"].arrays
    state, key = clean.init(jax.random.key(seed), None), jax.random.key(seed)
    generator = np.random.default_rng(seed)
    for number in range(120):
        rows = generator.integers(len(arrays["targets"]), size=64)
        batch = {name: array[rows] for name, array in arrays.items()}
        state, metrics = clean.step(state, batch, jax.random.fold_in(key, number))
    assert float(metrics["distance_from_truth"]) < 0.1
    assert {value.shape for value in metrics.values()} == {()}


def test_the_hook_announces_the_demo() -> None:
    announced = demo.ecotour_demo()
    assert announced.config is Config
    assert list(announced.build(Config()).steps) == ["clean", "museum", "costs", "apart"]
