"""The batch of step i is a pure function of the data, the key and i."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecotour.demo import DataInfo, Dataset
from ecotour.errors import UsageError
from ecotour.running.feed import Feed

EXAMPLES, BATCH = 23, 5


def make(key: int = 0, batch_size: int | None = BATCH) -> Feed:
    rows = np.arange(EXAMPLES * 3, dtype=np.uint8).reshape(EXAMPLES, 3)
    arrays = {"row": rows, "number": np.arange(EXAMPLES, dtype=np.int32)}
    dataset = Dataset(DataInfo("rows", "synthetic", "train", EXAMPLES), arrays)
    return Feed.of(dataset, batch_size, jax.random.key(key))


def batch(feed: Feed, step: int) -> dict[str, np.ndarray]:
    order = feed.order(feed.epoch(step))
    return {k: np.asarray(v) for k, v in feed.batch(feed.arrays, order, jnp.int32(step)).items()}


def test_an_epoch_shows_each_example_at_most_once_and_every_array_the_same_ones() -> None:
    feed = make()
    assert feed.steps_per_epoch == 4
    for epoch in range(3):
        batches = [batch(feed, 1 + epoch * 4 + k) for k in range(4)]
        numbers = np.concatenate([b["number"] for b in batches])
        assert len(set(numbers)) == 20
        assert set(numbers) <= set(range(EXAMPLES))
        rows = np.concatenate([b["row"] for b in batches])
        np.testing.assert_array_equal(rows[:, 0], numbers * 3)
        assert rows.dtype == np.uint8


def test_the_batch_is_the_slice_of_jax_own_permutation() -> None:
    feed = make(key=7)
    for step in (1, 4, 5, 11):
        epoch, place = divmod(step - 1, 4)
        order = jax.random.permutation(
            jax.random.fold_in(jax.random.key(7), epoch), jnp.arange(EXAMPLES, dtype=jnp.int32)
        )
        expected = np.asarray(order)[place * BATCH : (place + 1) * BATCH]
        np.testing.assert_array_equal(batch(feed, step)["number"], expected)


def test_epochs_and_keys_differ_and_nothing_is_hidden() -> None:
    feed = make()
    first, second = batch(feed, 1)["number"], batch(feed, 5)["number"]
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, batch(make(key=1), 1)["number"])
    batch(feed, 17)
    np.testing.assert_array_equal(first, batch(feed, 1)["number"])


@pytest.mark.parametrize("size", [0, -1, EXAMPLES + 1, None])
def test_an_impossible_batch_is_refused_with_the_possible_ones(size: int | None) -> None:
    with pytest.raises(UsageError, match=f"from 1 to {EXAMPLES}"):
        make(batch_size=size)


def test_all_examples_in_one_batch() -> None:
    feed = make(batch_size=EXAMPLES)
    assert sorted(batch(feed, 1)["number"]) == list(range(EXAMPLES))
