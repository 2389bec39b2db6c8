"""The batch of step i, as a pure function of the data, the run's key and i.

An epoch is a fresh permutation of the examples; the batch of step i is its slice number
``(i - 1) mod steps_per_epoch`` (a last slice that would be short is left out, and its examples
come up in other epochs). There is no iterator and so nothing hidden to save: a run that resumes at
step i sees the very batches that it would have seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from ecotour.errors import UsageError
from ecotour.running.keys import on_device

if TYPE_CHECKING:
    from ecotour.contract.demo import Batch, Dataset


@dataclass(frozen=True)
class Feed:
    """Batches of one dataset, gathered on the device.

    Attributes:
        arrays: On the device, ``[N, …]`` by name; empty where the program has no data.
        examples: N.
        batch_size: Examples in a batch.
        key: From which the permutations come.
    """

    arrays: Mapping[str, jax.Array]
    examples: int
    batch_size: int
    key: jax.Array

    @classmethod
    def of(cls, dataset: Dataset, batch_size: int | None, key: jax.Array) -> Feed:
        """Put ``dataset`` on the device.

        Raises:
            UsageError: A batch would be larger than the dataset.
        """
        examples = dataset.info.examples
        if batch_size is None or not 1 <= batch_size <= examples:
            raise UsageError(
                f"a batch of {batch_size} examples cannot be cut from {dataset.info}: "
                f"choose a batch size from 1 to {examples}"
            )
        arrays = {name: jax.device_put(array) for name, array in dataset.arrays.items()}
        return cls(arrays, examples, batch_size, key)

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in one pass over the data."""
        return self.examples // self.batch_size

    def epoch(self, step: int) -> int:
        """In which epoch, from 0, step number ``step`` (from 1) falls."""
        return (step - 1) // self.steps_per_epoch

    def order(self, epoch: int) -> jax.Array:
        """The permutation of an epoch: ``int32 [N]``."""
        return _permutation(self.key, on_device(epoch), examples=self.examples)

    def batch(self, arrays: Mapping[str, jax.Array], order: jax.Array, step: jax.Array) -> Batch:
        """The batch of ``step``, traced into the compiled step: one gather for each array.

        ``arrays`` and ``order`` are arguments, not constants, so that the data is no part of the
        compiled program.
        """
        return _cut(arrays, order, step, self.steps_per_epoch, self.batch_size)

    def batch_at(self, step: int) -> Batch:
        """The batch of ``step`` by itself, for what is not compiled."""
        order, number = self.order(self.epoch(step)), on_device(step)
        return _cut_at_once(self.arrays, order, number, self.steps_per_epoch, self.batch_size)


@partial(jax.jit, static_argnames="examples")
def _permutation(key: jax.Array, epoch: jax.Array, *, examples: int) -> jax.Array:
    positions = jnp.arange(examples, dtype=jnp.int32)
    return jax.random.permutation(jax.random.fold_in(key, epoch), positions)


def _cut(
    arrays: Mapping[str, jax.Array],
    order: jax.Array,
    step: jax.Array,
    steps_per_epoch: int,
    batch_size: int,
) -> Batch:
    start = (step - 1) % steps_per_epoch * batch_size
    chosen = jax.lax.dynamic_slice_in_dim(order, start, batch_size)
    return {name: array.at[chosen].get(mode="clip") for name, array in arrays.items()}


_cut_at_once = jax.jit(_cut, static_argnums=(3, 4))
