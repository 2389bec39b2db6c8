"""The closed forms against independent computations, and JAX against the closed forms."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import special

from ecotour_jax import calculus

FORMULAS = calculus.formulas(np.random.default_rng(5))


def numerically(formula: calculus.Formula, point: np.ndarray) -> np.ndarray:
    """The Jacobian by central differences of order 4, in float64."""
    columns = []
    with jax.enable_x64(True):
        for unit in np.eye(len(point)):
            f = [np.asarray(formula.function(jax.numpy.asarray(point + k * 1e-3 * unit)))
                 for k in (-2, -1, 1, 2)]  # fmt: skip
            columns.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / 12e-3)
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda one: one.name)
def test_closed_forms_are_derivatives(formula: calculus.Formula) -> None:
    np.testing.assert_allclose(
        formula.jacobian(formula.point), numerically(formula, formula.point), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize(
    "formula", [one for one in FORMULAS if one.hessian], ids=lambda one: one.name
)
def test_closed_hessians_are_derivatives_of_the_jacobian(formula: calculus.Formula) -> None:
    assert formula.hessian is not None
    width = 1e-5
    columns = [
        (formula.jacobian(formula.point + width * unit)
         - formula.jacobian(formula.point - width * unit)) / (2 * width)
        for unit in np.eye(len(formula.point))
    ]  # fmt: skip
    np.testing.assert_allclose(
        formula.hessian(formula.point), np.stack(columns, axis=-1), rtol=1e-5, atol=1e-8
    )


def test_softmax_is_scipys() -> None:
    x = np.array([1.0, -2.0, 30.0, 0.5])
    np.testing.assert_allclose(calculus.softmax_of(x), special.softmax(x), rtol=1e-14)


@pytest.mark.parametrize("seed", range(2))
def test_jax_agrees_to_the_digits_that_the_verdict_asks_for(seed: int) -> None:
    for formula in calculus.formulas(np.random.default_rng(seed)):
        digits = calculus.agreement(formula)
        exact, differences = digits[:-1], digits[-1]
        assert np.nanmin(exact[:, 0]) > 5.0, formula.name
        assert np.nanmin(exact[:, 1]) > 13.0, formula.name
        # finite differences balance two errors and so lose a third of the digits at least
        assert differences[1] < 12.0, formula.name
        applies = ~np.isnan(digits[:, 1])
        scalar = formula.hessian is not None
        assert applies.tolist() == [scalar, True, True, True, True, scalar, True]


def test_digits() -> None:
    want = np.array([1.0, 2.0])
    assert calculus.digits(want, want) == calculus.EXACT_DIGITS
    np.testing.assert_allclose(calculus.digits(np.array([1.0, 2.00002]), want), 5.0, rtol=1e-6)
    assert calculus.digits(-want, want) < 0  # a wrong sign has no digit right


def test_precision_is_set_back() -> None:
    before = jax.config.jax_enable_x64
    calculus.agreement(FORMULAS[0])
    assert jax.config.jax_enable_x64 == before
