"""ecotour: a guided, runnable tour of the JAX ecosystem.

This module is the map of what a demo writes against; it imports none of these names until one is
asked for, so that ``ecotour --help`` and ``ecotour list`` start at once. Public besides:
`ecotour.events` and `ecotour.hookspecs` for sinks, `ecotour.errors`, `ecotour.testing`. All else
has a room, whose ``__init__`` says what lives in it; docs/architecture.md has the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ecotour.machine.version import __version__

if TYPE_CHECKING:
    from ecotour import datasets
    from ecotour.contract import exhibits
    from ecotour.contract.demo import (
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
    from ecotour.contract.hookspecs import hookimpl
    from ecotour.contract.plan import Plan

_HOME = {
    "Check": "contract.demo",
    "DataInfo": "contract.demo",
    "Dataset": "contract.demo",
    "Demo": "contract.demo",
    "Digits": "contract.demo",
    "Outcome": "contract.demo",
    "Plan": "contract.plan",
    "Program": "contract.demo",
    "Series": "contract.demo",
    "Step": "contract.demo",
    "Verdict": "contract.demo",
    "flag": "contract.demo",
    "hookimpl": "contract.hookspecs",
}

__all__ = [
    "Check",
    "DataInfo",
    "Dataset",
    "Demo",
    "Digits",
    "Outcome",
    "Plan",
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
