"""Peers that take turns: each in a process of its own, waiting while another measures.

A busy moment of the machine then falls on all of them, and the ratio of two blocks that stand side
by side says more than either time.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

BLOCK = 5
"""Steps of a peer before the next one has its turn."""

Times = dict[str, list[float]]
Peer = tuple[Callable[[], None], Callable[[], None]]
"""What asks for one step, and what waits for all that were asked for."""


def serve(make: Callable[[], Peer]) -> None:
    """A peer: makes its step, then times as many of them as each line of stdin asks for.

    They are asked for one after the other and waited for at the end, as a training loop does it.
    """
    begin = time.perf_counter()
    step, wait = make()
    step()
    wait()
    print(json.dumps(time.perf_counter() - begin), flush=True)
    for line in sys.stdin:
        count = int(line)
        begin = time.perf_counter()
        for _ in range(count):
            step()
        wait()
        print(json.dumps(1e3 * (time.perf_counter() - begin) / count), flush=True)


def take_turns(
    commands: dict[str, list[str]], steps: int, environment: dict[str, str] | None = None
) -> tuple[dict[str, float], Times]:
    """Time every peer.

    Args:
        commands: what starts each peer; the process must run `serve`.
        steps: timed steps of each, rounded up to whole blocks.
        environment: variables that each process gets besides those of this one.

    Returns:
        Seconds to the end of each peer's first step, and milliseconds a step in each block. The
        first block is warm-up and is left out.
    """
    workers: dict[str, subprocess.Popen[str]] = {}
    first: dict[str, float] = {}
    times: Times = {name: [] for name in commands}
    try:
        for name, command in commands.items():
            # one after another: a compilation takes all cores, and its time is reported
            workers[name] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | (environment or {}),
            )
            first[name] = _answer(workers[name], name)
        for block in range(-1, -(-steps // BLOCK)):
            # the order turns round from block to block, for the sake of what follows whom
            for name in commands if block % 2 else reversed(commands):
                worker = workers[name]
                assert worker.stdin is not None
                worker.stdin.write(f"{BLOCK}\n")
                worker.stdin.flush()
                measured = _answer(worker, name)
                if block >= 0:
                    times[name].append(measured)
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()
    return first, times


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, digits), "p25": round(low, digits), "p75": round(high, digits)}


def summary(first: dict[str, float], times: Times) -> dict[str, dict[str, float]]:
    """Of each peer the spread of its blocks, and the seconds to the end of its first step."""
    return {
        name: spread(blocks) | {"first_step_s": round(first[name], 2)}
        for name, blocks in times.items()
    }


def ratios(times: Times, ours: str, theirs: str) -> dict[str, float]:
    """The spread of the ratios of blocks that stand side by side."""
    return spread([a / b for a, b in zip(times[ours], times[theirs], strict=True)])


def _answer(worker: subprocess.Popen[str], name: str) -> Any:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"the peer {name!r} ended early; run it alone: --peer {name}")
    return json.loads(line)
