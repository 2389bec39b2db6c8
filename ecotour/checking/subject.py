"""The demo under test: loaded, built, and run for a few steps through the ordinary runner."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ecotour.checking.settings import LOOSE, changes, restore, settings
from ecotour.checking.surroundings import Watch
from ecotour.checking.table import Fault, Unproved
from ecotour.checking.time_limit import TooLong
from ecotour.contract.demo import Demo, Program, Step
from ecotour.discovery import registry
from ecotour.errors import ContractError, EcotourError

STEPS = 4
EAGER_STEPS = 2
SMALL_BATCH = 8
Value = TypeVar("Value")

_NO_ARRAY = re.compile(
    r"a value of type .+ at output component (?P<at>\S+), which is not a valid JAX type"
)
"""What a `jax.jit` of the demo's own says before we can look at what its function returned."""


class Subject:
    """A demo and what a check needs of it; each thing is made once, when it is first asked for.

    A thing that cannot be made raises the same `Fault` each time.
    """

    def __init__(
        self,
        load: Callable[[], tuple[registry.Entry, Demo]],
        flags: Sequence[str] = (),
        *,
        own: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Check what ``load`` gives.

        Args:
            load: Finds and imports the demo.
            flags: Words of a command line for the demo's own configuration.
            own: Whether a source file is the demo's own.
        """
        self._load, self._flags = load, flags
        self._made: dict[str, Any] = {}
        self.watch = Watch(own)
        self.import_cpu_s: float | None = None
        self.jax_cpu_s = 0.0
        self.discovery: list[str] | None = None
        self.changed: list[str] = []
        self.totals: dict[str, int] = {}
        self.without_jit_s = 0.0

    def once(self, what: str, make: Callable[[], Value]) -> Value:
        """The value of ``make``, or what it raised; carried out at the first call."""
        if what not in self._made:
            try:
                self._made[what] = make()
            except (Fault, Unproved) as error:
                self._made[what] = error
        made = self._made[what]
        if isinstance(made, Fault | Unproved):
            raise made
        value: Value = made
        return value

    @property
    def demo(self) -> Demo:
        """What the hook returned."""
        return self.loaded[1]

    @property
    def loaded(self) -> tuple[registry.Entry, Demo]:
        """Where it comes from, and the demo."""
        return self.once("loaded", lambda: self._loading(self._load))

    @property
    def config(self) -> Any:
        """The configuration: the defaults, a small batch where there is one, the user's flags."""
        return self.once("config", partial(self._configure, self.loaded[1]))

    @property
    def program(self) -> Program:
        """The program of the first build, shortened."""
        return self.once("program", lambda: self.build(self.demo, self.config))

    def another(self, n: int) -> Program:
        """The program of another build, as another process would have it."""
        return self.once(f"program {n}", lambda: self.build(self.demo, self.config))

    @property
    def compiled(self) -> list[str]:
        """Names of the steps that are compiled."""
        return [name for name, step in self.program.steps.items() if step.compiled]

    def live_again(self) -> None:
        """Load and trace the demo a second time, and note which settings that changes.

        Its libraries are loaded by now, so what changes is the demo's own doing.
        """
        before = self.once("before", settings)
        with contextlib.suppress(ContractError):
            shapes_of(self.program)  # the first life ends here
        first = changes(before, settings())
        restore(before)
        try:
            self.shapes_of_another_life()
        except Exception:  # noqa: BLE001 - some modules cannot be imported twice
            self.changed = first
        else:
            self.changed = changes(before, settings())
        restore(before)

    def shapes_of_another_life(self) -> dict[str, tuple[Any, Any]]:
        """Import the demo's own modules anew, build, and trace its steps (`shapes_of`).

        Raises:
            Fault: It cannot be done.
        """
        with fresh_modules(self.watch.is_own):
            _, demo = self._loading(self._load)
            return shapes_of(self.build(demo, self._configure(demo)))

    def changed_since(self) -> list[str]:
        """Settings that steps, views and the judge have changed."""
        before = self.once("before", settings)
        return [one for one in changes(before, settings()) if not one.startswith(LOOSE)]

    def build(self, demo: Demo, config: Any) -> Program:
        """A program whose steps are few, and whose exceptions say where they come from."""
        try:
            program = demo.build(config)
        except EcotourError as error:
            raise Fault("needs", str(error)) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise self._fault("build-fails", "", error) from error
        if not isinstance(program, Program) or not program.steps:
            what = "a Program without steps" if isinstance(program, Program) else _kind(program)
            raise Fault("build-returns", f"it returned {what}")
        self.totals = {name: step.steps for name, step in program.steps.items()}
        steps = {name: self._tagged(name, step) for name, step in program.steps.items()}
        judge = self._guard("judge-fails", "", program.judge)
        return dataclasses.replace(program, steps=steps, judge=judge)

    def _loading(
        self, load: Callable[[], tuple[registry.Entry, Demo]]
    ) -> tuple[registry.Entry, Demo]:
        began = time.process_time()
        try:
            loaded = load()
        except registry.LoadError as error:
            if self.watch.reached:
                raise Fault("offline", f"{error}; it asked for {self.watch.reached[0]}") from error
            raise Fault(error.finding, str(error)) from error
        if self.import_cpu_s is None:
            self.import_cpu_s = time.process_time() - began
        return loaded

    def _configure(self, demo: Demo) -> Any:
        from ecotour.contract import flags

        try:
            described = {flag.name: flag for flag in flags.describe(demo.config)}
        except EcotourError as error:
            raise Fault("config", str(error)) from error
        words = list(self._flags)
        batch = described.get("--batch-size")
        if batch and isinstance(batch.default, int) and "--batch-size" not in words:
            small = max(SMALL_BATCH, int(batch.bounds.get("at_least", 1)))
            if small < batch.default:
                words += ["--batch-size", str(small)]
        return flags.parse(demo.config, words)

    def _tagged(self, name: str, step: Step) -> Step:
        return dataclasses.replace(
            step,
            init=self._guard("init-fails", name, _init(name, step)),
            step=self._guard("step-fails", name, _update(name, step)),
            view=step.view and self._view(name, step.view),
            steps=STEPS if step.compiled else min(EAGER_STEPS, step.steps),
        )

    def _view(self, name: str, view: Callable[..., Any]) -> Callable[..., Any]:
        guarded = self._guard("view-fails", name, view)

        def seen(*arguments: Any) -> Any:
            shown = guarded(*arguments)
            if not isinstance(shown, Mapping):
                raise Fault("exhibit", f"it returned {type(shown).__name__}, not a mapping", name)
            return shown

        return seen

    def _guard(self, id: str, of: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except (ContractError, KeyboardInterrupt):
                raise
            except BaseException as error:
                from jax.errors import KeyReuseError

                if isinstance(error, KeyReuseError | TooLong):
                    raise
                if "has been deleted" in str(error):
                    raise Fault("donation", f"{id.partition('-')[0]}: {error}", of) from error
                raise self._fault(id, of, error) from error

        return guarded

    def _fault(self, id: str, of: str, error: BaseException) -> Fault:
        if isinstance(error, Fault):
            return error
        if self.watch.reached:
            return Fault("offline", f"{_said(error)}; it asked for {self.watch.reached[0]}", of)
        if id in ("init-fails", "step-fails") and (found := _NO_ARRAY.search(str(error))):
            in_metrics = id == "step-fails" and found["at"].startswith("[1]")
            return Fault("metrics" if in_metrics else "state-leaf", found[0], of)
        return Fault(id, _said(error) + self._where(error), of)

    def _where(self, error: BaseException) -> str:
        """The last of the demo's own lines on the way to ``error``."""
        place, trace = "", error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if self.watch.is_own(file):
                place = f", {Path(file).name} line {trace.tb_lineno}"
            trace = trace.tb_next
        return place


@contextlib.contextmanager
def fresh_modules(is_own: Callable[[str], bool]) -> Iterator[None]:
    """Forget the demo's own modules, so that they are imported anew, and take them back after."""
    mine = {
        name: module
        for name, module in sys.modules.items()
        if is_own(getattr(module, "__file__", None) or "")
    }
    for name in mine:
        del sys.modules[name]
    try:
        yield
    finally:
        for name, module in list(sys.modules.items()):
            if is_own(getattr(module, "__file__", None) or ""):
                del sys.modules[name]
        sys.modules.update(mine)


def shapes_of(program: Program) -> dict[str, tuple[Any, Any]]:
    """For each compiled step, the trees of shapes before and after a step. Runs nothing."""
    import jax

    from ecotour.checking.batches import batch_of
    from ecotour.running.keys import keys_of

    keys = keys_of(0)
    batch = batch_of(program, keys["feed"])
    found = {}
    for name, step in program.steps.items():
        if step.compiled:
            state = jax.eval_shape(step.init, keys["init"], batch)
            after, _ = jax.eval_shape(step.step, state, batch, keys["step"])
            found[name] = (state, after)
    return found


def _init(name: str, step: Step) -> Callable[..., Any]:
    """``init``, which raises a `Fault` where the state is none that can be compiled for."""
    return lambda *arguments: _state(step.init(*arguments), name, step)


def _update(name: str, step: Step) -> Callable[..., Any]:
    """The step, which raises a `Fault` where state or metrics are none of a compiled step."""
    from ecotour.running import stages

    def update(*arguments: Any) -> Any:
        made = step.step(*arguments)
        if step.compiled and isinstance(made, tuple) and len(made) == 2:
            _state(made[0], name, step)
            try:
                stages.check_metrics(made[1], name)
            except ContractError as error:
                raise Fault("metrics", str(error), name) from error
        return made

    return update


def _state(state: Any, name: str, step: Step) -> Any:
    from ecotour.running import stages

    try:
        return stages.check_state(state, name) if step.compiled else state
    except ContractError as error:
        raise Fault("state-leaf", str(error), name) from error


def _kind(value: Any) -> str:
    return f"{type(value).__name__}, not ecotour.Program"


def _said(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = (str(error).strip().splitlines() or ["no message"])[0]
    return f"{type(error).__name__}: {text.rstrip('.')}"
