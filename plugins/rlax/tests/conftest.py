"""Strict dtype promotion. (The warnings of others stand in the root's pyproject.toml.)"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def strict_promotion() -> Iterator[None]:
    with jax.numpy_dtype_promotion("strict"):
        yield
