"""How good are generated digits? The figures by which a run of the GAN is judged.

Losses of a GAN say who is winning, not whether the pictures are any good. Four questions do:

* Is each image clearly one digit, and are all ten drawn? The classifier score and the coverage.
* Are the images as varied as real ones, and in the same way? The Fréchet distance, "MNIST-FD".
* Are they new? Distances to the nearest training image, beside those of unseen real images.
* Compared with what? Real images (the ceiling) and noise (the floor), judged the same way.

Everything here is a pure function of its arguments: the same images give the same verdict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
import numpy.typing as npt

from ecotour.errors import DataError
from ecotour_gan.classifier import (
    DATA,
    NUM_CLASSES,
    Classified,
    check_images,
    classify,
    load_classifier,
    read_arrays,
    read_description,
)
from ecotour_gan.neighbours import near_copies, nearest_neighbour_distances
from ecotour_gan.scores import (
    Array,
    Score,
    classifier_score,
    digits_covered,
    frechet_distance,
    moments,
)

__all__ = [
    "Classified",
    "Score",
    "Verdict",
    "Yardstick",
    "classifier_score",
    "classify",
    "digits_covered",
    "frechet_distance",
    "judge",
    "judge_without_neighbours",
    "load_classifier",
    "load_yardsticks",
    "moments",
    "near_copies",
    "nearest_neighbour_distances",
]


@dataclasses.dataclass(frozen=True)
class Yardstick:
    """The part of a verdict that needs no training images to compare with."""

    images: int  # how many were judged
    classifier_score: Score  # 1 (every image looks alike) to 10 (ten clear digits, equally often)
    digits_covered: int  # of 10
    histogram: tuple[int, ...]  # [10] images by predicted digit, however unsure
    mean_confidence: float  # mean probability of the predicted digit, 0.1 to 1
    mnist_fd: float  # Fréchet distance to the 10,000 real test images, 0 or more; less is better


@dataclasses.dataclass(frozen=True)
class Verdict(Yardstick):
    """What is known of the samples of a GAN. Distances are Euclidean, over pixels in [-1, 1]."""

    nearest_training_distance: float  # median over the samples
    held_out_training_distance: float  # the same of real images that were not trained on
    near_copies: float  # share of the samples, 0 to 1; about 0.01 for unseen real images
    near_copy_limits: tuple[float, ...]  # [10] nearer than this is a near copy, by digit
    ceiling: Yardstick  # the 10,000 real test images; their mnist_fd is that of training images
    floor: Mapping[str, Yardstick]  # images of noise, by the kind of noise

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, tuples and numbers, ready for `json.dumps`."""
        return dataclasses.asdict(self)


def judge_without_neighbours(
    classified: Classified, real_mean: Array, real_covariance: Array
) -> Yardstick:
    """The figures that follow from what the classifier says, against the real test images'."""
    probabilities = classified.probabilities
    predicted = np.bincount(probabilities.argmax(axis=1), minlength=NUM_CLASSES)
    mean, covariance = moments(classified.features)
    return Yardstick(
        images=len(probabilities),
        classifier_score=classifier_score(probabilities),
        digits_covered=digits_covered(probabilities),
        histogram=tuple(int(count) for count in predicted),
        mean_confidence=float(probabilities.max(axis=1).mean()),
        mnist_fd=frechet_distance(mean, covariance, real_mean, real_covariance),
    )


def judge(
    samples: npt.ArrayLike, training_images: npt.ArrayLike, held_out_images: npt.ArrayLike
) -> Verdict:
    """The whole verdict on a GAN's samples.

    10,000 samples are the number to use: the Fréchet distance of fewer comes out larger, and the
    ceiling and the floor were measured with as many.

    Args:
      samples: float32 [N, 28, 28, 1] in [-1, 1], N at least 2.
      training_images: float32 [T, 28, 28, 1] in [-1, 1], all that the GAN was trained on.
      held_out_images: float32 [H, 28, 28, 1] in [-1, 1], real ones that it never saw.

    Raises:
      ValueError: images of another shape, dtype or range, or not finite.
      DataError: a packaged file is missing, damaged or altered.
    """
    samples = check_images("samples", samples)
    reference = read_arrays(DATA, "reference")
    ceiling, floor = load_yardsticks()
    params = load_classifier()
    classified = classify(params, samples)
    measured = judge_without_neighbours(classified, reference["mean"], reference["covariance"])
    of_samples = nearest_neighbour_distances(samples, training_images)
    of_held_out = nearest_neighbour_distances(held_out_images, training_images)
    share, limits = near_copies(
        of_samples, classified.digits, of_held_out, classify(params, held_out_images).digits
    )
    return Verdict(
        **{field.name: getattr(measured, field.name) for field in dataclasses.fields(measured)},
        nearest_training_distance=float(np.median(of_samples)),
        held_out_training_distance=float(np.median(of_held_out)),
        near_copies=share,
        near_copy_limits=limits,
        ceiling=ceiling,
        floor=floor,
    )


def load_yardsticks(directory: Traversable = DATA) -> tuple[Yardstick, dict[str, Yardstick]]:
    """The packaged ceiling (real test images) and floor (noise, by its kind).

    Raises:
      DataError: the file that holds them is missing or is not what the tool wrote.
    """
    known = read_description(directory, "reference")
    try:
        floor = {name: _yardstick(**figures) for name, figures in known["floor"].items()}
        return _yardstick(**known["ceiling"]), floor
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(
            f"{directory / 'reference.json'} lacks the figures of ceiling and floor: "
            "reinstall ecotour-gan"
        ) from error


def _yardstick(
    classifier_score: Mapping[str, float], histogram: Sequence[int], **others: Any
) -> Yardstick:
    return Yardstick(
        classifier_score=Score(**classifier_score), histogram=tuple(histogram), **others
    )
