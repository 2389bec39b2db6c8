"""Whether JAX starts on this machine and, where it does not, why, and how to mend it."""

from __future__ import annotations

import os
import subprocess
import sys

VARIABLES = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")
"""The variables that say which platforms JAX shall start; the second is its older name."""

_ASK = "import jax; print(*sorted({'cpu', *(device.platform for device in jax.devices())}))"


def fault() -> str:
    """Why JAX does not start, in one line; empty where it does. Starts it, if it has not yet."""
    import jax

    try:
        if jax.devices():
            return ""
        reason = "it found no device"
    except Exception as error:  # noqa: BLE001 - JAX raises a bare AssertionError, among others
        lines = str(error).strip().splitlines()
        reason = lines[0].rstrip(".") if lines else "it has no such backend, and says no more"
    for name in VARIABLES:
        if asked := os.environ.get(name) or getattr(jax.config, name.lower(), None):
            break
    else:
        return f"JAX does not start: {reason}; see `ecotour doctor`"
    there = _present()
    mend = f"set {name}={there.split()[0]}" if there else f"unset {name}"
    if asked.split(",")[0] in ("cuda", "gpu"):
        mend += ", or cuda,cpu to take a GPU where there is one, or pip install 'jax[cuda13]'"
    elif asked.split(",")[0] in ("tpu", "rocm"):
        mend += f", or install JAX for {asked.split(',')[0]}"
    listed = f"; here there is {', '.join(there.split())}" if there else ""
    return f"JAX does not start with {name}={asked}: {reason}{listed}: {mend}"


def _present() -> str:
    """The platforms that JAX finds by itself, asked of a process that was told of none."""
    chosen = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK],
            env=chosen, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
