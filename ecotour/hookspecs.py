"""The pluggy hooks of ecotour. The docstring of a hook is its manual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from ecotour.demo import Demo

PROJECT = "ecotour"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def ecotour_demo() -> Demo:
    """Return the demo that this plugin provides.

    Called once, when somebody asks for the demo by name; never for ``ecotour list``. A plugin
    module has exactly one implementation, as its last cell::

        @ecotour.hookimpl
        def ecotour_demo() -> ecotour.Demo:
            return ecotour.Demo(summary="…", config=Config, build=build)

    The module is announced in the distribution's metadata; the entry point's name is the name
    that users type::

        [project.entry-points."ecotour.demos"]
        gan = "ecotour_gan.demo"

    The hook does no work: it reads no data, prints nothing and touches no device. That is the
    business of ``build`` and of the steps.
    """
    raise NotImplementedError  # pragma: no cover - pluggy calls implementations only
