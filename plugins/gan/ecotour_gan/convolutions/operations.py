"""A convolution and its transpose, each of the three operations in the form of its own choice.

A convolution layer is three computations: the forward pass, the gradient with respect to its
image, and the gradient with respect to its kernel. All three are linear in what they
differentiate, so one form of the forward pass gives a form of each gradient by transposition,
and JAX transposes. The transposed convolution is the same three with the first two exchanged.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from ecotour_gan.convolutions import bilinear, phases
from ecotour_gan.convolutions.geometry import Geometry
from ecotour_gan.convolutions.table import Forms

Strides = tuple[int, int]


def _xla(image: jax.Array, kernel: jax.Array, geometry: Geometry) -> jax.Array:
    """XLA's own convolution."""
    return lax.conv_general_dilated(
        image,
        kernel,
        (geometry.rows.stride, geometry.columns.stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _toom_cook(image: jax.Array, kernel: jax.Array, geometry: Geometry) -> jax.Array:
    return bilinear.forward(image, kernel, geometry, bilinear.toom_cook(geometry))


def _fourier(image: jax.Array, kernel: jax.Array, geometry: Geometry) -> jax.Array:
    return bilinear.forward(image, kernel, geometry, bilinear.fourier(geometry))


FORWARD: dict[str, Callable[[jax.Array, jax.Array, Geometry], jax.Array]] = {
    "xla": _xla,
    "toom-cook": _toom_cook,
    "fourier": _fourier,
}
"""Every form of the forward pass, by the name that the table uses."""


def forward(form: str, image: jax.Array, kernel: jax.Array, geometry: Geometry) -> jax.Array:
    """The SAME convolution of ``[batch, height, width, in]``."""
    return FORWARD[form](image, kernel, geometry)


def input_gradient(
    form: str, cotangent: jax.Array, kernel: jax.Array, geometry: Geometry
) -> jax.Array:
    """The gradient with respect to the image, ``[batch, height, width, in]``."""
    if form == "phases":
        return phases.input_gradient(cotangent, kernel, geometry)
    shape = (cotangent.shape[0], geometry.rows.size, geometry.columns.size, kernel.shape[2])
    image = jax.ShapeDtypeStruct(shape, cotangent.dtype)
    transpose = jax.linear_transpose(lambda x: forward(form, x, kernel, geometry), image)
    gradient: jax.Array = transpose(cotangent)[0]
    return gradient


def weight_gradient(
    form: str, image: jax.Array, cotangent: jax.Array, geometry: Geometry
) -> jax.Array:
    """The gradient with respect to the kernel, ``[kernel height, kernel width, in, out]``."""
    shape = (geometry.rows.taps, geometry.columns.taps, image.shape[-1], cotangent.shape[-1])
    kernel = jax.ShapeDtypeStruct(shape, image.dtype)
    transpose = jax.linear_transpose(lambda w: forward(form, image, w, geometry), kernel)
    gradient: jax.Array = transpose(cotangent)[0]
    return gradient


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def convolution(image: jax.Array, kernel: jax.Array, geometry: Geometry, forms: Forms) -> jax.Array:
    """A SAME convolution whose three operations run in the given forms.

    Args:
        image: ``[batch, height, width, in]``.
        kernel: ``[kernel height, kernel width, in, out]``, of the same dtype.
        geometry: the layer's two axes.
        forms: the form of each operation.

    Returns:
        ``[batch, small height, small width, out]``.
    """
    return forward(forms.forward, image, kernel, geometry)


def _convolution_forward(
    image: jax.Array, kernel: jax.Array, geometry: Geometry, forms: Forms
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return forward(forms.forward, image, kernel, geometry), (image, kernel)


def _convolution_backward(
    geometry: Geometry,
    forms: Forms,
    residuals: tuple[jax.Array, jax.Array],
    cotangent: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    image, kernel = residuals
    return (
        input_gradient(forms.input_gradient, cotangent, kernel, geometry),
        weight_gradient(forms.weight_gradient, image, cotangent, geometry),
    )


convolution.defvjp(_convolution_forward, _convolution_backward)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def transposed(small: jax.Array, kernel: jax.Array, geometry: Geometry, forms: Forms) -> jax.Array:
    """The input gradient of a convolution as a layer of its own.

    ``forms`` are named by what the *convolution* would call the operation: this layer's value is
    the convolution's input gradient, and this layer's input gradient its forward pass.

    Args:
        small: ``[batch, small height, small width, out]`` in the convolution's terms.
        kernel: ``[kernel height, kernel width, in, out]``, of the same dtype.
        geometry: the convolution's two axes.
        forms: the form of each operation.

    Returns:
        ``[batch, height, width, in]``.
    """
    return input_gradient(forms.input_gradient, small, kernel, geometry)


def _transposed_forward(
    small: jax.Array, kernel: jax.Array, geometry: Geometry, forms: Forms
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return transposed(small, kernel, geometry, forms), (small, kernel)


def _transposed_backward(
    geometry: Geometry,
    forms: Forms,
    residuals: tuple[jax.Array, jax.Array],
    cotangent: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    small, kernel = residuals
    return (
        forward(forms.forward, cotangent, kernel, geometry),
        weight_gradient(forms.weight_gradient, cotangent, small, geometry),
    )


transposed.defvjp(_transposed_forward, _transposed_backward)


def convolution_transpose(
    small: jax.Array, kernel: jax.Array, strides: Strides, forms: Forms
) -> jax.Array:
    """`lax.conv_transpose` with SAME padding and Haiku's kernel layout.

    Args:
        small: ``[batch, height, width, in]``.
        kernel: ``[kernel height, kernel width, out, in]``, not mirrored: the layer is the
            transpose of a convolution with the mirrored kernel.
        strides: of rows and columns.
        forms: the form of each operation, by the convolution's names.

    Returns:
        ``[batch, height·stride, width·stride, out]``.
    """
    image = (small.shape[1] * strides[0], small.shape[2] * strides[1])
    geometry = Geometry.same(image, (kernel.shape[0], kernel.shape[1]), strides)
    return transposed(small, jnp.flip(kernel, (0, 1)), geometry, forms)
