"""The arithmetic of SAME padding, one axis at a time."""

from typing import NamedTuple


class Axis(NamedTuple):
    """One spatial axis of a convolution with SAME padding.

    The output pixel ``o`` reads the image at ``stride·o + k - low`` for ``k`` in ``range(taps)``;
    what lies outside the image reads as zero.
    """

    size: int
    """Pixels of the image, the larger of the two sides."""
    taps: int
    """Pixels of the kernel."""
    stride: int

    @property
    def out(self) -> int:
        """Pixels of the output."""
        return -(-self.size // self.stride)

    @property
    def low(self) -> int:
        """Zeros that SAME padding puts before the image; the odd one goes behind it."""
        return max((self.out - 1) * self.stride + self.taps - self.size, 0) // 2

    @property
    def blocks(self) -> int:
        """How many runs of ``stride`` pixels cover the image."""
        return -(-self.size // self.stride)


class Geometry(NamedTuple):
    """The two spatial axes of a layer; the larger image is the convolution's input."""

    rows: Axis
    columns: Axis

    @classmethod
    def same(
        cls, image: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int]
    ) -> "Geometry":
        """The geometry of a SAME convolution over an image of ``(height, width)``."""
        return cls(*map(Axis, image, kernel, strides))
