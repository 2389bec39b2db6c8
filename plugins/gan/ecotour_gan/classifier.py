"""The pinned classifier of MNIST digits in whose eyes the GAN's samples are judged.

The Inception network that the usual scores of GANs look through was trained on photographs and
has nothing to say about digits. This small convolutional network was trained on the 60,000
training images by `tools/train_classifier.py`; its weights are part of the distribution, so that
a verdict means the same on every machine. `data/classifier.json` says how it was trained, how
accurate it is, and the checksum by which an altered file is refused.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple, TypeAlias

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ecotour.errors import DataError

DATA: Traversable = files(__package__) / "data"
NUM_CLASSES = 10
NUM_FEATURES = 64
IMAGE_SHAPE = (28, 28, 1)
# One batch shape means one compile, and 500 images need some 20 MB for their activations.
BATCH_SIZE = 500

Params: TypeAlias = hk.Params


class Classified(NamedTuple):
    """What the classifier says of N images."""

    logits: npt.NDArray[np.float32]  # [N, 10]
    features: npt.NDArray[np.float32]  # [N, 64], the layer that the Fréchet distance looks at

    @property
    def digits(self) -> npt.NDArray[np.int64]:
        """The digit that each image is taken for: int64 [N], 0 to 9."""
        return np.asarray(self.logits.argmax(axis=1), np.int64)

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The softmax of the logits in double precision: float64 [N, 10], each row sums to 1."""
        shifted = self.logits.astype(np.float64)
        shifted -= shifted.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def network(images: jax.Array, dropout_rate: float = 0.0) -> tuple[jax.Array, jax.Array]:
    """The network as a plain function, to be given to `hk.transform`.

    Args:
      images: float32 [N, 28, 28, 1] in [-1, 1].
      dropout_rate: share of activations dropped before the last two layers; 0 but in training.

    Returns:
      logits, float32 [N, 10], and features, float32 [N, 64]: the activations of the last hidden
      layer after its relu, from which the logits are one linear map.
    """
    hidden = jax.nn.relu(hk.Conv2D(24, kernel_shape=5, stride=2, name="conv_1")(images))
    hidden = jax.nn.relu(hk.Conv2D(48, kernel_shape=3, stride=2, name="conv_2")(hidden))
    hidden = hk.Flatten()(hidden)
    if dropout_rate:
        hidden = hk.dropout(hk.next_rng_key(), dropout_rate, hidden)
    features = jax.nn.relu(hk.Linear(NUM_FEATURES, name="features")(hidden))
    kept = hk.dropout(hk.next_rng_key(), dropout_rate, features) if dropout_rate else features
    return hk.Linear(NUM_CLASSES, name="logits")(kept), features


@functools.cache
def _compiled() -> Any:
    """The jitted forward pass. Made once, so that every later call finds it compiled."""
    transformed: hk.Transformed = hk.without_apply_rng(hk.transform(network))
    return jax.jit(transformed.apply)


def classify(params: Params, images: npt.ArrayLike) -> Classified:
    """Looks at images, a batch of 500 at a time.

    Args:
      params: what `load_classifier` returned.
      images: float32 [N, 28, 28, 1] in [-1, 1], with N at least 1.

    Raises:
      ValueError: images of another shape or dtype, none at all, or values that are not finite.
    """
    images = check_images("images", images)
    count = len(images)
    parts = []
    for start in range(0, count, BATCH_SIZE):
        batch = images[start : start + BATCH_SIZE]
        padding = BATCH_SIZE - len(batch)
        parts.append(_compiled()(params, np.pad(batch, ((0, padding), (0, 0), (0, 0), (0, 0)))))
    logits, features = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    return Classified(logits, features)


def check_images(name: str, images: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Returns the images as a NumPy array, or says in one line what is wrong with them."""
    array = np.asarray(images)
    if array.ndim != 4 or array.shape[1:] != IMAGE_SHAPE or not len(array):
        raise ValueError(
            f"{name}: expected the shape [N, 28, 28, 1] with N >= 1, got {array.shape}"
        )
    if array.dtype != np.float32:
        raise ValueError(
            f"{name}: expected float32 in [-1, 1], got {array.dtype}; "
            "pixels of 0 to 255 become that by `pixels.astype('float32') / 127.5 - 1`"
        )
    finite = np.isfinite(array).all(axis=(1, 2, 3))
    if not finite.all():
        raise ValueError(
            f"{name}: {np.count_nonzero(~finite):,} of {len(array):,} images hold values that "
            "are not finite; the generator that made them has diverged"
        )
    low, high = float(array.min()), float(array.max())
    if low < -1.0 or high > 1.0:
        raise ValueError(f"{name}: expected values in [-1, 1], got {low:g} to {high:g}")
    return array


def load_classifier(directory: Traversable = DATA) -> Params:
    """The packaged weights, as Haiku parameters in float32.

    Stored in half precision, which costs no accuracy that the 10,000 test images could show.

    Raises:
      DataError: a file is missing, or differs from what its checksum promises.
    """
    params: dict[str, dict[str, jax.Array]] = {}
    for key, value in read_arrays(directory, "classifier").items():
        module, _, name = key.rpartition("/")
        params.setdefault(module, {})[name] = jnp.asarray(value, jnp.float32)
    return params


def read_arrays(directory: Traversable, name: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of `name.npz`, once they were found to be what `name.json` says they are.

    Raises:
      DataError: a file is missing or cannot be read, or the checksum is another.
    """
    archive = directory / f"{name}.npz"
    expected = read_description(directory, name).get("sha256")
    try:
        content = archive.read_bytes()
    except OSError as error:
        raise DataError(f"{archive} is missing: reinstall ecotour-gan") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise DataError(
            f"{archive} is damaged or altered (its SHA-256 is not that of {name}.json): "
            "reinstall ecotour-gan"
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(_items(arrays))


def read_description(directory: Traversable, name: str) -> dict[str, Any]:
    """What is written about `name.npz` in `name.json`.

    Raises:
      DataError: the file is missing or is not a JSON object.
    """
    path = directory / f"{name}.json"
    try:
        description = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path} is missing: reinstall ecotour-gan") from error
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: reinstall ecotour-gan") from error
    if not isinstance(description, dict):
        raise DataError(f"{path} is not a JSON object: reinstall ecotour-gan")
    return description


def _items(arrays: Any) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    return ((key, arrays[key]) for key in arrays.files)
