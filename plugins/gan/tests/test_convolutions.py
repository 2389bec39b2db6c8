"""Every form against XLA's own convolution: values and gradients, and the swap from outside."""

from collections.abc import Callable, Iterator
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ecotour_gan.convolutions import bilinear, forms_ran, lowering, resolve
from ecotour_gan.convolutions.geometry import Geometry
from ecotour_gan.convolutions.operations import (
    FORWARD,
    convolution,
    convolution_transpose,
    forward,
    input_gradient,
    weight_gradient,
)
from ecotour_gan.convolutions.table import TABLE, XLA, Forms

SHAPES = [((7, 7), (5, 5)), ((4, 7), (3, 4)), ((5, 3), (5, 5)), ((1, 1), (5, 5)), ((2, 6), (1, 2))]
STRIDES = [(1, 1), (2, 2), (2, 1), (3, 2)]


@pytest.fixture
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def reference(image: jax.Array, kernel: jax.Array, strides: tuple[int, int]) -> jax.Array:
    return lax.conv_general_dilated(
        image, kernel, strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def problem(
    seed: int,
    image: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dtype: str = "float64",
) -> tuple[Any, Any, Any, Geometry]:
    """A random image, kernel and cotangent; batch and channels drawn too, one of each included."""
    draw = np.random.default_rng(seed)
    batch, inputs, outputs = draw.integers(1, 4, 3)
    geometry = Geometry.same(image, kernel, strides)
    small = (geometry.rows.out, geometry.columns.out)
    shapes = ((batch, *image, inputs), (*kernel, inputs, outputs), (batch, *small, outputs))
    x, w, g = (draw.standard_normal(shape).astype(dtype) for shape in shapes)
    return x, w, g, geometry


def knows(form: str, geometry: Geometry) -> bool:
    """Fourier points are laid out for stride 1 alone."""
    return form != "fourier" or geometry.rows.stride == geometry.columns.stride == 1


@pytest.mark.parametrize("form", FORWARD)
@pytest.mark.parametrize("strides", STRIDES)
def test_the_three_operations_agree_with_xla(
    form: str, strides: tuple[int, int], float64: None
) -> None:
    for seed, (image, kernel) in enumerate(SHAPES):
        x, w, g, geometry = problem(seed, image, kernel, strides)
        value, transpose = jax.vjp(lambda x, w, s=strides: reference(x, w, s), x, w)
        if not knows(form, geometry):
            with pytest.raises(ValueError, match="stride 1"):
                forward(form, x, w, geometry)
            continue
        by_image, by_kernel = transpose(jnp.asarray(g))
        # Eleven Toom-Cook points cost about five of float64's sixteen digits.
        close = {"rtol": 1e-8, "atol": 1e-9}
        np.testing.assert_allclose(forward(form, x, w, geometry), value, **close)
        np.testing.assert_allclose(input_gradient(form, g, w, geometry), by_image, **close)
        np.testing.assert_allclose(weight_gradient(form, x, g, geometry), by_kernel, **close)


@pytest.mark.parametrize("strides", STRIDES)
def test_phases_agree_with_xla(strides: tuple[int, int], float64: None) -> None:
    for seed, (image, kernel) in enumerate([*SHAPES, ((14, 14), (5, 5)), ((9, 28), (4, 3))]):
        x, w, g, geometry = problem(seed, image, kernel, strides)
        _, transpose = jax.vjp(lambda x, w=w, s=strides: reference(x, w, s), x)
        ours = input_gradient("phases", g, w, geometry)
        np.testing.assert_allclose(ours, transpose(jnp.asarray(g))[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.layer}-{row.size}-{row.stride}")
@pytest.mark.parametrize(
    ("dtype", "bound"), [("float64", 1e-12), ("float32", 1e-5)], ids=["64", "32"]
)
def test_every_row_of_the_table(row: Any, dtype: str, bound: float, float64: None) -> None:
    """Values and both gradients within a bound, relative to the largest number, dtype kept."""
    forms, strides = TABLE[row], (row.stride, row.stride)
    draw = np.random.default_rng(row.size)
    small = -(-row.size // row.stride)
    sides = (row.size, small) if row.layer == "convolution" else (small, row.size)
    x = draw.standard_normal((5, sides[0], sides[0], 16)).astype(dtype)
    g = draw.standard_normal((5, sides[1], sides[1], 24)).astype(dtype)
    ours: Callable[..., jax.Array]
    theirs: Callable[..., jax.Array]
    if row.layer == "convolution":
        w = draw.standard_normal((row.taps, row.taps, 16, 24)).astype(dtype)
        geometry = Geometry.same((row.size, row.size), (row.taps, row.taps), strides)

        def ours(x: jax.Array, w: jax.Array) -> jax.Array:
            return convolution(x, w, geometry, forms)

        def theirs(x: jax.Array, w: jax.Array) -> jax.Array:
            return reference(x, w, strides)
    else:
        w = draw.standard_normal((row.taps, row.taps, 24, 16)).astype(dtype)

        def ours(x: jax.Array, w: jax.Array) -> jax.Array:
            return convolution_transpose(x, w, strides, forms)

        def theirs(x: jax.Array, w: jax.Array) -> jax.Array:
            numbers = ("NHWC", "HWOI", "NHWC")
            return lax.conv_transpose(x, w, strides, "SAME", dimension_numbers=numbers)

    def with_gradients(layer: Callable[..., jax.Array], *operands: Any) -> list[jax.Array]:
        value, transpose = jax.vjp(layer, *operands[:2])
        return [value, *transpose(operands[2])]

    mine = jax.jit(lambda *operands: with_gradients(ours, *operands))(x, w, g)
    exact = with_gradients(theirs, *(jnp.asarray(a, "float64") for a in (x, w, g)))
    for number, wanted in zip(mine, exact, strict=True):
        assert number.dtype == dtype
        assert number.shape == wanted.shape
        error = np.abs(np.asarray(number, "float64") - wanted).max() / np.abs(wanted).max()
        assert error < bound


def test_the_number_of_multiplications() -> None:
    """121 Fourier points for 7x7 by 5x5 at stride 1, 10x10 Toom-Cook points at stride 2."""
    one, two = (Geometry.same((7, 7), (5, 5), (s, s)) for s in (1, 2))
    assert bilinear.fourier(one).image.shape == (121, 49)
    assert bilinear.toom_cook(two).image.shape == (100, 49)


def network(x: jax.Array) -> jax.Array:
    """One layer of every row of the table, and one that no row knows."""
    x = hk.Conv2DTranspose(6, 5, 2)(x)
    x = hk.Conv2DTranspose(1, 5, 2, with_bias=False)(x)
    for channels, kernel, stride in [(3, 5, 2), (4, 3, 1), (5, 5, 2), (6, 5, 1), (7, 5, 2)]:
        x = jnp.sin(hk.Conv2D(channels, kernel, stride, b_init=hk.initializers.Constant(0.1))(x))
    return x


def count_convolutions(run: Callable[..., Any], *operands: Any) -> int:
    return str(jax.make_jaxpr(run)(*operands)).count("conv_general_dilated[")


def test_the_swapped_network_has_the_same_parameters_and_numbers() -> None:
    model = hk.without_apply_rng(hk.transform(network))
    x = jnp.asarray(np.random.default_rng(0).standard_normal((3, 7, 7, 2)), "float32")
    plain = model.init(jax.random.key(1), x)

    def loss(params: Any, x: jax.Array, form: str) -> jax.Array:
        with lowering(form):
            return jnp.sum(jnp.square(model.apply(params, x)))

    with lowering("fast"):
        swapped = model.init(jax.random.key(1), x)
    jax.tree.map(np.testing.assert_array_equal, plain, swapped)
    assert count_convolutions(lambda p: loss(p, x, "fast"), plain) < count_convolutions(
        lambda p: loss(p, x, "xla"), plain
    )
    run = jax.jit(jax.value_and_grad(loss, (0, 1)), static_argnums=2)
    fast, slow = run(plain, x, "fast"), run(plain, x, "xla")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), fast, slow)


def test_vmap_over_parameters() -> None:
    model = hk.without_apply_rng(hk.transform(network))
    x = jnp.ones((2, 7, 7, 2))
    keys = jax.random.split(jax.random.key(0), 3)
    params = jax.vmap(model.init, (0, None))(keys, x)

    @jax.jit
    def gradient(params: Any) -> Any:
        with lowering("fast"):
            return jax.grad(lambda p: jnp.sum(jnp.square(model.apply(p, x))))(params)

    together = jax.jit(jax.vmap(gradient))(params)
    for number in range(3):
        alone = gradient(jax.tree.map(lambda leaf, n=number: leaf[n], params))
        jax.tree.map(
            lambda a, b, n=number: np.testing.assert_allclose(a[n], b, rtol=1e-4, atol=1e-4),
            together,
            alone,
        )


@pytest.mark.parametrize(
    "make",
    [
        lambda: hk.Conv2D(4, 5, 2, padding="VALID"),
        lambda: hk.Conv2D(4, 5, 1, rate=2),
        lambda: hk.Conv2D(4, 5, 1, feature_group_count=2),
        lambda: hk.Conv2D(4, 5, 1, mask=np.ones((5, 5, 4, 4), "float32")),
        lambda: hk.Conv2D(4, 5, 1, data_format="NCHW"),
        lambda: hk.Conv2D(4, (5, 3), 1),
        lambda: hk.Conv2D(4, 5, 3),
        lambda: hk.Conv2DTranspose(4, 5, 2, output_shape=13),
    ],
)
def test_what_the_table_does_not_know_runs_as_haiku_wrote_it(make: Callable[[], Any]) -> None:
    model = hk.without_apply_rng(hk.transform(lambda x: make()(x)))
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 7, 7, 4)), "float32")
    params = model.init(jax.random.key(0), x)
    wanted = model.apply(params, x)
    with lowering("fast"):
        np.testing.assert_array_equal(model.apply(params, x), wanted)
        assert count_convolutions(model.apply, params, x) == 1


def test_the_record_says_which_form_ran() -> None:
    toom_cook = Forms("toom-cook", "toom-cook", "toom-cook")
    assert forms_ran("fast", "convolution", (7, 7), (5, 5), 2) == toom_cook
    assert forms_ran("fast", "convolution", (9, 9), (5, 5), 2) == XLA
    assert forms_ran("fast", "transposed", (28, 28), (5, 5), 2).input_gradient == "phases"
    assert forms_ran("xla", "convolution", (7, 7), (5, 5), 2) == XLA


def test_auto_is_fast_on_cpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for backend, wanted in [("cpu", "fast"), ("gpu", "xla"), ("tpu", "xla")]:
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        assert resolve("auto") == wanted


def test_an_unknown_lowering_is_named() -> None:
    message = "lowering must be one of auto, fast, xla; got 'quick'"
    with pytest.raises(ValueError, match=message), lowering("quick"):
        pass
