"""What can be typed: the commands and their flags.

Argparse, and neither JAX nor rich, so that ``ecotour --help`` and ``ecotour list`` start as fast as
Python does. (A demo's own flags are Cyclopts' business, in `ecotour.contract.flags`, once the demo
is loaded; argparse is here because it costs a tenth of the time to import.)
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from ecotour.errors import UnknownNameError, UsageError
from ecotour.machine.version import __version__

COMMANDS = {
    "list": "every demo: name, distribution, version, status",
    "show": "what a demo teaches, its flags, its source",
    "run": "compile, run, time, save, judge and report a demo",
    "resume": "go on with a run that was broken off, or make it longer",
    "report": "the summary and the page of a run",
    "new": "a plugin of your own: working, with a passing test",
    "check": "whether a demo keeps the contract; what is wrong and how to mend it",
    "verify": "do a recorded run again: same bits, close, or diverged at which step",
    "record": "run a demo and keep what the documentation shows of it",
    "drift": "whether the recorded demos still do what the documentation shows",
    "export": "a run, or a recorded demo, as a Markdown page or a notebook",
    "doctor": "versions, devices, caches; what is missing and how to get it",
}


class _DemoHelp(argparse.Action):
    """``--help`` after a demo's name is answered once the demo is loaded, with its flags."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, *_: Any) -> None:
        """Leave the help to `ecotour.cli.run` where a demo was named before."""
        if not namespace.demo:
            parser.print_help()
            parser.exit()
        namespace.help = True


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing its usage and leaving."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            flag = "command" if action.dest == "command" else f"value of {action.option_strings[0]}"
            raise UnknownNameError(flag, str(value), map(str, action.choices))

    def _print_message(self, message: str, file: Any = None) -> None:
        """Raise if it cannot be written; argparse would not say so."""
        (file or sys.stdout).write(message)


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse a command line.

    ``arguments.words`` is the whole of it as it was given, ``arguments.rest`` what only a demo can
    understand.

    Raises:
        UsageError: It cannot be understood.
    """
    parser, commands = make_parser(sinks=argv[:1] in (["run"], ["resume"]))
    known = set(commands.choices)
    words = [token for token in argv if not token.startswith("-")]
    if words and argv[0] == words[0] and words[0] not in known:
        raise UnknownNameError("command", words[0], known, "see `ecotour --help`")
    if not argv:
        argv = ["--help"]
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command is None:
        raise UsageError("which command? see `ecotour --help`")
    if rest and arguments.command not in ("run", "record", "check"):
        if rest[0].startswith("-"):
            flags = _options(commands.choices[arguments.command])
            raise UnknownNameError("flag", rest[0], flags)
        raise UsageError(f"unexpected {rest[0]!r}; see `ecotour {arguments.command} --help`")
    for name, value in vars(arguments).items():
        if value == "":  # as a path it would be this directory
            given = {"source": "from"}.get(name, name.replace("_", "-"))
            raise UsageError(f"{given} is empty: give a value, or leave it out")
    arguments.words, arguments.rest = ["ecotour", *argv], rest
    return arguments


def make_parser(*, sinks: bool = False) -> tuple[_Parser, argparse._SubParsersAction[_Parser]]:
    """The parser of all commands, and the commands in it.

    ``sinks`` adds a flag for each sink that another distribution announces, for which the metadata
    of all of them is read.
    """
    parser = _Parser(
        prog="ecotour",
        description="A guided, runnable tour of the JAX ecosystem.",
        epilog="Start with: ecotour run gan",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ecotour {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    made = {
        name: commands.add_parser(
            name,
            help=help,
            description=help[0].upper() + help[1:] + ".",
            allow_abbrev=False,
            add_help=name != "run",
        )
        for name, help in COMMANDS.items()
    }
    for name in ("list", "show", "run", "resume", "check", "record", "drift", "export"):
        made[name].add_argument(
            "--disable",
            metavar="NAME",
            action="append",
            default=[],
            help="treat this demo as not installed; may be given again",
        )
    for name in ("show", "run", "check", "record"):
        made[name].add_argument("demo", metavar="DEMO", help="a demo's name, or a FILE.py")
        made[name].add_argument(
            "--provider",
            metavar="DIST",
            help="the distribution to take the demo from, where two provide it",
        )
    for name in ("resume", "report"):
        made[name].add_argument("run", metavar="RUN", help="a run's directory")
    verify = made["verify"]
    verify.add_argument("run", metavar="RUN|RECORD", help="a run's directory, or a record's")
    verify.add_argument("--steps", type=_steps, metavar="N", help="only so many steps of it")
    for name in COMMANDS:
        made[name].add_argument(
            "--json", action="store_true", help="one JSON document on stdout, all else on stderr"
        )
    _add_run_flags(made["run"])
    _add_author_flags(made["new"], made["check"])
    _add_docs_flags(made["record"], made["drift"], made["export"])
    for name in ("record", "drift", "verify"):
        _add_limits(made[name])
    made["list"].add_argument(
        "--load",
        action="store_true",
        help="load each in a process of its own, to see whether it can",
    )
    for name in ("list", "doctor"):
        made[name].add_argument(
            "--timeout",
            type=_steps,
            metavar="SECONDS",
            default=120,
            help="that loading one demo may take (default: 120)",
        )
    resume = made["resume"]
    resume.add_argument("--steps", type=_steps, metavar="N", help="the new total, not what is left")
    resume.add_argument("--strict", action="store_true", help="exit 3 if a check does not pass")
    resume.add_argument("--quiet", action="store_true", help="print warnings only")
    for name in ("run", "resume"):
        made[name].set_defaults(sinks=[])
        if sinks:
            _add_sink_flags(made[name])
    return parser, commands


def own_flags(command: str, *, sinks: bool = False) -> list[str]:
    """The flags of a command itself, which a demo's own may not be."""
    _, commands = make_parser(sinks=sinks)
    return _options(commands.choices[command])


