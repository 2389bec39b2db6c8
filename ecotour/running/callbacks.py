"""What a demo's callback raised, out of what JAX makes of it.

An exception inside `jax.pure_callback` and its kin is logged by JAX with a traceback, and comes out
of the compiled step as a ``JaxRuntimeError`` whose text holds further ones. Here the log's line is
held back, and the exception that the demo raised is found again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("jax._src.callback", "jax._src.debugging")


class Raised(logging.Filter):
    """Notes what callbacks raise."""

    def __init__(self) -> None:
        """Nothing was raised yet."""
        super().__init__()
        self._seen: list[BaseException] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the exception of a record that tells of one, and hold the record back."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        self._seen.append(error)
        return False

    def original(self, error: BaseException) -> BaseException:
        """What a callback raised, if that is what ``error`` comes from; else ``error`` itself."""
        from jax.errors import JaxRuntimeError

        if not self._seen or not isinstance(error, JaxRuntimeError):
            return error
        raised = self._seen[-1]
        self._seen.clear()
        return raised

    def unnoticed(self) -> list[BaseException]:
        """What was raised and ended nothing, as in `jax.debug.callback`; each is told once."""
        left = {repr(error): error for error in self._seen}
        self._seen.clear()
        return list(left.values())


@contextmanager
def noting() -> Iterator[Raised]:
    """Note what callbacks raise while inside."""
    raised = Raised()
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(raised)
    try:
        yield raised
    finally:
        for logger in loggers:
            logger.removeFilter(raised)
