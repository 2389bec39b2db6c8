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

    size: int
    taps: int
    stride: int


TABLE: dict[ShapeClass, Forms] = {
    ShapeClass(size=28, taps=5, stride=2): Forms("xla", "phases", "xla"),
    ShapeClass(size=14, taps=5, stride=2): Forms("xla", "phases", "xla"),
    ShapeClass(size=7, taps=5, stride=1): Forms("fourier", "fourier", "fourier"),
    ShapeClass(size=7, taps=5, stride=2): Forms("toom-cook", "toom-cook", "toom-cook"),
}
"""Measured 2026-12-01 at the flagship's channels and batch sizes."""


def forms_of(geometry: Geometry) -> Forms:
    """The forms of a layer; XLA's own for a layer that the table does not know."""
    rows, columns = geometry
    if rows != columns:
        return XLA
    return TABLE.get(ShapeClass(rows.size, rows.taps, rows.stride), XLA)
