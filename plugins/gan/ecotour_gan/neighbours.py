"""How near does each image come to the training image nearest to it?

A generator that hands out its training images fools every score that asks only for quality and
variety. It is found out by its samples lying nearer to the training images than real images do
that were never among them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ecotour_gan.classifier import NUM_CLASSES, check_images

# One matrix of products is 5,000 x 1,000 numbers, 20 MB, however many images there are.
TRAINING_BLOCK = 5000
QUERY_BLOCK = 1000
# A sample is a near copy when it lies nearer to a training image than all but this share of the
# held-out real images of its digit do.
NEAR_COPY_QUANTILE = 0.01


def nearest_neighbour_distances(
    images: npt.ArrayLike, training_images: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """The Euclidean distance of each image to the training image nearest to it.

    It is taken as |a - b|² = |a|² - 2 a·b + |b|², which is one matrix product for very many
    pairs. Rounding leaves an exact copy at up to about 0.05 instead of 0; real images lie around
    9 apart.

    Args:
      images: float32 [N, 28, 28, 1] in [-1, 1].
      training_images: float32 [T, 28, 28, 1] in [-1, 1].

    Returns:
      float32 [N], from 0 to 56 (each of 784 pixels off by 2).

    Raises:
      ValueError: images of another shape, dtype or range, or not finite.
    """
    queries = check_images("images", images)
    training = [
        jnp.asarray(block)
        for block in _blocks(check_images("training_images", training_images), TRAINING_BLOCK)
    ]
    distances = []
    for block in _blocks(queries, QUERY_BLOCK):
        query = jnp.asarray(block)
        nearest = jnp.full(len(block), jnp.inf, jnp.float32)
        for candidates in training:
            nearest = _nearer(nearest, query, candidates)
        distances.append(np.asarray(nearest))
    return np.asarray(np.sqrt(np.concatenate(distances)[: len(queries)]))


def near_copies(
    distances: npt.NDArray[np.floating[Any]],
    digits: npt.NDArray[np.integer[Any]],
    held_out_distances: npt.NDArray[np.floating[Any]],
    held_out_digits: npt.NDArray[np.integer[Any]],
) -> tuple[float, tuple[float, ...]]:
    """The share of samples that lie suspiciously near to a training image.

    Each digit has its own limit, because any two ones are more alike than most pairs of eights:
    under a common limit a generator that draws many ones would be taken for one that copies.

    Args:
      distances: float [N], of the samples to their nearest training images.
      digits: integer [N], 0 to 9, what each sample is taken for.
      held_out_distances, held_out_digits: [H], the same of real images that were not trained on.

    Returns:
      The share, 0 to 1, which is about 0.01 for images that are not copied; and the limit of each
      digit, [10], which is 0 (nothing is a copy) for a digit that no held-out image shows.
    """
    limits = np.zeros(NUM_CLASSES)
    for digit in range(NUM_CLASSES):
        of_digit = held_out_distances[held_out_digits == digit]
        if of_digit.size:
            limits[digit] = np.quantile(of_digit, NEAR_COPY_QUANTILE)
    return float((distances < limits[digits]).mean()), tuple(limits.tolist())


def _blocks(images: npt.NDArray[np.float32], size: int) -> list[npt.NDArray[np.float32]]:
    """Images as rows of pixels in blocks of one size, the last filled up with its last row.

    One size is one compile, and a copy is never nearer than what it is a copy of.
    """
    rows = images.reshape(len(images), -1)
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    blocks[-1] = np.pad(blocks[-1], ((0, size - len(blocks[-1])), (0, 0)), mode="edge")
    return blocks


@jax.jit
def _nearer(nearest: jax.Array, queries: jax.Array, candidates: jax.Array) -> jax.Array:
    """The lesser of `nearest`, [N], and the least squared distance to a candidate.

    Args:
      nearest: float32 [N], squared distances found so far.
      queries: float32 [N, 784].
      candidates: float32 [T, 784].
    """
    # Counted from black most pixels are exactly 0, the squares are small and little is lost.
    queries, candidates = queries + 1.0, candidates + 1.0
    products = jnp.matmul(candidates, queries.T, precision=jax.lax.Precision.HIGHEST)
    # Down the columns: XLA's CPU reduction over rows is several times slower.
    relative = jnp.min(jnp.sum(candidates**2, axis=1)[:, None] - 2.0 * products, axis=0)
    return jnp.minimum(nearest, jnp.maximum(relative + jnp.sum(queries**2, axis=1), 0.0))
