"""The verdict against independent computations, real digits, and ways to cheat it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import haiku as hk
import jax
import numpy as np
import numpy.typing as npt
import pytest
import scipy.linalg
import scipy.spatial.distance
import scipy.special
import scipy.stats

from ecotour import datasets
from ecotour.errors import DataError
from ecotour_gan import classifier, scores, verdict
from ecotour_gan.neighbours import near_copies, nearest_neighbour_distances

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

PLUGIN = Path(__file__).parents[1]
PACKAGED = PLUGIN / "ecotour_gan" / "data"


def in_unit_range(pixels: Any) -> Array:
    return np.asarray(pixels.astype(np.float32) / np.float32(127.5) - np.float32(1))


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture(scope="module")
def params() -> hk.Params:
    return classifier.load_classifier()


@pytest.fixture(scope="module")
def train() -> Arrays:
    """The embedded 10,000 training images."""
    return datasets.load("mnist", split="train", source="embedded").arrays


@pytest.fixture(scope="module")
def test() -> Arrays:
    """The embedded 2,000 test images."""
    return datasets.load("mnist", split="test", source="embedded").arrays


@pytest.fixture(scope="module")
def whole_mnist(tmp_path_factory: pytest.TempPathFactory) -> Arrays:
    """All of MNIST: a dict of images and labels of both splits."""
    beside = PLUGIN.parents[1].parent / "shared" / "data" / "tfds"
    data_dir = Path(os.environ.get("ECOTOUR_TEST_TFDS", beside))
    if not (data_dir / "mnist").is_dir():
        pytest.skip(f"needs all of MNIST: no {data_dir / 'mnist'}; set ECOTOUR_TEST_TFDS")
    if importlib.util.find_spec("tensorflow_datasets") is None:
        pytest.skip("needs all of MNIST: tensorflow-datasets is not installed (ecotour-gan[tfds])")
    # In a process of its own: TensorFlow warns of much, and here a warning is an error.
    out = tmp_path_factory.mktemp("mnist") / "mnist.npz"
    read = (
        "import sys, pathlib, numpy, toolbox\n"
        "source, out = map(pathlib.Path, sys.argv[1:])\n"
        "found = {split: toolbox.read_mnist(source, split) for split in ('train', 'test')}\n"
        "numpy.savez(out, **{split: images for split, (images, _) in found.items()},\n"
        "            **{split + '_labels': labels for split, (_, labels) in found.items()})\n"
    )
    subprocess.run(
        [sys.executable, "-c", read, data_dir, out],
        env={**os.environ, "PYTHONPATH": str(PLUGIN / "tools")},
        check=True,
        capture_output=True,
    )
    with np.load(out, allow_pickle=False) as arrays:
        return dict(arrays)


# The formulas


def some_probabilities(count: int, sharpness: float = 3.0, seed: int = 0) -> Array:
    logits = sharpness * np.random.default_rng(seed).standard_normal((count, 10))
    return np.asarray(scipy.special.softmax(logits, axis=1))


def score_by_hand(probabilities: Array) -> float:
    marginal = np.mean(probabilities, axis=0)
    divergences = scipy.special.rel_entr(probabilities, marginal).sum(axis=-1)
    return float(np.exp(np.mean(divergences)))


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 5.0])
def test_classifier_score_is_the_exponential_of_the_mean_divergence(sharpness: float) -> None:
    p = some_probabilities(500, sharpness)
    np.testing.assert_allclose(scores.classifier_score(p).value, score_by_hand(p), rtol=1e-12)


def test_classifier_score_goes_from_one_to_the_number_of_digits() -> None:
    clear = np.eye(10)[np.arange(1000) % 10]
    np.testing.assert_allclose(scores.classifier_score(clear).value, 10.0, rtol=1e-12)
    five = scores.classifier_score(np.eye(10)[np.arange(1000) % 5])
    np.testing.assert_allclose(five.value, 5.0, rtol=1e-12)
    for alike in (np.full((50, 10), 0.1), np.eye(10)[np.full(50, 3)]):
        assert dataclasses.astuple(scores.classifier_score(alike)) == pytest.approx((1, 1, 1))


def test_interval_is_that_of_another_bootstrap() -> None:
    p = some_probabilities(400)
    score = scores.classifier_score(p)
    other = scipy.stats.bootstrap(
        (np.arange(len(p)),),
        lambda indices: score_by_hand(p[indices]),
        n_resamples=2000,
        method="percentile",
        vectorized=False,
        rng=np.random.default_rng(7),
    )
    low, high = other.confidence_interval
    # An end of a percentile interval from 1,000 resamples is itself off by some 6% of its width.
    assert score.low == pytest.approx(low, abs=0.2 * (high - low))
    assert score.high == pytest.approx(high, abs=0.2 * (high - low))
    assert score == scores.classifier_score(p)


@pytest.mark.parametrize(
    "wrong", [np.zeros((0, 10)), np.ones(10), np.full((3, 10), 0.2), [[1.5, -0.5]], [[np.nan, 1]]]
)
def test_what_is_no_distribution_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^probabilities: [^\n]*$"):
        scores.classifier_score(wrong)


def test_a_digit_is_covered_by_one_percent_of_confident_images() -> None:
    def sure(digit: int, probability: float = 0.95) -> Array:
        return np.where(np.arange(10) == digit, probability, (1 - probability) / 9)

    eight_digits = [sure(digit) for digit in range(8) for _ in range(24)]
    enough, too_few = [sure(8)] * 2, [sure(9)]
    unsure = [sure(9, 0.49)] * 5  # 192 + 2 + 1 + 5 = 200 images, of which 1% is 2
    p = np.array(eight_digits + enough + too_few + unsure)
    assert len(p) == 200
    assert scores.digits_covered(p) == 9
    assert scores.digits_covered(p, share=0.005) == 10
    assert scores.digits_covered(p, confident=0.49) == 10


def some_covariance(size: int, rank: int, seed: int) -> Array:
    factor = np.random.default_rng(seed).standard_normal((size, rank))
    return factor @ factor.T / rank


@pytest.mark.parametrize("seed", range(3))
def test_frechet_distance_is_that_of_the_general_matrix_root(seed: int) -> None:
    a, b = some_covariance(64, 200, seed), some_covariance(64, 80, seed + 50)
    mean_a, mean_b = np.random.default_rng(seed).standard_normal((2, 64))
    root = np.real(scipy.linalg.sqrtm(a @ b))
    expected = np.sum((mean_a - mean_b) ** 2) + np.trace(a + b - 2 * root)
    found = scores.frechet_distance(mean_a, a, mean_b, b)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(scores.frechet_distance(mean_b, b, mean_a, a), found, rtol=1e-9)


def test_frechet_distance_of_independent_normals_has_a_closed_form() -> None:
    mean_a, mean_b = np.array([0.0, 1.0, -2.0]), np.array([1.0, 1.0, 1.0])
    deviation_a, deviation_b = np.array([1.0, 2.0, 0.5]), np.array([3.0, 0.0, 0.5])
    expected = (1 + 0 + 9) + (4 + 4 + 0)
    found = scores.frechet_distance(
        mean_a, np.diag(deviation_a**2), mean_b, np.diag(deviation_b**2)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_frechet_distance_stays_real_where_covariances_are_singular() -> None:
    # Both of rank 5, in planes of their own: orthogonal, so that their product is zero.
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 10)))[0]
    a, b = (part @ part.T for part in (basis[:, :5], basis[:, 5:]))
    zero = np.zeros(64)
    np.testing.assert_allclose(scores.frechet_distance(zero, a, zero, b), 10.0, rtol=1e-6)
    assert 0.0 <= scores.frechet_distance(zero, a, zero, a) < 1e-12


def test_moments_are_the_sample_mean_and_the_unbiased_covariance() -> None:
    features = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    mean, covariance = scores.moments(features)
    centred = features.astype(np.float64) - features.astype(np.float64).sum(axis=0) / 50
    np.testing.assert_allclose(mean, features.astype(np.float64).sum(axis=0) / 50, rtol=1e-12)
    np.testing.assert_allclose(covariance, centred.T @ centred / 49, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="N >= 2"):
        scores.moments(features[:1])


# Nearest neighbours


def some_images(count: int, seed: int) -> Array:
    random = np.random.default_rng(seed)
    ink = random.uniform(size=(count, 28, 28, 1)) < 0.2
    return np.where(ink, random.uniform(-1, 1, ink.shape), -1.0).astype(np.float32)


# More than a block of either kind, so that the last block is filled up.
@pytest.mark.parametrize(("queries", "candidates"), [(23, 5003), (1007, 31), (1, 1)])
def test_nearest_distances_are_those_of_all_pairs(queries: int, candidates: int) -> None:
    images, training = some_images(queries, 1), some_images(candidates, 2)
    all_pairs = scipy.spatial.distance.cdist(
        images.reshape(queries, -1).astype(np.float64),
        training.reshape(candidates, -1).astype(np.float64),
    )
    found = nearest_neighbour_distances(images, training)
    np.testing.assert_allclose(found, all_pairs.min(axis=1), rtol=1e-5)


def test_a_copy_is_at_a_distance_of_nearly_nothing(train: Arrays) -> None:
    images = in_unit_range(train["image"])
    assert nearest_neighbour_distances(images[-1500:], images).max() < 0.05


def test_near_copies_are_counted_by_the_limit_of_their_digit() -> None:
    held_out = np.concatenate([np.linspace(1, 2, 101), np.linspace(5, 6, 101)])
    held_out_digits = np.repeat([1, 8], 101)
    # The 1% quantile of 101 evenly spaced numbers is the second: 1.01 and 5.01.
    distances, digits = np.array([1.0, 1.02, 5.0, 5.02, 1.02, 0.0]), np.array([1, 1, 8, 8, 8, 3])
    share, limits = near_copies(distances, digits, held_out, held_out_digits)
    assert share == 3 / 6
    np.testing.assert_allclose(limits, [0, 1.01, 0, 0, 0, 0, 0, 0, 5.01, 0], rtol=1e-12)


# The classifier and its file


def convolved(images: Array, weights: Array, bias: Array) -> Array:
    """A stride-2 SAME convolution with relu, written out in NumPy."""
    size, out = weights.shape[0], -(-images.shape[1] // 2)
    total = max((out - 1) * 2 + size - images.shape[1], 0)
    sides = (total // 2, total - total // 2)
    padded = np.pad(images, ((0, 0), sides, sides, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))[:, ::2, ::2]
    return np.asarray(np.maximum(np.einsum("nxycij,ijco->nxyo", windows, weights) + bias, 0.0))


def test_classifier_is_the_network_that_its_weights_describe(
    params: hk.Params, test: Arrays
) -> None:
    images = in_unit_range(test["image"][:20])
    weights = {
        module: {name: np.asarray(array, np.float64) for name, array in arrays.items()}
        for module, arrays in params.items()
    }
    hidden = convolved(images.astype(np.float64), weights["conv_1"]["w"], weights["conv_1"]["b"])
    hidden = convolved(hidden, weights["conv_2"]["w"], weights["conv_2"]["b"]).reshape(20, -1)
    features = np.maximum(hidden @ weights["features"]["w"] + weights["features"]["b"], 0.0)
    logits = features @ weights["logits"]["w"] + weights["logits"]["b"]
    found = classifier.classify(params, images)
    np.testing.assert_allclose(found.features, features, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.logits, logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        found.probabilities, scipy.special.softmax(logits, axis=1), rtol=1e-3, atol=1e-6
    )


def test_the_batch_that_an_image_comes_in_does_not_matter(params: hk.Params, test: Arrays) -> None:
    images = in_unit_range(test["image"][:1003])
    together = classifier.classify(params, images)
    assert together.logits.shape == (1003, 10)
    assert together.features.shape == (1003, 64)
    alone = classifier.classify(params, images[1001:1002])
    np.testing.assert_allclose(alone.logits[0], together.logits[1001], rtol=1e-5, atol=1e-5)


def test_classifier_knows_the_embedded_test_images(params: hk.Params, test: Arrays) -> None:
    found = classifier.classify(params, in_unit_range(test["image"]))
    assert len(test["label"]) == 2000
    assert (found.digits == test["label"]).mean() >= 0.985


def test_classifier_knows_the_10000_test_images(params: hk.Params, whole_mnist: Arrays) -> None:
    found = classifier.classify(params, in_unit_range(whole_mnist["test"]))
    assert len(found.logits) == 10_000
    accuracy = (found.digits == whole_mnist["test_labels"]).mean()
    assert accuracy >= 0.988
    described = classifier.read_description(PACKAGED, "classifier")["test_accuracy"]
    # Another machine's rounding may turn a few images that lie on the edge.
    assert accuracy == pytest.approx(described, abs=5e-4)


def test_packaged_files_are_small_plain_and_as_described() -> None:
    assert (PACKAGED / "classifier.npz").stat().st_size <= 600_000
    for name in ("classifier", "reference"):
        content = (PACKAGED / f"{name}.npz").read_bytes()
        described = json.loads((PACKAGED / f"{name}.json").read_text())
        assert hashlib.sha256(content).hexdigest() == described["sha256"]
        assert "CC BY-SA 3.0" in described["licence"]
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            assert all(np.isfinite(array).all() for array in arrays.values())
            if name == "classifier":
                sizes = [array.size for array in arrays.values()]
                assert sum(sizes) == described["parameters"]
    # Other weights see other features: a reference made with them would be worth nothing.
    reference = json.loads((PACKAGED / "reference.json").read_text())
    weights = json.loads((PACKAGED / "classifier.json").read_text())
    assert reference["classifier_sha256"] == weights["sha256"]


def altered(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("classifier.npz", altered, "damaged or altered"),
        ("classifier.npz", truncated, "damaged or altered"),
        ("classifier.npz", Path.unlink, "is missing"),
        ("classifier.json", Path.unlink, "is missing"),
        ("classifier.json", truncated, "is not valid JSON"),
        ("classifier.json", lambda path: path.write_text("[]"), "is not a JSON object"),
        ("classifier.json", lambda path: path.write_text("{}"), "damaged or altered"),
    ],
)
def test_a_damaged_classifier_is_refused_in_one_line(
    tmp_path: Path, name: str, damage: Callable[[Path], None], message: str
) -> None:
    for kept in PACKAGED.glob("classifier.*"):
        shutil.copy(kept, tmp_path)
    damage(tmp_path / name)
    with pytest.raises(DataError) as caught:
        classifier.load_classifier(tmp_path)
    text = str(caught.value)
    assert "\n" not in text
    assert message in text
    assert str(tmp_path / name.split(".")[0]) in text
    assert text.endswith("reinstall ecotour-gan")


@pytest.mark.parametrize(
    "text", ["{}", '{"floor": [], "ceiling": {}}', '{"floor": {"noise": {}}, "ceiling": {}}']
)
def test_a_reference_without_its_figures_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "reference.json").write_text(text)
    with pytest.raises(DataError, match=r"^[^\n]*reference\.json lacks [^\n]*reinstall"):
        verdict.load_yardsticks(tmp_path)


def test_images_that_cannot_be_judged_are_refused_in_one_line(params: hk.Params) -> None:
    good = np.zeros((3, 28, 28, 1), np.float32)
    diverged = good.copy()
    diverged[1, 5, 5] = np.nan
    for wrong, message in [
        (good[..., 0], r"expected the shape \[N, 28, 28, 1\] with N >= 1, got \(3, 28, 28\)"),
        (good[:0], r"got \(0, 28, 28, 1\)"),
        (good.astype(np.uint8), "expected float32 .* got uint8"),
        (good + 2, r"values in \[-1, 1\], got 2 to 2"),
        (diverged, "1 of 3 images hold values that are not finite"),
    ]:
        with pytest.raises(ValueError, match=f"^images: [^\n]*{message}[^\n]*$"):
            classifier.classify(params, wrong)
        with pytest.raises(ValueError, match=f"^samples: [^\n]*{message}[^\n]*$"):
            verdict.judge(wrong, good, good)


# The whole verdict


@pytest.fixture(scope="module")
def judged(train: Arrays, test: Arrays) -> Callable[[Array], verdict.Verdict]:
    """Judges samples against the embedded training images and half of the test images."""
    training, held_out = in_unit_range(train["image"]), in_unit_range(test["image"][::2])
    return lambda samples: verdict.judge(samples, training, held_out)


def test_unseen_real_images_pass(judged: Callable[[Array], verdict.Verdict], test: Arrays) -> None:
    found = judged(in_unit_range(test["image"][1::2]))
    assert found.images == sum(found.histogram) == 1000
    assert found.digits_covered == 10
    assert found.classifier_score.value > 9.5
    assert found.mnist_fd < 5.0  # a thousand images come out a little higher than 10,000
    assert found.near_copies < 0.04
    assert found.nearest_training_distance == pytest.approx(
        found.held_out_training_distance, rel=0.05
    )
    assert found == judged(in_unit_range(test["image"][1::2]))
    back = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert back["classifier_score"]["value"] == found.classifier_score.value
    assert back["ceiling"]["digits_covered"] == 10
    assert set(back["floor"]) == {"uniform noise", "normal noise"}


def test_memorised_images_show(judged: Callable[[Array], verdict.Verdict], train: Arrays) -> None:
    copies = in_unit_range(train["image"][:1000])
    found = judged(copies)
    assert found.mnist_fd < 5.0  # quality and variety have nothing against them...
    assert found.near_copies == 1.0  # ... and yet
    assert found.nearest_training_distance < 0.05
    noise = 0.05 * np.random.default_rng(0).standard_normal(copies.shape)
    blurred = np.clip(copies + noise, -1, 1).astype(np.float32)
    assert judged(blurred).near_copies > 0.95


@pytest.mark.parametrize("digit", [1, 8])
def test_a_collapse_to_one_digit_shows(
    judged: Callable[[Array], verdict.Verdict], test: Arrays, digit: int
) -> None:
    found = judged(in_unit_range(test["image"][1::2][test["label"][1::2] == digit]))
    assert found.digits_covered <= 2  # of a hundred images, one that is misread is 1% already
    assert found.histogram[digit] >= 0.95 * found.images
    assert found.classifier_score.value < 1.3
    assert found.mnist_fd > 100
    # It is poor in variety, not copied. A hundred images leave 1% a wide margin.
    assert found.near_copies < 0.08


def test_noise_is_at_the_floor(judged: Callable[[Array], verdict.Verdict]) -> None:
    noise = np.random.default_rng(3).uniform(-1, 1, (500, 28, 28, 1)).astype(np.float32)
    found = judged(noise)
    floor = found.floor["uniform noise"]
    assert found.digits_covered <= floor.digits_covered + 1
    assert found.classifier_score.value == pytest.approx(floor.classifier_score.value, abs=0.02)
    assert found.mnist_fd == pytest.approx(floor.mnist_fd, rel=0.02)
    assert found.near_copies == 0.0


def assert_same_figures(found: verdict.Yardstick, packaged: verdict.Yardstick) -> None:
    """Equal but for what another machine's rounding may do to some images in 10,000."""
    assert found.images == packaged.images == 10_000
    assert found.digits_covered == packaged.digits_covered
    np.testing.assert_allclose(found.histogram, packaged.histogram, atol=10)
    np.testing.assert_allclose(found.mean_confidence, packaged.mean_confidence, atol=1e-3)
    np.testing.assert_allclose(
        dataclasses.astuple(found.classifier_score),
        dataclasses.astuple(packaged.classifier_score),
        rtol=1e-3,
    )


