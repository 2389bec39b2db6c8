"""What is raised in a callback (`jax.pure_callback`), apart from what JAX makes of it.

JAX logs such an exception with its traceback and hands on a text. The log record holds the
exception itself.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def noted() -> Iterator[list[BaseException]]:
    """Collect exceptions of callbacks inside, in place of JAX's log of them."""
    raised: list[BaseException] = []

    def keep(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        raised.append(error)
        return False

    logger = logging.getLogger("jax._src.callback")
    logger.addFilter(keep)
    try:
        yield raised
    finally:
        logger.removeFilter(keep)
