"""The runner: a program and a plan in, events out.

It owns the loop. It derives the key and the batch of step i from the step's number inside the
compiled program, so that one step is one dispatch; it compiles ahead of time, donates the state,
waits for the device only where it reports, and books where the time goes. It prints, draws and
writes nothing: that is the business of whoever consumes the events, and the time that they take
is booked apart (``sinks_s``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecotour import datasets, events, ledger, stages
from ecotour.demo import Dataset, Outcome, Program, Series, State, Step
from ecotour.drivers import CompiledDriver, Driver, EagerDriver
from ecotour.errors import ContractError, EcotourError, PluginError
from ecotour.feed import Feed
from ecotour.plan import Plan, view_points

SNAPSHOT_SECONDS = 30.0


@dataclass(frozen=True)
class Resume:
    """Where to go on: after step number ``step`` of the named step ``of``.

    Attributes:
        of: The named step.
        step: The last step that counts.
        restore: From a named step and a state of the right shapes, made by its ``init``, to the
            saved state.
        rows: The metrics that were reported up to there, as ``(of, step, metrics)``.
        loop_s: By named step, the seconds that its loop has taken so far.
    """

    of: str
    step: int
    restore: Callable[[str, State], State]
    rows: list[tuple[str, int, Mapping[str, float]]] = field(default_factory=list)
    loop_s: Mapping[str, float] = field(default_factory=dict)


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
        for event in work.events():
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
        self.stop, self.resume = stop, resume
        self.interrupted = False
        self.to_first_step_s: float | None = None
        self.costs: dict[str, dict[str, Any]] = {}
        self.finished: dict[str, State] = {}
        self.nonfinite: set[tuple[str, str]] = set()
        self.history: dict[str, list[tuple[int, Mapping[str, float]]]] = {
            name: [] for name in program.steps
        }
        for of, step, metrics in resume.rows if resume else ():
            self.history[of].append((step, metrics))

    def ledger(self) -> dict[str, Any]:
        """The account of the whole run, in the record's form."""
        spans = {"data_s": 0.0, "init_s": 0.0, "view_s": 0.0, "judge_s": 0.0} | self.watch.spans
        loops = sum(costs.get("loop_s") or 0.0 for costs in self.costs.values())
        return spans | {
            "loop_s": loops,
            "sinks_s": self.watch.paused,
            "to_first_step_s": self.to_first_step_s,
            "total_s": self.watch.wall(),
            "steps": self.costs,
        }

    def events(self) -> Iterator[events.Event]:
        """Everything but the end."""
        totals = {n: self.plan.steps or step.steps for n, step in self.program.steps.items()}
        yield events.Started(self.plan, self.program, totals)
        with self.watch.booking("data_s"):
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
        yield events.DataReady(
            {name: dataset.info for name, dataset in data.items()}, self.watch.spans["data_s"]
        )
        names = list(self.program.steps)
        first = names.index(self.resume.of) if self.resume else 0
        for position, (name, step) in enumerate(self.program.steps.items()):
            if self.resume and position < first:
                self.finished[name] = self.resume.restore(name, self._init(step, feed, keys))
                continue
            done = self.resume.step if self.resume and position == first else 0
            yield from self._carry_out(name, step, feed, keys, done, totals[name])
            if self.interrupted:
                return
        yield from self._judge(data, keys["judge"])

    def _init(self, step: Step, feed: Feed | None, keys: Mapping[str, jax.Array]) -> State:
        batch = feed and feed.batch(feed.arrays, feed.order(0), jnp.int32(1))
        if not step.compiled:
            return step.init(keys["init"], batch)
        # copied, since a buffer that stands in the state twice could not be donated
        return jax.tree.map(jnp.copy, stages.run_once(step.init, keys["init"], batch))

    def _carry_out(
        self,
        name: str,
        step: Step,
        feed: Feed | None,
        keys: Mapping[str, jax.Array],
        done: int,
        total: int,
    ) -> Iterator[events.Event]:
        before = self.watch.now()
        with self.watch.booking("init_s"):
            state = self._init(step, feed, keys)
            if done and self.resume:
                state = self.resume.restore(name, state)
            if step.compiled:
                jax.block_until_ready(state)
        yield events.StepBegun(name, done, total, self.watch.now() - before)
        driver: Driver = (CompiledDriver if step.compiled else EagerDriver)(
            name, step, feed, keys["step"], state, done
        )
        costs: dict[str, Any] = {"cache_hit": None, "flops": None, "peak_bytes": None}
        costs |= {"trace_s": None, "lower_s": None, "compile_s": None, "first_s": None}
        costs |= {"steady_ms": {"p50": None, "p95": None}, "measured": 0, "compiles": 0}
        self.costs[name] = costs
        times = ledger.StepTimes()
        earlier_s = self.resume.loop_s.get(name, 0.0) if self.resume else 0.0
        costs["loop_s"] = earlier_s
        if done < total:
            with self.watch.booking("compile_s"):
                costs |= driver.prepare(costs)
            self.costs[name] = costs
            if step.compiled:
                yield events.Compiled(name, dict(costs))
        views = view_points(total) if step.view else ()
        if 0 in views and done == 0:
            yield self._view(name, step, driver.state, 0, keys)
        interval = self.plan.log_interval(total)
        snapshot_at = self.watch.wall() + SNAPSHOT_SECONDS
        last_snapshot, first = done, True
        while done < total and not self.interrupted:
            goal = _next_boundary(done, total, interval, views, self.plan.checkpoint_every, first)
            start, moved = self.watch.now(), done
            done = driver.advance(goal, self.stop)
            metrics = driver.fetch()
            seconds = self.watch.now() - start
            costs["loop_s"] += seconds
            if first:
                costs["first_s"] = seconds
                if self.to_first_step_s is None:
                    self.to_first_step_s = self.watch.wall()
            elif done > moved:
                times.add(seconds, done - moved)
            self.interrupted = self.stop()
            if done % interval == 0 or done in (1, total):
                step_ms = None if first else 1e3 * seconds / max(1, done - moved)
                yield from self._report(name, done, total, metrics, costs["loop_s"], step_ms)
            first = False
            if reason := driver.settle(costs):
                yield events.Recompiled(name, done + 1, reason)
            if done in views and not self.interrupted:
                yield self._view(name, step, driver.state, done, keys)
            self.interrupted = self.stop()  # asked again: sinks have worked meanwhile
            every = self.plan.checkpoint_every
            due = done % every == 0 if every else self.watch.wall() >= snapshot_at
            if (due or done == total or self.interrupted) and done > last_snapshot:
                costs |= {"steady_ms": times.steady(), "measured": times.measured}
                yield events.Snapshot(name, done, driver.state, dict(self.finished))
                last_snapshot, snapshot_at = done, self.watch.wall() + SNAPSHOT_SECONDS
        costs |= {"steady_ms": times.steady(), "measured": times.measured}
        self.finished[name] = driver.state
        yield events.StepEnded(name, done, dict(costs))

    def _report(
        self,
        name: str,
        done: int,
        total: int,
        metrics: Mapping[str, float],
        elapsed_s: float,
        step_ms: float | None,
    ) -> Iterator[events.Event]:
        self.history[name].append((done, metrics))
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
    ) -> events.Event:
        assert step.view is not None
        with self.watch.booking("view_s"):
            shown = step.view(state, keys["view"])
        return events.Viewed(name, done, shown)

    def _judge(self, data: Mapping[str, Dataset], key: jax.Array) -> Iterator[events.Event]:
        history = {of: _series(rows) for of, rows in self.history.items()}
        outcome = Outcome(self.finished, history, data, key, self.costs)
        before = self.watch.now()
        with self.watch.booking("judge_s"):
            verdict = self.program.judge(outcome)
        yield events.Judged(verdict, self.watch.now() - before)


def _next_boundary(
    done: int, total: int, interval: int, views: tuple[int, ...], every: int | None, first: bool
) -> int:
    if first:
        return done + 1
    coming = [total, (done // interval + 1) * interval, *(view for view in views if view > done)]
    if every:
        coming.append((done // every + 1) * every)
    return min(coming)


def _series(rows: list[tuple[int, Mapping[str, float]]]) -> dict[str, Series]:
    steps = np.array([step for step, _ in rows], dtype=np.int64)
    names = rows[0][1] if rows else ()
    return {
        name: Series(steps, np.array([metrics.get(name, math.nan) for _, metrics in rows]))
        for name in names
    }


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]
