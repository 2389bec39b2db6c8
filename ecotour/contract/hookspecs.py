"""The pluggy hooks of ecotour. The docstring of a hook is its manual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from ecotour.contract.demo import Demo
    from ecotour.contract.events import Sink
    from ecotour.contract.plan import Plan

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


@hookspec(firstresult=True)
def ecotour_sink(run_dir: Path, plan: Plan) -> Sink:
    """Return a sink: something that is called with every event of a run.

    Called once for each run that was asked to use it, before the first event. The module is
    announced in the distribution's metadata; the entry point's name is the flag that switches it
    on, and the distribution's description is the flag's help::

        [project]
        description = "TensorBoard event files of a run."

        [project.entry-points."ecotour.sinks"]
        tensorboard = "ecotour_tensorboard"

    A sink is ``Callable[[Event], None]`` with a method ``close()``, which is called once, also
    where the run breaks off (`ecotour.events` has the events). It writes into ``run_dir`` alone, in
    a directory of its own name. A sink that raises is dropped, with a warning, and the run goes on.

    Args:
        run_dir: The run's directory.
        plan: What the run was asked to do; of a hook's parameters, leave out what is not needed.
    """
    raise NotImplementedError  # pragma: no cover - pluggy calls implementations only
