"""Findings on the steps as functions: the same state in shape, scalars, randomness, no jit."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from ecotour.checking import bench
from ecotour.checking.subject import Subject
from ecotour.checking.table import Fault, Unproved, finding, stage
from ecotour.checking.time_limit import at_most
from ecotour.errors import ContractError
from ecotour.running import stages
from ecotour.running.keys import keys_of

STATE = ("state-structure", "state-shape", "state-dtype", "state-weak-type")
WITHOUT_JIT_S = 15.0
"""Seconds of processor time for one step without jit; all steps together have three times that."""

CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")
RANDOM = ("random_bits", "random_seed", "random_gamma", "threefry2x32")

stage(
    "init-fails",
    "init raised an exception",
    "It cannot make the state from a key and a batch",
    "Mend the line that is named; init gets a typed key (jax.random.key) and a batch or None",
)
stage(
    "step-fails",
    "The step raised an exception",
    "It cannot be traced with the state that init makes, the batch and the key",
    "Mend the line that is named; in a compiled step values are tracers, so use jnp.where, "
    "jax.lax.cond or jax.lax.scan where Python's if and for would need numbers",
)
stage(
    "state-leaf",
    "The state holds something that is no array",
    "A model of Equinox or Flax NNX has functions and settings among its leaves",
    "Split it, keep the arrays in the state, and close over the rest in build: eqx.partition, "
    "nnx.split; a step whose state must be anything else is ecotour.Step(…, compiled=False)",
)
stage(
    "metrics",
    "The metrics are not a dict of scalars by name",
    "A curve needs one number a step",
    "Return a dict from names to scalars; reduce what is larger, for instance with jnp.mean",
)
stage(
    "run-fails",
    "A short run failed",
    "The runner met something that no other finding names",
    "Run it with `ecotour --debug run` to see where",
)


stage(
    "unexpected",
    "The check met an exception that no finding names",
    "The demo makes JAX, a library or the check itself raise where none of them should",
    "Look at the line that is named; where it is ecotour's own, please report it",
)


def _changes(subject: Subject, name: str) -> dict[str, list[str]]:
    """What is not the same of the state after a step, by finding."""

    def make() -> dict[str, list[str]]:
        one = bench.single(subject, name)
        state = one.state()
        try:
            after, metrics = jax.eval_shape(one.step.step, state, one.batch, one.keys[0])
            stages.check_metrics(metrics, name)
        except ContractError as error:
            raise Fault("metrics", str(error), name) from error
        except (TypeError, ValueError) as error:  # of the unpacking: the step's own are tagged
            raise Fault("step-fails", f"it must return (state, metrics): {error}", name) from error
        found: dict[str, list[str]] = {}
        for line in stages.differences(state, after):
            old, _, new = line.partition(": ")[2].partition(" -> ")
            if "absent" in (old, new) or "[" not in old or "PyTreeDef" in line:
                kind = "state-structure"
            elif old.partition("[")[0] != new.partition("[")[0]:
                kind = "state-dtype"
            elif old.replace(" (weak)", "") != new.replace(" (weak)", ""):
                kind = "state-shape"
            else:
                kind = "state-weak-type"
            found.setdefault(kind, []).append(line)
        if "state-structure" in found:  # leaves have moved: what else differs says little
            found = {"state-structure": found["state-structure"]}
        return found

    return subject.once(f"changes {name}", make)


@finding(
    "state-structure",
    "The state has another structure after a step",
    "A leaf comes or goes, or a tuple becomes a list; each step must be compiled anew",
    "Return a state made like the one that came in, with _replace or dataclasses.replace",
    per="step",
)
def state_structure(subject: Subject, name: str) -> Iterator[str]:
    """Leaves or containers differ before and after a step."""
    yield from _changes(subject, name).get("state-structure", ())


@finding(
    "state-shape",
    "The state has other shapes after a step",
    "Something is broadcast, concatenated or reduced; each step must be compiled anew",
    "Give the array its final shape in init, and write into it with .at[i].set(…)",
    per="step",
)
def state_shape(subject: Subject, name: str) -> Iterator[str]:
    """A leaf changes its shape."""
    yield from _changes(subject, name).get("state-shape", ())


@finding(
    "state-dtype",
    "The state has other dtypes after a step",
    "An operation with another dtype promotes it; the step is compiled twice, or at every step",
    "Make the leaf in init with the dtype that it is to keep, or cast the result with .astype",
    per="step",
)
def state_dtype(subject: Subject, name: str) -> Iterator[str]:
    """A leaf changes its dtype."""
    yield from _changes(subject, name).get("state-dtype", ())


@finding(
    "state-weak-type",
    "A leaf of the state is weakly typed before a step and not after, or the other way round",
    "init took it from a Python number, as jnp.asarray(0.0) or 0 does; the step is compiled twice",
    "Name the dtype in init: jnp.zeros((), jnp.float32), jnp.int32(0)",
    per="step",
)
def state_weak_type(subject: Subject, name: str) -> Iterator[str]:
    """A leaf changes whether its dtype is weak."""
    yield from _changes(subject, name).get("state-weak-type", ())


@finding(
    "host-round-trip",
    "A compiled step goes back to Python",
    "A callback or jax.debug.print waits for the host at each step, and cannot run on many devices",
    "Return the value as a metric, or show it in view; a step that must work in Python is "
    "ecotour.Step(…, compiled=False)",
    per="step",
)
def host_round_trip(subject: Subject, name: str) -> Iterator[str]:
    """A callback stands in the step's jaxpr."""
    seen = _primitives(subject, name, "step") & set(CALLBACKS)
    if seen:
        yield ", ".join(sorted(seen))


