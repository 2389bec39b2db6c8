"""The commands; the only place where the runner and the sinks meet.

Each command is a module of its name with a function ``main(arguments)``, imported when it is asked
for (``list`` is `listing`). Around them: `parser` (what can be typed), `loading` (from a name to a
program), `job`, `drive` and `crew` (a run, its end, its sinks), `process` (signals, streams, cache)
and `refusal` (an error as one line). From outside: `main`. Stands on all other rooms.
"""

from __future__ import annotations

import contextlib
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
    from ecotour.cli.process import deliver

    debug = "--debug" in argv
    argv = [token for token in argv if token != "--debug"]
    try:
        try:
            arguments = parse(argv)
        except SystemExit:  # it was asked for help, or for the version
            deliver(sys.stdout)
            raise
        # a module called "list" in this package would hide the builtin from it
        module = {"list": "listing"}.get(arguments.command, arguments.command)
        command = importlib.import_module(f"ecotour.cli.{module}")
        # `list` reads the metadata with eyes of its own, and has no time to import those of others
        with contextlib.nullcontext() if arguments.command == "list" else _forgiving():
            code = int(command.main(arguments))
        if arguments.command not in ("run", "resume") or getattr(arguments, "help", False):
            deliver(sys.stdout)  # else the product is a directory, and only a plugin prints there
        return code
    except BrokenPipeError:
        return 0  # whoever read our output has gone; there is nobody left to tell
    except (Exception, KeyboardInterrupt) as error:
        ended_by = KeyboardInterrupt() if interrupted() else _backend_first(error)
        if debug and not isinstance(ended_by, KeyboardInterrupt):
            raise
        from ecotour.cli import refusal

        return refusal.tell(ended_by, as_json="--json" in argv)


def _forgiving() -> contextlib.AbstractContextManager[None]:
    from ecotour.discovery import metadata

    return metadata.forgiving()


def _backend_first(error: Exception | KeyboardInterrupt) -> Exception | KeyboardInterrupt:
    """A fault of JAX's backend in place of the error that it led to, in a demo's code say."""
    if "jax" not in sys.modules or isinstance(error, KeyboardInterrupt):
        return error
    import os

    from ecotour.errors import PluginError
    from ecotour.machine import backend

    chosen = any(os.environ.get(name) for name in backend.VARIABLES)
    if not chosen or not (fault := backend.fault()):
        return error
    return PluginError(fault)
