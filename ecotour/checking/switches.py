"""The finding on JAX's own debugging switches: which of them a demo does not stand."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import jax

from ecotour.checking import bench
from ecotour.checking.purity import STATE
from ecotour.checking.subject import Subject
from ecotour.checking.table import Fault, finding

SWITCHES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "JAX_NUMPY_DTYPE_PROMOTION=strict": lambda: jax.numpy_dtype_promotion("strict"),
    "JAX_NUMPY_RANK_PROMOTION=raise": lambda: jax.numpy_rank_promotion("raise"),
    "JAX_TRANSFER_GUARD=disallow": lambda: jax.transfer_guard("disallow"),
    "JAX_CHECK_TRACER_LEAKS=1": jax.checking_leaks,
    "JAX_ENABLE_CHECKS=1": lambda: jax.enable_checks(True),
}
"""As a user sets it: a context that is the same for a while. ``JAX_DEBUG_KEY_REUSE`` and
``JAX_DEBUG_NANS`` have findings of their own, ``key-reuse`` and ``metric-finite``."""


def said_under(subject: Subject, *names: str) -> str:
    """What the demo says where it is imported anew, built and traced under these switches."""
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(SWITCHES[name]())
        try:
            subject.shapes_of_another_life()
        except Fault as fault:
            return fault.detail
    return ""


@finding(
    "switches",
    "The demo does not stand a debugging switch of JAX",
    "It mixes dtypes or ranks, makes arrays as it is imported, or keeps a tracer; who sets the "
    "switch for an own step is stopped here instead",
    "Cast with .astype, give the missing axes with x[None], make arrays in init; where a "
    "library's code cannot pass, put jax.numpy_dtype_promotion('standard') or its like around "
    "that call alone",
    after=("settings", "x64", *STATE),
)
def switches(subject: Subject) -> Iterator[str]:
    """The demo, imported anew and traced under all of the switches; each by itself where it fails.

    Strict dtype and rank promotion, the transfer guard, tracer leaks and JAX's internal checks.
    """
    bench.straight(subject)
    if not said_under(subject, *SWITCHES):
        return
    for name in SWITCHES:
        if said := said_under(subject, name):
            yield f"{name}: {said}"
