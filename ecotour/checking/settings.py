"""Settings of the whole process: what they are, what has changed, and back again.

Libraries change some of them as they are imported, and that is no fault of the demo that needs
them. So they are compared around a second life of the demo's own modules, when its libraries are
loaded already.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGCHLD", "SIGPIPE")
LOOSE = ("os.environ", "warnings.filters", "logging", "sys.path")
"""What libraries change as they are imported; not compared where they may be."""


def settings() -> dict[str, Any]:
    """Every process-wide setting that a demo might change, by name; values can be compared."""
    import jax
    import numpy as np

    found: dict[str, Any] = {f"jax.config.{k}": v for k, v in jax.config.values.items()}
    found["os.environ"] = dict(os.environ)
    found["os.getcwd()"] = str(Path.cwd())
    found["random's global state"] = random.getstate()
    kind, state, *rest = cast(tuple[Any, ...], np.random.get_state(legacy=True))
    found["numpy.random's global state"] = (kind, state.tobytes(), *rest)
    found["numpy.seterr"] = np.geterr()
    found["numpy.set_printoptions"] = {k: repr(v) for k, v in np.get_printoptions().items()}
    found["warnings.filters"] = list(warnings.filters)
    root = logging.getLogger()
    # absl, with which half of the ecosystem logs, gives the root a plain handler at its first word
    handlers = [type(h) for h in root.handlers if type(h) is not logging.StreamHandler]
    found["logging"] = (root.level, logging.root.manager.disable, handlers)
    for name in SIGNALS:
        if hasattr(signal, name):
            found[f"the handler of {name}"] = signal.getsignal(getattr(signal, name))
    found["sys.path"] = list(sys.path)
    found["sys.excepthook"] = sys.excepthook
    found["sys.getrecursionlimit()"] = sys.getrecursionlimit()
    if "matplotlib" in sys.modules:
        import matplotlib

        rc = matplotlib.rcParams
        found["matplotlib.rcParams"] = {k: rc[k] for k in rc if not k.startswith("backend")}
    return found


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A phrase for each setting that is not what it was."""
    said = []
    for name, was in before.items():
        now = after.get(name, was)
        if now == was:
            continue
        if isinstance(was, dict):
            for key in sorted({*was, *now}):
                if was.get(key) != now.get(key):
                    said.append(
                        f"{name}[{key!r}]: {_short(was.get(key))} -> {_short(now.get(key))}"
                    )
        elif "global state" in name or isinstance(was, list):
            said.append(f"{name} changed")
        else:
            said.append(f"{name}: {_short(was)} -> {_short(now)}")
    return said


def restore(before: Mapping[str, Any]) -> None:
    """Put back what was changed since ``before`` was taken."""
    import jax
    import numpy as np

    now = settings()
    for name, was in before.items():
        if now.get(name, was) == was:
            continue
        if name.startswith("jax.config."):
            jax.config.update(name.removeprefix("jax.config."), was)
        elif name.startswith("the handler of "):
            signal.signal(getattr(signal, name.rpartition(" ")[2]), was)
    os.environ.clear()
    os.environ.update(before["os.environ"])
    os.chdir(before["os.getcwd()"])
    random.setstate(before["random's global state"])
    kind, state, *rest = before["numpy.random's global state"]
    np.random.set_state((kind, np.frombuffer(state, np.uint32), *rest))
    np.seterr(**before["numpy.seterr"])
    cast(list[Any], warnings.filters)[:] = before["warnings.filters"]
    logging.getLogger().setLevel(before["logging"][0])
    logging.disable(before["logging"][1])
    sys.path[:] = before["sys.path"]
    sys.excepthook = before["sys.excepthook"]
    sys.setrecursionlimit(before["sys.getrecursionlimit()"])
    if "matplotlib" in sys.modules:
        import matplotlib

        original = {k: v for k, v in matplotlib.rcParamsOrig.items() if k[:7] != "backend"}
        matplotlib.rcParams.update(before.get("matplotlib.rcParams", original))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
