"""Which form computes which operation of which layer: measured, not derived.

The rows hold for the two-core machine that `tools/measure_convolutions.py` last ran on (its
output is this table). A layer that no row describes runs as XLA's own convolution.
"""

from typing import NamedTuple

from ecotour_gan.convolutions.geometry import Geometry


class Forms(NamedTuple):
    """The form of each operation, in the convolution's own terms."""

    forward: str = "xla"
    input_gradient: str = "xla"
    weight_gradient: str = "xla"


XLA = Forms()


class ShapeClass(NamedTuple):
    """What decides the speed of a form: the square image, the square kernel, the stride."""

    layer: str
    """``"convolution"`` or ``"transposed"``."""
    size: int
    """Pixels along the larger image: what a convolution reads, what a transposed one writes."""
    taps: int
    stride: int


TABLE: dict[ShapeClass, Forms] = {
    ShapeClass("convolution", 28, 5, 2): Forms("xla", "phases", "xla"),
    ShapeClass("convolution", 14, 5, 2): Forms("xla", "phases", "xla"),
    ShapeClass("convolution", 7, 5, 1): Forms("fourier", "fourier", "fourier"),
    ShapeClass("convolution", 7, 5, 2): Forms("toom-cook", "toom-cook", "toom-cook"),
    ShapeClass("transposed", 14, 5, 2): Forms("xla", "phases", "xla"),
    ShapeClass("transposed", 28, 5, 2): Forms("xla", "phases", "xla"),
}
"""Measured on 2026-12-01 at the flagship's channels and batch sizes."""


def forms_of(layer: str, geometry: Geometry) -> Forms | None:
    """The forms of a layer; None for a layer that the table does not know."""
    rows, columns = geometry
    if rows != columns:
        return None
    return TABLE.get(ShapeClass(layer, rows.size, rows.taps, rows.stride))
