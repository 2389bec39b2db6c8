"""What the process owes to its surroundings: signals, standard streams, the cache."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import IO, Any

from ecotour.errors import EcotourError

_FIRST = b"\necotour: ending after this step and a checkpoint; once more ends at once\n"
_SHOW_CURSOR = b"\x1b[?25h"


class Stop:
    """Called by the runner after each step: whether to stop. ``signal`` says why."""

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.signal = 0

    def __call__(self) -> bool:
        """Whether somebody has."""
        return self.signal != 0

    def handle(self, number: int, _: Any) -> None:
        """Take note of a signal; the second one ends the process where it stands."""
        if self.signal:
            if os.isatty(2):
                _tell(_SHOW_CURSOR)
            os._exit(128 + number)
        self.signal = number
        if number == signal.SIGINT:  # somebody is there to read it
            _tell(_FIRST)


@contextlib.contextmanager
def stop_signals() -> Iterator[Stop]:
    """Turn SIGINT, SIGTERM and SIGHUP into a wish to stop; the handlers are put back after.

    A signal that is ignored, as nohup does it for SIGHUP and a shell for jobs in the background,
    stays ignored. In a thread nothing is changed, since only the main thread may.
    """
    import threading

    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    mine = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in mine:
        signal.signal(number, stop.handle)
    try:
        yield stop
    finally:
        for number in mine:
            signal.signal(number, before[number] or signal.SIG_DFL)


@contextlib.contextmanager
def interrupt_noted() -> Iterator[Stop]:
    """Interrupt as Python does it, and remember that it was done.

    An import that is interrupted may hand on another error than KeyboardInterrupt. Where the host
    has a handler of its own, and in a thread, nothing is changed or noted.
    """
    noted = Stop()

    def interrupt(number: int, frame: Any) -> None:
        noted.signal = number
        signal.default_int_handler(number, frame)

    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if ours:
            signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # not the main thread
        ours = False
    try:
        yield noted
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def deliver(answer: IO[str]) -> None:
    """See to it that what a command was asked for has gone out.

    Raises:
        BrokenPipeError: Whoever was to read it has gone.
        EcotourError: It could not be written: a disk is full, say.
    """
    try:
        answer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise EcotourError(f"the answer could not be written to standard output: {why}") from None


@contextlib.contextmanager
def stdout_for_json(wanted: bool, *, is_product: bool = False) -> Iterator[IO[str]]:
    """Give the real standard output to whoever prints the document.

    Where one is wanted, all else that goes to file descriptor 1 inside, also what a plugin or a
    library prints from C, goes to standard error. A document that cannot be written is worth a line
    there, and no more, unless it is the product of the command.

    Raises:
        EcotourError: It is, and could not be written.
    """
    if not wanted:
        yield sys.stdout
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    document = os.fdopen(saved, "w", encoding="utf-8")
    python_stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        yield document
        try:
            deliver(document)
        except EcotourError as error:
            if is_product:
                raise
            with contextlib.suppress(OSError):  # that stream may take nothing either
                print(f"ecotour: {error}", file=sys.stderr, flush=True)
    finally:
        sys.stdout = python_stdout
        os.dup2(saved, 1)
        with contextlib.suppress(OSError):
            document.close()


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """See to it that no state of the standard streams can end the command or its exit.

    Descriptors that are closed are opened on the null device, lest a file of the run gets their
    numbers and then what a library prints. A character that an encoding lacks becomes ``?``, and a
    byte of a path that is not UTF-8 the escape that JSON has for it. What cannot be flushed at the
    end is let go.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif hasattr(stream := getattr(sys, name), "reconfigure"):
            # all that UTF-8 lacks is a byte of a path that is not UTF-8
            utf8 = (stream.encoding or "").lower().replace("_", "-") == "utf-8"
            stream.reconfigure(errors="backslashreplace" if utf8 else "replace")
    try:
        yield
    finally:
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            try:
                getattr(sys, name).flush()
            except (OSError, ValueError, AttributeError):
                # the interpreter flushes again as it leaves, and would complain
                with contextlib.suppress(OSError):
                    opened = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(opened, descriptor)
                    os.close(opened)


def use_cache() -> str:
    """Let JAX keep compiled programs in our cache; return why that cannot be, or nothing."""
    from ecotour.machine import environment
    from ecotour.running import stages

    directory = environment.cache_directory() / "compiled"
    try:
        if not directory.is_absolute():
            raise OSError("there is no home directory")
        directory.mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK):
            raise OSError("it is read-only")
    except OSError as error:
        why = error.strerror or str(error)
        return f"compiled programs cannot be kept in {directory}: {why}: set ECOTOUR_CACHE_DIR"
    # a full disk or a torn entry costs a compilation and no more
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation")
    stages.use_compilation_cache(directory)
    return ""


@contextlib.contextmanager
def eager(wanted: bool) -> Iterator[None]:
    """Let JAX compile nothing inside, where that is wanted, as ``JAX_DISABLE_JIT`` does."""
    if not wanted:
        yield
        return
    import jax

    with jax.disable_jit():
        yield


def split_cpu(count: int) -> None:
    """Let JAX see the CPU as ``count`` devices, if there are as many cores.

    Where JAX has started already, or the user has chosen a number, that number stays.
    """
    import jax

    from ecotour.machine import environment

    chosen = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    config: Any = jax.config
    if chosen or config.jax_num_cpu_devices > 0 or not 1 < count <= environment.cores():
        return
    with contextlib.suppress(RuntimeError):  # it has started
        jax.config.update("jax_num_cpu_devices", count)


def _tell(text: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text)
