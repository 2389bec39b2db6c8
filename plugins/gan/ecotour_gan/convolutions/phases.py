"""The input gradient of a strided convolution as one dense convolution: the sub-pixel form.

A strided convolution reads its image ``x`` through a window that moves ``s`` pixels at a time::

    y[o] = sum_k  x[s·o + k - low] · w[k]                      (one axis; ``low``: SAME padding)

Its input gradient, which is also the transposed convolution, spreads every ``g[o]`` back::

    dx[h] = sum_o  g[o] · w[h + low - s·o]

XLA writes this as a convolution over ``g`` with ``s - 1`` zeros between its pixels. On CPU that
misses every fast path: the loop multiplies by the zeros, one number at a time. But write
``h = s·m + p``. The phase ``p`` of every pixel sees its own short kernel, and no zeros::

    dx[s·m + p] = sum_d  g[m + d] · w[p + low - s·d]

All phases read the same few neighbours ``g[m + d]``, so they are the channels of ONE convolution
with stride 1 at the small resolution; interleaving the phases gives the large image. The 5x5
kernel of stride 2 becomes a 3x3 kernel with four times the channels: 36 taps for 25, of which
11 are zeros, the price of a single call.

Source: Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution Using an Efficient
Sub-Pixel Convolutional Neural Network", section 3.2.
"""

import jax
import jax.numpy as jnp
from jax import lax

from ecotour_gan.convolutions.geometry import Geometry


def input_gradient(cotangent: jax.Array, kernel: jax.Array, geometry: Geometry) -> jax.Array:
    """The gradient of a SAME convolution with respect to its image.

    Args:
        cotangent: ``[batch, small height, small width, out]``.
        kernel: ``[kernel height, kernel width, in, out]``, of the same dtype.
        geometry: the layer's two axes.

    Returns:
        ``[batch, height, width, in]``.
    """
    rows, columns = geometry
    padding = []
    for number, axis in enumerate(geometry):
        # Offsets d at which some phase p has a tap: 0 <= p + low - stride·d < taps.
        first = -((axis.taps - 1 - axis.low) // axis.stride)
        last = (axis.stride - 1 + axis.low) // axis.stride
        # Row r of the split kernel holds the taps of offset d = last - r; zeros fill the rest.
        before = axis.stride * last - axis.low
        after = axis.stride * (last - first + 1) - before - axis.taps
        widths = [(0, 0)] * kernel.ndim
        widths[2 * number] = (before, after)
        kernel = jnp.pad(kernel, widths)
        split = (last - first + 1, axis.stride)
        kernel = kernel.reshape(
            *kernel.shape[: 2 * number], *split, *kernel.shape[2 * number + 1 :]
        )
        kernel = jnp.flip(kernel, 2 * number)
        # How many cotangents must be readable before the first block and after the last one.
        padding.append((-first, axis.blocks - 1 + last - (axis.out - 1)))
    # [offset, phase, offset, phase, in, out] -> [offset, offset, out, (phase, phase, in)]
    kernel = kernel.transpose(0, 2, 5, 1, 3, 4)
    channels = kernel.shape[-1]
    kernel = kernel.reshape(*kernel.shape[:3], -1)
    phases = lax.conv_general_dilated(
        cotangent, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    phases = phases.reshape(
        -1, rows.blocks, columns.blocks, rows.stride, columns.stride, channels
    ).transpose(0, 1, 3, 2, 4, 5)
    image = phases.reshape(-1, rows.blocks * rows.stride, columns.blocks * columns.stride, channels)
    return image[:, : rows.size, : columns.size]
