"""Files that are seen whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write ``path`` under a temporary name beside it, then rename.

    The temporary name, ``.<name>.<process>.part``, is this process's own, so that a run and a
    ``report`` on it may write the same file at the same moment.

    Args:
        path: The file.
        content: All of it.
        durable: Wait until it is on the disk. Without it a crash of the machine (not of the
            process) may leave an empty file: enough for what can be made again.

    Raises:
        OSError: The disk is full or the directory cannot be written; ``path`` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
