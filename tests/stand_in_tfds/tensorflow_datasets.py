"""Stands in for tensorflow-datasets: a copy is one ``.npz`` a split."""

import os
import shutil
from pathlib import Path

import numpy as np


class builder:
    def __init__(self, spec: str, data_dir: str) -> None:
        self.copy = Path(data_dir) / spec.replace(":", "/")

    def download_and_prepare(self) -> None:
        shutil.copytree(os.environ["STAND_IN_DOWNLOAD"], self.copy)

    def as_dataset(self, split: str, batch_size: int, shuffle_files: bool) -> dict[str, np.ndarray]:
        assert batch_size == -1
        assert not shuffle_files
        with np.load(self.copy / f"mnist-{split}.npz") as archive:
            return dict(archive)


def as_numpy(dataset: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return dataset