@finding(
    "key-reuse",
    "A random key is used twice",
    "Two draws from one key are the same numbers in disguise",
    "Split it first, key_a, key_b = jax.random.split(key), or fold a number into it",
    per="step",
)
def key_reuse(subject: Subject, name: str) -> Iterator[str]:
    """JAX's own key-reuse checker, on init and on the step."""
    one = bench.single(subject, name)
    state = one.state()
    for what, function, arguments in (
        ("init", one.step.init, (one.init_key, one.batch)),
        ("step", one.step.step, (state, one.batch, one.keys[0])),
    ):
        try:
            with jax.debug_key_reuse(True):
                jax.eval_shape(lambda *given, f=function: f(*given), *arguments)
        except jax.errors.KeyReuseError as error:
            yield f"{what}: {str(error).splitlines()[0]}"


@finding(
    "seed-ignored",
    "Random numbers do not depend on the key that was given",
    "A key is made from a fixed seed, so that every seed is the same run and --seed does nothing",
    "Draw from the key that init and the step are given",
    per="step",
    after=(*STATE, "key-reuse", "host-round-trip"),
)
def seed_ignored(subject: Subject, name: str) -> Iterator[str]:
    """Random numbers are drawn, and yet another key gives the same bits."""
    from ecotour.rundir.checkpoint import freeze

    one = bench.single(subject, name)
    other = keys_of(1)
    if _primitives(subject, name, "init") & set(RANDOM) and not bench.same(
        freeze(one.state()), freeze(one.state(other["init"]))
    ):
        yield "init"
    if _primitives(subject, name, "step") & set(RANDOM):
        step = jax.jit(one.step.step, compiler_options=_HURRY)
        ours = one.state()
        theirs = _other_keys(one.state(), one.state(other["init"]))
        for number, key in enumerate(one.keys, 1):
            ours, told = step(ours, one.batch, key)
            theirs, said = step(theirs, one.batch, jax.random.fold_in(other["step"], number))
            a = {k: float(v) for k, v in told.items()}
            b = {k: float(v) for k, v in said.items()}
            if bench.same_numbers(a, b) or bench.same(freeze(ours), freeze(theirs)):
                return
        yield "step"


