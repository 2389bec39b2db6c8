"""How near does each image come to the nearest training image?

A generator that hands out its training images fools every score that asks only for quality and
variety. It is found out by its samples lying nearer to the training images than real images do
that were never among them.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ecotour_gan.classifier import check_images

# One matrix of products is 1,000 x 5,000 numbers, 20 MB, however many images there are.
QUERY_BLOCK = 1000
TRAINING_BLOCK = 5000


def nearest_neighbour_distances(
    images: npt.ArrayLike, training_images: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """The Euclidean distance of each image to the training image nearest to it.

    The nearest one is found by |a - b|² = |a|² - 2 a·b + |b|², whose matrix product is fast and
    whose cancellation would make a copy look as if it were some way off. So the distance itself
    is then taken from the differences: a copy is at exactly 0.

    Args:
      images: float32 [N, 28, 28, 1] in [-1, 1].
      training_images: float32 [T, 28, 28, 1] in [-1, 1].

    Returns:
      float32 [N], from 0 to 56 (each of 784 pixels off by 2).

    Raises:
      ValueError: images of another shape, dtype or range, or not finite.
    """
    # Counted from black, most pixels are exactly 0 and the sums of squares stay small.
    queries = check_images("images", images).reshape(-1, 784) + np.float32(1)
    training = check_images("training_images", training_images).reshape(-1, 784) + np.float32(1)
    blocks = [jnp.asarray(block) for block in _blocks(training, TRAINING_BLOCK)]
    distances = []
    for block in _blocks(queries, QUERY_BLOCK):
        query = jnp.asarray(block)
        best = np.full(len(block), np.inf, np.float32)
        where = np.zeros(len(block), np.int64)
        found = [_compiled()(query, candidates) for candidates in blocks]
        for number, (squares, indices) in enumerate(found):
            nearer = np.asarray(squares) < best
            best[nearer] = np.asarray(squares)[nearer]
            where[nearer] = number * TRAINING_BLOCK + np.asarray(indices)[nearer]
        where = np.minimum(where, len(training) - 1)
        distances.append(np.linalg.norm(block - training[where], axis=1))
    return np.concatenate(distances)[: len(queries)]


def _blocks(rows: npt.NDArray[np.float32], size: int) -> list[npt.NDArray[np.float32]]:
    """Rows in blocks of one size, the last filled up with copies of the last row.

    One size is one compile, and a copy is never nearer than what it is a copy of.
    """
    filled = np.pad(rows, ((0, -len(rows) % size), (0, 0)), mode="edge")
    return [filled[start : start + size] for start in range(0, len(filled), size)]


@functools.cache
def _compiled() -> Any:
    return jax.jit(_nearest_in_block)


def _nearest_in_block(queries: jax.Array, candidates: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The nearest of the candidates, [T, 784], to each query, [N, 784].

    Returns:
      |b|² - 2 a·b for it, float32 [N] (|a|² is the same for all candidates), and its index.
    """
    products = jnp.matmul(queries, candidates.T, precision=jax.lax.Precision.HIGHEST)
    squares = jnp.sum(candidates**2, axis=1)[None, :] - 2.0 * products
    return squares.min(axis=1), squares.argmin(axis=1)
