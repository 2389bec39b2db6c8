"""All of MNIST: choosing the copy, decoding it once, and never using a damaged one.

TensorFlow and tensorflow-datasets are played by ``stand_in_tfds`` and MNIST by 40 random images;
`test_datasets_tfds` goes the same ways with the real ones.
"""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import runs

from ecotour import datasets
from ecotour.datasets import cache, full
from ecotour.errors import DataError

STAND_IN = Path(__file__).parent / "stand_in_tfds"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with the stand-ins, no cache, no default copy, no network, one copy to name."""
    tiny: dict[str, cache.Content] = {}
    copy = tmp_path / "data" / "mnist" / "3.0.1"
    copy.mkdir(parents=True)
    (copy / "dataset_info.json").write_text("{}")
    random = np.random.default_rng(0)
    for split, examples in (("train", 28), ("test", 10)):
        image = random.integers(0, 256, (examples, 28, 28, 1), np.uint8)
        label = random.integers(0, 10, examples)
        np.savez(copy / f"mnist-{split}.npz", image=image, label=label)
        content = image.tobytes() + label.astype(np.uint8).tobytes()
        tiny[split] = cache.Content(examples, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(full, "CONTENT", tiny)
    monkeypatch.syspath_prepend(STAND_IN)
    for name, value in {
        "PYTHONPATH": str(STAND_IN),
        "ECOTOUR_CACHE_DIR": str(tmp_path / "cache"),
        "TFDS_DATA_DIR": str(tmp_path / "default"),
        "STAND_IN_LOG": str(tmp_path / "log"),
        "STAND_IN_DOWNLOAD": str(copy),
        "HTTPS_PROXY": "http://127.0.0.1:9",  # where nobody listens
        "NO_PROXY": "",
    }.items():
        monkeypatch.setenv(name, value)
        monkeypatch.delenv(name.lower(), raising=False)
    return tmp_path


def decodings(place: Path) -> int:
    log = place / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def expected(place: Path, split: str = "train") -> np.ndarray:
    with np.load(place / "data" / "mnist" / "3.0.1" / f"mnist-{split}.npz") as archive:
        return archive["image"]


def test_it_is_decoded_once_and_quietly(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for split in ("train", "test", "train"):
        dataset = datasets.load("mnist", split, "tfds", place / "data")
        assert (dataset.info.source, dataset.info.split) == ("tfds", split)
        assert dataset.info.examples == len(dataset.arrays["label"])
        np.testing.assert_array_equal(dataset.arrays["image"], expected(place, split))
    # Once, with no GPU: neither by its own setting nor by CUDA's.
    assert (place / "log").read_text() == "GPU [] -1\n"
    assert capfd.readouterr() == ("", "")


def test_four_first_runs_decode_once(place: Path) -> None:
    script = (
        "import sys, hashlib; from pathlib import Path; from ecotour.datasets import cache, full\n"
        "full.CONTENT = {'train': cache.Content(28, sys.argv[2]),"
        " 'test': cache.Content(10, sys.argv[3])}\n"
        "data = full.read('train', Path(sys.argv[1]), prepare=True)\n"
        "print(hashlib.sha256(data.arrays['image'].tobytes()).hexdigest())"
    )
    sums = [full.CONTENT[split].sha256 for split in ("train", "test")]
    command = [sys.executable, "-W", "error", "-c", script, str(place / "data"), *sums]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [run.communicate(timeout=120) for run in runs]
    wanted = hashlib.sha256(expected(place).tobytes()).hexdigest()
    assert said == [(f"{wanted}\n", "")] * 4
    assert decodings(place) == 1
    left = {path.name.rpartition("-")[2] for path in (place / "cache" / "datasets").iterdir()}
    assert left - {"decode.lock"} == {"train", "test"}


@pytest.mark.parametrize("damage", ["truncated", "altered", "empty"])
def test_a_damaged_cache_is_rebuilt_with_a_warning(place: Path, damage: str) -> None:
    datasets.load("mnist", "train", "tfds", place / "data")
    (cached,) = (place / "cache" / "datasets").glob("mnist-*-train")
    content = cached.read_bytes()
    flipped = content[:5000] + bytes([content[5000] ^ 1]) + content[5001:]
    cached.write_bytes({"truncated": content[:-1], "altered": flipped, "empty": b""}[damage])
    with pytest.warns(UserWarning, match="damaged cache, not used") as said:
        dataset = datasets.load("mnist", "train", "tfds", place / "data")
    assert len(said) == 1
    np.testing.assert_array_equal(dataset.arrays["image"], expected(place))
    assert decodings(place) == 2
    assert cached.read_bytes() == content


def test_it_works_where_there_can_be_no_cache(place: Path, monkeypatch) -> None:
    (place / "file").write_text("in the way")
    monkeypatch.setenv("ECOTOUR_CACHE_DIR", str(place / "file" / "cache"))
    for count in (1, 2):
        with pytest.warns(UserWarning, match=r"no cache in .*ECOTOUR_CACHE_DIR") as said:
            dataset = datasets.load("mnist", "train", "tfds", place / "data")
        assert len(said) == 1
        np.testing.assert_array_equal(dataset.arrays["image"], expected(place))
        assert decodings(place) == count


DIGITS = """
import dataclasses, ecotour, jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class Config:
    pass

