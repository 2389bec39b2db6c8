"""A program of its own: turns a tensorflow-datasets copy of MNIST into plain bytes.

    python decode.py DIR OUT [--prepare]

It runs in a process apart and imports nothing of ours, so that TensorFlow's seconds, memory, log
lines, environment and signal handlers stay out of the run, and the run's GPU out of TensorFlow.
DIR is a tensorflow-datasets directory; with ``--prepare`` MNIST is downloaded into it first.
OUT gets ``train`` and ``test`` (`ecotour.datasets.cache` has their form) or, where that fails,
``reason``: one line.
"""

from __future__ import annotations

import sys
from pathlib import Path

VERSION = "3.0.1"
NO_TENSORFLOW = 3
FAILED = 4


def main(data_dir: str, out: Path, prepare: bool) -> int:
    """Decode both splits and return the exit code."""
    try:
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")
        import tensorflow_datasets as tfds
    except Exception as error:  # noqa: BLE001 - a broken installation may raise anything
        return _fail(out, error, NO_TENSORFLOW)
    try:
        builder = tfds.builder(f"mnist:{VERSION}", data_dir=data_dir)
        if prepare:
            builder.download_and_prepare()
        for split in ("train", "test"):
            # One tensor of all examples, in the order of the copy's files: the same for everybody.
            dataset = builder.as_dataset(split=split, batch_size=-1, shuffle_files=False)
            arrays = tfds.as_numpy(dataset)
            with (out / split).open("wb") as file:
                file.write(arrays["image"].astype("uint8").tobytes())
                file.write(arrays["label"].astype("uint8").tobytes())
    except Exception as error:  # noqa: BLE001 - told to the user in one line by the caller
        return _fail(out, error, FAILED)
    return 0


def _fail(out: Path, error: Exception, code: int) -> int:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    (out / "reason").write_text(said[:200], encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), "--prepare" in sys.argv[3:]))
