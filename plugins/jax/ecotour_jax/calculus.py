"""Functions whose derivatives are known by heart, and how many digits JAX's derivatives agree.

Each formula states the function in JAX and its derivatives in NumPy, in float64: two independent
ways to the same numbers.
"""

# %% A function with closed forms
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

EXACT_DIGITS = 17.0
"""Shown where all digits agree; float64 has 15.95 of them, float32 has 7.22."""


@dataclass(frozen=True)
class Formula:
    """A function ``[n] -> []`` or ``[n] -> [m]`` and what is known about it.

    Attributes:
        name: How one would write it.
        function: The function, in JAX.
        jacobian: Its first derivative at a point, ``[n]`` or ``[m, n]``, in NumPy.
        hessian: Its second derivative ``[n, n]``, for a scalar function.
        point: ``[n]`` float64, where to compare.
    """

    name: str
    function: Callable[[jax.Array], jax.Array]
    jacobian: Callable[[np.ndarray], np.ndarray]
    hessian: Callable[[np.ndarray], np.ndarray] | None
    point: np.ndarray


# %% The formulas
def softmax_of(x: np.ndarray) -> np.ndarray:
    """[n] -> [n]."""
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def softmax_jacobian(x: np.ndarray) -> np.ndarray:
    """[n] -> [n, n]: diag(p) - p pᵀ."""
    p = softmax_of(x)
    return np.diag(p) - np.outer(p, p)


def iterate(x: jax.Array) -> jax.Array:
    """[1] -> []: the logistic map x -> 1.5 x (1 - x), 10 times, in one `lax.scan`."""
    last, _ = jax.lax.scan(lambda y, _: (1.5 * y * (1.0 - y), None), x[0], length=10)
    return last


def iterate_derivatives(x: np.ndarray) -> tuple[float, float]:
    """First and second derivative of `iterate`, by the chain rule over the 10 steps."""
    y, first, second = float(x[0]), 1.0, 0.0
    for _ in range(10):
        slope = 1.5 * (1.0 - 2.0 * y)
        first, second = slope * first, slope * second - 3.0 * first**2
        y = 1.5 * y * (1.0 - y)
    return first, second


def formulas(generator: np.random.Generator) -> list[Formula]:
    """Return the formulas, at points drawn from ``generator``."""
    x, size = generator.normal(size=6), 5
    root = generator.normal(size=(size, size))
    matrix = root @ root.T / size + np.eye(size)
    flat = (np.eye(size) + 0.1 * root @ root.T).reshape(-1)
    radius, angle = 1.0 + generator.uniform(), generator.uniform(0.3, 1.2)

    def log_determinant(entries: jax.Array) -> jax.Array:
        return jnp.linalg.slogdet(entries.reshape(size, size))[1]

    def second_of_log_determinant(entries: np.ndarray) -> np.ndarray:
        inverse = np.linalg.inv(entries.reshape(size, size))
        # d²/dX_ij dX_kl log det X = - (X⁻¹)_jk (X⁻¹)_li
        return -np.einsum("jk,li->ijkl", inverse, inverse).reshape(size**2, size**2)

    return [
        Formula(
            name="½ xᵀA x, A symmetric",
            function=lambda x: 0.5 * x @ jnp.asarray(matrix, x.dtype) @ x,
            jacobian=lambda x: matrix @ x,
            hessian=lambda x: matrix,
            point=x[:size],
        ),
        Formula(
            name="log Σ exp x",
            function=jax.nn.logsumexp,
            jacobian=softmax_of,
            hessian=softmax_jacobian,
            point=x,
        ),
        Formula(
            name="log det X",
            function=log_determinant,
            jacobian=lambda x: np.linalg.inv(x.reshape(size, size)).T.reshape(-1),
            hessian=second_of_log_determinant,
            point=flat,
        ),
        Formula(
            name="10 steps of a logistic map (scan)",
            function=iterate,
            jacobian=lambda x: np.array([iterate_derivatives(x)[0]]),
            hessian=lambda x: np.array([[iterate_derivatives(x)[1]]]),
            point=np.array([0.1 + 0.1 * generator.uniform()]),
        ),
        Formula(
            name="softmax x",
            function=jax.nn.softmax,
            jacobian=softmax_jacobian,
            hessian=None,
            point=x,
        ),
        Formula(
            name="polar to Cartesian",
            function=lambda p: p[0] * jnp.stack([jnp.cos(p[1]), jnp.sin(p[1])]),
            jacobian=lambda p: np.array(
                [[np.cos(p[1]), -p[0] * np.sin(p[1])], [np.sin(p[1]), p[0] * np.cos(p[1])]]
            ),
            hessian=None,
            point=np.array([radius, angle]),
        ),
    ]


