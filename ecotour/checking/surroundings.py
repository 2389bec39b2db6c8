"""What belongs to the whole process and not to a demo: settings, output, arguments, the network.

Libraries change some of this as they are imported, and that is no fault of the demo that needs
them. So settings are compared around a second life of the demo's own modules, when its libraries
are loaded already; and output and arguments count only where the demo's own code asked for them.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, cast

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGCHLD", "SIGPIPE")
PARSERS = {"argparse", "optparse", "getopt", "absl", "click", "cyclopts", "fire", "tyro"}
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
    found["logging"] = (root.level, logging.root.manager.disable, [type(h) for h in root.handlers])
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


class Watch:
    """What a demo did that it must not, while it was watched.

    Attributes:
        is_own: Whether a source file is the demo's own.
        printed: What it printed, the beginning of each piece.
        argv: Where it looked at ``sys.argv``.
        reached: Which hosts it asked the network for.
    """

    def __init__(self, is_own: Callable[[str], bool]) -> None:
        """Watch the code in the files that ``is_own`` knows."""
        self.is_own = is_own
        self.printed: list[str] = []
        self.argv: list[str] = []
        self.reached: list[str] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch; the network is off meanwhile, and nothing reaches the standard streams."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._streams())
            stack.enter_context(_replaced(sys, "argv", _Arguments(sys.argv, self)))
            for owner, name in (
                (socket, "getaddrinfo"),
                (socket, "create_connection"),
                (socket.socket, "connect"),
                (socket.socket, "connect_ex"),
            ):
                stack.enter_context(_replaced(owner, name, self._refuse(getattr(owner, name))))
            stack.enter_context(_one_device())
            yield

    @contextlib.contextmanager
    def _streams(self) -> Iterator[None]:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with tempfile.TemporaryFile() as file:
            saved = os.dup(1)
            os.dup2(file.fileno(), 1)
            try:
                with (
                    contextlib.redirect_stdout(_Stream(self, always=True)),
                    contextlib.redirect_stderr(_Stream(self, always=False)),
                ):
                    yield
            finally:
                os.dup2(saved, 1)
                os.close(saved)
                file.seek(0)
                text = file.read().decode("utf-8", "replace").strip()
                if text:  # from C, or from a program that was started
                    self.printed.append(text.splitlines()[0])

    def _refuse(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def refused(*arguments: Any, **named: Any) -> Any:
            # (host, …), ((host, port), …), or (socket, (host, port))
            target = arguments[1] if isinstance(arguments[0], socket.socket) else arguments[0]
            if target is None or (isinstance(target, str | bytes) and target is not arguments[0]):
                return original(*arguments, **named)  # this machine, or a socket in its files
            host = target[0] if isinstance(target, tuple) else target
            self.reached.append(str(host))
            raise OSError(f"the network is off during a check (asked for {host})")

        return refused

    def asked_here(self, frame: FrameType | None) -> str:
        """Where the demo's own code is at work in ``frame`` or its callers; empty where it is not.

        A library that is being imported works for itself.
        """
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith("<frozen importlib"):
                return ""
            if self.is_own(file):
                return f"{Path(file).name}:{frame.f_lineno}"
            frame = frame.f_back
        return ""


_visible = 1
_COUNTING = ("devices", "local_devices", "device_count", "local_device_count")


@contextlib.contextmanager
def _one_device() -> Iterator[None]:
    """Let JAX tell of one device, however many there are, until `two_devices`."""
    import jax

    def shown(original: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any, **named: Any) -> Any:
            answer = original(*arguments, **named)
            return min(answer, _visible) if isinstance(answer, int) else answer[:_visible]

        return asked

    with contextlib.ExitStack() as stack:
        for name in _COUNTING:
            stack.enter_context(_replaced(jax, name, shown(getattr(jax, name))))
        yield


@contextlib.contextmanager
def two_devices() -> Iterator[None]:
    """Let JAX tell of two."""
    global _visible
    _visible = 2
    try:
        yield
    finally:
        _visible = 1


def enough_devices() -> bool:
    """Whether there are two."""
    import jax

    with two_devices():
        return len(jax.devices()) > 1


class _Stream(io.StringIO):
    """Takes note of what is written: always, or where the demo's own code wrote it."""

    def __init__(self, watch: Watch, *, always: bool) -> None:
        super().__init__()
        self.watch, self.always = watch, always

    def write(self, text: str) -> int:
        where = self.watch.asked_here(sys._getframe(1))
        warning = not self.always and "Warning: " in text  # Python's own way to tell of one
        if text.strip() and (where or self.always) and not warning:
            first = text.strip().splitlines()[0][:80]
            self.watch.printed.append(f"{where}: {first!r}" if where else repr(first))
        return len(text)


class _Arguments(list[str]):
    """``sys.argv`` that takes note of who looks at it."""

    def __init__(self, words: list[str], watch: Watch) -> None:
        super().__init__(words)
        self.watch = watch

    def __getitem__(self, index: Any) -> Any:
        self._note()
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[str]:
        self._note()
        return super().__iter__()

    def __len__(self) -> int:
        self._note()
        return super().__len__()

    def _note(self) -> None:
        frame = sys._getframe(2)
        reader = frame.f_globals.get("__name__", "").partition(".")[0]
        where = self.watch.asked_here(frame)
        # JAX and others look for the program's name, which is none of the demo's doing
        if where and (reader in PARSERS or self.watch.is_own(frame.f_code.co_filename)):
            self.watch.argv.append(where)


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
