"""A limit on the processor time of a proof."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from ecotour.checking.table import Unproved


class TooLong(BaseException):
    """The time that a proof may take is over."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Break off what takes more processor time, with `Unproved`, where there are alarms."""
    if not hasattr(signal, "SIGPROF") or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def ring(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TooLong:
        raise Unproved(
            f"it takes more than {seconds:.0f} s of processor time without jit"
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
