"""A run in a process of its own, within a budget of time and memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ecotour.drawing import wording
from ecotour.errors import EcotourError, UsageError

_LOOK_SECONDS = 0.2


class BudgetError(EcotourError):
    """A run took more time or memory than it was allowed, or failed."""


def run(words: Sequence[str], out: Path, *, seconds: float, megabytes: int) -> int | None:
    """Carry out ``ecotour run WORDS --out OUT`` in a fresh interpreter.

    Args:
        words: What follows ``ecotour run``.
        out: The run's directory.
        seconds: Of wall time, after which the process is ended.
        megabytes: Of resident memory, above which it is ended.

    Returns:
        The most bytes that the process had resident, or ``None`` where the system does not tell.

    Raises:
        BudgetError: It failed, or was ended; the message has its last line.
    """
    command = [sys.executable, "-m", "ecotour", "run", *words, "--out", str(out), "--quiet"]
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            peak = None
            while process.poll() is None:
                peak = max(filter(None, (peak, _resident(process.pid))), default=None)
                if peak is not None and peak > megabytes * 2**20:
                    raise BudgetError(
                        f"the run took more than {megabytes:,} MiB: allow more with --memory-limit"
                    )
                if time.monotonic() - began > seconds:
                    raise BudgetError(
                        f"the run took longer than {wording.duration(seconds)}: "
                        "allow more with --time-limit"
                    )
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
        finally:
            _end(process)
        if process.returncode:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines() or ["no word"]
            line = lines[-1].removeprefix("ecotour: ")
            if process.returncode == UsageError.exit_code:
                raise UsageError(line)
            raise BudgetError(f"the run ended with code {process.returncode}: {line}")
    return peak


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    if process.poll() is None:
        process.kill()
        process.wait()


def _resident(pid: int) -> int | None:
    """The most memory that a process had resident, in bytes, on Linux."""
    if os.name != "posix":
        return None
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
