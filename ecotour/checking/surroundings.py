"""What belongs to the whole process and not to a demo: output, arguments, network, devices.

Libraries use some of this as they are imported, and that is no fault of the demo that needs them:
output and arguments count only where the demo's own code asked for them.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any

PARSERS = {"argparse", "optparse", "getopt", "absl", "click", "cyclopts", "fire", "tyro"}


class Watch:
    """What a demo did that it must not, while it was watched.

    Attributes:
        is_own: Whether a source file is the demo's own.
        argv: Where it looked at ``sys.argv``.
        reached: Which hosts it asked the network for.
        through_python: What it printed through ``sys.stdout`` or ``sys.stderr``.
    """

    def __init__(self, is_own: Callable[[str], bool]) -> None:
        """Watch the code in the files that ``is_own`` knows."""
        self.is_own = is_own
        self.argv: list[str] = []
        self.reached: list[str] = []
        self.through_python: list[str] = []
        self._past_python: IO[bytes] | None = None

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

    def printed(self) -> list[str]:
        """What it has printed so far, the beginning of each piece, also past Python's streams:
        from C, or from a program that it started.
        """
        found = list(self.through_python)
        if self._past_python is not None:
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()
            self._past_python.seek(0)  # read to its end, where the next writer goes on
            text = self._past_python.read().decode("utf-8", "replace").strip()
            found += [repr(line[:80]) for line in text.splitlines()[:1]]
        return list(dict.fromkeys(found))

    @contextlib.contextmanager
    def _streams(self) -> Iterator[None]:
        originals = [stream for stream in (sys.stdout, sys.stderr, sys.__stdout__) if stream]
        for stream in originals:
            stream.flush()
        with tempfile.TemporaryFile() as self._past_python:
            saved = os.dup(1)
            os.dup2(self._past_python.fileno(), 1)
            try:
                with (
                    contextlib.redirect_stdout(_Stream(self, always=True)),
                    contextlib.redirect_stderr(_Stream(self, always=False)),
                ):
                    yield
            finally:
                for stream in originals:
                    stream.flush()
                os.dup2(saved, 1)
                os.close(saved)
        self._past_python = None

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
            self.watch.through_python.append(f"{where}: {first!r}" if where else repr(first))
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
