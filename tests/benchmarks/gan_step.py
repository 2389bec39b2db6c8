"""The flagship's training step, side by side with what a user would pick instead.

    python tests/benchmarks/gan_step.py [--steps 200] [--json FILE]

One network, one loss, one optimizer, one batch of 64, four ways: through `ecotour_gan`'s faster
convolutions, as plain Haiku, and in PyTorch eager with either memory format (left out where torch
is not installed). Reported are medians, and medians of the ratios of blocks that stand side by
side.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import peers
from gan_peers import MAKERS, useful_gflop
from turns import ratios, serve, summary, take_turns

from ecotour.machine import environment

PEERS = ("ecotour", "haiku", "torch", "torch_channels_last")


def measure(steps: int = 200) -> dict[str, Any]:
    """Times every peer, in turns.

    Args:
        steps: timed steps of each peer, in blocks of five; the figures are of blocks.

    Returns:
        ``ms``: median, quartiles and the time to the first step of each peer; ``ratios``: of
        ecotour to each of the others, with quartiles; the useful arithmetic of a step, this
        machine's matrix-product rate and the share of it that a step reaches; the machine.
    """
    names = [*PEERS, "matrix_product"]
    if not peers.versions("torch"):
        names = [name for name in names if not name.startswith("torch")]
    first, times = take_turns(
        {name: [sys.executable, __file__, "--peer", name] for name in names}, steps
    )
    rate = 2 * 2048**3 / 1e6 / statistics.median(times["matrix_product"])
    return {
        "ms": summary(first, times),
        "ratios": {
            name: ratios(times, "ecotour", name)
            for name in names
            if name not in ("ecotour", "matrix_product")
        },
        "useful_gflop": round(useful_gflop(), 3),
        "matrix_product_gflops": round(rate, 1),
        "share_of_matrix_product": round(
            useful_gflop() / (statistics.median(times["ecotour"]) / 1e3) / rate, 3
        ),
        "machine": environment.describe() | peers.versions("torch"),
    }


def main() -> None:
    """Measures and prints; with ``--json`` also writes the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="timed steps of each peer")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--peer", choices=MAKERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        serve(MAKERS[arguments.peer])
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
