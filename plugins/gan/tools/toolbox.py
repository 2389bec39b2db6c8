"""Reads MNIST for the tools beside it, and writes what they made so that the bytes repeat."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import platform
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

LICENCE = (
    "CC BY-SA 3.0. Derived from the MNIST database of handwritten digits, copyright Yann LeCun "
    "and Corinna Cortes, which is itself derived from the NIST special databases 1 and 3."
)


def read_mnist(data_dir: Path, split: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The images, uint8 [N, 28, 28, 1], and labels, int64 [N], of a prepared TFDS copy.

    They come in the order of the copy's own file, which is the same for everybody.
    """
    # Imported late: TensorFlow takes seconds, and it must not take the accelerator.
    import tensorflow as tf
    import tensorflow_datasets as tfds

    tf.config.set_visible_devices([], "GPU")
    builder = tfds.builder("mnist:3.0.1", data_dir=data_dir)
    dataset = tfds.as_numpy(builder.as_dataset(split=split, batch_size=-1, shuffle_files=False))
    return dataset["image"], dataset["label"]


def to_unit_range(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Pixels of 0 to 255 as float32 in [-1, 1]."""
    return pixels.astype(np.float32) / np.float32(127.5) - np.float32(1.0)


def write_package(
    directory: Path, name: str, arrays: Mapping[str, npt.NDArray[Any]], about: Mapping[str, Any]
) -> int:
    """Writes `name.npz` and, with its checksum, `name.json`; returns the bytes of the former."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for key, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)
            # `np.savez` stamps the time of day, after which no two archives are equal.
            archive.writestr(
                zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0)),
                entry.getvalue(),
                compress_type=zipfile.ZIP_DEFLATED,
            )
    checksum = hashlib.sha256(content.getvalue()).hexdigest()
    description = {"file": f"{name}.npz", "sha256": checksum, **about, "licence": LICENCE}
    _replace(directory / f"{name}.npz", content.getvalue())
    _replace(directory / f"{name}.json", (json.dumps(description, indent=2) + "\n").encode())
    return len(content.getvalue())


def versions(*distributions: str) -> dict[str, str]:
    """The versions that took part: of Python and of the distributions named."""
    found = {name: importlib.metadata.version(name) for name in distributions}
    return {"python": platform.python_version(), **found}


def _replace(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)