def _options(command: argparse.ArgumentParser) -> list[str]:
    return [option for action in command._actions for option in action.option_strings]


def _add_sink_flags(command: argparse.ArgumentParser) -> None:
    from ecotour.sinks import extension

    for entry in extension.find():
        flag = f"--{entry.name}"
        if flag in command._option_string_actions:
            continue  # taken: by a flag of ours, or by the same sink of another distribution
        unusable = f" ({entry.status}: {entry.reason})" if entry.reason else ""
        command.add_argument(
            flag,
            action="append_const",
            const=entry.name,
            dest="sinks",
            help=f"{entry.summary or 'a sink'} [{entry.provenance}]{unusable}".replace("%", "%%"),
        )


def _add_run_flags(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "-h", "--help", action=_DemoHelp, nargs=0, default=False,
        help="show this help and exit; after a demo's name, with the demo's own flags",
    )  # fmt: skip
    run.add_argument(
        "--steps", type=_steps, metavar="N", help="of each named step; by default the demo decides"
    )
    run.add_argument(
        "--seed", type=_seed, metavar="N", default=0, help="from which all keys come (default: 0)"
    )
    run.add_argument("--out", metavar="DIR", help="the run's directory, new or empty")
    run.add_argument(
        "--data",
        choices=("auto", "embedded", "tfds"),
        default="auto",
        help="the digits in the package, all of them through tensorflow-datasets, or all of them "
        "where a copy is at hand (default: auto)",
    )
    run.add_argument("--data-dir", metavar="DIR", help="where tensorflow-datasets keeps its copies")
    run.add_argument(
        "--log-every",
        type=_steps,
        metavar="N",
        help="steps between two reports (default: by length)",
    )
    run.add_argument(
        "--checkpoint-every",
        type=_steps,
        metavar="N",
        help="steps between two checkpoints (default: about every 30 s)",
    )
    run.add_argument(
        "--stop-on-nonfinite",
        action="store_true",
        help="end the run when a metric is not finite (default: warn and go on)",
    )
    run.add_argument(
        "--eager",
        action="store_true",
        help="compile nothing, so that prints and a debugger work in a step; slow",
    )
    run.add_argument("--strict", action="store_true", help="exit 3 if a check does not pass")
    run.add_argument("--quiet", action="store_true", help="print warnings only")


def _add_author_flags(new: argparse.ArgumentParser, check: argparse.ArgumentParser) -> None:
    new.add_argument("name", metavar="NAME", help="what users will type, e.g. my-demo")
    new.add_argument("--dir", metavar="DIR", help="where to put it (default: ./NAME)")
    check.add_argument(
        "--timeout",
        type=_steps,
        metavar="SECONDS",
        default=1800,
        help="after which the check is broken off (default: 1800)",
    )


def _add_docs_flags(
    record: argparse.ArgumentParser, drift: argparse.ArgumentParser, export: argparse.ArgumentParser
) -> None:
    for one in (record, drift, export):
        one.add_argument(
            "--records",
            metavar="DIR",
            default="docs/records",
            help="where the records lie, one directory a demo (default: docs/records)",
        )
    record.add_argument("--from", dest="source", metavar="RUN", help="keep this finished run")
    record.add_argument("--steps", type=_steps, metavar="N", help="by default the demo decides")
    record.add_argument("--seed", type=_seed, metavar="N", help="from which all keys come")
    record.add_argument(
        "--data", choices=("auto", "embedded", "tfds"), default="embedded",
        help="which digits; the embedded ones are the same everywhere (default: embedded)",
    )  # fmt: skip
    record.add_argument("--quiet", action="store_true", help="print warnings only")
    drift.add_argument("demos", metavar="DEMO", nargs="*", help="which; by default all")
    drift.add_argument("--quick", action="store_true", help="10 steps of each, no verdict")
    drift.add_argument("--steps", type=_steps, metavar="N", help="so many steps, no verdict")
    drift.add_argument(
        "--sources", action="store_true", help="run nothing: compare source, flags and shapes only"
    )
    export.add_argument("what", metavar="RUN|DEMO", help="a run's directory, or a recorded demo")
    export.add_argument("--to", choices=("markdown", "notebook"), required=True, help="the form")
    export.add_argument("--out", metavar="DIR", help="where, new or empty (default: ./DEMO-FORM)")


def _add_limits(command: argparse.ArgumentParser) -> None:
    """For commands that run a demo in a process of its own."""
    command.add_argument(
        "--time-limit", type=_steps, metavar="S", default=3600,
        help="seconds that a run may take (default: 3600)",
    )  # fmt: skip
    command.add_argument(
        "--memory-limit", type=_steps, metavar="MIB", default=8192,
        help="MiB that a run may have resident, where the system tells (default: 8192)",
    )  # fmt: skip


def _steps(text: str) -> int:
    from ecotour.contract.plan import MAX_STEPS

    return _whole(text, 1, MAX_STEPS)


def _seed(text: str) -> int:
    from ecotour.contract.plan import MAX_SEED

    return _whole(text, 0, MAX_SEED)


def _whole(text: str, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high:,}")
    return number