@finding(
    "metric-finite",
    "A metric is not a finite number in the first steps",
    "A logarithm of 0, a division by 0 or an overflow, which the first steps should not meet",
    "Use the numerically safe form (log_softmax, logsumexp, an epsilon under the root)",
    per="demo",
    after=STATE,
)
def metric_finite(subject: Subject) -> Iterator[str]:
    """A NaN or an infinity is reported in a short run."""
    for of, reported in bench.straight(subject).metrics.items():
        for step, metrics in reported.items():
            for name, value in metrics.items():
                if not math.isfinite(value):
                    yield f"{name!r} of {of!r} is {value} at step {step}"
                    return


@finding(
    "metric-names",
    "The names of the metrics change from step to step",
    "A name is a curve, and a curve with gaps cannot be judged",
    "Return the same names at every step; where there is nothing to tell, repeat the last value",
    per="demo",
    after=STATE,
)
def metric_names(subject: Subject) -> Iterator[str]:
    """Two steps of one short run report other names."""
    for of, reported in bench.straight(subject).metrics.items():
        first = set(reported[min(reported)])
        for step, metrics in reported.items():
            if set(metrics) != first:
                names = ", ".join(map(repr, sorted(first ^ set(metrics))))
                yield f"{of!r}: {names} at step {step}"
                break


@finding(
    "jit-disagrees",
    "A step gives other numbers without jit",
    "It does something while it is traced (a counter, a list, isinstance of a tracer, NumPy's "
    "random numbers) that then stands in the compiled program for good",
    "Keep what changes in the state, and decide by values with jnp.where or jax.lax.cond",
    per="step",
    after=(*STATE, "host-round-trip"),
)
def jit_disagrees(subject: Subject, name: str) -> Iterator[str]:
    """Step 1 under jax.disable_jit against step 1 of the run."""
    one, run = bench.single(subject, name), bench.straight(subject)
    state, began = one.state(), time.process_time()
    left = 3 * WITHOUT_JIT_S - subject.without_jit_s
    if left < 1:
        raise Unproved("the other steps took all the time that there is without jit")
    try:
        with at_most(min(WITHOUT_JIT_S, left)), jax.disable_jit():
            after, metrics = one.step.step(state, one.batch, one.keys[0])
    finally:
        subject.without_jit_s += time.process_time() - began
    yield from bench.close_numbers(metrics, run.metrics[name][1])[:3]
    yield from bench.close(after, run.states[name][1])[:3]


def _other_keys(state: Any, other: Any) -> Any:
    """``state`` with the random keys in it, typed ones and raw ones, taken from ``other``."""

    def choose(mine: Any, theirs: Any) -> Any:
        dtype = getattr(mine, "dtype", None)
        if dtype is None:
            return mine
        raw = dtype == jnp.uint32 and mine.ndim > 0 and mine.shape[-1] == 2
        return theirs if raw or jnp.issubdtype(dtype, jax.dtypes.prng_key) else mine

    return jax.tree.map(choose, state, other)


_HURRY: Any = {"xla_backend_optimization_level": 1}


def _primitives(subject: Subject, name: str, what: str) -> set[str]:
    """Names of all primitives in the jaxpr of ``init`` or of the step."""

    def make() -> set[str]:
        one = bench.single(subject, name)
        if what == "init":
            traced = jax.make_jaxpr(one.step.init)(one.init_key, one.batch)
        else:
            traced = jax.make_jaxpr(one.step.step)(one.state(), one.batch, one.keys[0])
        found: set[str] = set()
        todo: list[Any] = [traced.jaxpr]
        while todo:
            for equation in todo.pop().eqns:
                found.add(equation.primitive.name)
                for value in jax.tree.leaves(
                    list(equation.params.values()), is_leaf=lambda v: hasattr(v, "jaxpr")
                ):
                    inner = getattr(value, "jaxpr", value)
                    if hasattr(inner, "eqns"):
                        todo.append(inner)
        return found

    return subject.once(f"primitives {what} {name}", make)
