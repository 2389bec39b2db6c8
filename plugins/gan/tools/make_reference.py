"""Packages what a verdict is compared with: real images (the ceiling) and noise (the floor).

    python plugins/gan/tools/make_reference.py --data-dir DIR

DIR is a tensorflow-datasets directory in which MNIST was prepared. Run it after
`train_classifier.py`, since other weights see other features. `ecotour_gan/data/reference.npz`
gets the mean and covariance of the features of the 10,000 real test images, and `reference.json`
the figures of the ceiling and the floor, 10,000 images each.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import cyclopts
import numpy as np
from toolbox import read_mnist, to_unit_range, versions, write_package

from ecotour_gan import classifier, verdict

DATA = Path(classifier.__file__).parent / "data"
COUNT = 10_000


def noise(seed: int) -> dict[str, np.ndarray]:
    """Images in which there is nothing to see, float32 [10000, 28, 28, 1] in [-1, 1]."""
    random = np.random.default_rng(seed)
    shape = (COUNT, *classifier.IMAGE_SHAPE)
    return {
        "uniform noise": random.uniform(-1.0, 1.0, shape).astype(np.float32),
        "normal noise": np.clip(random.standard_normal(shape), -1.0, 1.0).astype(np.float32),
    }


def main(data_dir: Path, seed: int = 0, out: Path = DATA) -> None:
    """Measures and stores the reference.

    Args:
      data_dir: a tensorflow-datasets directory in which MNIST was prepared.
      seed: fixes the noise.
      out: where the classifier is read from and the two files are written.
    """
    params = classifier.load_classifier(out)
    test = classifier.classify(params, to_unit_range(read_mnist(data_dir, "test")[0]))
    train = classifier.classify(params, to_unit_range(read_mnist(data_dir, "train")[0][:COUNT]))
    mean, covariance = verdict.moments(test.features)

    # The test images have no distance to themselves, so the ceiling takes that of training images.
    ceiling = dataclasses.replace(
        verdict.judge_without_neighbours(test, mean, covariance),
        mnist_fd=verdict.judge_without_neighbours(train, mean, covariance).mnist_fd,
    )
    floor = {
        name: verdict.judge_without_neighbours(
            classifier.classify(params, images), mean, covariance
        )
        for name, images in noise(seed).items()
    }
    about = {
        "what": "mean [64] and covariance [64, 64] of the features of the 10,000 real test images",
        "classifier_sha256": classifier.read_description(out, "classifier")["sha256"],
        "made": {
            "by": "plugins/gan/tools/make_reference.py",
            "data": "MNIST 3.0.1 of tensorflow-datasets",
            "ceiling": "the 10,000 test images; mnist_fd: the first 10,000 training images",
            "floor": "NumPy's noise, normal noise clipped to [-1, 1]",
            "seed": seed,
        },
        "ceiling": dataclasses.asdict(ceiling),
        "floor": {name: dataclasses.asdict(figures) for name, figures in floor.items()},
        "versions": versions("jax", "dm-haiku", "numpy", "tensorflow-datasets"),
    }
    write_package(out, "reference", {"mean": mean, "covariance": covariance}, about)
    for name, figures in {"ceiling": ceiling, **floor}.items():
        print(f"{name}: {figures}")


if __name__ == "__main__":
    cyclopts.run(main)
