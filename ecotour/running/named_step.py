"""One named step: from its first state, over reports, views and snapshots, to its last.

It is compiled ahead of time, its state is donated, and the device is waited for only where
something is to be reported, shown or saved, or where the run might be stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ecotour.contract import events
from ecotour.contract.demo import State, Step
from ecotour.contract.plan import view_points
from ecotour.errors import CheckpointError, ContractError
from ecotour.machine import environment
from ecotour.running import stages, stopwatch
from ecotour.running.drivers import CompiledDriver, Driver, EagerDriver
from ecotour.running.feed import Feed
from ecotour.running.history import History
from ecotour.running.progress import Progress

SNAPSHOT_SECONDS = 30.0
LONGEST_STRETCH = 1.0
"""Seconds of work handed to the device before it is waited for; so soon a run can be stopped."""


def carry_out(
    name: str,
    step: Step,
    total: int,
    feed: Feed | None,
    keys: Mapping[str, jax.Array],
    run: Progress,
) -> Iterator[events.Event]:
    """Carry out step number 1 to ``total``, or what an earlier run has left of them.

    Args:
        name: The named step's.
        step: What is carried out.
        total: How many steps.
        feed: Where batches come from.
        keys: Those of the run; ``init``, ``step`` and ``view`` are used.
        run: Where the run stands; kept up to date.

    Raises:
        ContractError: The step is none, or was asked to end where a metric is not finite.
        CheckpointError: There is no state to go on from.
    """
    watch, plan = run.watch, run.plan
    compiled = step.compiled and not environment.disable_jit()
    before = watch.now()
    with watch.booking("init_s"):
        done, state, remark = _begin(name, step, feed, keys, run)
        if step.compiled:
            jax.block_until_ready(state)
    if remark:
        yield events.Warned(remark)
    if done >= total:
        run.finished[name] = state
        return
    size = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(state))
    yield events.StepBegun(name, done, total, watch.now() - before, size, compiled)
    driver: Driver = (CompiledDriver if compiled else EagerDriver)(
        name, step, feed, keys["step"], state, done
    )
    costs: dict[str, Any] = {"cache_hit": None, "flops": None, "peak_bytes": None}
    costs |= {"trace_s": None, "lower_s": None, "compile_s": None, "first_s": None}
    costs |= {"steady_ms": {"p50": None, "p95": None}, "measured": 0, "compiles": 0}
    costs["compiled"] = compiled
    run.costs[name] = costs
    times = stopwatch.StepTimes()
    earlier_s = run.resume.elapsed_s.get(name, 0.0) if done else 0.0
    costs["loop_s"] = 0.0
    with watch.booking("compile_s"):
        costs |= driver.prepare(costs)
    run.costs[name] = costs
    if compiled:
        yield events.Compiled(name, run.costs_of(name))
    views = view_points(total) if step.view else ()
    if 0 in views and done == 0:
        yield from _view(name, step, driver.state, 0, keys, run)
    interval = run.resume.log_every.get(name) or plan.log_interval(total)
    snapshot_at = watch.wall() + SNAPSHOT_SECONDS
    first, pace = True, 1
    while done < total and not run.interrupted:
        goal = _next_boundary(done, total, interval, views, plan.checkpoint_every, pace)
        start, moved = watch.now(), done
        done = driver.advance(goal, run.stop)
        metrics = driver.fetch()
        seconds = watch.now() - start
        costs["loop_s"] += seconds
        # at most doubled, since the first steps say little of the later ones
        pace = max(1, min(2 * pace, int((done - moved) * LONGEST_STRETCH / max(seconds, 1e-9))))
        if first:
            costs["first_s"] = seconds
            if run.to_first_step_s is None:
                run.to_first_step_s = watch.wall()
        elif done > moved:
            times.add(seconds, done - moved)
        run.interrupted = run.stop()
        if done % interval == 0 or done in (1, total):
            step_ms = None if first else 1e3 * seconds / max(1, done - moved)
            elapsed_s = earlier_s + costs["loop_s"]
            reported = events.Reported(name, done, total, metrics, elapsed_s, step_ms)
            yield from _report(reported, run)
        first = False
        if reason := driver.settle(costs):
            yield events.Recompiled(name, done + 1, reason)
        if done in views and not run.interrupted:
            yield from _view(name, step, driver.state, done, keys, run)
        run.interrupted = run.stop()  # asked again: sinks have worked meanwhile
        every = plan.checkpoint_every
        due = done % every == 0 if every else watch.wall() >= snapshot_at
        if due or done == total or run.interrupted:
            costs |= {"steady_ms": times.steady(), "measured": times.measured}
            yield events.Snapshot(name, done, driver.state, metrics, run.ledger())
            snapshot_at = watch.wall() + SNAPSHOT_SECONDS
    costs |= {"steady_ms": times.steady(), "measured": times.measured}
    run.finished[name] = driver.state
    yield events.StepEnded(name, done, run.costs_of(name))


def not_shown(who: str, shown: object) -> events.Warned:
    """Say that what somebody shows is no mapping of exhibits."""
    return events.Warned(f"{who} shows {kind(shown)}, not a mapping from names to exhibits")


def kind(value: object) -> str:
    """What ``value`` is, in words."""
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def first_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    return (str(error).strip().splitlines() or ["no message"])[0]


def _begin(
    name: str, step: Step, feed: Feed | None, keys: Mapping[str, jax.Array], run: Progress
) -> tuple[int, State, str]:
    """After which step to start, with which state, and what there is to say about it."""
    batch = feed and feed.batch_at(1)
    # all named steps begin with the same key, and JAX's checker is to take it for a new one
    init_key = jax.random.clone(keys["init"])
    done = run.resume.done.get(name, 0)
    if not step.compiled:
        with jax.transfer_guard("allow"):  # such a step is Python, to and fro
            state = step.init(init_key, batch)
        try:
            return done, run.resume.restore(name, state) if done else state, ""
        except CheckpointError as error:
            run.history[name] = History()
            return 0, state, f"{name} starts anew: {error}"

    def init(key: jax.Array, batch: Any) -> State:
        return stages.check_state(step.init(key, batch), name)

    if done:  # the shapes are all that is needed of the state before step 1
        shapes = jax.eval_shape(init, init_key, batch)
        return done, run.resume.restore(name, shapes), ""
    # copied, since a buffer that stands in the state twice could not be donated
    return 0, jax.tree.map(jnp.copy, stages.run_once(init, init_key, batch)), ""


def _report(reported: events.Reported, run: Progress) -> Iterator[events.Event]:
    name, done = reported.of, reported.step
    run.history[name].append(done, reported.metrics)
    yield reported
    for metric, value in reported.metrics.items():
        if not math.isfinite(value) and (name, metric) not in run.nonfinite:
            run.nonfinite.add((name, metric))
            yield events.Warned(f"metric {metric!r} of {name!r} is {value} at step {done}")
            if run.plan.stop_on_nonfinite:
                raise ContractError(
                    f"metric {metric!r} of step {name!r} is {value} at step {done}, and the "
                    "run was asked to stop at such a value"
                )


def _view(
    name: str, step: Step, state: State, done: int, keys: Mapping[str, jax.Array], run: Progress
) -> Iterator[events.Event]:
    assert step.view is not None
    try:
        # to look at numbers is to take them from the device: the guard is for the steps
        with run.watch.booking("view_s"), jax.transfer_guard("allow"):
            shown = step.view(state, jax.random.clone(keys["view"]))
    except BaseException as caught:  # noqa: BLE001 - no view may cost a training run
        error = run.raised.original(caught)
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise error from None
        reason = f"{type(error).__name__}: {first_line(error)}"
        yield events.Unshown(name, done, reason)
        if (name, reason) not in run.unshown:
            run.unshown.add((name, reason))
            yield events.Warned(
                f"{run.plan.demo}: the view of {name!r} failed after step {done:,}: {reason}: "
                "nothing is shown of it; `ecotour check` says where"
            )
        return
    if isinstance(shown, Mapping):
        yield events.Viewed(name, done, shown)
    elif (name, "") not in run.unshown:
        run.unshown.add((name, ""))
        yield not_shown(f"the view of {name!r}", shown)


def _next_boundary(
    done: int, total: int, interval: int, views: tuple[int, ...], every: int | None, pace: int
) -> int:
    coming = [
        total,
        done + pace,
        (done // interval + 1) * interval,
        *(view for view in views if view > done),
    ]
    if every:
        coming.append((done // every + 1) * every)
    return min(coming)
