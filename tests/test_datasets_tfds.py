"""All of MNIST with the real TensorFlow, the real tensorflow-datasets and a real copy."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ecotour import datasets
from ecotour.errors import DataError
from ecotour_gan import data as carried

STAND_IN = Path(__file__).parent / "stand_in_tfds"
BESIDE = Path(__file__).parents[2] / "shared" / "data" / "tfds"
# Counted once with np.bincount in what tensorflow-datasets decoded, without ecotour.datasets.
PER_DIGIT = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}
READ = """
import hashlib, sys
from pathlib import Path
from ecotour import datasets
data = datasets.load("mnist", "train", "tfds", Path(sys.argv[1]))
assert not {"tensorflow", "tensorflow_datasets", "jax"} & set(sys.modules)
print(data.info.examples, hashlib.sha256(data.arrays["image"].tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def copy() -> Path:
    """A tensorflow-datasets directory with all of MNIST."""
    chosen = os.environ.get("ECOTOUR_TEST_TFDS")
    home = Path(chosen) if chosen else BESIDE
    if not (home / "mnist" / "3.0.1").is_dir():
        pytest.skip(f"no mnist/3.0.1 in {home}: set ECOTOUR_TEST_TFDS to a prepared copy")
    for module in ("tensorflow", "tensorflow_datasets"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"no module {module}: pip install 'ecotour-gan[tfds]'")
    return home


@pytest.fixture(scope="module")
def warm(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A cache that four processes filled together, and what each of them said."""
    place = tmp_path_factory.mktemp("cache")
    environment = {**os.environ, "ECOTOUR_CACHE_DIR": str(place)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", READ, str(copy)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(4)
    ]
    return place, [run.communicate(timeout=600)[0] for run in runs]


@pytest.fixture
def cached(warm: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECOTOUR_CACHE_DIR", str(warm[0]))
    # From here on a decoding would fail, and so be noticed.
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    monkeypatch.setenv("STAND_IN_FAILS", "import")


def test_four_first_runs_agree(warm: tuple[Path, list[str]]) -> None:
    place, said = warm
    # Of the images alone: read with tensorflow-datasets, hashed apart from ecotour.datasets.
    wanted = "60000 59edd5ea35c0062957306cacba8ae47e71e2c56261f4ca10230aacc14943dd3b\n"
    assert said == [wanted] * 4
    assert len(list((place / "datasets").iterdir())) == 3  # train, test, the lock


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_whole_split_is_there(copy: Path, split: str) -> None:
    dataset = datasets.load("mnist", split, "auto", copy)
    assert str(dataset.info) == f"mnist {split}, full set ({sum(PER_DIGIT[split]):,} examples)"
    image, label = dataset.arrays["image"], dataset.arrays["label"]
    assert (image.dtype, image.shape) == (np.uint8, (len(label), 28, 28, 1))
    assert (label.dtype, np.bincount(label).tolist()) == (np.uint8, PER_DIGIT[split])


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize(("split", "per_digit"), [("train", 1000), ("test", 200)])
def test_the_embedded_subset_was_drawn_from_it(copy: Path, split: str, per_digit: int) -> None:
    whole = datasets.load("mnist", split, "tfds", copy).arrays
    subset = datasets.load("mnist", split, "embedded").arrays
    with np.load(Path(carried.__file__).parent / "mnist_subset.npz") as archive:
        index = archive[f"{split}_index"]
    for name in ("image", "label"):
        np.testing.assert_array_equal(subset[name], whole[name][index])
    # The rule of mnist_subset.json, once more.
    lots = [hashlib.sha256(b"0:" + image.tobytes()).hexdigest() for image in whole["image"]]
    drawn = [
        position
        for digit in range(10)
        for position in sorted(np.flatnonzero(whole["label"] == digit), key=lots.__getitem__)[
            :per_digit
        ]
    ]
    assert index.tolist() == sorted(drawn, key=lots.__getitem__)


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_a_damaged_copy_is_refused(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("ECOTOUR_CACHE_DIR", str(tmp_path / "cache"))
    place = tmp_path / "mnist" / "3.0.1"
    place.mkdir(parents=True)
    for file in (copy / "mnist" / "3.0.1").iterdir():
        shutil.copyfile(file, place / file.name)
    file = place / "mnist-train.tfrecord-00000-of-00001"
    content = bytearray(file.read_bytes())
    if damage == "truncated":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"incomplete or altered \(DataLossError") as caught:
        datasets.load("mnist", "train", "tfds", tmp_path)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "cache").rglob("mnist-*"))
