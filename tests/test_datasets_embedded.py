"""The embedded subset: what it holds, and that a damaged one is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import numpy as np
import pytest

import ecotour_gan.data
from ecotour import DataInfo, Dataset, Digits, datasets
from ecotour.datasets import embedded
from ecotour.errors import DataError, UnknownNameError

FOLDER = Path(ecotour_gan.data.__file__).parent
ABOUT = json.loads((FOLDER / "mnist_subset.json").read_text())


@pytest.mark.parametrize(
    ("split", "per_digit", "full"), [("train", 1000, 60000), ("test", 200, 10000)]
)
def test_each_digit_is_there_equally_often(split: str, per_digit: int, full: int) -> None:
    dataset = datasets.load("mnist", split, "embedded")
    image, label = dataset.arrays["image"], dataset.arrays["label"]
    assert dataset.info == DataInfo("mnist", "embedded", split, 10 * per_digit, full)
    assert (image.dtype, image.shape) == (np.uint8, (10 * per_digit, 28, 28, 1))
    assert (label.dtype, label.shape) == (np.uint8, (10 * per_digit,))
    assert np.bincount(label).tolist() == [per_digit] * 10
    assert len(np.unique(image.reshape(len(image), -1), axis=0)) == len(image)
    # Any stretch of it is mixed, for those who take the first few: chance alone gives 30 ± 17 here.
    assert np.all(np.bincount(label[:300], minlength=10) >= 13)


def test_the_description_fits_the_file() -> None:
    content = (FOLDER / ABOUT["file"]).read_bytes()
    assert len(content) <= 2_600_000
    assert hashlib.sha256(content).hexdigest() == ABOUT["sha256"]
    assert ABOUT["licence"].startswith("CC BY-SA 3.0")
    assert ABOUT["provenance"]["authors"] == [
        "Yann LeCun",
        "Corinna Cortes",
        "Christopher J. C. Burges",
    ]
    with np.load(FOLDER / ABOUT["file"], allow_pickle=False) as archive:
        assert set(archive) == set(ABOUT["arrays"])
        for name, said in ABOUT["arrays"].items():
            array = archive[name]
            assert (str(array.dtype), list(array.shape)) == (said["dtype"], said["shape"])
            assert hashlib.sha256(array.tobytes()).hexdigest() == said["sha256"]


def test_no_image_is_in_both_splits() -> None:
    train, test = (
        {image.tobytes() for image in datasets.load("mnist", split, "embedded").arrays["image"]}
        for split in ("train", "test")
    )
    assert not train & test


def _truncate(content: bytes) -> bytes:
    return content[:-1000]


def _alter(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [_truncate, _alter, lambda content: b""])
def test_a_damaged_file_is_refused(damage, tmp_path: Path, monkeypatch) -> None:
    package = _carry(tmp_path, monkeypatch)
    archive = package / "mnist_subset.npz"
    assert datasets.load("mnist", "train", "embedded").info.examples == 10_000
    archive.write_bytes(damage(archive.read_bytes()))
    for source in ("embedded", "auto"):
        with pytest.raises(DataError, match="truncated or altered") as caught:
            datasets.load("mnist", "train", source)
        assert str(archive) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["mnist_subset.npz", "mnist_subset.json", "__init__.py"])
def test_a_missing_file_is_named(missing: str, tmp_path: Path, monkeypatch) -> None:
    package = _carry(tmp_path, monkeypatch)
    if missing == "__init__.py":
        shutil.rmtree(package)
        missing = "carried_digits"
    else:
        (package / missing).unlink()
    with pytest.raises(DataError, match=f"cannot be read.*{missing}.*reinstall"):
        datasets.load("mnist", "train", "embedded")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"file": "mnist_subset.npz", "sha256": 1}'])
def test_a_damaged_description_is_refused(content: str, tmp_path: Path, monkeypatch) -> None:
    package = _carry(tmp_path, monkeypatch)
    (package / "mnist_subset.json").write_text(content)
    with pytest.raises(DataError, match="cannot be read"):
        datasets.load("mnist", "train", "embedded")


def test_without_a_provider_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(embedded, "GROUP", "ecotour.no_such_group")
    with pytest.raises(DataError, match="pip install ecotour-gan"):
        datasets.load("mnist", "train", "embedded")


def test_two_providers_are_both_named(tmp_path: Path, monkeypatch) -> None:
    about = tmp_path / "rival_digits-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rival-digits\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ecotour.datasets]\nmnist = rival_digits\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match="ecotour-gan and rival-digits"):
        datasets.load("mnist", "train", "embedded")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("mnits", "train", "embedded"), "mnist"),
        (("mnist", "tset", "embedded"), "test"),
        (("mnist", "train", "embeded"), "embedded"),
    ],
)
def test_a_mistyped_name_gets_the_nearest(arguments, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean {hint}"):
        datasets.load(*arguments)


def test_a_program_gets_what_it_asked_for() -> None:
    digits = datasets.resolve(Digits("test"), "embedded", None)
    assert digits.info.split == "test"
    own = Dataset(DataInfo("points", "synthetic", "train", 1), {"x": np.zeros((1, 2))})
    assert datasets.resolve(own, "tfds", Path("no such directory")) is own


def test_reading_imports_neither_jax_nor_tensorflow() -> None:
    script = (
        "import sys; from ecotour import datasets; datasets.load(source='embedded');"
        "print([m for m in ('jax', 'tensorflow', 'haiku', 'ecotour_gan.demo') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def _carry(tmp_path: Path, monkeypatch) -> Path:
    """A package with a copy of the subset, announced instead of the real one."""
    package = tmp_path / "carried_digits"
    package.mkdir()
    for file in resources.files("ecotour_gan.data").iterdir():
        if file.name.startswith("mnist_subset") or file.name == "__init__.py":
            (package / file.name).write_bytes(file.read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ECOTOUR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "none"))
    monkeypatch.delitem(sys.modules, "carried_digits", raising=False)
    entry = metadata.EntryPoint("mnist", "carried_digits", embedded.GROUP)
    monkeypatch.setattr(embedded.metadata, "entry_points", lambda **_: [entry])
    return package
