"""All of MNIST, through tensorflow-datasets, decoded once into our cache.

What MNIST decodes to is known to the bit (`CONTENT`), so nothing else is ever returned: a copy that
is truncated or altered is refused. The cache is keyed by the bytes of the copy it came from, so it
does not hide a copy that was altered since.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ecotour.contract.demo import DataInfo, Dataset
from ecotour.datasets import cache, decode
from ecotour.errors import DataError

# From one copy of mnist 3.0.1 that tensorflow-datasets 4.9.10 prepared, in the order of its
# files. According to its preparer the original files of LeCun, Cortes and Burges went in (MD5 of
# train-images-idx3-ubyte: 6bbc9ace898e44ae57da46a324031adb, of t10k-images-idx3-ubyte:
# 2646ac647ad5339dbf082846283269ea).
CONTENT = {
    "train": cache.Content(
        60_000, "6d82d9f18df5f5fee79d159b3563eb6adcbd1abce0c4bdf9a7010078c6e75062"
    ),
    "test": cache.Content(
        10_000, "bf70cada31279c1e952492c5ac496fe89dae2242110d9e77827607cd9b2e825f"
    ),
}
# Where tensorflow-datasets downloads MNIST from. Asked first whether it answers, because
# tensorflow-datasets itself goes on trying for minutes.
ORIGIN = "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz"
PATIENCE_S = 8.0
INSTALL = "pip install 'ecotour-gan[tfds]'"

Arrays = dict[str, npt.NDArray[np.uint8]]


class TensorFlowMissingError(DataError):
    """There is a copy, or could be one, but nothing to decode it with."""


def default_dir() -> Path:
    """Return the directory that tensorflow-datasets uses unless told otherwise."""
    chosen = os.environ.get("TFDS_DATA_DIR") or os.path.join("~", "tensorflow_datasets")  # noqa: PTH118
    # Unlike `Path.expanduser` this never fails, not even for a user without a home.
    return Path(os.path.expanduser(chosen))  # noqa: PTH111


def read(split: str, data_dir: Path | None, *, prepare: bool) -> Dataset | None:
    """Return all of ``split``: ``image`` ``uint8 [N, 28, 28, 1]``, ``label`` ``uint8 [N]``.

    Looked for in ``data_dir``; without one, in tensorflow-datasets' default directory and then in
    our cache. Where there is no copy, one is downloaded, or without ``prepare`` there is ``None``.

    Raises:
        TensorFlowMissingError: A copy must be decoded and TensorFlow cannot be imported.
        DataError: The copy is incomplete or altered, or cannot be downloaded.
    """
    home = data_dir or default_dir()
    copy = home / "mnist" / decode.VERSION
    shelf = cache.directory()
    arrays: Arrays | None = None
    if copy.is_dir():
        arrays = _cached(shelf, copy, split, warn=True)
    elif data_dir is None:
        arrays = _cached(shelf, None, split, warn=True)
    if arrays is None:
        if not copy.is_dir() and not prepare:
            return None
        _require_tensorflow()
        if not copy.is_dir():
            _require_network(home, shelf)
        arrays = _decoded(shelf, home, copy, split)
    return Dataset(DataInfo("mnist", "tfds", split, CONTENT[split].examples), arrays)


def _cached(shelf: Path, copy: Path | None, split: str, *, warn: bool) -> Arrays | None:
    """What was decoded from this copy (without one: from any) in an earlier run."""
    origin = _fingerprint(copy) if copy else "*"
    for path in sorted(shelf.glob(f"mnist-{decode.VERSION}-{origin}-{split}")):
        try:
            return CONTENT[split].read(path)
        except (OSError, ValueError) as error:
            if warn:
                warnings.warn(f"damaged cache, not used: {path} ({error})", stacklevel=2)
    return None


def _decoded(shelf: Path, home: Path, copy: Path, split: str) -> Arrays:
    with cache.workshop(shelf) as (work, kept):
        if copy.is_dir():
            # Another process may have been here while this one waited.
            arrays = _cached(shelf, copy, split, warn=False)
            if arrays is not None:
                return arrays
        before = _fingerprint(copy) if copy.is_dir() else None
        _run_decoder(home, copy, work, prepare=before is None)
        try:
            found = {name: content.read(work / name) for name, content in CONTENT.items()}
        except (OSError, ValueError) as error:
            raise _altered(copy, f"it decodes to {error}") from error
        origin = _fingerprint(copy)
        if kept and before in (None, origin):
            for name in found:
                (work / name).replace(shelf / f"mnist-{decode.VERSION}-{origin}-{name}")
        return found[split]


def _fingerprint(copy: Path) -> str:
    """16 hexadecimal digits that change with every byte of the copy's files (23 MB: 20 ms)."""
    digest = hashlib.sha256()
    try:
        if not (copy / "dataset_info.json").is_file():
            raise _altered(copy, "dataset_info.json is missing")
        for path in sorted(path for path in copy.iterdir() if path.is_file()):
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise DataError(f"the MNIST copy in {copy} cannot be read: {error}") from error
    return digest.hexdigest()[:16]


