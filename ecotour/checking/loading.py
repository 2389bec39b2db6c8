"""Findings on how a demo is found, loaded and built, and on what it leaves alone meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from ecotour.checking.subject import Subject
from ecotour.checking.table import finding, stage

IMPORT_BUDGET_S = 5.0
"""Seconds of processor time that a demo's import may take, JAX's own import aside."""


@finding(
    "discovery-imports",
    "Looking for demos imports what it must not",
    "Something that the distribution installs, such as a .pth file or a sitecustomize module, runs "
    "as Python starts, and makes `ecotour list` slow for everybody",
    "Announce the demo by its entry point alone and import libraries in the demo's module",
)
def discovery_imports(subject: Subject) -> Iterator[str]:
    """JAX, or the demo's own module, is there although nobody has asked for the demo."""
    yield from subject.discovery or ()


stage(
    "process-ended",
    "The demo ended the process",
    "It calls os._exit, or crashes in compiled code, and takes the whole run with it",
    "Raise an exception instead; for a crash, find the call with `python -X faulthandler`",
)
stage(
    "no-return",
    "The check did not come to an end in its time",
    "An endless loop, a wait for input or for a host, or simply much work in few steps",
    "Look at the phase that is named; give a heavy demo more time with --timeout, or smaller flags",
)
stage(
    "import-fails",
    "The demo's module cannot be imported",
    "A library is missing, the file has a mistake, or the module does work that belongs in build",
    "Import it by itself with `python -c`, and declare what it needs under dependencies",
)
stage(
    "hook-missing",
    "The module has no hook",
    "The entry point names another module than the one with ecotour_demo, or there is none",
    "Define ecotour_demo() marked with @ecotour.hookimpl, as the module's last cell",
)
stage(
    "hook-unmarked",
    "The hook is not marked",
    "A function called ecotour_demo is there, and pluggy looks at marked functions only",
    "Put @ecotour.hookimpl above it",
)
stage(
    "hook-misspelt",
    "A marked function is no hook of ecotour",
    "Its name is misspelt, or it was written for another version of ecotour",
    "Call it ecotour_demo",
)
stage(
    "hook-signature",
    "The hook has parameters that ecotour does not give",
    "The configuration is given to build, not to the hook",
    "Write def ecotour_demo() -> ecotour.Demo, without parameters",
)
stage(
    "hook-fails",
    "The hook raised an exception",
    "It does work, such as reading data, that belongs in build",
    "Let the hook do nothing but return an ecotour.Demo",
)
stage(
    "hook-returns",
    "The hook did not return an ecotour.Demo",
    "It returns something else, or its return statement is missing",
    "Return ecotour.Demo(summary=…, config=Config, build=build)",
)
stage(
    "config",
    "The demo's config is not a dataclass of flags with defaults",
    "A demo must run without a flag, and its flags are read from the fields of a dataclass, whose "
    "types are those that a command line and a record can hold",
    "Write a @dataclass(frozen=True) whose fields are made with ecotour.flag(default, help)",
)
stage(
    "build-fails",
    "build raised an exception",
    "The defaults do not make a program",
    "Mend the line that is named; for flags that do not go together raise ValueError",
)
stage(
    "build-returns",
    "build did not return an ecotour.Program with at least one step",
    "It returns something else, or its return statement is missing",
    "Return ecotour.Program(steps={name: ecotour.Step(…)}, judge=judge)",
)
stage(
    "offline",
    "The demo does not work without the network",
    "It downloads as it is imported or built, and fails with a traceback where it cannot",
    "Ship small data in the demo's source, fall back on it, or raise ecotour.errors.DataError with "
    "a sentence that says what is needed and how to get it",
)
stage(
    "needs",
    "The demo says that it needs something that is not here",
    "It raised one of ecotour's own errors, which say what is missing",
    "Provide what it asks for, and check again: nothing else could be looked at",
)


@finding(
    "import-slow",
    "Importing the demo takes too long",
    "A heavy library is imported at the top of the module, or work is done there",
    "Import heavy libraries in the functions that use them, and compute in build or in init",
)
def import_slow(subject: Subject) -> Iterator[str]:
    """More processor time than the budget, or than three times JAX's own, whichever is more."""
    subject.loaded  # noqa: B018 - for what it raises
    allowed = max(IMPORT_BUDGET_S, 3 * subject.jax_cpu_s)
    if subject.import_cpu_s is not None and subject.import_cpu_s > allowed:
        yield f"{subject.import_cpu_s:.1f} s of processor time, {allowed:.1f} s are allowed"


@finding(
    "flag-help",
    "A flag has no help",
    "`ecotour run DEMO --help` shows it without a word",
    "Make the field with ecotour.flag(default, help)",
)
def flag_help(subject: Subject) -> Iterator[str]:
    """A field of the configuration without a help text."""
    from ecotour.contract import flags

    subject.config  # noqa: B018 - for what it raises
    for flag in flags.describe(subject.demo.config):
        if not str(flag.help).strip():
            yield flag.name


@finding(
    "config-mutable",
    "The demo's config is not frozen",
    "A configuration that changes while a run is going on is not the one in the record",
    "Write @dataclass(frozen=True)",
)
def config_mutable(subject: Subject) -> Iterator[str]:
    """The dataclass of flags can be assigned to."""
    subject.config  # noqa: B018 - for what it raises
    parameters = getattr(subject.demo.config, "__dataclass_params__", None)
    if parameters is not None and not parameters.frozen:
        yield subject.demo.config.__name__


@finding(
    "settings",
    "The demo changes a setting of the whole process",
    "Such a setting changes the numbers of everything that runs in the same process",
    "Take settings as a flag, use a context manager (jax.enable_x64, jax.default_matmul_precision, "
    "matplotlib.rc_context) or a generator of your own (numpy.random.default_rng, a jax key)",
)
def settings(subject: Subject) -> Iterator[str]:
    """JAX's settings, global seeds, rcParams, environment, signals and others, before and after."""
    subject.live_again()
    yield from subject.changed
