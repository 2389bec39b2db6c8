"""What this machine is and which versions are installed, for the record and for the doctor."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from ecotour.errors import PluginError

TOUR = (
    "jax",
    "jaxlib",
    "dm-haiku",
    "optax",
    "rlax",
    "jraph",
    "chex",
    "tensorflow",
    "tensorflow-datasets",
    "pluggy",
    "orbax-checkpoint",
    "numpy",
)


def cache_directory() -> Path:
    """Where ecotour keeps what it can make again: ``ECOTOUR_CACHE_DIR``, or the user's cache."""
    chosen = os.environ.get("ECOTOUR_CACHE_DIR")
    if chosen:
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("ecotour", appauthor=False)


def versions(names: Iterable[str] = TOUR) -> dict[str, str | None]:
    """The installed version of each distribution, ``None`` where it is absent."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def processor() -> str:
    """The processor's name, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def x64() -> bool:
    """Whether JAX computes in double precision where it is asked to."""
    import jax

    config: Any = jax.config  # its settings are attributes that are made at run time
    return bool(config.jax_enable_x64)


def disable_jit() -> bool:
    """Whether JAX was told to compile nothing: ``JAX_DISABLE_JIT``, or ``--eager``."""
    import jax

    config: Any = jax.config
    return bool(config.jax_disable_jit)


def matmul_precision() -> str | None:
    """The precision of matrix products that JAX was told to use, or ``None``."""
    import jax

    config: Any = jax.config
    precision: str | None = config.jax_default_matmul_precision
    return precision


def describe() -> dict[str, Any]:
    """The environment of a run, as ``run.json`` holds it. Initialises JAX's backend.

    Raises:
        PluginError: JAX has no such backend, because of ``JAX_PLATFORMS`` or its plugin.
    """
    import jax

    from ecotour.machine import backend as machine_backend
    from ecotour.machine.version import __version__

    present = {name: version for name, version in versions().items() if version}
    if fault := machine_backend.fault():
        raise PluginError(fault)
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": cores(),
        "ecotour": __version__,
        **present,
        "backend": jax.default_backend(),
        "devices": [str(device) for device in jax.devices()],
        "x64": x64(),
        "matmul_precision": matmul_precision(),
        **({"disable_jit": True} if disable_jit() else {}),
    }
