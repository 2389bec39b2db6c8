"""The flagship's training step on a GPU: one by one, fused, and PyTorch's, eager and compiled.

    python tests/benchmarks/gan_gpu.py [--steps 200] [--json FILE]

The same network, losses, optimizer and batch of 64 as in `gan_step`. On a GPU a step is so short
that dispatching it is a good part of it: the fused peers run ten in one dispatch (`lax.scan`), and
are counted a step. ``--device cpu`` measures the same peers without a GPU, to see that they work.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import peers
from gan_peers import FUSED, haiku_step, torch_step
from turns import Peer, ratios, serve, summary, take_turns

from ecotour.machine import environment

MAKERS: dict[str, Callable[[str], Peer]] = {
    "ecotour": lambda _: haiku_step("auto", together=True),
    "ecotour_fused": lambda _: haiku_step("auto", together=True, fused=FUSED),
    "haiku": lambda _: haiku_step("xla", together=False),
    "torch": lambda device: torch_step(False, device),
    "torch_channels_last": lambda device: torch_step(True, device),
    "torch_compiled": lambda device: torch_step(True, device, compiled=True),
}


def measure(steps: int = 200, device: str = "gpu") -> dict[str, Any]:
    """Times every peer, in turns.

    Returns:
        As `gan_step.measure`; the fused peer's figures are of one step. Where there is no GPU, or
        PyTorch sees none, ``not_measured`` says so of what was left out.
    """
    import jax

    absent: dict[str, str] = {}
    if jax.default_backend() != device:
        return {"not_measured": {"everything": f"no {device}: JAX runs on {jax.default_backend()}"}}
    names = list(MAKERS)
    if reason := _no_torch(device):
        names = [name for name in names if not name.startswith("torch")]
        absent["torch"] = reason
    first, times = take_turns(
        {name: [sys.executable, __file__, "--peer", name, "--device", device] for name in names},
        steps,
        # all peers are on the device at once: none may take its memory before it needs it
        {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )
    times["ecotour_fused"] = [one / FUSED for one in times["ecotour_fused"]]
    return {
        "ms": summary(first, times),
        "ratios": {
            f"{ours} / {name}": ratios(times, ours, name)
            for ours in ("ecotour", "ecotour_fused")
            for name in names
            if not name.startswith("ecotour")
        },
        "not_measured": absent,
        "machine": environment.describe() | peers.versions("torch"),
    }


def _no_torch(device: str) -> str | None:
    """Why PyTorch cannot be measured on the device; None if it can."""
    if not peers.versions("torch"):
        return "not installed"
    import torch

    if device == "gpu" and not torch.cuda.is_available():
        return "it sees no GPU"
    return None


def main() -> None:
    """Measures and prints; with ``--json`` also writes the figures to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="timed calls of each peer")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--peer", choices=MAKERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        device = {"gpu": "cuda", "cpu": "cpu"}[arguments.device]
        serve(partial(MAKERS[arguments.peer], device))
        return
    figures = measure(arguments.steps, arguments.device)
    print(json.dumps(figures, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
