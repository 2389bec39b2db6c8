"""Whether a run does today what it did then: same bits, close, or diverged, and at which step.

A run is done again with the recorded flags and seed, and its reports are compared with the
recorded ones step by step; then the digests of the last states, leaf by leaf, so that sameness is
of the state and not of a rounded loss. Quantities whose name says that the clock has a part in
them are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ecotour.contract.events import NOT_METRICS
from ecotour.trust.drift import NEGLIGIBLE, TOLERANCES, is_timing, tolerance

Row: TypeAlias = Mapping[str, Any]
Digests: TypeAlias = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Parting:
    """Where two runs part: the first report that is further apart than rounding explains.

    Attributes:
        of: The named step.
        step: After which step.
        metric: Which metric.
        then: Its recorded value; ``None`` where it was not finite, or not reported.
        now: Its value now.
    """

    of: str
    step: int
    metric: str
    then: float | None
    now: float | None


@dataclass(frozen=True)
class Finding:
    """What a comparison came to.

    Attributes:
        verdict: ``same bits``, ``close`` or ``diverged``.
        reports: How many reports were compared.
        leaves: How many leaves of last states were compared by their digests.
        largest: By ``STEP.METRIC``, the largest relative difference of what is within tolerance.
        parting: Where they diverged.
        leaf: The first leaf of a last state, in the state's order, that is not the same.
        tolerances: The relative differences that count as close.
    """

    verdict: Literal["same bits", "close", "diverged"]
    reports: int
    leaves: int
    largest: Mapping[str, float] = field(default_factory=dict)
    parting: Parting | None = None
    leaf: str | None = None
    tolerances: Mapping[str, float] = field(
        default_factory=lambda: {k: v for k, v in TOLERANCES.items() if k.startswith("metrics")}
    )


def compare(
    then: Sequence[Row],
    now: Sequence[Row],
    digests_then: Digests,
    digests_now: Digests,
    *,
    digits: int | None = None,
) -> Finding:
    """Compare two runs of one demo with the same flags and seed.

    Args:
        then: The recorded rows, as ``metrics.jsonl`` has them.
        now: Those of the new run; only reports that both have are compared.
        digests_then: What the record has under ``digests``; may be empty.
        digests_now: The same of the new run.
        digits: Significant digits that the recorded values were rounded to, if they were.
    """
    largest: dict[str, float] = {}
    reports = exact = 0
    for old, new in _pairs(then, now):
        reports += 1
        same = True
        for metric in dict.fromkeys([*old, *new]):
            name = f"{old['of']}.{metric}"
            if metric in NOT_METRICS or is_timing(name):
                continue
            a, b = old.get(metric), _rounded(new.get(metric), digits)
            if a == b and (metric in old) == (metric in new):
                continue
            same = False
            apart = _apart(a, b)
            if apart > tolerance(old["step"]) and not _negligible(a, b):
                parting = Parting(old["of"], old["step"], metric, a, new.get(metric))
                return Finding("diverged", reports, 0, largest, parting)
            largest[name] = max(apart, largest.get(name, 0.0))
        exact += same
    leaves, leaf = _leaves(digests_then, digests_now)
    verdict: Literal["same bits", "close"] = (
        "same bits" if exact == reports and leaf is None else "close"
    )
    return Finding(verdict, reports, leaves, largest, leaf=leaf)


def _pairs(then: Sequence[Row], now: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    found = {(row["of"], row["step"]): row for row in now}
    for row in then:
        other = found.get((row["of"], row["step"]))
        if other is not None:
            yield row, other


def _rounded(value: Any, digits: int | None) -> Any:
    return float(f"{value:.{digits}g}") if digits and isinstance(value, float) else value


def _apart(one: Any, other: Any) -> float:
    """The relative difference of two numbers; infinite where one of them is none."""
    if not all(isinstance(each, int | float) for each in (one, other)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other))


def _negligible(one: Any, other: Any) -> bool:
    """Whether both are numbers so near to each other that the relative difference says nothing."""
    numbers = all(isinstance(each, int | float) for each in (one, other))
    return numbers and abs(one - other) <= NEGLIGIBLE


def _leaves(then: Digests, now: Digests) -> tuple[int, str | None]:
    """How many leaves could be compared, and the first that is not the same."""
    count, first = 0, None
    for of, old in then.items():
        new = now.get(of)
        if new is None or old.get("step") != new.get("step"):
            continue
        for leaf in dict.fromkeys([*old["leaves"], *new["leaves"]]):
            count += 1
            a, b = (one["leaves"].get(leaf, "") for one in (old, new))
            digits = min(len(a), len(b))  # a record for documentation keeps the first ones
            if (not digits or a[:digits] != b[:digits]) and first is None:
                first = f"{of}: state{leaf}"
    return count, first
