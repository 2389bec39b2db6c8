"""Convolutions of small images with fewer multiplications: bilinear algorithms.

A convolution is linear in its image and linear in its kernel. Every such map can be written as ::

    y = C [ (A x) * (B w) ]

with three constant matrices, where ``*`` multiplies entry by entry: evaluate the image and the
kernel at some *points*, multiply there, and combine. The number of points is the number of
multiplications. A 5x5 kernel over a 7x7 image with SAME padding takes 1225 of them written
plainly; here 121 points are enough, since the points know that nothing lies outside the image.

With channels the pointwise product becomes, at every point, one matrix product of the batch with
the channels, and the transforms ``A``, ``B``, ``C`` are matrix products too. So the whole layer
is four matrix products, which is the one thing that XLA does excellently on a CPU. Its
derivatives are the same four products with their matrices transposed; JAX derives them.

Two families of points, each the better one somewhere:

* **Toom-Cook** (Winograd's minimal filtering, the "Winograd convolution" of Lavin and Gray):
  polynomials are evaluated at small rationals. A filter of ``k`` taps with ``m`` outputs takes
  ``m + k - 1`` points, the proven minimum, but the matrices become ill-conditioned as the points
  grow: six are harmless in float32, eleven cost four digits.
* **Fourier**: the points are roots of unity, perfectly conditioned at any number. They are
  complex, and come in conjugate pairs; a complex product costs three real ones (Gauss).

A stride of ``s`` splits each axis into ``s`` phases, each a small convolution of stride 1, whose
points stand side by side.

Sources: Winograd 1980, "Arithmetic Complexity of Computations", chapters III and V; Lavin and
Gray 2016, "Fast Algorithms for Convolutional Neural Networks"; Blahut 2010, "Fast Algorithms for
Signal Processing", chapters 3 and 5.
"""

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ecotour_gan.convolutions.geometry import Axis, Geometry

Matrix = NDArray[np.floating]


class Points(NamedTuple):
    """The three matrices of a bilinear algorithm, in float64."""

    image: Matrix
    """``[points, pixels of the image]``: the ``A`` of the module's formula."""
    kernel: Matrix
    """``[points, taps]``: its ``B``."""
    output: Matrix
    """``[pixels of the output, points]``: its ``C``."""


def forward(image: jax.Array, kernel: jax.Array, geometry: Geometry, points: Points) -> jax.Array:
    """A SAME convolution as four matrix products.

    Args:
        image: ``[batch, height, width, in]``.
        kernel: ``[kernel height, kernel width, in, out]``, of the same dtype.
        geometry: the layer's two axes.
        points: an algorithm for that geometry.

    Returns:
        ``[batch, small height, small width, out]``.
    """
    rows, columns = geometry
    batch, _, _, inputs = image.shape
    outputs = kernel.shape[-1]
    to_image, to_kernel, to_output = (jnp.asarray(m, image.dtype) for m in points)
    # Pixels lead, so that every transform is one product with all batches and channels at once.
    pixels = image.transpose(1, 2, 0, 3).reshape(rows.size * columns.size, batch * inputs)
    taps = kernel.reshape(rows.taps * columns.taps, inputs * outputs)
    at_points = (to_image @ pixels).reshape(-1, batch, inputs)
    filters = (to_kernel @ taps).reshape(-1, inputs, outputs)
    products = (at_points @ filters).reshape(-1, batch * outputs)
    output = (to_output @ products).reshape(rows.out, columns.out, batch, outputs)
    return output.transpose(2, 0, 1, 3)


@lru_cache(maxsize=64)
def toom_cook(geometry: Geometry) -> Points:
    """Toom-Cook points for both axes: the Kronecker products of the two axes' matrices."""
    rows, columns = map(_toom_cook_axis, geometry)
    return Points(
        np.kron(rows.image, columns.image),
        np.kron(rows.kernel, columns.kernel),
        np.kron(rows.output, columns.output),
    )


def _toom_cook_axis(axis: Axis) -> Points:
    """Toom-Cook points of one axis, the phases of its stride side by side."""
    phases = []
    for phase in range(min(axis.stride, axis.taps)):
        taps = range(phase, axis.taps, axis.stride)
        # The pixel that output o reads through the first tap of this phase is stride·o + start.
        start = phase - axis.low
        read = range(start % axis.stride, axis.size, axis.stride)
        if not read:
            continue  # a phase that lies in the padding altogether
        first = (read.start - start) // axis.stride
        image, output = np.zeros((axis.size, len(read))), np.eye(axis.out)
        image[list(read), range(len(read))] = 1
        kernel = np.zeros((axis.taps, len(taps)))
        kernel[list(taps), range(len(taps))] = 1
        # output o = sum_j x[o + j] w[j]: x_(a), w_(j), y_(c) meet where a + first = c + j.
        if len(read) < axis.out:
            # Fewer pixels than outputs: x and w multiply as polynomials, y reads coefficients.
            # With j' = last - j the rule reads a + j' = c + last - first.
            by_short, by_taps, by_long = _polynomial_product(len(read), len(taps))
            shift = len(taps) - 1 - first
            index = np.arange(axis.out) + shift
            known = (index >= 0) & (index < by_long.shape[1])
            by_output = np.zeros((by_long.shape[0], axis.out))
            by_output[:, known] = by_long[:, index[known]]
            phases.append(Points(by_short @ image.T, by_taps[:, ::-1] @ kernel.T, by_output.T))
        else:
            # The transposed algorithm: y and w take the short sides, x the long one.
            by_short, by_taps, by_long = _polynomial_product(axis.out, len(taps))
            index = np.arange(len(read)) + first
            known = (index >= 0) & (index < by_long.shape[1])
            by_pixel = np.zeros((by_long.shape[0], len(read)))
            by_pixel[:, known] = by_long[:, index[known]]
            phases.append(Points(by_pixel @ image.T, by_taps @ kernel.T, (by_short @ output).T))
    return Points(
        np.concatenate([phase.image for phase in phases]),
        np.concatenate([phase.kernel for phase in phases]),
        np.concatenate([phase.output for phase in phases], axis=1),
    )


