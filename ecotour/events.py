"""What the runner yields, under its public name; see `ecotour.contract.events`."""

from ecotour.contract.events import (
    Compiled,
    DataReady,
    Ended,
    Event,
    Judged,
    Recompiled,
    Reported,
    Sink,
    Snapshot,
    Started,
    Status,
    StepBegun,
    StepEnded,
    Unshown,
    Viewed,
    Warned,
)

__all__ = [
    "Compiled",
    "DataReady",
    "Ended",
    "Event",
    "Judged",
    "Recompiled",
    "Reported",
    "Sink",
    "Snapshot",
    "Started",
    "Status",
    "StepBegun",
    "StepEnded",
    "Unshown",
    "Viewed",
    "Warned",
]
