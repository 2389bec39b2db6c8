"""The commands; the only place where the runner and the sinks meet.

Each command is a module with a function ``main(arguments)``, imported when it is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

from ecotour.cli.parser import parse


def main(argv: list[str] | None = None) -> int:
    """Carry out a command line, and return the exit code.

    0 done; 1 the run failed; 2 usage; 3 verdict not reached (with ``--strict``); 130 and 143 ended
    by SIGINT and SIGTERM. What nobody foresaw is 1, and one line as well.
    """
    from ecotour.cli.process import interrupt_noted, safe_streams

    with safe_streams(), interrupt_noted() as interrupted:
        return _main(list(sys.argv[1:] if argv is None else argv), interrupted)


def _main(argv: list[str], interrupted: Callable[[], bool]) -> int:
    debug = "--debug" in argv
    argv = [token for token in argv if token != "--debug"]
    try:
        arguments = parse(argv)
        # a module called "list" in this package would hide the builtin from it
        module = {"list": "listing"}.get(arguments.command, arguments.command)
        command = importlib.import_module(f"ecotour.cli.{module}")
        if arguments.command == "list":  # reads the metadata with eyes of its own
            return int(command.main(arguments))
        from ecotour.discovery import metadata

        with metadata.forgiving():
            return int(command.main(arguments))
    except BrokenPipeError:
        return 0  # whoever read our output has gone; there is nobody left to tell
    except (Exception, KeyboardInterrupt) as error:
        ended_by = KeyboardInterrupt() if interrupted() else _backend_first(error)
        if debug and not isinstance(ended_by, KeyboardInterrupt):
            raise
        from ecotour.cli import refusal

        return refusal.tell(ended_by, as_json="--json" in argv)


def _backend_first(error: Exception | KeyboardInterrupt) -> Exception | KeyboardInterrupt:
    """A fault of JAX's backend in place of the error that it led to, in a demo's code say."""
    if "jax" not in sys.modules or isinstance(error, KeyboardInterrupt):
        return error
    import os

    from ecotour.errors import PluginError
    from ecotour.machine import backend

    if not os.environ.get("JAX_PLATFORMS") or not (fault := backend.fault()):
        return error
    return PluginError(fault)
