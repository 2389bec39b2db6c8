"""Faster convolutions for Haiku on CPU, swapped in from outside the model.

    with lowering("auto"):
        logits = discriminator.apply(parameters, images)

Inside the context every `hk.Conv2D` and `hk.Conv2DTranspose` keeps its parameters and its
numbers (up to rounding) and is computed in the form that `table` names for its shape. Enter it
inside the pure function that is traced, so that the tracing sees it. ``"auto"`` is fast on the
CPU backend and XLA's own elsewhere. Where JAX sees the CPU as several devices, the batch is spread
over them as well. Not part of a model: a layer with a mask, a dilation, groups, another padding or
another data format runs as Haiku wrote it.

    geometry     SAME padding, one axis at a time
    phases       strided input gradients without zeros (sub-pixel form)
    bilinear     small images with fewer multiplications (Toom-Cook, Fourier)
    operations   a layer's three operations, each in its own form
    table        which form is used where
    haiku        the interceptor
"""

from ecotour_gan.convolutions.haiku import describe, forms_ran, lowering, resolve

__all__ = ["describe", "forms_ran", "lowering", "resolve"]
