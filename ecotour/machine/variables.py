"""Environment variables that keep JAX from starting: which one, its value, and what it may be.

JAX reads its own (``JAX_ENABLE_X64``) as it is imported, and raises; XLA reads ``XLA_FLAGS`` as the
backend starts, and ends the process. Without our doing the first looks like a fault of the demo
that imports JAX, and the second is said in XLA's words alone.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import traceback
from pathlib import Path
from types import FrameType

from ecotour.errors import PluginError

_OURS = ("JAX", "CHECK_VMA", "EAGER_CONSTANT_FOLDING")
"""How the names of the variables begin that JAX reads as it is imported."""
_MAY_BE = {
    "bool": "1, true, yes or on, or 0, false, no or off",
    "int": "a whole number",
    "float": "a number",
}
_START_LIMIT_S = 120


def refuse_faulty() -> None:
    """Import JAX, if a variable of its own is set, and see that XLA takes its flags.

    Raises:
        PluginError: A variable keeps JAX from starting.
    """
    if found := fault():
        raise PluginError(found)


def fault() -> str:
    """Which variable keeps JAX from starting, in one line; empty where none does.

    Where none is set, nothing is done. Else JAX is imported, and ``XLA_FLAGS`` are tried in a
    process of their own, once: that they are good is kept in the cache directory.
    """
    said = _fault_of_jax() if any(name.startswith(_OURS) for name in os.environ) else ""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    return said or (_fault_of_xla(flags) if flags else "")


def misspelt() -> list[str]:
    """A line for each variable that JAX does not know, and whose name is nearly one it does."""
    unsure = [name for name in os.environ if name.startswith("JAX_")]
    if not unsure:
        return []
    import difflib

    try:
        import jax
    except ImportError:
        return []
    known = {name.upper() for name in jax.config.values}
    near = {
        name: difflib.get_close_matches(name, known, n=1, cutoff=0.9)
        for name in unsure
        if name not in known
    }
    return [
        f"JAX ignores {name}: did you mean {close[0]}?" for name, close in near.items() if close
    ]


def _fault_of_jax() -> str:
    try:
        import jax  # noqa: F401
    except ValueError as error:
        return _blame(error)
    except ImportError:
        pass  # JAX is missing or damaged, which whoever needs it will say
    return ""


def _blame(error: ValueError) -> str:
    """Which variable JAX's import failed over; empty where it was none.

    The message has not always the name, nor what is allowed; the functions that read it have.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][::-1]
    for frame in frames:
        for local in frame.f_locals.values():
            name = local.upper() if isinstance(local, str) else ""
            if name.startswith(_OURS) and name in os.environ:
                may_be = _may_be(frames)
                value = f"{name}={shlex.quote(os.environ[name])}"
                told = f", it may be {may_be}" if may_be else f" ({error})"
                return f"{value}: JAX cannot read it{told}: correct it, or unset {name}"
    return ""


def _may_be(frames: list[FrameType]) -> str:
    """What JAX's own reader of a variable takes: `enum_state`, `int_state`, `bool_env`, …"""
    for frame in frames:
        values = frame.f_locals.get("enum_values")
        if values is None and "enum_class" in frame.f_locals:
            values = [one.value for one in frame.f_locals["enum_class"]]
        if values:
            return ", ".join(map(str, values))
        for kind, words in _MAY_BE.items():
            if kind in frame.f_code.co_name.split("_"):
                return words
    return ""


@functools.cache
def _fault_of_xla(flags: str) -> str:
    known_good = _verdict(flags)
    if known_good is not None and known_good.is_file():
        return ""
    surroundings = {
        **os.environ,
        "PYTHONSAFEPATH": "1",  # a file jax.py of the user's is none of JAX
        "TF_CPP_MIN_LOG_LEVEL": "1",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # it shall take no GPU from anybody
    }
    try:
        tried = subprocess.run(
            [sys.executable, "-c", "import jax; jax.devices()"],
            env=surroundings, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=_START_LIMIT_S, text=True, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""  # no verdict
    if tried.returncode == 0:
        if known_good is not None:
            with contextlib.suppress(OSError):
                known_good.parent.mkdir(parents=True, exist_ok=True)
                known_good.touch()
        return ""
    return _in_our_words(flags, tried.stderr)


def _in_our_words(flags: str, said: str) -> str:
    """What XLA said of its flags; empty where it ended over something else."""
    mend = ": correct it, or unset XLA_FLAGS"
    if found := re.search(r"Unknown flags? in XLA_FLAGS: (.+)", said):
        return f"XLA_FLAGS: XLA does not know {found[1].strip()}{mend}"
    if found := re.search(r"Couldn't interpret value (.*) for flag (\w+)", said):
        kind = re.search(rf"--{found[2]}=\S*\s+(\w+)\s", said.partition("Flags:")[2])
        may_be = f" is no {kind[1]}" if kind else " cannot be read"
        return f"XLA_FLAGS: the value of --{found[2]}={found[1]}{may_be}{mend}"
    if re.search(r"Could not open file .* environment variable \"XLA_FLAGS\"", said):
        return (
            f"XLA_FLAGS={flags}: a flag begins with --, and anything else is the name of a file of "
            f"flags: there is none of that name{mend}"
        )
    if found := re.search(r"parse_flags_from_env\.cc:\d+\] (.+)", said):
        return f"XLA_FLAGS={flags}: {found[1].strip()}{mend}"
    return ""


def _verdict(flags: str) -> Path | None:
    """The file that is there if these flags were seen to be good; none, if a file holds them."""
    if not flags.startswith("--"):
        return None
    from ecotour.machine import environment

    surroundings = [
        flags,
        sys.prefix,
        os.environ.get("JAX_PLATFORMS"),
        environment.versions(("jax", "jaxlib")),
    ]
    digest = hashlib.sha256(json.dumps(surroundings).encode()).hexdigest()
    return environment.cache_directory() / "xla-flags" / digest
