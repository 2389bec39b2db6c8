"""ecotour: a guided, runnable tour of the JAX ecosystem.

This module is the map of all public names; it imports none of them until one is asked for, so
that ``ecotour --help`` and ``ecotour list`` start at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecotour import datasets, exhibits
    from ecotour.demo import (
        Check,
        DataInfo,
        Dataset,
        Demo,
        Digits,
        Outcome,
        Program,
        Series,
        Step,
        Verdict,
        flag,
    )
    from ecotour.hookspecs import hookimpl

__version__ = "0.1.0"

_HOME = {
    "Check": "demo",
    "DataInfo": "demo",
    "Dataset": "demo",
    "Demo": "demo",
    "Digits": "demo",
    "Outcome": "demo",
    "Program": "demo",
    "Series": "demo",
    "Step": "demo",
    "Verdict": "demo",
    "flag": "demo",
    "hookimpl": "hookspecs",
}

__all__ = [
    "Check",
    "DataInfo",
    "Dataset",
    "Demo",
    "Digits",
    "Outcome",
    "Program",
    "Series",
    "Step",
    "Verdict",
    "__version__",
    "datasets",
    "exhibits",
    "flag",
    "hookimpl",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _HOME:
        return getattr(importlib.import_module(f"ecotour.{_HOME[name]}"), name)
    if name in ("datasets", "exhibits"):
        return importlib.import_module(f"ecotour.{name}")
    raise AttributeError(f"module 'ecotour' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
