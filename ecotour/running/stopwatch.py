"""Where the time of a run went: a stopwatch that stands still while sinks work, and step times."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


def process_start() -> float:
    """When this process started, as a value of `time.perf_counter`.

    From Linux's process table (10 ms exact); elsewhere the moment of the call, so call it early.
    """
    try:
        with open("/proc/self/stat", encoding="ascii") as file:  # noqa: PTH123 - no file of a user
            ticks = int(file.read().rsplit(")", 1)[1].split()[19])
        import os

        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.perf_counter() - max(0.0, age)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.perf_counter()


MOST_BLOCKS = 10_000
"""Times that are kept of a named step, so that a run may be as long as it likes."""


@dataclass
class Stopwatch:
    """Books spans of time under names. While it is paused, ``now`` stands still."""

    began: float
    paused: float = 0.0
    spans: dict[str, float] = field(default_factory=dict)

    def now(self) -> float:
        """Seconds since the start, pauses left out."""
        return time.perf_counter() - self.began - self.paused

    def wall(self) -> float:
        """Seconds since the start, all told."""
        return time.perf_counter() - self.began

    @contextmanager
    def booking(self, name: str) -> Iterator[None]:
        """Add the time inside to ``spans[name]``."""
        start = self.now()
        try:
            yield
        finally:
            self.spans[name] = self.spans.get(name, 0.0) + self.now() - start

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stand still: what happens inside belongs to somebody else."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.paused += time.perf_counter() - start


@dataclass
class StepTimes:
    """Times of the steps of one named step, measured in blocks.

    A block is the steps between two moments at which the runner waited for the device; its mean
    counts as the time of each step in it, since to time single steps would hold the device up.
    """

    blocks: list[tuple[float, int]] = field(default_factory=list)
    measured: int = 0

    def add(self, seconds: float, steps: int) -> None:
        """Book a block."""
        self.blocks.append((1e3 * seconds / steps, steps))
        self.measured += steps
        if len(self.blocks) >= MOST_BLOCKS:
            self._thin_out()

    def steady(self) -> dict[str, Any]:
        """``p50`` and ``p95`` of a step's milliseconds over all measured steps."""
        if not self.blocks:
            return {"p50": None, "p95": None}
        ordered = sorted(self.blocks)
        return {f"p{p}": _percentile(ordered, p / 100) for p in (50, 95)}

    def _thin_out(self) -> None:
        # neighbours in the order of their times become one, so percentiles hardly move
        ordered = sorted(self.blocks)
        pairs = zip(ordered[::2], ordered[1::2], strict=False)
        self.blocks = [((a * m + b * n) / (m + n), m + n) for (a, m), (b, n) in pairs] + ordered[
            len(ordered) & ~1 :
        ]


def added(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The account of two parts of one run, in the record's form: seconds and counts are sums.

    What cannot be added (the steady pace, XLA's counts) is that of the part that measured more,
    or else of the later one; the time to the first step is that of the part that had it first.
    """
    total = dict(earlier) | {k: v for k, v in now.items() if v is not None or k not in earlier}
    for key, before in earlier.items():
        after = now.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping) and key != "steady_ms":
            total[key] = added(before, after)
        elif key == "to_first_step_s":
            total[key] = after if before is None else before
        elif (key.endswith("_s") or key == "compiles") and None not in (before, after):
            total[key] = before + after
    if (earlier.get("measured") or 0) > (now.get("measured") or 0):
        total |= {key: earlier[key] for key in ("measured", "steady_ms") if key in earlier}
    return total


def _percentile(ordered: list[tuple[float, int]], share: float) -> float:
    wanted = share * sum(count for _, count in ordered)
    for milliseconds, count in ordered:
        wanted -= count
        if wanted <= 0:
            return milliseconds
    return ordered[-1][0]
