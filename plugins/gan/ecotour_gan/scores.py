"""The formulas: classifier score, digits covered, Fréchet distance.

NumPy in double precision throughout. The sums are small, and a difference of nearly equal traces
is no place for float32.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]

# An image counts for its digit when the classifier takes that digit to be at least as likely as
# all the others together...
CONFIDENT = 0.5
# ... and a digit is covered when at least this share of all the images counts for it.
COVERED_SHARE = 0.01
BOOTSTRAP_RESAMPLES = 1000


@dataclasses.dataclass(frozen=True)
class Score:
    """A classifier score and the 95% interval that a bootstrap over the images gives it."""

    value: float
    low: float
    high: float


def classifier_score(probabilities: npt.ArrayLike) -> Score:
    """The exponential of the mean KL divergence of p(digit | image) from p(digit).

    This is the formula of the Inception score (Salimans et al. 2016, "Improved Techniques for
    Training GANs", section 4) with our classifier in the place of Inception, so its values
    compare with each other and with nothing published under that name. The interval is a
    percentile bootstrap (Efron 1979) of 1,000 resamples of the images with a fixed seed, not the
    spread over ten splits that the paper gives: that one belongs to a tenth of the images.

    Args:
      probabilities: float [N, K], N at least 1, each row sums to 1.

    Returns:
      A score from 1 to K.

    Raises:
      ValueError: not a matrix of distributions.
    """
    p = _distributions(probabilities)
    count = len(p)
    # mean KL = mean over the images of sum p log p, minus sum m log m of their mean m. Both are
    # means over the images, so a resample needs no more than how often it drew each image.
    per_image = np.concatenate([_p_log_p(p).sum(axis=1, keepdims=True), p], axis=1)

    def scores(means: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        divergence = means[:, 0] - _p_log_p(means[:, 1:]).sum(axis=1)
        return np.asarray(np.exp(np.maximum(divergence, 0.0)))

    random = np.random.default_rng(0)
    means = np.empty((BOOTSTRAP_RESAMPLES, per_image.shape[1]))
    for resample in means:
        drawn = np.bincount(random.integers(count, size=count), minlength=count)
        resample[:] = drawn @ per_image / count
    low, high = np.quantile(scores(means), [0.025, 0.975])
    value = scores(per_image.mean(axis=0, keepdims=True))[0]
    return Score(float(value), float(low), float(high))


def digits_covered(
    probabilities: npt.ArrayLike, confident: float = CONFIDENT, share: float = COVERED_SHARE
) -> int:
    """How many digits are drawn: each by at least `share` of the images, with confidence.

    Args:
      probabilities: float [N, K], each row sums to 1.
      confident: an image counts for a digit of at least this probability.
      share: a digit is covered if this share of all N images counts for it.

    Returns:
      A number from 0 to K.

    Raises:
      ValueError: not a matrix of distributions.
    """
    p = _distributions(probabilities)
    sure = p.argmax(axis=1)[p.max(axis=1) >= confident]
    counts = np.bincount(sure, minlength=p.shape[1])
    return int(np.count_nonzero(counts >= share * len(p)))


def moments(features: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The mean, float64 [F], and the unbiased covariance, float64 [F, F], of features [N, F].

    Raises:
      ValueError: fewer than two rows, of which there is no covariance.
    """
    matrix = np.asarray(features, np.float64)
    if matrix.ndim != 2 or len(matrix) < 2:
        raise ValueError(f"features: expected [N, F] with N >= 2, got {matrix.shape}")
    return matrix.mean(axis=0), np.atleast_2d(np.cov(matrix, rowvar=False))


def frechet_distance(mean_a: Array, cov_a: Array, mean_b: Array, cov_b: Array) -> float:
    """The squared Fréchet (2-Wasserstein) distance of two normal distributions.

        |mean_a - mean_b|² + trace(cov_a + cov_b - 2 (cov_a cov_b)^½)

    The closed form is that of Dowson & Landau (1982); Heusel et al. (2017), "GANs Trained by a
    Two Time-Scale Update Rule", brought it to GANs, over Inception's features, and left it
    squared. The product of two covariances is not symmetric, and a general matrix square root of
    it strays into complex numbers where it is nearly singular. It has the eigenvalues of the
    symmetric cov_a^½ cov_b cov_a^½, which are real and, but for rounding, not negative.

    Args:
      mean_a, mean_b: float [F].
      cov_a, cov_b: float [F, F], symmetric and positive semi-definite.

    Returns:
      The distance, at least 0, in squared units of the features.
    """
    mean_a, cov_a, mean_b, cov_b = (
        np.asarray(array, np.float64) for array in (mean_a, cov_a, mean_b, cov_b)
    )
    eigenvalues, vectors = np.linalg.eigh(cov_a)
    root_a = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T
    product = root_a @ cov_b @ root_a
    common = np.linalg.eigvalsh((product + product.T) / 2)
    trace_root = np.sqrt(np.maximum(common, 0.0)).sum()
    difference = mean_a - mean_b
    distance = difference @ difference + np.trace(cov_a) + np.trace(cov_b) - 2 * trace_root
    return float(max(distance, 0.0))


def _distributions(probabilities: npt.ArrayLike) -> npt.NDArray[np.float64]:
    p = np.asarray(probabilities, np.float64)
    if p.ndim != 2 or not p.size:
        raise ValueError(f"probabilities: expected [N, K] with N >= 1, got {p.shape}")
    if not (np.all(p >= 0) and np.allclose(p.sum(axis=1), 1.0, atol=1e-5)):
        raise ValueError("probabilities: each row must be non-negative and sum to 1")
    return p


def _p_log_p(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # 0 log 0 is 0 by continuity.
    return np.asarray(p * np.log(np.where(p > 0, p, 1.0)))
