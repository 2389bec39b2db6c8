"""The verdict on a GAN's samples, as a reader sees it: pictures, a table, a sentence."""

from __future__ import annotations

import numpy as np

from ecotour import exhibits
from ecotour_gan.verdict import Verdict, Yardstick


def show(samples: np.ndarray, found: Verdict) -> dict[str, exhibits.Exhibit]:
    """Make the exhibits of the verdict.

    Args:
        samples: ``float32 [N, 28, 28, 1]`` in [-1, 1], the judged ones; the first 100 are shown,
            as they come: none is picked.
        found: What the judge measured on them.
    """
    table = exhibits.Table(
        columns=("judged images", "classifier score", "digits covered", "MNIST-FD", "near copies"),
        rows=[
            _row("drawn by the generator", found, f"{100 * found.near_copies:.1f} %"),
            _row("real, unseen (ceiling)", found.ceiling, "1.0 %"),
            *(_row(f"{kind} (floor)", floor, "0 %") for kind, floor in found.floor.items()),
        ],
        caption=(
            "The generator between real digits and noise. The classifier score runs from 1 to 10; "
            "MNIST-FD is 0 for the distribution of the real test images; a near copy lies nearer "
            "to a training image than 99 % of unseen real digits do."
        ),
    )
    histogram = exhibits.Bars(
        names=[str(digit) for digit in range(10)],
        values=np.asarray(found.histogram) / found.images,
        caption=f"Which digit the classifier sees in each of {found.images:,} drawn images.",
        y_label="share of the images",
        guides={"equal shares": 0.1},
    )
    grid = exhibits.Images(
        samples[:100] / 2 + 0.5, "The first 100 of the judged images, none picked.", columns=10
    )
    return {"verdict": table, "digits": histogram, "judged samples": grid}


def summarise(found: Verdict) -> str:
    """Say in one sentence what was drawn."""
    score, real_score = found.classifier_score.value, found.ceiling.classifier_score.value
    return (
        f"{found.digits_covered} of 10 digits drawn; classifier score {score:.2f} (real digits "
        f"{real_score:.2f}), MNIST-FD {found.mnist_fd:.1f} (real digits "
        f"{found.ceiling.mnist_fd:.1f}); median "
        f"distance to the nearest training image {found.nearest_training_distance:.2f} "
        f"(unseen real digits {found.held_out_training_distance:.2f})."
    )


def _row(name: str, judged: Yardstick, copies: str) -> tuple[str | float | int, ...]:
    score = judged.classifier_score.value
    return (name, round(score, 2), judged.digits_covered, round(judged.mnist_fd, 1), copies)