FORMULAS = 6
OPERATORS = ("grad", "jacfwd", "jacrev", "jvp", "vjp", "hessian", "finite differences")


# %% JAX's side of the comparison: one compiled program with all operators
def direction(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """1, 2, 3 … in this shape: along which `jvp` pushes forward and `vjp` pulls back."""
    return np.arange(1, np.prod(shape) + 1, dtype=dtype).reshape(shape)


def differentiate(formula: Formula, dtype: Any) -> dict[str, np.ndarray]:
    """Apply every operator that fits; `jvp` and `vjp` get `direction`.

    Finite differences are there for comparison: ``(f(x + h) - f(x - h)) / 2h`` with the step that
    balances rounding against truncation, the cube root of the dtype's resolution.
    """
    f = formula.function

    def all_operators(x: jax.Array) -> dict[str, jax.Array]:
        value, pull_back = jax.vjp(f, x)
        results = {
            "jacfwd": jax.jacfwd(f)(x),
            "jacrev": jax.jacrev(f)(x),
            "jvp": jax.jvp(f, (x,), (direction(x.shape, dtype),))[1],
            "vjp": pull_back(direction(value.shape, dtype))[0],
        }
        if value.ndim == 0:
            results |= {"grad": jax.grad(f)(x), "hessian": jax.hessian(f)(x)}
        width = jnp.finfo(x.dtype).eps ** (1 / 3)
        shifts = width * jnp.eye(x.size, dtype=x.dtype)
        change = jax.vmap(lambda shift: f(x + shift) - f(x - shift))(shifts)
        return results | {"finite differences": jnp.moveaxis(change, 0, -1) / (2 * width)}

    results = jax.jit(all_operators)(jnp.asarray(formula.point, dtype))
    return {name: np.asarray(result, np.float64) for name, result in results.items()}


def closed_forms(formula: Formula, dtype: Any) -> dict[str, np.ndarray]:
    """What every operator should give, in float64, at the point as ``dtype`` holds it."""
    point = np.asarray(np.asarray(formula.point, dtype), np.float64)
    jacobian = formula.jacobian(point)
    first = dict.fromkeys(("grad", "jacfwd", "jacrev", "finite differences"), jacobian)
    matrix = jacobian.reshape(-1, len(point))  # a gradient is a Jacobian of one row
    known = first | {
        "jvp": (matrix @ direction(point.shape, np.float64)).reshape(jacobian.shape[:-1]),
        "vjp": direction(matrix.shape[:1], np.float64) @ matrix,
    }
    if formula.hessian is not None:
        known["hessian"] = formula.hessian(point)
    return known


def digits(got: np.ndarray, want: np.ndarray) -> float:
    """Decimal digits that agree: -log10 of the largest error over the largest value."""
    error = float(np.max(np.abs(got - want)) / np.max(np.abs(want)))
    return min(EXACT_DIGITS, -np.log10(error)) if error > 0 else EXACT_DIGITS


def agreement(formula: Formula) -> np.ndarray:
    """Digits ``[operators, 2]`` in float32 and float64; NaN where an operator does not apply."""
    result = np.full((len(OPERATORS), 2), np.nan)
    for column, dtype in enumerate((np.float32, np.float64)):
        with jax.enable_x64(True):
            got: Mapping[str, np.ndarray] = differentiate(formula, dtype)
        want = closed_forms(formula, dtype)
        for row, name in enumerate(OPERATORS):
            if name in got:
                result[row, column] = digits(got[name], want[name])
    return result
