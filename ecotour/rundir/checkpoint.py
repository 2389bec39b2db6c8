"""Checkpoints: the state of a named step after a step, through Orbax, checked on the way back.

::

    checkpoints/<of>/000000200/state/   the arrays, as Orbax writes them
    checkpoints/<of>/000000200/about/   whose they are, and what every leaf was

Orbax writes under a temporary name and renames, so a directory with a number for a name is
complete. The arrays are a flat mapping from readable names; nothing in here runs code when read.
Each named step is saved by itself: it starts from its own ``init``, so any mix goes together.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from ecotour.errors import CheckpointError
from ecotour.machine import names
from ecotour.rundir.frozen import Frozen, Saved, digest, freeze, thaw

__all__ = ["KEEP", "Frozen", "Saved", "Store", "freeze", "size_of", "thaw"]

KEEP = 2
"""Complete checkpoints of a named step that are kept, besides the last finite one."""

STEP_DIGITS = 10


class Store:
    """The checkpoints of one run."""

    def __init__(self, run_dir: Path) -> None:
        """Those in ``run_dir``."""
        self.directory = run_dir / "checkpoints"

    def names(self) -> list[str]:
        """The named steps that have any."""
        if not self.directory.is_dir():
            return []
        return sorted(unquote(entry.name) for entry in self.directory.iterdir() if entry.is_dir())

    def steps(self, of: str) -> list[int]:
        """After which steps there is a complete checkpoint, ascending."""
        directory = self._of(of)
        if not directory.is_dir():
            return []
        return sorted(int(entry.name) for entry in directory.iterdir() if entry.name.isdigit())

    def save(self, of: str, step: int, frozen: Frozen, about: Mapping[str, Any]) -> Path:
        """Write a checkpoint, wait until it is complete, and remove those that it makes old.

        ``about["finite"]`` says whether it is good to go back to when numbers go wrong: the
        newest such one is always kept.

        Raises:
            CheckpointError: It could not be written; what was there is as it was.
        """
        leaves = [
            one | {"sha256": digest(frozen.arrays[one["name"]])} if "name" in one else one
            for one in frozen.leaves
        ]
        document = dict(about) | {"of": of, "step": step, "leaves": leaves}
        _hush_stragglers()
        try:
            self._write(of, step, frozen.arrays, document)
            return self._of(of) / f"{step:0{STEP_DIGITS}d}"
        except Exception as error:  # noqa: BLE001 - Orbax raises whatever comes up
            reason = _reason(error)
        with _quiet():
            gc.collect()  # what Orbax leaves of a failure complains as it is collected
        self.clean()
        raise CheckpointError(
            f"the checkpoint of {of} at step {step} ({size_of(frozen.nbytes)}) could not be "
            f"written to {self._of(of)}: {reason}"
        )

    def _write(
        self, of: str, step: int, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> None:
        import orbax.checkpoint as ocp

        with self._manager(of) as manager:
            if step in self.steps(of):  # left by a run that went further than its record did
                manager.delete(step)
            # Orbax has no empty trees, so the step's number goes with the arrays
            written = manager.save(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave({**arrays, "step/": np.int64(step)}),
                    about=ocp.args.JsonSave(document),
                ),
            )
            if not written:
                raise CheckpointError("Orbax declined to write it")
            complete = self.steps(of)
            keep = {*complete[-KEEP:], *self._finite(of, complete)[-1:]}
            for old in complete:
                if old not in keep:
                    manager.delete(old)

    def load(self, of: str, step: int) -> Saved:
        """Read a checkpoint and check every array.

        Raises:
            CheckpointError: It is damaged.
        """
        reason = ""
        _hush_stragglers()
        with _quiet():
            try:
                return self._restore(of, step)
            except Exception as error:  # noqa: BLE001 - Orbax raises whatever comes up
                reason = _reason(error)
            gc.collect()  # what Orbax leaves of a failure complains as it is collected
        raise CheckpointError(f"the checkpoint of {of} at step {step} is damaged: {reason}")

    def _restore(self, of: str, step: int) -> Saved:
        import orbax.checkpoint as ocp

        with self._manager(of) as manager:
            found = manager.restore(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardRestore(), about=ocp.args.JsonRestore()
                ),
            )
        about = found["about"]
        arrays = {name: np.asarray(array) for name, array in found["state"].items()}
        for one in about["leaves"]:
            if "name" in one and digest(arrays[one["name"]]) != one["sha256"]:
                raise CheckpointError(f"its array {one['name']} was altered")
        return Saved(about, arrays)

    def about(self, of: str, step: int) -> Mapping[str, Any]:
        """What stands beside a checkpoint; empty where that cannot be read."""
        import json

        try:
            file = self._of(of) / f"{step:0{STEP_DIGITS}d}" / "about" / "metadata"
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def clean(self) -> None:
        """Remove what broken-off writes have left."""
        for of in self.names():
            for entry in self._of(of).iterdir():
                if ".orbax-checkpoint-tmp" in entry.name:
                    shutil.rmtree(entry, ignore_errors=True)

    def drop_after(self, of: str, step: int) -> None:
        """Remove the checkpoints of ``of`` after ``step``: unusable, and in the way of new ones."""
        for later in self.steps(of):
            if later > step:
                shutil.rmtree(self._of(of) / f"{later:0{STEP_DIGITS}d}", ignore_errors=True)

    def _finite(self, of: str, steps: list[int]) -> list[int]:
        return [step for step in steps if self.about(of, step).get("finite")]

    def _of(self, of: str) -> Path:
        name = quote(of, safe=" ").replace(".", "%2E")
        if names.is_device(name) or name.endswith(" "):  # Windows has no such folder
            name = name[:-1] + f"%{ord(name[-1]):02X}"
        return self.directory / name

    @contextlib.contextmanager
    def _manager(self, of: str) -> Iterator[Any]:
        import orbax.checkpoint as ocp

        options = ocp.CheckpointManagerOptions(
            step_format_fixed_length=STEP_DIGITS,
            enable_async_checkpointing=False,  # whoever saves is a thread of its own
            save_root_metadata=False,
        )
        with (
            _utf8_path(self._of(of).absolute()) as directory,
            ocp.CheckpointManager(directory, options=options) as manager,
        ):
            yield manager


@contextlib.contextmanager
def _utf8_path(directory: Path) -> Iterator[Path]:
    """A path that TensorStore can take to ``directory``: to it names are UTF-8, never bytes."""
    try:
        str(directory).encode("utf-8")
    except UnicodeEncodeError:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="ecotour-checkpoints-") as place:
            link = Path(place).resolve() / "run"
            link.symlink_to(directory, target_is_directory=True)
            yield link
    else:
        yield directory


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing of what a damaged checkpoint makes Orbax log: it is said in one line."""
    loggers = [logging.getLogger(name) for name in ("absl", "asyncio")]
    hook, levels = sys.unraisablehook, [logger.level for logger in loggers]
    sys.unraisablehook = lambda _: None
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@dataclass(frozen=True)
class _Hushed:
    """An unraisable hook that passes all on to ``before`` but what stragglers say.

    TensorStore has several reads or writes in hand. Where one fails, those that are left report, in
    a thread of theirs and whenever that may be, to an event loop that Orbax has closed: so the hook
    stays.
    """

    before: Callable[[Any], object]

    def __call__(self, told: Any) -> None:
        if str(told.exc_value) != "Event loop is closed":
            self.before(told)


def _hush_stragglers() -> None:
    """From now on, say nothing of reads and writes that end after another one has failed."""
    if not isinstance(sys.unraisablehook, _Hushed):
        sys.unraisablehook = _Hushed(sys.unraisablehook)


def size_of(count: int) -> str:
    """Bytes in words, e.g. ``4.7 MB``."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError


def _reason(error: BaseException) -> str:
    if isinstance(error, CheckpointError):
        return str(error)
    inner = error
    while not isinstance(inner, OSError) and (inner.__cause__ or inner.__context__):
        inner = inner.__cause__ or inner.__context__ or inner
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    text = str(error)
    known = (
        "No space left on device",
        "Disk quota exceeded",
        "File too large",
        "Permission denied",
    )
    for phrase in known:  # TensorStore wraps the system's words in its own
        if phrase in text:
            return phrase
    return f"{type(error).__name__}: {(text.strip().splitlines() or ['no message'])[0][:200]}"
