"""The flagship's training step, side by side with what a user would pick instead.

    python tests/benchmarks/gan_step.py [--steps 40] [--json FILE]

One network, one loss, one optimizer, one batch of 64, four ways: through `ecotour_gan`'s faster
convolutions, as plain Haiku, and in PyTorch eager with either memory format (left out where torch
is not installed). Each runs in a process of its own and waits while another measures; they take
turns in blocks of five steps, so that a busy moment of the machine falls on all of them. Reported
are medians, and medians of the ratios of blocks that stand side by side.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from gan_peers import MAKERS, useful_gflop

BLOCK = 5
PEERS = ("ecotour", "haiku", "torch", "torch_channels_last")


def _work(name: str) -> None:
    """A peer: makes its step, then times as many as each line of stdin asks for."""
    begin = time.perf_counter()
    step = MAKERS[name]()
    step()
    print(json.dumps(time.perf_counter() - begin), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - begin))
        print(json.dumps(times), flush=True)


def measure(steps: int = 40) -> dict[str, Any]:
    """Times every peer, in turns.

    Args:
        steps: timed steps of each peer, rounded up to whole blocks of five; at least 30 for a
            figure that is to be quoted.

    Returns:
        ``ms``: median, quartiles and the time to the first step of each peer; ``ratios``: of
        ecotour to each of the others, with quartiles; the useful arithmetic of a step, this
        machine's matrix-product rate and the share of it that a step reaches; the machine.
    """
    names = [*PEERS, "matrix_product"]
    if find_spec("torch") is None:
        names = [name for name in names if not name.startswith("torch")]
    workers = {}
    # Not together: a compilation takes all cores, and its time is reported.
    first: dict[str, float] = {}
    times: dict[str, list[list[float]]] = {name: [] for name in names}
    try:
        for name in names:
            worker = subprocess.Popen(
                [sys.executable, __file__, "--peer", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            workers[name] = worker
            first[name] = _answer(worker, name)
        for block in range(-1, -(-steps // BLOCK)):
            # The order turns round from block to block, for the sake of what follows whom.
            for name in names if block % 2 else reversed(names):
                worker = workers[name]
                assert worker.stdin is not None
                worker.stdin.write(f"{BLOCK}\n")
                worker.stdin.flush()
                measured = _answer(worker, name)
                if block >= 0:  # the first block is warm-up
                    times[name].append(measured)
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()
    rate = 2 * 2048**3 / 1e6 / statistics.median(chain(*times["matrix_product"]))
    ours = list(chain(*times["ecotour"]))
    return {
        "ms": {
            name: _spread(list(chain(*blocks))) | {"first_step_s": round(first[name], 2)}
            for name, blocks in times.items()
        },
        "ratios": {
            name: _spread(
                [
                    statistics.median(a) / statistics.median(b)
                    for a, b in zip(times["ecotour"], times[name], strict=True)
                ]
            )
            for name in names
            if name not in ("ecotour", "matrix_product")
        },
        "useful_gflop": round(useful_gflop(), 3),
        "matrix_product_gflops": round(rate, 1),
        "share_of_matrix_product": round(
            useful_gflop() / (statistics.median(ours) / 1e3) / rate, 3
        ),
        "machine": _machine(),
    }


def _answer(worker: "subprocess.Popen[str]", name: str) -> Any:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"the peer {name!r} ended early; run it alone: --peer {name}")
    return json.loads(line)


def _spread(values: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 3), "p25": round(low, 3), "p75": round(high, 3)}


def _machine() -> dict[str, Any]:
    from importlib.metadata import version

    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line for line in info.read_text().splitlines() if line.startswith("model name"))
        cpu = next(lines, cpu).partition(":")[2].strip()
    packages = ("jax", "dm-haiku", "optax", *(["torch"] if find_spec("torch") else []))
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def main() -> None:
    """Measures and prints; with ``--json`` also writes the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=40, help="timed steps of each peer")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--peer", choices=MAKERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        _work(arguments.peer)
        return
    figures = measure(arguments.steps)
    for name, row in figures["ms"].items():
        print(
            f"{name:20s} {row['median']:8.1f} ms   quartiles {row['p25']:.1f} to {row['p75']:.1f}"
            f"   first step after {row['first_step_s']:.1f} s"
        )
    for name, row in figures["ratios"].items():
        print(
            f"ecotour / {name:20s} {row['median']:.3f}   quartiles {row['p25']:.3f} to"
            f" {row['p75']:.3f}"
        )
    print(f"useful arithmetic    {figures['useful_gflop']} GFLOP a step")
    print(f"matrix product       {figures['matrix_product_gflops']} GFLOP/s")
    print(f"share of that rate   {figures['share_of_matrix_product']:.0%}")
    print(figures["machine"])
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
