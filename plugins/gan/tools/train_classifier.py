"""Trains the classifier that judges the GAN, and packages its weights.

    python plugins/gan/tools/train_classifier.py --data-dir DIR

DIR is a tensorflow-datasets directory in which MNIST was prepared. The weights, in half
precision, and their description go to `ecotour_gan/data/classifier.npz` and `classifier.json`.
The test images choose nothing here, neither a step nor a setting: the schedule is fixed, the last
weights are kept, and the accuracy is measured once, on the weights as they are stored.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import cyclopts
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
from toolbox import read_mnist, to_unit_range, versions, write_package

from ecotour_gan import classifier

MAX_SHIFT = 2
DROPOUT_RATE = 0.4
BATCH_SIZE = 256
PEAK_LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
DATA = Path(classifier.__file__).parent / "data"


def shift(key: jax.Array, images: jax.Array) -> jax.Array:
    """Moves each image, [N, 28, 28, 1], by up to two pixels each way; the paper is black (-1)."""
    padding = ((0, 0), (MAX_SHIFT, MAX_SHIFT), (MAX_SHIFT, MAX_SHIFT), (0, 0))
    padded = jnp.pad(images, padding, constant_values=-1.0)
    corners = jax.random.randint(key, (len(images), 2), 0, 2 * MAX_SHIFT + 1)

    def crop(image: jax.Array, corner: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), (28, 28, 1))

    return jax.vmap(crop)(padded, corners)


def main(data_dir: Path, seed: int = 0, epochs: int = 30, out: Path = DATA) -> None:
    """Trains, stores and measures the classifier.

    Args:
      data_dir: a tensorflow-datasets directory in which MNIST was prepared.
      seed: fixes the initial weights, the order of the images, the shifts and the dropout.
      epochs: how often each of the 60,000 training images is seen.
      out: where the two files are written.
    """
    pixels, labels = read_mnist(data_dir, "train")
    images = jnp.asarray(to_unit_range(pixels))
    targets = jnp.asarray(labels, jnp.int32)
    steps_per_epoch = len(images) // BATCH_SIZE
    steps = epochs * steps_per_epoch

    network = hk.transform(functools.partial(classifier.network, dropout_rate=DROPOUT_RATE))
    schedule = optax.warmup_cosine_decay_schedule(0.0, PEAK_LEARNING_RATE, steps // 20, steps)
    optimizer = optax.adamw(schedule, weight_decay=WEIGHT_DECAY)

    def loss(params: hk.Params, key: jax.Array, images: jax.Array, labels: jax.Array) -> jax.Array:
        shift_key, dropout_key = jax.random.split(key)
        logits, _ = network.apply(params, dropout_key, shift(shift_key, images))
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return jnp.mean(losses)

    @jax.jit
    def update(
        params: hk.Params, state: optax.OptState, key: jax.Array, indices: jax.Array
    ) -> tuple[Any, Any, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(params, key, images[indices], targets[indices])
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    init_key, order_key, step_key = jax.random.split(jax.random.key(seed), 3)
    params: Any = network.init(init_key, images[:1])
    state = optimizer.init(params)
    started = time.perf_counter()
    for epoch in range(epochs):
        order = jax.random.permutation(jax.random.fold_in(order_key, epoch), len(images))
        for step in range(steps_per_epoch):
            key = jax.random.fold_in(step_key, epoch * steps_per_epoch + step)
            indices = order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
            params, state, value = update(params, state, key, indices)
        print(f"epoch {epoch + 1:2}: loss {value:.4f}, {time.perf_counter() - started:.0f} s")

    stored = {
        f"{module}/{name}": np.asarray(array, np.float16)
        for module, arrays in params.items()
        for name, array in arrays.items()
    }
    pixels, labels = read_mnist(data_dir, "test")
    as_stored = jax.tree.map(lambda array: array.astype(np.float16).astype(np.float32), params)
    accuracies = {
        kind: accuracy(weights, to_unit_range(pixels), labels)
        for kind, weights in (("float32", params), ("float16", as_stored))
    }
    about = {
        "what": "weights of ecotour_gan.classifier.network, one array a parameter, float16",
        "parameters": sum(array.size for array in stored.values()),
        "feature_layer": "the 64 activations of the last hidden layer, after its relu",
        "test_accuracy": accuracies["float16"],
        "test_accuracy_before_rounding_to_float16": accuracies["float32"],
        "trained": {
            "by": "plugins/gan/tools/train_classifier.py",
            "data": "MNIST 3.0.1 of tensorflow-datasets, all 60,000 training images",
            "seed": seed,
            "epochs": epochs,
            "steps": steps,
            "batch_size": BATCH_SIZE,
            "loss": "softmax cross-entropy",
            "optimizer": "optax.adamw, linear warm-up over a twentieth, then cosine decay to 0",
            "peak_learning_rate": PEAK_LEARNING_RATE,
            "weight_decay": WEIGHT_DECAY,
            "dropout_rate": DROPOUT_RATE,
            "augmentation": f"shifts of up to {MAX_SHIFT} pixels each way",
            "platform": jax.default_backend(),
        },
        "versions": versions("jax", "dm-haiku", "optax", "numpy", "tensorflow-datasets"),
    }
    size = write_package(out, "classifier", stored, about)
    print(f"test accuracy {accuracies}, {about['parameters']:,} parameters, {size:,} bytes")


def accuracy(params: hk.Params, images: np.ndarray, labels: np.ndarray) -> float:
    """The share of images whose largest logit is that of their label."""
    logits = classifier.classify(params, images).logits
    return float((logits.argmax(axis=1) == labels).mean())


if __name__ == "__main__":
    cyclopts.run(main)