def step(state, batch, key):
    return state + batch["image"].sum(dtype=jnp.uint32), {{"ink": state}}

@ecotour.hookimpl
def ecotour_demo():
    made = ecotour.Step(lambda key, batch: jnp.uint32(0), step, 7)
    judge = lambda outcome: ecotour.Verdict(
        [ecotour.Check.equals("ink", int(outcome.states["add"]), {ink})]
    )
    data = {{"train": ecotour.Digits(), "test": ecotour.Digits("test")}}
    build = lambda config: ecotour.Program({{"add": made}}, judge, data, 4)
    return ecotour.Demo("Adds up the ink of each digit once.", Config, build)
"""
RUN = """
import sys
from ecotour import cli
from ecotour.datasets import cache, full
full.CONTENT = {"train": cache.Content(28, sys.argv[1]), "test": cache.Content(10, sys.argv[2])}
sys.exit(cli.main(sys.argv[3:]))
"""


@pytest.mark.parametrize("with_cache", [True, False], ids=["cache", "no cache"])
def test_a_run_reads_a_copy_that_cannot_be_written(place: Path, with_cache: bool) -> None:
    copy, cached = place / "data" / "mnist" / "3.0.1", place / "cache"
    cached.mkdir()
    (place / "digits.py").write_text(DIGITS.format(ink=int(expected(place).sum())))
    sums = [full.CONTENT[split].sha256 for split in ("train", "test")]
    words = ["run", str(place / "digits.py"), "--data", "tfds", "--data-dir", str(place / "data")]
    before = runs.tree(copy)
    with runs.read_only(place / "data", *[] if with_cache else [cached]):
        for number in (1, 2):
            done = subprocess.run(
                [*runs.bound_by_permissions(), sys.executable, "-c", RUN, *sums, *words,
                 "--strict", "--quiet", "--out", str(place / f"run-{number}")],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            said = done.stderr.splitlines()
            if with_cache:
                assert said == []
                assert decodings(place) == 1
            else:  # one line on the data and one on compiled programs
                assert [line.partition(" in ")[0] for line in said] == [
                    "warning: compiled programs cannot be kept",
                    "warning: no cache",
                ]
            record = runs.record(place / f"run-{number}")
            assert record["datasets"]["train"]["source"] == "tfds"
    assert runs.tree(copy) == before


def test_the_cache_does_not_hide_what_became_of_the_copy(place: Path) -> None:
    datasets.load("mnist", "train", "tfds", place / "data")
    file = place / "data" / "mnist" / "3.0.1" / "mnist-train.npz"
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    with np.load(file) as archive:
        arrays = dict(archive)
    arrays["label"][3] = (arrays["label"][3] + 1) % 10
    np.savez(file, **arrays)
    os.utime(file, ns=times)  # of the same size and age as before
    for source in ("tfds", "auto"):
        with pytest.raises(DataError, match=r"incomplete or altered \(it decodes to SHA-256") as no:
            datasets.load("mnist", "train", source, place / "data")
        assert str(file.parent) in str(no.value)
    assert len(list((place / "cache" / "datasets").glob("mnist-*"))) == 2


def test_a_copy_with_too_few_examples_is_refused(place: Path) -> None:
    file = place / "data" / "mnist" / "3.0.1" / "mnist-test.npz"
    with np.load(file) as archive:
        np.savez(file, **{name: array[:9] for name, array in archive.items()})
    with pytest.raises(DataError, match="it decodes to 7,065 bytes instead of 7,850"):
        datasets.load("mnist", "train", "tfds", place / "data")


@pytest.mark.parametrize(
    ("missing", "reason"),
    [("dataset_info.json", "dataset_info.json is missing"), ("mnist-train.npz", "FileNotFound")],
)
def test_an_incomplete_copy_is_refused(place: Path, missing: str, reason: str) -> None:
    (place / "data" / "mnist" / "3.0.1" / missing).unlink()
    for source in ("tfds", "auto"):
        with pytest.raises(DataError, match=rf"incomplete or altered \({reason}.*delete that"):
            datasets.load("mnist", "train", source, place / "data")


def test_auto_takes_the_default_copy_and_later_the_cache(place: Path) -> None:
    assert datasets.load("mnist", "train", "auto").info.source == "embedded"
    shutil.copytree(place / "data", place / "default")
    assert datasets.load("mnist", "train", "auto").info.source == "tfds"
    shutil.rmtree(place / "default")
    for source in ("auto", "tfds"):
        assert datasets.load("mnist", "train", source).info.source == "tfds"
    assert decodings(place) == 1


def test_auto_passes_by_a_damaged_default_copy_and_says_so(place: Path) -> None:
    (place / "default" / "mnist" / "3.0.1").mkdir(parents=True)
    with pytest.warns(UserWarning, match="embedded subset used: .*incomplete or altered"):
        assert datasets.load("mnist", "train", "auto").info.source == "embedded"
    with pytest.raises(DataError, match="incomplete or altered"):
        datasets.load("mnist", "train", "tfds")


def test_auto_says_when_the_named_directory_has_no_copy(place: Path) -> None:
    with pytest.warns(UserWarning, match=f"no prepared MNIST in --data-dir {place}"):
        assert datasets.load("mnist", "train", "auto", place).info.source == "embedded"


@pytest.mark.parametrize("source", ["auto", "embedded", "tfds"])
def test_a_directory_that_does_not_exist_is_an_error(place: Path, source) -> None:
    with pytest.raises(DataError, match="nowhere is no directory"):
        datasets.load("mnist", "train", source, place / "nowhere")


@pytest.mark.parametrize("how", ["import", "absent"])
def test_without_tensorflow(place: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "import":
        monkeypatch.setenv("STAND_IN_FAILS", "import")
    else:
        absent = dict.fromkeys(["tensorflow"])
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda m: absent.get(m, find(m)))
    with pytest.raises(DataError, match=r"pip install 'ecotour-gan\[tfds\]'") as caught:
        datasets.load("mnist", "train", "tfds", place / "data")
    assert "\n" not in str(caught.value)
    with pytest.warns(UserWarning, match="embedded subset used: .*pip install"):
        assert datasets.load("mnist", "train", "auto", place / "data").info.source == "embedded"


def test_a_warm_cache_needs_no_tensorflow(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.load("mnist", "train", "tfds", place / "data")
    monkeypatch.setenv("STAND_IN_FAILS", "import")
    assert datasets.load("mnist", "test", "tfds", place / "data").info.source == "tfds"


def test_a_decoder_that_dies_does_not_blame_the_copy(place: Path, monkeypatch) -> None:
    monkeypatch.setenv("STAND_IN_FAILS", "exit")
    with pytest.raises(DataError, match="ended with exit status 7"):
        datasets.load("mnist", "train", "tfds", place / "data")
    monkeypatch.setenv("STAND_IN_FAILS", "interrupt")
    with pytest.raises(KeyboardInterrupt):
        datasets.load("mnist", "train", "tfds", place / "data")
    assert not list((place / "cache" / "datasets").glob("*-*"))


def test_without_network_it_says_where_it_looked(place: Path) -> None:
    with pytest.raises(DataError, match="ProxyError") as caught:
        datasets.load("mnist", "train", "tfds")
    for part in (place / "default", place / "cache", "--data-dir DIR", "--data embedded"):
        assert str(part) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert decodings(place) == 0


def test_a_network_that_swallows_everything_is_given_up(place: Path, monkeypatch) -> None:
    monkeypatch.setattr(full, "PATIENCE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(DataError, match="does not answer"):
            datasets.load("mnist", "train", "tfds")


@pytest.fixture
def origin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that answers where MNIST is downloaded from."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(full, "ORIGIN", f"http://127.0.0.1:{server.server_port}/digits")
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("origin")
@pytest.mark.parametrize("named", [True, False])
def test_what_is_missing_is_downloaded_and_prepared(place: Path, named: bool) -> None:
    home = place / ("named" if named else "default")
    home.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = datasets.load("mnist", "train", "tfds", home if named else None)
    assert dataset.info.source == "tfds"
    np.testing.assert_array_equal(dataset.arrays["image"], expected(place))
    assert (home / "mnist" / "3.0.1" / "dataset_info.json").is_file()


@pytest.mark.usefixtures("origin")
def test_a_download_that_fails_is_told_in_one_line(place: Path, monkeypatch) -> None:
    monkeypatch.setenv("STAND_IN_DOWNLOAD", str(place / "gone"))
    with pytest.raises(DataError, match=r"downloaded and prepared in .*FileNotFound") as no:
        datasets.load("mnist", "train", "tfds")
    assert "\n" not in str(no.value)