def _polynomial_product(short: int, taps: int) -> tuple[Matrix, Matrix, Matrix]:
    """Matrices ``U, V, W`` with ``sum_ij a_i b_j c_(i+j) = sum_r (U a)_r (V b)_r (W c)_r``.

    ``U`` and ``V`` evaluate polynomials of ``short`` and ``taps`` coefficients at
    ``short + taps - 1`` points, the last one being infinity (the leading coefficient); ``W`` is
    the transposed interpolation. Exact rationals, rounded once at the end.
    """
    count = short + taps - 1
    candidates = [Fraction(0)]
    for size in (Fraction(1), Fraction(2), Fraction(3), Fraction(4)):
        candidates += [size, -size] if size == 1 else [size, -size, 1 / size, -1 / size]
    if count - 1 > len(candidates):
        raise ValueError(f"no Toom-Cook points for {short} by {taps} coefficients")
    finite = candidates[: count - 1]

    def evaluate(width: int) -> list[list[Fraction]]:
        leading = [Fraction(int(i == width - 1)) for i in range(width)]
        return [[point**i for i in range(width)] for point in finite] + [leading]

    # Gauss-Jordan elimination of [V | 1]; exact, so any nonzero pivot is a good one.
    work = [
        row + [Fraction(int(i == j)) for j in range(count)] for i, row in enumerate(evaluate(count))
    ]
    for column in range(count):
        pivot = next(i for i in range(column, count) if work[i][column])
        work[column], work[pivot] = work[pivot], work[column]
        work[column] = [entry / work[column][column] for entry in work[column]]
        for i in range(count):
            if i != column and work[i][column]:
                factor = work[i][column]
                work[i] = [a - factor * b for a, b in zip(work[i], work[column], strict=True)]
    interpolate = np.array([[float(entry) for entry in row[count:]] for row in work]).T
    short_side, taps_side = (
        np.array([[float(entry) for entry in row] for row in evaluate(width)])
        for width in (short, taps)
    )
    # Only the product of the three scales matters; an even one keeps the rounding small.
    scale = np.abs(interpolate).max(axis=1, keepdims=True)
    return short_side, taps_side * scale, interpolate / scale


@lru_cache(maxsize=64)
def fourier(geometry: Geometry) -> Points:
    """Fourier points for both axes at once; stride 1.

    The image is extended by just so many zeros that what wraps around meets only zeros or falls
    on outputs that nobody reads: nine for seven pixels and five taps. Of the two-dimensional
    transform of a real image half the points are conjugates of the others and are left out.
    """
    lengths = [max(a.size + a.low, a.out + a.taps - 1 - a.low) for a in geometry]
    if any(axis.stride != 1 for axis in geometry):
        raise ValueError("Fourier points are laid out for stride 1")
    height, width = geometry
    image_rows, kernel_rows, output_columns = [], [], []
    for u in range(lengths[0]):
        for v in range(lengths[1]):
            mirror = (-u % lengths[0], -v % lengths[1])
            if mirror < (u, v):
                continue
            turns = (u / lengths[0], v / lengths[1])
            image = _wave(turns, np.arange(height.size), np.arange(width.size)).conj()
            kernel = _wave(turns, np.arange(height.taps), np.arange(width.taps))
            output = _wave(
                turns, np.arange(height.out) - height.low, np.arange(width.out) - width.low
            ) / (lengths[0] * lengths[1])
            if mirror == (u, v):
                # A real point: every wave is +1 or -1 everywhere.
                image_rows += [image.real]
                kernel_rows += [kernel.real]
                output_columns += [output.real]
                continue
            # The pair (u, v) and its mirror image add up to 2·Re(x·w·output). Gauss: for x = a+bi
            # and w = c+di, with p = c(a+b), q = a(d-c), r = b(c+d): x·w = (p-r) + (p+q)i.
            image_rows += [image.real + image.imag, image.real, image.imag]
            kernel_rows += [kernel.real, kernel.imag - kernel.real, kernel.real + kernel.imag]
            output_columns += [
                2 * (output.real - output.imag),
                -2 * output.imag,
                -2 * output.real,
            ]
    return Points(np.stack(image_rows), np.stack(kernel_rows), np.stack(output_columns, axis=1))


def _wave(
    turns: tuple[float, float], rows: NDArray[np.int_], columns: NDArray[np.int_]
) -> NDArray[np.complex128]:
    """``exp(2πi (turns · pixel))`` over all pixels, rows first."""
    angles = 2 * np.pi * np.add.outer(turns[0] * rows, turns[1] * columns).ravel()
    wave: NDArray[np.complex128] = np.cos(angles) + 1j * np.sin(angles)
    return wave
