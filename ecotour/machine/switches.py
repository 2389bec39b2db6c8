"""Whether JAX and XLA take what the environment tells them: else a demo would get the blame.

JAX reads its variables as it is imported, and XLA ends the whole process over a flag that it does
not know. So this costs nothing where none is set; the flags of XLA are tried in a child process,
once for each wording of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys

from ecotour.errors import EcotourError
from ecotour.machine import environment

_TRY_SECONDS = 60


def check() -> None:
    """Find out.

    Raises:
        EcotourError: A variable has a value that is none; the message names both.
    """
    given = {k: v for k, v in os.environ.items() if k.startswith("JAX_") and k != "JAX_PLATFORMS"}
    if given:
        _check_jax(given)
    if flags := os.environ.get("XLA_FLAGS", "").strip():
        _check_xla(flags)


def _check_jax(given: dict[str, str]) -> None:
    try:
        import jax  # noqa: F401 - it reads its variables
    except (ValueError, TypeError, AttributeError) as error:
        said = " ".join(str(error).split())
        named = [k for k in given if k.lower() in said.lower()]
        # a whole number is asked for without a word on which
        named = named or [k for k, value in given.items() if repr(value) in said] or list(given)
        values = ", ".join(f"{name}={given[name]}" for name in named)
        mend = "set it to 1, 0, true or false" if "truth value" in said else "mend it"
        raise EcotourError(f"JAX does not take {values}: {said}: {mend}, or unset it") from error


def _check_xla(flags: str) -> None:
    version = environment.versions(["jaxlib"])["jaxlib"]
    good, tried = environment.cache_directory() / "xla-flags", f"{version} {flags}"
    with contextlib.suppress(OSError, ValueError):
        if good.read_text(encoding="utf-8") == tried:
            return
    command = [sys.executable, "-c", "import jax; jax.devices('cpu')"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False,
            timeout=_TRY_SECONDS, stdin=subprocess.DEVNULL,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return  # whatever is slow here, it is no unknown flag
    if done.returncode >= 0 and "XLA_FLAGS" not in done.stderr:
        with contextlib.suppress(OSError, ValueError):
            good.parent.mkdir(parents=True, exist_ok=True)
            good.write_text(tried, encoding="utf-8")
        return
    lines = [line for line in done.stderr.splitlines() if "XLA_FLAGS" in line or "flag" in line]
    why = re.sub(r"^[A-Z]\d{4} .*?\] ", "", lines[0]) if lines else "it ends the process"
    raise EcotourError(f"XLA does not take XLA_FLAGS={flags}: {why}: mend it, or unset it")
