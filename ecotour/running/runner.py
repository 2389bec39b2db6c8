"""The runner: a program and a plan in, events out.

It owns the loop. It derives the key and the batch of step i from the step's number inside the
compiled program, so that one step is one dispatch, and books where the time goes. It prints, draws
and writes nothing: that is the business of whoever consumes the events, and the time that they
take is booked apart (``sinks_s``). A single named step is driven in `ecotour.running.named_step`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import jax

from ecotour import datasets
from ecotour.contract import events
from ecotour.contract.demo import Check, Dataset, Outcome, Program, Verdict
from ecotour.contract.plan import Plan
from ecotour.errors import ContractError, EcotourError, PluginError
from ecotour.running import callbacks, stopwatch
from ecotour.running.feed import Feed
from ecotour.running.keys import keys_of
from ecotour.running.named_step import carry_out, first_line, kind, not_shown
from ecotour.running.progress import Progress, Resume

__all__ = ["Resume", "fault_of", "run"]


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
        KeyboardInterrupt: It was interrupted, and nobody had asked it to ``stop``.
    """
    import time

    watch = stopwatch.Stopwatch(time.perf_counter() if began is None else began)
    watch.spans["import_s"] = watch.now()
    status: events.Status = "finished"
    failure: EcotourError | KeyboardInterrupt | None = None
    with callbacks.noting() as raised:
        progress = Progress(program, plan, watch, stop, resume, raised)
        try:
            for event in _whole(program, progress):
                with watch.pause():
                    yield event
            for error in raised.unnoticed():
                said = f"a callback failed: {type(error).__name__}: {first_line(error)}"
                yield events.Warned(said)
            if progress.interrupted:
                status = "interrupted"
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a demo raises
            status, failure = _failed(plan, raised.original(error))
    if isinstance(failure, KeyboardInterrupt):
        yield events.Ended(status, progress.ledger())
        raise failure
    yield events.Ended(status, progress.ledger(), None if failure is None else str(failure))
    if failure is not None:
        raise failure


def _failed(
    plan: Plan, error: BaseException
) -> tuple[events.Status, EcotourError | KeyboardInterrupt]:
    """How a run ends that ``error`` broke off, and what to say of it."""
    if isinstance(error, KeyboardInterrupt):  # wherever it surfaces
        return "interrupted", error
    if isinstance(error, EcotourError):
        return "failed", error
    failure = PluginError(f"{plan.demo} failed: {type(error).__name__}: {first_line(error)}")
    failure.__cause__ = error
    return "failed", failure


def _whole(program: Program, progress: Progress) -> Iterator[events.Event]:
    """Everything but the end."""
    plan = progress.plan
    totals = {n: plan.steps or step.steps for n, step in program.steps.items()}
    yield events.Started(plan, program, totals)
    with progress.watch.booking("data_s"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            data = {
                name: datasets.resolve(source, plan.data, plan.data_dir)
                for name, source in program.data.items()
            }
        keys = keys_of(plan.seed)
        feed = None
        if "train" in data:
            feed = Feed.of(data["train"], program.batch_size, keys["feed"])
    for message in dict.fromkeys(str(warning.message) for warning in said):
        yield events.Warned(message)
    yield events.DataReady(
        {name: dataset.info for name, dataset in data.items()},
        progress.watch.spans["data_s"],
        data,
    )
    for name, step in program.steps.items():
        yield from carry_out(name, step, totals[name], feed, keys, progress)
        if progress.interrupted:
            return
    yield from _judge(program, data, keys["judge"], progress)


def _judge(
    program: Program, data: Mapping[str, Dataset], key: jax.Array, progress: Progress
) -> Iterator[events.Event]:
    history = {of: reported.series() for of, reported in progress.history.items()}
    outcome = Outcome(progress.finished, history, data, key, progress.ledger()["steps"])
    before = progress.watch.now()
    # to look at numbers is to take them from the device: the guard is for the steps
    with progress.watch.booking("judge_s"), jax.transfer_guard("allow"):
        verdict = program.judge(outcome)
    if fault := fault_of(verdict):
        raise ContractError(f"the judge of {progress.plan.demo} {fault}")
    if not isinstance(verdict.exhibits, Mapping):
        yield not_shown("the judge", verdict.exhibits)
        verdict = replace(verdict, exhibits={})
    checks = [_in_time(check, program, progress.plan) for check in verdict.checks]
    yield events.Judged(replace(verdict, checks=checks), progress.watch.now() - before)


def _in_time(check: Check, program: Program, plan: Plan) -> Check:
    """``check`` with its horizon in steps, and without a result where the run was shorter.

    A run at full length is judged, whatever the demo says.
    """
    wanted = [min(check.horizon or step.steps, step.steps) for step in program.steps.values()]
    horizon = max(wanted, default=1)
    if check.passed is None or (plan.steps is not None and plan.steps < horizon):
        return replace(check, horizon=horizon, passed=None)
    return replace(check, horizon=horizon, passed=bool(check.passed))


def fault_of(verdict: object) -> str:
    """What is wrong with what a judge returned; empty for a proper verdict."""
    if not isinstance(verdict, Verdict):
        return f"returned {kind(verdict)}, not an ecotour.Verdict"
    for check in verdict.checks:
        if not isinstance(check, Check):
            return f"has {kind(check)} among its checks, not an ecotour.Check"
        if check.horizon is not None and (type(check.horizon) is not int or check.horizon < 1):
            return (
                f"gives check {check.name!r} the horizon {check.horizon!r}, not a number of steps"
            )
    return ""
