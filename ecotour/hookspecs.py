"""The pluggy hooks, under their public name; see `ecotour.contract.hookspecs`."""

from ecotour.contract.hookspecs import (
    PROJECT,
    ecotour_demo,
    ecotour_sink,
    hookimpl,
    hookspec,
)

__all__ = [
    "PROJECT",
    "ecotour_demo",
    "ecotour_sink",
    "hookimpl",
    "hookspec",
]