def test_ceiling_and_floor_are_what_real_images_and_noise_come_to(
    params: hk.Params, whole_mnist: Arrays
) -> None:
    real = classifier.classify(params, in_unit_range(whole_mnist["test"]))
    training = classifier.classify(params, in_unit_range(whole_mnist["train"][:10_000]))
    mean, covariance = real.features.mean(axis=0), np.cov(real.features, rowvar=False)
    packaged = classifier.read_arrays(PACKAGED, "reference")
    np.testing.assert_allclose(mean, packaged["mean"], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(covariance, packaged["covariance"], rtol=1e-3, atol=1e-3)

    ceiling, floor = verdict.load_yardsticks()
    assert_same_figures(verdict.judge_without_neighbours(real, mean, covariance), ceiling)
    by_hand = np.sum((training.features.mean(axis=0) - mean) ** 2) + np.trace(
        np.cov(training.features, rowvar=False)
        + covariance
        - 2 * np.real(scipy.linalg.sqrtm(np.cov(training.features, rowvar=False) @ covariance))
    )
    np.testing.assert_allclose(ceiling.mnist_fd, by_hand, rtol=1e-2)

    random = np.random.default_rng(0)  # the tool's own seed and order
    shape = (10_000, 28, 28, 1)
    images = {
        "uniform noise": random.uniform(-1.0, 1.0, shape),
        "normal noise": np.clip(random.standard_normal(shape), -1.0, 1.0),
    }
    assert set(images) == set(floor)
    for name, noise in images.items():
        classified = classifier.classify(params, noise.astype(np.float32))
        found = verdict.judge_without_neighbours(classified, mean, covariance)
        assert_same_figures(found, floor[name])
        np.testing.assert_allclose(found.mnist_fd, floor[name].mnist_fd, rtol=1e-3)


def test_importing_the_verdict_brings_neither_tensorflow_nor_scipy_of_its_own() -> None:
    program = (
        "import sys, jax, haiku, optax\n"
        "before = set(sys.modules)\n"
        "import ecotour_gan.verdict\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))\n"
    )
    added = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"tensorflow", "tensorflow_datasets", "scipy"} & set(added)
