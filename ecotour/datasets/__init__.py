"""Images by name: an embedded subset of MNIST, or all of it through tensorflow-datasets.

The subset itself comes with a plugin, which announces it (`embedded`). From outside: `load` and
`resolve`. Stands on the contract and this machine.

``auto`` takes all of MNIST where a prepared copy (or what was once decoded from one) is at hand,
and else the embedded subset; it never downloads. What had to be worked around is said in a
``UserWarning``.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import get_args

from ecotour.contract.demo import Dataset, Digits
from ecotour.contract.plan import DataChoice
from ecotour.datasets import embedded
from ecotour.errors import DataError, UnknownNameError

NAMES = ("mnist",)
SPLITS = ("train", "test")


def load(
    name: str = "mnist",
    split: str = "train",
    source: DataChoice = "auto",
    data_dir: Path | None = None,
) -> Dataset:
    """Return a dataset, which is the same to the last bit wherever it comes from.

    Arrays: ``image`` ``uint8 [N, 28, 28, 1]``, 0 the background and 255 full ink, and ``label``
    ``uint8 [N]``. The images are MNIST's, by LeCun, Cortes and Burges.

    Args:
        name: ``mnist``.
        split: ``train`` or ``test``.
        source: ``embedded`` (10,000 or 2,000 examples), ``tfds`` (60,000 or 10,000; downloaded
            where missing), or ``auto``: whichever is at hand.
        data_dir: Where tensorflow-datasets keeps its copies, instead of its default directory.
            Where it is given, no other place is searched.

    Raises:
        UnknownNameError: No such name, split or source.
        DataError: The data is missing, incomplete or altered, or cannot be downloaded.
    """
    for kind, value, known in (
        ("dataset", name, NAMES),
        ("split", split, SPLITS),
        ("data source", source, get_args(DataChoice)),
    ):
        if value not in known:
            raise UnknownNameError(kind, value, known)
    if data_dir is not None and not data_dir.is_dir():
        raise DataError(f"--data-dir {data_dir} is no directory: name one that exists")
    dataset = None
    if source != "embedded":
        dataset = _full(split, data_dir, wanted=source == "tfds")
    return dataset or embedded.read(name, split)


def resolve(source: Digits | Dataset, choice: DataChoice, data_dir: Path | None) -> Dataset:
    """Return what a program asked for, from where the user chose; a `Dataset` is returned as is.

    Raises:
        DataError: As `load` does.
    """
    if isinstance(source, Dataset):
        return source
    return load("mnist", source.split, choice, data_dir)


def _full(split: str, data_dir: Path | None, *, wanted: bool) -> Dataset | None:
    """All of MNIST; ``None``, and a word why, where it may be the subset instead."""
    from ecotour.datasets import full

    try:
        dataset = full.read(split, data_dir, prepare=wanted)
    except DataError as error:
        # A damaged copy that somebody named is refused; one that merely lies about is passed by.
        passable = data_dir is None or isinstance(error, full.TensorFlowMissingError)
        if wanted or not passable:
            raise
        warnings.warn(f"embedded subset used: {error}", stacklevel=3)
        return None
    if dataset is None and data_dir is not None:
        warnings.warn(
            f"embedded subset used: no prepared MNIST in --data-dir {data_dir}", stacklevel=3
        )
    return dataset
