"""Findings on how a demo behaves in runs: the same bits, resumed, on devices, seen and judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ecotour.checking import bench
from ecotour.checking.purity import STATE
from ecotour.checking.subject import STEPS, Subject
from ecotour.checking.surroundings import enough_devices, two_devices
from ecotour.checking.table import Fault, Unproved, finding, stage
from ecotour.rundir import checkpoint
from ecotour.running import runner, stages
from ecotour.running.keys import keys_of

HALF = STEPS // 2
UNSTEADY = (*STATE, "host-round-trip")

stage(
    "view-fails",
    "view raised an exception",
    "It is called before step 1 and between steps, with a state on the device",
    "Mend the line that is named; view gets (state, key) and returns a dict of exhibits",
)
stage(
    "judge-fails",
    "judge raised an exception after a short run",
    "It counts on more steps than the run had, and any --steps may be asked for",
    "Judge what is there: take the last reports instead of fixed positions",
)


@finding(
    "same-bits",
    "The same seed does not give the same numbers twice",
    "A hidden source of change: the clock, NumPy's or Python's global random numbers, a counter of "
    "the module, the order of a set",
    "Take all randomness from the key, and keep all that changes in the state",
    after=STATE,
)
def same_bits(subject: Subject) -> Iterator[str]:
    """Two builds, run from the same seed, against each other to the last bit."""
    first, second = bench.straight(subject), bench.again(subject)
    for of in subject.compiled:
        for step, metrics in second.metrics[of].items():
            said = bench.same_numbers(first.metrics[of][step], metrics)
            said += bench.same(first.states[of][step], second.states[of][step])
            if said:
                yield f"{of!r} at step {step}: {said[0]}"
                break


@finding(
    "resume",
    "A run that is broken off and resumed ends with other numbers",
    "A step or a view keeps something outside the state, which a new process does not have",
    "Keep all that is needed from an earlier step in the state",
    after=(*STATE, "same-bits"),
)
def resume(subject: Subject) -> Iterator[str]:
    """Four steps against two, a checkpoint, a new build, and two more, to the last bit."""
    whole, rest = bench.straight(subject), bench.resumed(subject, HALF)
    for of in subject.compiled:
        for step, metrics in rest.metrics[of].items():
            said = bench.same_numbers(whole.metrics[of][step], metrics)
            said += bench.same(whole.states[of][step], rest.states[of][step])
            if said:
                yield f"{of!r} at step {step}: {said[0]}"
                break
        for step, text in rest.shown.get(of, {}).items():
            if text != whole.shown[of].get(step):
                yield f"{of!r}: its view shows something else after step {step - 1}"
                break


@finding(
    "donation",
    "Something of a state is used after the state is gone",
    "The state that goes into a step is donated; a view's exhibits or a variable still point to it",
    "Copy what is to be kept: numpy.asarray in view, jnp.copy elsewhere",
    after=STATE,
)
def donation(subject: Subject) -> Iterator[str]:
    """An exhibit that cannot be read after the next step."""
    for of, said in bench.straight(subject).donation.items():
        yield f"{of!r}: {said}"


@finding(
    "exhibit",
    "view or judge shows something that is no exhibit",
    "It is of another class, or its arrays do not have the shapes that its class promises",
    "Return the classes of ecotour.exhibits, in the shapes of their docstrings",
    after=STATE,
)
def exhibit(subject: Subject) -> Iterator[str]:
    """An exhibit that cannot be stored."""
    from ecotour.errors import ContractError
    from ecotour.rundir import exhibit_json

    run = bench.straight(subject)
    for of, said in run.exhibits.items():
        yield f"{of!r}: {said}"
    shown_by_judge = getattr(run.verdict, "exhibits", {})
    if not isinstance(shown_by_judge, Mapping):
        yield f"the judge's exhibits are a {type(shown_by_judge).__name__}, not a mapping"
    else:
        for name, shown in shown_by_judge.items():
            try:
                exhibit_json.to_json(shown, name)
            except ContractError as error:
                yield f"the judge's: {error}"


@finding(
    "view-compiles",
    "view is compiled again at each call",
    "It jits a new function each time, so that nothing is ever found in JAX's cache",
    "Define the jitted function once, outside view",
    after=STATE,
)
def view_compiles(subject: Subject) -> Iterator[str]:
    """The last view of a short run still gives XLA something to compile."""
    for of, counts in bench.straight(subject).view_compiles.items():
        if len(counts) > 2 and counts[-1] and counts[-2]:
            yield f"{of!r}: {counts[-1]} at call number {len(counts)}"


@finding(
    "no-checks",
    "The judge checks nothing",
    "A run without a verdict is always a success",
    "Return at least one ecotour.Check in the Verdict",
    after=STATE,
)
def no_checks(subject: Subject) -> Iterator[str]:
    """There is no verdict, or nothing in it."""
    verdict = bench.straight(subject).verdict
    if fault := runner.fault_of(verdict):
        yield f"it {fault}"
    elif not verdict.checks:
        yield ""


@finding(
    "checks-cannot-fail",
    "All checks pass although next to nothing was learned",
    "The bounds are so wide, or the values so certain, that the verdict says nothing",
    "Ask for something that only a trained state reaches; make checks with ecotour.Check.at_least, "
    "at_most, equals or between",
    after=(*STATE, "no-checks"),
)
def checks_cannot_fail(subject: Subject) -> Iterator[str]:
    """The verdict on a run of very few steps has nothing to complain of."""
    verdict = bench.straight(subject).verdict
    if all(step.steps >= subject.totals[name] for name, step in subject.program.steps.items()):
        raise Unproved("a whole run of this demo is as short as the check's")
    if all(check.passed for check in verdict.checks):
        yield ", ".join(f"{c.name}: {c.value:g} {c.want}" for c in verdict.checks[:3])


@finding(
    "devices",
    "A step gives other numbers on two devices than on one",
    "It counts or names devices, or takes a mean over a part of the batch",
    "Write the step for the whole batch; a sharding constraint may spread it, and alters no value",
    per="step",
    after=(*UNSTEADY, "same-bits"),
)
def devices(subject: Subject, name: str) -> Iterator[str]:
    """The first two steps with the batch split over two devices, against the run's."""
    if not enough_devices():
        raise Unproved("this process has one device")
    one, run = bench.single(subject, name), bench.straight(subject)
    with two_devices():
        yield from _split(subject, one, run, name)


