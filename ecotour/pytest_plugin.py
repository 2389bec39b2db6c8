"""Fixtures for tests of demos; pytest finds them by itself where ecotour is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ecotour.testing import Ran


@pytest.fixture
def only_demos(tmp_path: Path) -> Iterator[Path]:
    """An empty directory of modules; discovery sees what is installed there and nothing else."""
    from ecotour import testing

    site = tmp_path / "site"
    site.mkdir()
    with testing.only(site):
        yield site


@pytest.fixture
def throwaway(only_demos: Path) -> Callable[..., str]:
    """``throwaway(name, source, **metadata)`` installs a plugin for this test.

    The metadata is that of `ecotour.testing.install`.
    """
    from ecotour import testing

    def build(name: str, source: str | None, **metadata: Any) -> str:
        return testing.install(only_demos, name, source, **metadata)

    return build


@pytest.fixture
def run_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """``run_demo(name_or_file, *flags)`` runs a demo and returns a `testing.Ran`.

    Runs and compiled programs stay in the test's own directory.
    """
    from ecotour import testing

    monkeypatch.setenv("ECOTOUR_CACHE_DIR", str(tmp_path / "cache"))
    count = iter(range(1_000_000))

    def carry_out(demo: str | Path, *flags: str) -> Ran:
        return testing.run(demo, tmp_path / "runs" / str(next(count)), *flags)

    return carry_out
