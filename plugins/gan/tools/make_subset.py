"""Packages a class-balanced subset of real MNIST, so that the first run needs no download.

    python plugins/gan/tools/make_subset.py --data-dir DIR

DIR is a tensorflow-datasets directory in which MNIST was prepared. `ecotour_gan/data/` gets
`mnist_subset.npz` (1,000 training and 200 test images of each digit) and `mnist_subset.json`
(checksums, provenance, licence). The same seed gives the same bytes.

Which images are taken depends on their pixels and the seed alone, not on the order of the copy nor
on anybody's random generator: whoever has MNIST in whatever form can draw the same subset.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import cyclopts
import numpy as np
import numpy.typing as npt
from toolbox import read_mnist, versions, write_package

import ecotour_gan

DATA = Path(ecotour_gan.__file__).parent / "data"
PER_DIGIT = {"train": 1_000, "test": 200}
ORIGINALS = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c629615203637",
}


def draw(
    images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], per_digit: int, seed: int
) -> npt.NDArray[np.uint16]:
    """Positions of the images drawn, in the order they are drawn, uint16 [10 * per_digit].

    Every image gets the lot SHA-256(seed, pixels), and of each digit those with the lowest lots
    are taken. Sorted by lot, the digits come well mixed.
    """
    prefix = f"{seed}:".encode()
    lots = [hashlib.sha256(prefix + image.tobytes()).digest() for image in images]
    by_lot = np.array(sorted(range(len(lots)), key=lots.__getitem__))
    taken = [by_lot[labels[by_lot] == digit][:per_digit] for digit in range(10)]
    if min(map(len, taken)) < per_digit:
        raise SystemExit(f"this copy holds fewer than {per_digit} images of some digit")
    return by_lot[np.isin(by_lot, np.concatenate(taken))].astype(np.uint16)


def main(data_dir: Path, seed: int = 0, out: Path = DATA) -> None:
    """Draws and stores the subset.

    Args:
      data_dir: a tensorflow-datasets directory in which MNIST was prepared.
      seed: which of the many possible subsets.
      out: where the two files are written.
    """
    arrays: dict[str, npt.NDArray[np.uint8] | npt.NDArray[np.uint16]] = {}
    splits = {}
    for split, per_digit in PER_DIGIT.items():
        images, labels = read_mnist(data_dir, split)
        index = draw(images, labels, per_digit, seed)
        arrays[f"{split}_image"] = images[index]
        arrays[f"{split}_label"] = labels[index].astype(np.uint8)
        arrays[f"{split}_index"] = index
        splits[split] = {
            "examples": len(index),
            "per_digit": per_digit,
            "full_examples": len(images),
        }
    about = {
        "what": "class-balanced subset of MNIST; of each split: image uint8 [N, 28, 28, 1], "
        "label uint8 [N], index uint16 [N], the position in the copy it was drawn from",
        "splits": splits,
        "arrays": {
            name: {
                "dtype": str(array.dtype),
                "shape": array.shape,
                "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
            }
            for name, array in arrays.items()
        },
        "made": {
            "by": "plugins/gan/tools/make_subset.py",
            "seed": seed,
            "drawn": "an image's lot is the SHA-256 of the seed in decimal, a colon and its 784 "
            "pixels; of each digit those with the lowest lots are taken, all sorted by lot",
        },
        "provenance": {
            "dataset": "MNIST database of handwritten digits",
            "authors": ["Yann LeCun", "Corinna Cortes", "Christopher J. C. Burges"],
            "copy": "MNIST 3.0.1 of tensorflow-datasets, in the order of its files",
            "md5_of_the_original_files": ORIGINALS,
        },
        "versions": versions("numpy", "tensorflow-datasets"),
    }
    size = write_package(out, "mnist_subset", arrays, about)
    print(f"mnist_subset.npz: {size:,} bytes")


if __name__ == "__main__":
    cyclopts.run(main)
