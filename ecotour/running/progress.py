"""How far a run is: what it goes on from, what is done, and what that cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ecotour.contract.demo import Program, State
from ecotour.contract.plan import Plan
from ecotour.running import stopwatch
from ecotour.running.callbacks import Raised
from ecotour.running.history import History


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


class Progress:
    """Where one run stands.

    Attributes:
        plan: What it was asked to do.
        watch: Its stopwatch.
        stop: Whether somebody has asked it to stop.
        resume: Where an earlier run broke off.
        raised: What the demo's callbacks raised.
        interrupted: Whether it stopped because it was asked to.
        to_first_step_s: Seconds until the first step was done; ``None`` before.
        costs: The account of each named step.
        finished: The last state of each named step that is done.
        history: What each named step reported.
        nonfinite: Named steps and metrics that were not finite, of which was warned.
        unshown: Named steps whose view failed, and why (empty: it returned no exhibits), of
            which was warned.
    """

    def __init__(
        self,
        program: Program,
        plan: Plan,
        watch: stopwatch.Stopwatch,
        stop: Callable[[], bool],
        resume: Resume | None,
        raised: Raised,
    ) -> None:
        """At the beginning, or where an earlier run broke off."""
        self.plan, self.watch, self.stop, self.raised = plan, watch, stop, raised
        self.resume = resume or Resume({}, lambda _, state: state)
        self.interrupted = False
        self.to_first_step_s: float | None = None
        self.costs: dict[str, dict[str, Any]] = {}
        self.finished: dict[str, State] = {}
        self.history = {n: self.resume.history.get(n, History()) for n in program.steps}
        self.nonfinite = {
            (of, name) for of, one in self.history.items() for name, _ in one.nonfinite_since()
        }
        self.unshown: set[tuple[str, str]] = set()

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
        return stopwatch.added(self.resume.ledger, account)

    def costs_of(self, name: str) -> dict[str, Any]:
        """The account of one named step, earlier parts of the run included."""
        steps: dict[str, Any] = self.ledger()["steps"]
        return dict(steps.get(name, {}))
