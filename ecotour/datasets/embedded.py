"""The subset of a dataset that a plugin carries in its package.

A distribution announces it in the entry-point group ``ecotour.datasets``: the entry point's name is
the dataset's, its value the package that holds ``NAME_subset.npz`` and ``NAME_subset.json``.
"""

from __future__ import annotations

import hashlib
import io
import json
from importlib import metadata, resources

import numpy as np

from ecotour.contract.demo import DataInfo, Dataset
from ecotour.errors import DataError

GROUP = "ecotour.datasets"


def read(name: str, split: str) -> Dataset:
    """Return the embedded subset of ``split``, after its checksum was compared.

    Arrays: ``image`` ``uint8 [N, 28, 28, 1]`` and ``label`` ``uint8 [N]`` for MNIST.

    Raises:
        DataError: No distribution provides it, or the file is missing, truncated or altered.
    """
    package, distribution = _provider(name)
    repair = f"reinstall {distribution}, or use --data tfds"
    try:
        folder = resources.files(package)
        about = json.loads((folder / f"{name}_subset.json").read_bytes())
        content = (folder / about["file"]).read_bytes()
        wanted = about["sha256"]
        full_examples = int(about["splits"][split]["full_examples"])
    except (ImportError, OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"the embedded {name} of {package} cannot be read ({error}): {repair}"
        ) from error
    if hashlib.sha256(content).hexdigest() != wanted:
        raise DataError(
            f"the embedded {name}, {folder / about['file']}, is truncated or altered "
            f"(its SHA-256 is not {wanted[:12]}…): {repair}"
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {key: archive[f"{split}_{key}"] for key in ("image", "label")}
    info = DataInfo(name, "embedded", split, len(arrays["label"]), full_examples)
    return Dataset(info, arrays)


def _provider(name: str) -> tuple[str, str]:
    """The package that holds the dataset, and the distribution it belongs to."""
    found = {
        entry.value: entry.dist.name if entry.dist else entry.value
        for entry in metadata.entry_points(group=GROUP, name=name)
    }
    if not found:
        raise DataError(
            f"no installed distribution carries the embedded {name}: pip install ecotour-gan"
        )
    if len(found) > 1:
        raise DataError(
            f"{' and '.join(sorted(found.values()))} both carry an embedded {name}: "
            f"uninstall all but one"
        )
    return next(iter(found.items()))
