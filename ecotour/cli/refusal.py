"""How a command that cannot be carried out says so: one line, an exit code, a document."""

from __future__ import annotations

import contextlib
import errno
import sys

from ecotour.errors import EcotourError, PluginError, UsageError


def tell(error: Exception | KeyboardInterrupt, *, as_json: bool) -> int:
    """Say what ended a command, and return the exit code that it stands for."""
    if isinstance(error, KeyboardInterrupt):
        _say(EcotourError("interrupted"), as_json)
        return 130
    ours = _foreseen(error)
    _say(ours, as_json)
    return ours.exit_code


def _foreseen(error: Exception) -> EcotourError:
    """Any error as one of ours, so that every command keeps to one line and an exit code."""
    if isinstance(error, EcotourError):
        return error
    if isinstance(error, OSError):  # a directory that is gone, a stream that takes nothing
        said = f"{error.filename}: " if error.filename else ""
        said += error.strerror or str(error)
        return UsageError(said) if error.errno == errno.ENAMETOOLONG else EcotourError(said)
    said = f"{type(error).__name__}: {error}"
    return EcotourError(f"{said}: this was not foreseen; `ecotour --debug …` shows where")


def _say(error: EcotourError, as_json: bool) -> None:
    message = " ".join(str(error).split())
    # an exception that is none of ours was raised in a demo, and its own words rarely say where
    where = error.__cause__ is not None and not isinstance(error.__cause__, EcotourError)
    if where and isinstance(error, PluginError):
        message = f"{message.rstrip('.')}; `ecotour --debug …` shows where"
    # names come from files and plugins: none may give orders to the terminal
    message = message.encode("utf-8", "backslashreplace").decode("utf-8")
    message = "".join(one if one.isprintable() else "?" for one in message)
    with contextlib.suppress(OSError):  # a stream that takes nothing changes no exit code
        print(f"ecotour: {message}", file=sys.stderr)
    if as_json and not error.shown_as_json:
        import json

        with contextlib.suppress(OSError):
            print(json.dumps({"schema": 1, "status": "failed", "error": message}))