def _split(subject: Subject, one: bench.Single, run: bench.Run, name: str) -> Iterator[str]:
    one = dataclasses.replace(one, step=subject.another(4).steps[name])
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def place(leaf: jax.Array) -> jax.Array:
        halves = leaf.ndim > 0 and leaf.shape[0] % 2 == 0
        return jax.device_put(leaf, split if halves else whole)

    batch = jax.tree.map(place, one.batch)
    state = jax.device_put(one.state(), whole)
    step = jax.jit(one.step.step, compiler_options={"xla_backend_optimization_level": 1})
    try:
        after, metrics = step(state, batch, jax.device_put(one.keys[0], whole))
        numbers = {name: float(value) for name, value in metrics.items()}
    except Exception as error:  # noqa: BLE001 - whatever JAX or the demo raises is the finding
        yield str(error.detail if isinstance(error, Fault) else error).splitlines()[0]
        return
    yield from bench.close_numbers(numbers, run.metrics[name][1])[:3]
    yield from bench.close(after, run.states[name][1])[:3]


@finding(
    "vmap",
    "A step that says it can be mapped over seeds gives other numbers under jax.vmap",
    "Something in it is done once for all seeds, or does not follow vmap's rules",
    "Let every value depend on the state and the key alone, or drop seeds_in_parallel",
    per="step",
    after=(*UNSTEADY, "same-bits"),
)
def vmap(subject: Subject, name: str) -> Iterator[str]:
    """Two seeds under jax.vmap against each by itself."""
    one = bench.single(subject, name)
    if not one.step.seeds_in_parallel:
        return
    inits = jnp.stack([one.init_key, keys_of(1)["init"]])
    keys = jnp.stack([one.keys[0], jax.random.fold_in(keys_of(1)["step"], 1)])

    def both(init_key: jax.Array, key: jax.Array) -> object:
        return one.step.step(one.step.init(init_key, one.batch), one.batch, key)

    alone = jax.jit(both)
    apart = [alone(inits[n], keys[n]) for n in range(2)]  # what fails here too is not vmap's
    try:
        together, told = jax.jit(jax.vmap(both))(inits, keys)
    except Exception as error:  # noqa: BLE001 - whatever JAX or the demo raises is the finding
        yield str(error.detail if isinstance(error, Fault) else error).splitlines()[0]
        return
    for n, (after, metrics) in enumerate(apart):
        numbers = {k: float(v) for k, v in metrics.items()}
        yield from bench.close_numbers({k: float(v[n]) for k, v in told.items()}, numbers)[:3]
        mine = jax.tree.map(lambda leaf, n=n: leaf[n], together)
        yield from bench.close(mine, checkpoint.freeze(after))[:3]


@finding(
    "x64",
    "The demo does not work with 64-bit numbers switched on",
    "Some arrays take JAX's default dtype and some are float32 by name, so that they meet under "
    "JAX_ENABLE_X64=1",
    "Name the dtype of every array that is made: jnp.zeros(3, jnp.float32), "
    "jax.random.normal(key, shape, jnp.float32), numpy arrays with astype",
    after=("settings", *STATE),
)
def x64(subject: Subject) -> Iterator[str]:
    """The demo, imported anew and traced with x64 on: no exception, the same state in kind."""
    bench.straight(subject)
    with jax.enable_x64(True):
        try:
            for name, (before, after) in subject.shapes_of_another_life().items():
                for said in stages.differences(before, after)[:3]:
                    yield f"{name!r}: {said}"
        except Fault as fault:
            yield fault.detail


@finding(
    "settings-run",
    "A step, a view or the judge changes a setting of the whole process",
    "Such a setting changes the numbers of everything that runs in the same process",
    "Put the setting back, or use a context manager that does",
    after=("settings",),
)
def settings_run(subject: Subject) -> Iterator[str]:
    """JAX's settings, global seeds, rcParams, signals and others, after the runs."""
    yield from subject.changed_since()


@finding(
    "prints",
    "The demo prints",
    "What it prints gets between the lines of the progress, or into a pipe that reads JSON",
    "Return numbers as metrics and texts as exhibits (Table, Code); drop print, jax.debug.print "
    "and logging",
    after=("host-round-trip",),
)
def prints(subject: Subject) -> Iterator[str]:
    """Anything on standard output, and what the demo's own code wrote to standard error."""
    yield from subject.watch.printed()[:3]


@finding(
    "argv",
    "The demo reads sys.argv",
    "The command line belongs to ecotour, and a demo is also run from tests and notebooks",
    "Make the setting a field of Config with ecotour.flag",
)
def argv(subject: Subject) -> Iterator[str]:
    """The demo's own code, or a parser that it called, looked at sys.argv."""
    yield from list(dict.fromkeys(subject.watch.argv))[:3]
