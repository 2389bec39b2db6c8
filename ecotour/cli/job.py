"""What a command carries out, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from ecotour.contract.demo import Program
    from ecotour.contract.plan import Plan
    from ecotour.rundir.continuation import Continuation


@dataclass(frozen=True)
class Options:
    """How a run is shown and judged on the command line.

    Attributes:
        quiet: Show warnings only.
        strict: A check that does not pass is exit code 3.
        json: Print the record as one document.
        sinks: Names of sinks from other distributions.
    """

    quiet: bool = False
    strict: bool = False
    json: bool = False
    sinks: tuple[str, ...] = ()

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Options:
        """Those that were typed."""
        return cls(arguments.quiet, arguments.strict, arguments.json, tuple(arguments.sinks))


@dataclass(frozen=True)
class Job:
    """A run that is to be carried out, or gone on with.

    Attributes:
        program: What the demo built.
        plan: What was asked for.
        command: The words of the command line.
        began: When the process started, as a value of `time.perf_counter`.
        stdout: Where the document goes.
        options: How it is shown and judged.
        earlier: The record of the part of the run that is gone on with.
        continuation: Where and how to go on; ``None`` for a new run.
    """

    program: Program
    plan: Plan
    command: list[str]
    began: float
    stdout: IO[str]
    options: Options = field(default_factory=Options)
    earlier: Mapping[str, Any] | None = None
    continuation: Continuation | None = None
