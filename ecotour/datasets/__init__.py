"""Images by name: an embedded subset, or the whole set through tensorflow-datasets."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ecotour.datasets import embedded
from ecotour.demo import Dataset, Digits
from ecotour.errors import DataError, UnknownNameError
from ecotour.plan import DataChoice

NAMES = ("mnist",)
SPLITS = ("train", "test")


def load(
    name: str = "mnist",
    split: str = "train",
    source: DataChoice = "auto",
    data_dir: Path | None = None,
) -> Dataset:
    """Return a dataset: ``image`` ``uint8 [N, 28, 28, 1]`` and ``label`` ``uint8 [N]``."""
    for kind, value, known in (
        ("dataset", name, NAMES),
        ("split", split, SPLITS),
        ("data source", source, get_args(DataChoice)),
    ):
        if value not in known:
            raise UnknownNameError(kind, value, known)
    if source == "tfds":
        raise DataError("--data tfds is not built yet")
    return embedded.read(name, split)


def resolve(source: Digits | Dataset, choice: DataChoice, data_dir: Path | None) -> Dataset:
    """Return what a program asked for, from where the user chose."""
    if isinstance(source, Dataset):
        return source
    return load("mnist", source.split, choice, data_dir)