def _run_decoder(home: Path, copy: Path, work: Path, *, prepare: bool) -> None:
    # -P and a path, not -m: a file of the user's working directory must not shadow a library.
    command = [sys.executable, "-P", decode.__file__, str(home), str(work)]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "NO_GCE_CHECK": "true"}
    done = subprocess.run(
        command + ["--prepare"] * prepare,
        env={**os.environ, **quiet},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode == 0:
        return
    if done.returncode == -signal.SIGINT:
        # Ctrl-C reaches both processes, and this one may have a handler that only notes it.
        raise KeyboardInterrupt
    told = work / "reason"
    if done.returncode not in (decode.NO_TENSORFLOW, decode.FAILED) or not told.exists():
        raise DataError(f"decoding MNIST ended with exit status {done.returncode}; {_supply()}")
    reason = told.read_text("utf-8")
    if done.returncode == decode.NO_TENSORFLOW:
        raise _missing(reason)
    if prepare:
        raise DataError(f"MNIST cannot be downloaded and prepared in {home}: {reason}; {_supply()}")
    raise _altered(copy, reason)


def _require_tensorflow() -> None:
    for module in ("tensorflow", "tensorflow_datasets", "importlib_resources"):
        if importlib.util.find_spec(module) is None:
            raise _missing(f"no module {module}")


def _require_network(home: Path, shelf: Path) -> None:
    """Find out soon whether a download can succeed at all."""
    import requests  # what tensorflow-datasets downloads with, and installs

    said = [f"no answer in {PATIENCE_S:g} s"]

    def ask() -> None:
        try:
            requests.head(ORIGIN, timeout=PATIENCE_S)
            said[0] = ""
        except (OSError, ValueError) as error:  # all that requests and urllib3 raise are these
            said[0] = type(error).__name__

    # A thread, because no timeout ends the look-up of a name.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    if said[0]:
        raise DataError(
            f"no prepared MNIST (mnist/{decode.VERSION}) in {home}, none in the cache {shelf}, and "
            f"its download does not answer ({said[0]}); {_supply()}"
        )


def _missing(reason: str) -> TensorFlowMissingError:
    return TensorFlowMissingError(
        f"all of MNIST needs TensorFlow and tensorflow-datasets ({reason}): {INSTALL}"
    )


def _altered(copy: Path, reason: str) -> DataError:
    return DataError(
        f"the MNIST copy in {copy} is incomplete or altered ({reason}): delete that directory to "
        f"have it prepared anew, or use --data embedded"
    )


def _supply() -> str:
    return (
        "name a directory where tensorflow-datasets prepared MNIST with --data-dir DIR, "
        "or use --data embedded"
    )
