"""Every test runs under strict dtype promotion, and with a cache directory of its own."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("ECOTOUR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    patch.delenv("ECOTOUR_DISABLE", raising=False)


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
