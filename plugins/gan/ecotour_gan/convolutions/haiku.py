"""The swap: a Haiku interceptor that computes convolution layers in the table's forms."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ecotour_gan.convolutions.geometry import Geometry
from ecotour_gan.convolutions.operations import convolution, convolution_transpose
from ecotour_gan.convolutions.table import XLA, Forms, forms_of

LOWERINGS = ("auto", "fast", "xla")


def resolve(form: str) -> str:
    """What ``form`` means here: ``"fast"`` or ``"xla"``.

    Raises:
        ValueError: ``form`` is none of ``"auto"``, ``"fast"``, ``"xla"``.
    """
    if form not in LOWERINGS:
        raise ValueError(f"lowering must be one of {', '.join(LOWERINGS)}; got {form!r}")
    if form == "auto":
        return "fast" if jax.default_backend() == "cpu" else "xla"
    return form


def describe(form: str) -> str:
    """What ``form`` means here, in words for the record of a run."""
    count = jax.local_device_count()
    spread = resolve(form) == "fast" and count > 1
    return resolve(form) + (f", the batch over {count} devices" if spread else "")


@contextmanager
def lowering(form: str) -> Iterator[None]:
    """Within this context Haiku's convolutions are computed in the given form.

    In the fast one their batch is spread over the devices, where JAX sees the CPU as several.

    Args:
        form: ``"fast"``: as the table says; ``"xla"``: as Haiku wrote them; ``"auto"``: fast
            on the CPU backend, XLA's own elsewhere.

    Raises:
        ValueError: another ``form``.
    """
    fast = resolve(form) == "fast"
    with hk.intercept_methods(_intercept) if fast else nullcontext():
        yield


def forms_ran(
    form: str, layer: str, image: tuple[int, int], kernel: tuple[int, int], stride: int
) -> Forms:
    """Which forms a layer runs in, for the record of a run.

    Args:
        form: as `lowering` takes it.
        layer: ``"convolution"`` or ``"transposed"``.
        image: height and width of the larger side (the output of a transposed convolution).
        kernel: height and width of the kernel.
        stride: of rows and columns.

    Returns:
        The form of each operation, named as the convolution names them: the value of a
        transposed convolution is an ``input_gradient``.
    """
    if resolve(form) == "xla":
        return XLA
    return forms_of(layer, Geometry.same(image, kernel, (stride, stride))) or XLA


def _intercept(
    next_method: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    context: hk.MethodContext,
) -> Any:
    module = context.module
    # Exactly Haiku's two classes: a subclass may mean something else by the same attributes.
    compute = _LAYERS.get(type(module))
    plain = (
        compute is not None
        and context.method_name == "__call__"
        # Parameters are made where Haiku makes them; the value computed meanwhile is not used.
        and not hk.running_init()
        and len(arguments) == 1
        and not keywords
        and module.mask is None
        and module.padding == "SAME"
        and module.data_format == "NHWC"
    )
    if plain and compute is not None:
        inputs = jnp.asarray(arguments[0])
        if inputs.ndim == 4 and jnp.issubdtype(inputs.dtype, jnp.floating):
            outputs = compute(module, _over_devices(inputs))
            if outputs is not None:
                return outputs
    return next_method(*arguments, **keywords)


def _over_devices(images: jax.Array) -> jax.Array:
    """A batch with as many images on each device; the gradients are then summed over devices.

    XLA divides single operations among a CPU's cores, and what it does not divide leaves all but
    one of them idle. Where JAX sees the CPU as several devices each core has a batch of its own.
    """
    devices = jax.local_devices()
    if len(images) % len(devices):
        return images
    mesh = jax.sharding.Mesh(np.array(devices), ("batch",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    return lax.with_sharding_constraint(images, spread)


def _convolution(module: hk.Conv2D, inputs: jax.Array) -> jax.Array | None:
    """The layer's output, or None where the table does not know the layer."""
    if module.feature_group_count != 1 or tuple(module.kernel_dilation) != (1, 1):
        return None
    image = (inputs.shape[1], inputs.shape[2])
    geometry = Geometry.same(image, module.kernel_shape, tuple(module.stride))
    forms = forms_of("convolution", geometry)
    if forms is None:
        return None
    kernel_shape = (*module.kernel_shape, inputs.shape[-1], module.output_channels)
    kernel = hk.get_parameter("w", kernel_shape, inputs.dtype, init=module.w_init)
    return _with_bias(module, convolution(inputs, kernel, geometry, forms))


def _convolution_transpose(module: hk.Conv2DTranspose, inputs: jax.Array) -> jax.Array | None:
    """The layer's output, or None where the table does not know the layer."""
    if module.output_shape is not None:
        return None
    strides = tuple(module.stride)
    image = (inputs.shape[1] * strides[0], inputs.shape[2] * strides[1])
    forms = forms_of("transposed", Geometry.same(image, module.kernel_shape, strides))
    if forms is None:
        return None
    kernel_shape = (*module.kernel_shape, module.output_channels, inputs.shape[-1])
    kernel = hk.get_parameter("w", kernel_shape, inputs.dtype, init=module.w_init)
    return _with_bias(module, convolution_transpose(inputs, kernel, strides, forms))


def _with_bias(module: hk.Conv2D | hk.Conv2DTranspose, outputs: jax.Array) -> jax.Array:
    if not module.with_bias:
        return outputs
    bias = hk.get_parameter("b", (module.output_channels,), outputs.dtype, init=module.b_init)
    return outputs + jnp.broadcast_to(bias, outputs.shape)


_LAYERS: dict[type, Callable[[Any, jax.Array], jax.Array | None]] = {
    hk.Conv2D: _convolution,
    hk.Conv2DTranspose: _convolution_transpose,
}
