"""The runner: a program and a plan in, events out.

It owns the loop. It derives the key and the batch of step i from the step's number inside the
compiled program, so that one step is one dispatch; it compiles ahead of time, donates the state,
waits for the device only where it reports, and books where the time goes. It prints, draws and
writes nothing: that is the business of whoever consumes the events, and the time that they take
is booked apart (``sinks_s``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp

from ecotour import datasets, events, ledger, stages
from ecotour.demo import Check, Dataset, Outcome, Program, State, Step, Verdict
from ecotour.drivers import CompiledDriver, Driver, EagerDriver
from ecotour.errors import CheckpointError, ContractError, EcotourError, PluginError
from ecotour.feed import Feed
from ecotour.history import History
from ecotour.plan import Plan, view_points

SNAPSHOT_SECONDS = 30.0
LONGEST_STRETCH = 1.0
"""Seconds of work handed to the device before it is waited for; so soon a run can be stopped."""


@dataclass(frozen=True)
class Resume:
    """Where an earlier run broke off.

    Attributes:
        done: By named step, the last step that counts; what is not named starts anew.
        restore: From a named step and a tree of the right structure to the saved state. Raises
            CheckpointError where that cannot be had.
        history: By named step, what was reported up to there.
        elapsed_s: By named step, the ``elapsed_s`` of its last report.
        ledger: The account of the earlier run.
        log_every: By named step, the interval of its reports, which stays what it was.
    """

    done: Mapping[str, int]
    restore: Callable[[str, State], State]
    history: Mapping[str, History] = field(default_factory=dict)
    elapsed_s: Mapping[str, float] = field(default_factory=dict)
    ledger: Mapping[str, Any] = field(default_factory=dict)
    log_every: Mapping[str, int] = field(default_factory=dict)


def run(
    program: Program,
    plan: Plan,
    *,
    began: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    resume: Resume | None = None,
) -> Iterator[events.Event]:
    """Carry out ``program`` and yield what happens.

    Args:
        program: What to carry out.
        plan: How often, from which seed, and so on.
        began: When the process started, as `time.perf_counter` gives it; now, if not given.
        stop: Asked after each step; once it is true the run ends as interrupted.
        resume: Where an earlier run broke off.

    Yields:
        The events of `ecotour.events`, `Ended` last, also where the run fails.

    Raises:
        EcotourError: The run failed; the `Ended` before it says the same.
    """
    import time

    watch = ledger.Stopwatch(time.perf_counter() if began is None else began)
    watch.spans["import_s"] = watch.now()
    work = _Run(program, plan, watch, stop, resume)
    status: events.Status = "finished"
    failure: EcotourError | None = None
    try:
        for event in work.whole():
            with watch.pause():
                yield event
        if work.interrupted:
            status = "interrupted"
    except EcotourError as error:
        status, failure = "failed", error
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a demo raises
        status = "failed"
        failure = PluginError(f"{plan.demo} failed: {type(error).__name__}: {_first_line(error)}")
        failure.__cause__ = error
    yield events.Ended(status, work.ledger(), None if failure is None else str(failure))
    if failure is not None:
        raise failure


class _Run:
    """The state of one call of `run`."""

    def __init__(
        self,
        program: Program,
        plan: Plan,
        watch: ledger.Stopwatch,
        stop: Callable[[], bool],
        resume: Resume | None,
    ) -> None:
        self.program, self.plan, self.watch = program, plan, watch
        self.stop = stop
        self.resume = resume or Resume({}, lambda _, state: state)
        self.interrupted = False
        self.unshown: set[str] = set()
        self.to_first_step_s: float | None = None
        self.costs: dict[str, dict[str, Any]] = {}
        self.finished: dict[str, State] = {}
        self.history = {n: self.resume.history.get(n, History()) for n in program.steps}
        self.nonfinite = {
            (of, name) for of, one in self.history.items() for name, _ in one.nonfinite_since()
        }

    def ledger(self) -> dict[str, Any]:
        """The account of the whole run, in the record's form."""
        spans = {"data_s": 0.0, "init_s": 0.0, "view_s": 0.0, "judge_s": 0.0} | self.watch.spans
        loops = sum(costs.get("loop_s") or 0.0 for costs in self.costs.values())
        account = spans | {
            "loop_s": loops,
            "sinks_s": self.watch.paused,
            "to_first_step_s": self.to_first_step_s,
            "total_s": self.watch.wall(),
            # copied: whoever keeps an account must not write into the one that is being kept
            "steps": {name: dict(costs) for name, costs in self.costs.items()},
        }
        return ledger.added(self.resume.ledger, account)

    def costs_of(self, name: str) -> dict[str, Any]:
        """The account of one named step, earlier parts of the run included."""
        steps: dict[str, Any] = self.ledger()["steps"]
        return dict(steps.get(name, {}))

    def whole(self) -> Iterator[events.Event]:
        """Everything but the end."""
        totals = {n: self.plan.steps or step.steps for n, step in self.program.steps.items()}
        yield events.Started(self.plan, self.program, totals)
        with self.watch.booking("data_s"):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                data = {
                    name: datasets.resolve(source, self.plan.data, self.plan.data_dir)
                    for name, source in self.program.data.items()
                }
            root = jax.random.key(self.plan.seed)
            keys = dict(
                zip(
                    ("init", "step", "feed", "view", "judge"),
                    jax.random.split(root, 5),
                    strict=True,
                )
            )
            feed = None
            if "train" in data:
                feed = Feed.of(data["train"], self.program.batch_size, keys["feed"])
        for message in dict.fromkeys(str(warning.message) for warning in said):
            yield events.Warned(message)
        yield events.DataReady(
            {name: dataset.info for name, dataset in data.items()},
            self.watch.spans["data_s"],
            data,
        )
        for name, step in self.program.steps.items():
            yield from self._carry_out(name, step, feed, keys, totals[name])
            if self.interrupted:
                return
        yield from self._judge(data, keys["judge"])

    def _begin(
        self, name: str, step: Step, feed: Feed | None, keys: Mapping[str, jax.Array]
    ) -> tuple[int, State, str]:
        """After which step to start, with which state, and what there is to say about it."""
        batch = feed and feed.batch(feed.arrays, feed.order(0), jnp.int32(1))
        done = self.resume.done.get(name, 0)
        if not step.compiled:
            state = step.init(keys["init"], batch)
            try:
                return done, self.resume.restore(name, state) if done else state, ""
            except CheckpointError as error:
                self.history[name] = History()
                return 0, state, f"{name} starts anew: {error}"
        if done:  # the shapes are all that is needed of the state before step 1
            shapes = jax.eval_shape(step.init, keys["init"], batch)
            return done, self.resume.restore(name, shapes), ""
        # copied, since a buffer that stands in the state twice could not be donated
        return 0, jax.tree.map(jnp.copy, stages.run_once(step.init, keys["init"], batch)), ""

    def _carry_out(
        self,
        name: str,
        step: Step,
        feed: Feed | None,
        keys: Mapping[str, jax.Array],
        total: int,
    ) -> Iterator[events.Event]:
        before = self.watch.now()
        with self.watch.booking("init_s"):
            done, state, remark = self._begin(name, step, feed, keys)
            if step.compiled:
                jax.block_until_ready(state)
        if remark:
            yield events.Warned(remark)
        if done >= total:
            self.finished[name] = state
            return
        size = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(state))
        init_s = self.watch.now() - before
        yield events.StepBegun(name, done, total, init_s, size, step.compiled)
        driver: Driver = (CompiledDriver if step.compiled else EagerDriver)(
            name, step, feed, keys["step"], state, done
        )
        costs: dict[str, Any] = {"cache_hit": None, "flops": None, "peak_bytes": None}
        costs |= {"trace_s": None, "lower_s": None, "compile_s": None, "first_s": None}
        costs |= {"steady_ms": {"p50": None, "p95": None}, "measured": 0, "compiles": 0}
        self.costs[name] = costs
        times = ledger.StepTimes()
        earlier_s = self.resume.elapsed_s.get(name, 0.0) if done else 0.0
        costs["loop_s"] = 0.0
        with self.watch.booking("compile_s"):
            costs |= driver.prepare(costs)
        self.costs[name] = costs
        if step.compiled:
            yield events.Compiled(name, self.costs_of(name))
        views = view_points(total) if step.view else ()
        if 0 in views and done == 0:
            yield from self._view(name, step, driver.state, 0, keys)
        interval = self.resume.log_every.get(name) or self.plan.log_interval(total)
        snapshot_at = self.watch.wall() + SNAPSHOT_SECONDS
        first, pace = True, 1
        while done < total and not self.interrupted:
            goal = _next_boundary(done, total, interval, views, self.plan.checkpoint_every, pace)
            start, moved = self.watch.now(), done
            done = driver.advance(goal, self.stop)
            metrics = driver.fetch()
            seconds = self.watch.now() - start
            costs["loop_s"] += seconds
            # at most doubled, since the first steps say little of the later ones
            pace = max(1, min(2 * pace, int((done - moved) * LONGEST_STRETCH / max(seconds, 1e-9))))
            if first:
                costs["first_s"] = seconds
                if self.to_first_step_s is None:
                    self.to_first_step_s = self.watch.wall()
            elif done > moved:
                times.add(seconds, done - moved)
            self.interrupted = self.stop()
            if done % interval == 0 or done in (1, total):
                step_ms = None if first else 1e3 * seconds / max(1, done - moved)
                elapsed_s = earlier_s + costs["loop_s"]
                yield from self._report(name, done, total, metrics, elapsed_s, step_ms)
            first = False
            if reason := driver.settle(costs):
                yield events.Recompiled(name, done + 1, reason)
            if done in views and not self.interrupted:
                yield from self._view(name, step, driver.state, done, keys)
            self.interrupted = self.stop()  # asked again: sinks have worked meanwhile
            every = self.plan.checkpoint_every
            due = done % every == 0 if every else self.watch.wall() >= snapshot_at
            if due or done == total or self.interrupted:
                costs |= {"steady_ms": times.steady(), "measured": times.measured}
                yield events.Snapshot(name, done, driver.state, metrics, self.ledger())
                snapshot_at = self.watch.wall() + SNAPSHOT_SECONDS
        costs |= {"steady_ms": times.steady(), "measured": times.measured}
        self.finished[name] = driver.state
        yield events.StepEnded(name, done, self.costs_of(name))

    def _report(
        self,
        name: str,
        done: int,
        total: int,
        metrics: Mapping[str, float],
        elapsed_s: float,
        step_ms: float | None,
    ) -> Iterator[events.Event]:
        self.history[name].append(done, metrics)
        yield events.Reported(name, done, total, metrics, elapsed_s, step_ms)
        for metric, value in metrics.items():
            if not math.isfinite(value) and (name, metric) not in self.nonfinite:
                self.nonfinite.add((name, metric))
                yield events.Warned(f"metric {metric!r} of {name!r} is {value} at step {done}")
                if self.plan.stop_on_nonfinite:
                    raise ContractError(
                        f"metric {metric!r} of step {name!r} is {value} at step {done}, and the "
                        "run was asked to stop at such a value"
                    )

    def _view(
        self, name: str, step: Step, state: State, done: int, keys: Mapping[str, jax.Array]
    ) -> Iterator[events.Event]:
        assert step.view is not None
        with self.watch.booking("view_s"):
            shown = step.view(state, keys["view"])
        if isinstance(shown, Mapping):
            yield events.Viewed(name, done, shown)
        elif name not in self.unshown:
            self.unshown.add(name)
            yield _not_shown(f"the view of {name!r}", shown)

    def _judge(self, data: Mapping[str, Dataset], key: jax.Array) -> Iterator[events.Event]:
        history = {of: reported.series() for of, reported in self.history.items()}
        outcome = Outcome(self.finished, history, data, key, self.ledger()["steps"])
        before = self.watch.now()
        with self.watch.booking("judge_s"):
            verdict = self.program.judge(outcome)
        if fault := fault_of(verdict):
            raise ContractError(f"the judge of {self.plan.demo} {fault}")
        if not isinstance(verdict.exhibits, Mapping):
            yield _not_shown("the judge", verdict.exhibits)
            verdict = replace(verdict, exhibits={})
        yield events.Judged(verdict, self.watch.now() - before)


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


def fault_of(verdict: object) -> str:
    """What is wrong with what a judge returned; empty for a proper verdict."""
    if not isinstance(verdict, Verdict):
        return f"returned {_kind(verdict)}, not an ecotour.Verdict"
    strangers = [check for check in verdict.checks if not isinstance(check, Check)]
    return f"has {_kind(strangers[0])} among its checks, not an ecotour.Check" if strangers else ""


def _not_shown(who: str, shown: object) -> events.Warned:
    return events.Warned(f"{who} shows {_kind(shown)}, not a mapping from names to exhibits")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]
