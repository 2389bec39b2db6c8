"""Decoded images as plain bytes in the user's cache directory.

A file holds all images of a split and then all labels, one byte a pixel and a label. What it must
contain is known beforehand, so a file is used if its SHA-256 is the right one and never otherwise:
no header to trust, no half-written file to fear.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ecotour.machine.environment import cache_directory


@dataclass(frozen=True)
class Content:
    """What a decoded split must be.

    Attributes:
        examples: Their number.
        sha256: Of all ``uint8`` images, then all ``uint8`` labels.
        image_shape: Height, width, channels.
    """

    examples: int
    sha256: str
    image_shape: tuple[int, int, int] = (28, 28, 1)

    def read(self, path: Path) -> dict[str, npt.NDArray[np.uint8]]:
        """Return ``image`` ``[N, *image_shape]`` and ``label`` ``[N]``, both ``uint8``.

        Raises:
            OSError: The file cannot be read.
            ValueError: It holds something else; the message says what.
        """
        pixels = self.examples * int(np.prod(self.image_shape))
        # Asked first, so that a file of absurd size is not read into memory.
        if (size := path.stat().st_size) != pixels + self.examples:
            raise ValueError(f"{size:,} bytes instead of {pixels + self.examples:,}")
        content = np.fromfile(path, np.uint8)
        if (found := hashlib.sha256(content.data).hexdigest()) != self.sha256:
            raise ValueError(f"SHA-256 {found[:12]}… instead of {self.sha256[:12]}…")
        image = content[:pixels].reshape(self.examples, *self.image_shape)
        return {"image": image, "label": content[pixels:]}


def directory() -> Path:
    """Return where decoded data is kept."""
    return cache_directory() / "datasets"


@contextmanager
def workshop(shelf: Path) -> Iterator[tuple[Path, bool]]:
    """Yield an empty directory to work in, and whether its files can be moved to ``shelf``.

    Only one process at a time is inside, so that runs started together decode once. Where there
    can be no cache, there is a warning and a directory that is gone afterwards.
    """
    import filelock

    with ExitStack() as stack:
        try:
            shelf.mkdir(parents=True, exist_ok=True)
            stack.enter_context(filelock.FileLock(shelf / "decode.lock"))
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="decode-", dir=shelf))
            kept = True
        except (OSError, NotImplementedError) as error:
            warnings.warn(
                f"no cache in {shelf} ({error}): data is decoded anew in each run; "
                f"set ECOTOUR_CACHE_DIR to a directory that can be written",
                stacklevel=3,
            )
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="ecotour-"))
            kept = False
        yield Path(work), kept
