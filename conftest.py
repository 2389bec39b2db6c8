"""For the tests of the core and of every plugin, which is why it lies above them all.

Every test runs under strict dtype promotion, and with a cache directory of its own.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

# A shell starts a job in the background with SIGINT ignored, nohup with SIGHUP, and whoever is
# started inherits that: the tests of signals would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# With one device: the first demo that a test runs in this process would else choose for all others.
jax.devices()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("ECOTOUR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    patch.delenv("ECOTOUR_DISABLE", raising=False)


@pytest.fixture(autouse=True)
def strict_promotion() -> Iterator[None]:
    """No silent mixing of dtypes, anywhere."""
    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def standard_promotion(strict_promotion: None) -> Iterator[None]:
    """For a test of steps with Optax's Adam: it raises a float to an integer power."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget_programs() -> Iterator[None]:
    """Compiled programs stay in memory else: some gigabytes by the last test."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _own_path() -> Iterator[None]:
    """A demo in a file brings its directory along: the next test shall not import from there."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
