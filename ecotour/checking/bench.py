"""Short runs of a program through the ordinary runner, and single steps beside it.

The keys, the batches and the order of events are the runner's own, so that what is proved here
holds for ``ecotour run``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecotour.checking.batches import batch_of
from ecotour.checking.subject import Subject
from ecotour.checking.table import Fault, Unproved
from ecotour.contract import events
from ecotour.contract.demo import Outcome, Program, State, Step, Verdict
from ecotour.contract.plan import Plan
from ecotour.errors import ContractError, EcotourError
from ecotour.rundir import checkpoint, exhibit_json
from ecotour.running import runner, stages
from ecotour.running.keys import keys_of

RELATIVE, ABSOLUTE = 1e-3, 1e-5
"""How far two metrics may lie apart that differ by rounding alone."""

LOOSE = 5e-3
"""How far two numbers of a state may lie apart on average, absolute or relative to its norm.

Adam turns the sign of a vanishing gradient into a whole step, so that this cannot be small.
"""


@dataclasses.dataclass
class Run:
    """What a short run left behind.

    Attributes:
        states: Copies of the states by named step and step number, as checkpoints keep them.
        metrics: What was reported, by named step and step number.
        verdict: What the judge returned; ``None`` where it was not asked.
        shown: What views showed, as JSON, by named step and the number of the next step.
        donation: By named step, exhibits that could not be read after the next step.
        exhibits: By named step, exhibits that are none.
        view_compiles: By named step, how many programs each view compiled.
    """

    states: dict[str, dict[int, checkpoint.Frozen]] = dataclasses.field(default_factory=dict)
    metrics: dict[str, dict[int, Mapping[str, float]]] = dataclasses.field(default_factory=dict)
    verdict: Any = None
    shown: dict[str, dict[int, str]] = dataclasses.field(default_factory=dict)
    donation: dict[str, str] = dataclasses.field(default_factory=dict)
    exhibits: dict[str, str] = dataclasses.field(default_factory=dict)
    view_compiles: dict[str, list[int]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Single:
    """One compiled step with the arguments that it has in a run.

    Attributes:
        name: The named step's.
        step: The step.
        batch: That of step 1, or ``None``.
        init_key: The key of ``init``.
        keys: Those of steps 1, 2, …, in order.
    """

    name: str
    step: Step
    batch: Any
    init_key: jax.Array
    keys: tuple[jax.Array, ...]

    def state(self, key: jax.Array | None = None) -> State:
        """The state before step 1, as the runner makes it."""
        made = stages.run_once(self.step.init, self.init_key if key is None else key, self.batch)
        return jax.tree.map(jnp.copy, made)


def single(subject: Subject, name: str) -> Single:
    """One compiled step of the first build."""

    def make() -> Single:
        keys = keys_of(0)
        batch = batch_of(subject.program, keys["feed"])
        steps = tuple(jax.random.fold_in(keys["step"], n) for n in range(1, 4))
        return Single(name, subject.program.steps[name], batch, keys["init"], steps)

    return subject.once(f"single {name}", make)


def plan_for(subject: Subject) -> Plan:
    """One report and one copy of the state after each step."""
    entry, _ = subject.loaded
    return Plan(
        entry.name,
        entry.provenance,
        subject.config,
        log_every=1,
        checkpoint_every=1,
        data="embedded",
    )


def straight(subject: Subject) -> Run:
    """The first run: all steps, all views, the judge."""
    return subject.once("straight", lambda: _run(subject, subject.program))


def again(subject: Subject) -> Run:
    """The compiled steps of another build, from their beginning, unseen."""

    def make() -> Run:
        program = _bare(subject.another(2))
        unseen = {n: dataclasses.replace(s, view=None) for n, s in program.steps.items()}
        return _run(subject, dataclasses.replace(program, steps=unseen))

    return subject.once("again", make)


def resumed(subject: Subject, after: int) -> Run:
    """The compiled steps of yet another build, from the states after step ``after``."""

    def make() -> Run:
        first, program = straight(subject), _bare(subject.another(3))

        def restore(of: str, template: State) -> State:
            frozen = first.states[of][after]
            saved = checkpoint.Saved({"leaves": frozen.leaves}, frozen.arrays)
            return checkpoint.thaw(saved, template)

        done = dict.fromkeys(program.steps, after)
        return _run(subject, program, runner.Resume(done, restore))

    return subject.once("resumed", make)


def _bare(program: Program) -> Program:
    steps = {name: step for name, step in program.steps.items() if step.compiled}
    if not steps:
        raise Unproved("no step is compiled")
    return dataclasses.replace(program, steps=steps, judge=lambda _: Verdict(()))


def _run(subject: Subject, program: Program, resume: runner.Resume | None = None) -> Run:
    found = Run()
    pending: dict[str, Mapping[str, Any]] = {}
    count = _Compiles()
    steps = {
        name: dataclasses.replace(step, view=step.view and count.counted(found, name, step.view))
        for name, step in program.steps.items()
    }
    judge = program.judge

    def judged(outcome: Outcome) -> Verdict:
        found.verdict = judge(outcome)
        return Verdict(())

    program = dataclasses.replace(program, steps=steps, judge=judged)
    try:
        for event in runner.run(program, plan_for(subject), resume=resume):
            match event:
                case events.Reported(of, step, _, metrics, _, _):
                    found.metrics.setdefault(of, {})[step] = dict(metrics)
                    _read(found, of, step, pending.pop(of, {}))
                case events.Snapshot(of, step, state, _, _):
                    found.states.setdefault(of, {})[step] = checkpoint.freeze(state)
                case events.Viewed(of, _, shown):
                    pending[of] = shown
                case events.Unshown(of, _, reason):  # which a run would survive
                    fault = count.failure
                    raise fault if isinstance(fault, Fault) else Fault("view-fails", reason, of)
    except EcotourError as error:
        cause = error.__cause__
        if isinstance(cause, Fault):
            raise cause from None
        if isinstance(error, ContractError):
            raise Fault("metrics", str(error)) from error
        raise Fault("run-fails", str(error)) from error
    return found


def _read(found: Run, of: str, step: int, shown: Mapping[str, Any]) -> None:
    """Look at what a view returned, one step later."""
    for name, exhibit in shown.items():
        try:
            document = exhibit_json.to_json(exhibit, name)
            texts = found.shown.setdefault(of, {})
            texts[step] = texts.get(step, "") + json.dumps([name, document])
        except RuntimeError as error:
            found.donation[of] = f"exhibit {name!r}: {error}"
        except ContractError as error:
            found.exhibits[of] = str(error)


class _Compiles:
    """Counts what XLA is given to compile."""

    def __init__(self) -> None:
        self.number = 0
        self.failure: BaseException | None = None
        jax.monitoring.register_event_duration_secs_listener(self._hear)

    def _hear(self, event: str, duration_secs: float, **_: Any) -> None:
        self.number += event.endswith("backend_compile_duration")

    def counted(self, found: Run, of: str, view: Any) -> Any:
        def seen(state: State, key: jax.Array) -> Any:
            before = self.number
            try:
                shown = view(state, key)
            except BaseException as error:
                self.failure = error
                raise
            found.view_compiles.setdefault(of, []).append(self.number - before)
            return shown

        return seen


def same(one: checkpoint.Frozen, other: checkpoint.Frozen) -> list[str]:
    """The leaves that are not the same to the last bit."""
    found = []
    for a, b in zip(one.leaves, other.leaves, strict=False):
        alike = all(a.get(key) == b.get(key) for key in {*a, *b} - {"host"})
        if not alike or (
            "name" in a and one.arrays[a["name"]].tobytes() != other.arrays[b["name"]].tobytes()
        ):
            found.append(f"state{a['path']}")
    if len(one.leaves) != len(other.leaves):
        found.append(f"{len(one.leaves)} leaves and {len(other.leaves)}")
    return found


def same_numbers(one: Mapping[str, float], other: Mapping[str, float]) -> list[str]:
    """The metrics that are not the same to the last bit (a NaN is one value)."""
    return [
        f"metric {name!r}: {one.get(name)} and {other.get(name)}"
        for name in {**one, **other}
        if not np.array_equal(one.get(name, 0.0), other.get(name, 0.0), equal_nan=True)
    ]


def close(state: State, frozen: checkpoint.Frozen) -> list[str]:
    """The leaves of ``state`` that are further from a frozen one than rounding explains."""
    found = []
    now = checkpoint.freeze(state)
    for a, b in zip(now.leaves, frozen.leaves, strict=False):
        if "name" not in a or "name" not in b:
            continue
        x, y = now.arrays[a["name"]], frozen.arrays[b["name"]]
        if x.shape != y.shape:
            found.append(f"state{a['path']}: shape {x.shape} and {y.shape}")
        elif not jnp.issubdtype(x.dtype, jnp.inexact):
            if a["kind"] != "key" and not np.array_equal(x, y):
                found.append(f"state{a['path']}")
        else:
            wide = np.complex128 if np.iscomplexobj(x) else np.float64
            x, y = x.astype(wide), y.astype(wide)
            same = (x == y) | (np.isnan(x) & np.isnan(y))  # a NaN may mark what is still to come
            apart = np.subtract(x, y, out=np.zeros_like(x), where=~same)
            allowed = LOOSE * (np.linalg.norm(y[np.isfinite(y)]) + np.sqrt(y.size))
            if not np.linalg.norm(apart) <= allowed:
                found.append(f"state{a['path']}")
    return found


def close_numbers(one: Mapping[str, Any], other: Mapping[str, float]) -> list[str]:
    """The metrics that lie further apart than rounding explains."""
    return [
        f"metric {name!r}: {float(value):.7g} and {other[name]:.7g}"
        for name, value in one.items()
        if name in other
        and not np.isclose(float(value), other[name], rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    ]
