"""What the runner yields. Sinks are ``Callable[[Event], None]`` over these.

The order of a run: `Started`, `DataReady`, then for each named step `StepBegun`, `Compiled`,
any number of `Reported`, `Viewed`, `Unshown`, `Snapshot`, `Recompiled` and `Warned`, and
`StepEnded`; at last `Judged` and `Ended`. A run that breaks off yields `Ended` all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from ecotour.contract.demo import DataInfo, Dataset, Program, State, Verdict
from ecotour.contract.exhibits import Exhibit
from ecotour.contract.plan import Plan

Status: TypeAlias = Literal["running", "finished", "interrupted", "failed"]


@dataclass(frozen=True)
class Started:
    """The program is built. ``totals`` is the number of steps of each named step."""

    plan: Plan
    program: Program
    totals: Mapping[str, int]


@dataclass(frozen=True)
class DataReady:
    """All datasets are in memory. Both mappings are by the dataset's name in the program."""

    info: Mapping[str, DataInfo]
    seconds: float
    datasets: Mapping[str, Dataset] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class StepBegun:
    """A named step starts, or goes on after step ``done`` of ``total``.

    ``state_bytes`` is the size of its state's arrays; ``compiled`` says how it is driven.
    """

    of: str
    done: int
    total: int
    init_s: float
    state_bytes: int = 0
    compiled: bool = True


@dataclass(frozen=True)
class Compiled:
    """A named step is compiled. ``costs`` is its part of the ledger so far."""

    of: str
    costs: Mapping[str, Any]


@dataclass(frozen=True)
class Recompiled:
    """The step had to be compiled again. ``reason`` names each leaf, from what to what."""

    of: str
    step: int
    reason: str


@dataclass(frozen=True)
class Reported:
    """The metrics after ``step``, fetched from the device, as Python floats.

    ``elapsed_s`` is the time in the loop of this named step so far, reporting included;
    ``step_ms`` the mean of the latest steps (about a second of them, none before the last
    report), or ``None`` for the first step.
    """

    of: str
    step: int
    total: int
    metrics: Mapping[str, float]
    elapsed_s: float
    step_ms: float | None


@dataclass(frozen=True)
class Viewed:
    """What the demo shows after ``step`` (0 is before the first)."""

    of: str
    step: int
    exhibits: Mapping[str, Exhibit]


@dataclass(frozen=True)
class Unshown:
    """The view failed after ``step``, so that nothing is shown of it; ``reason`` is one line."""

    of: str
    step: int
    reason: str


@dataclass(frozen=True)
class Snapshot:
    """A good moment to save. Whoever keeps ``state`` copies it before the next step donates it.

    Comes when it is due, after the last step of each named step, and where a run is broken off.
    ``metrics`` are those of ``step``; ``ledger`` is the account of the run so far.
    """

    of: str
    step: int
    state: State
    metrics: Mapping[str, float] = field(default_factory=dict)
    ledger: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepEnded:
    """A named step is done, or was broken off after ``step``. ``costs`` is its full ledger."""

    of: str
    step: int
    costs: Mapping[str, Any]


@dataclass(frozen=True)
class Warned:
    """Something that the user should know and that does not end the run."""

    message: str


@dataclass(frozen=True)
class Judged:
    """The verdict."""

    verdict: Verdict
    seconds: float


@dataclass(frozen=True)
class Ended:
    """The run is over. ``error`` says why in one line, for a failed one."""

    status: Status
    ledger: Mapping[str, Any]
    error: str | None = None


Event: TypeAlias = (
    Started
    | DataReady
    | StepBegun
    | Compiled
    | Recompiled
    | Reported
    | Viewed
    | Unshown
    | Snapshot
    | StepEnded
    | Warned
    | Judged
    | Ended
)


class Sink(Protocol):
    """Called with each event, in order; closed once, also where the run breaks off."""

    def __call__(self, event: Event, /) -> None:
        """Take note of ``event``. May raise: the run goes on without this sink."""

    def close(self) -> None:
        """Finish what is unfinished."""


NOT_METRICS = ("step", "of", "elapsed_s", "nonfinite")
"""The keys of a row of ``metrics.jsonl`` that are no metric's name."""
