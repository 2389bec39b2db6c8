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
import hashlib
import logging
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import jax
import jax.numpy as jnp
import numpy as np

from ecotour.demo import State
from ecotour.errors import CheckpointError

KEEP = 2
"""Complete checkpoints of a named step that are kept, besides the last finite one."""

STEP_DIGITS = 10


@dataclass(frozen=True)
class Frozen:
    """A state on the host.

    Attributes:
        leaves: For each leaf in order what it was: ``path``, ``kind`` (``array``, ``key``,
            ``empty`` or ``value``), ``name`` in ``arrays``, ``dtype``, ``shape``, ``weak``,
            ``host`` (a NumPy array rather than JAX's), ``impl`` of a key, a plain ``value``.
        arrays: Copies of the arrays, by name.
        obstacle: Why it cannot be saved; empty where it can.
    """

    leaves: list[dict[str, Any]] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    obstacle: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def has_nan(self) -> bool:
        """Whether any number in the arrays is a NaN."""
        return any(
            jnp.issubdtype(array.dtype, jnp.inexact) and bool(np.isnan(array).any())
            for array in self.arrays.values()
        )


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds: ``about`` as it was written, and the arrays by name."""

    about: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


def freeze(state: State) -> Frozen:
    """Copy ``state`` to the host. It may be any pytree; what is no array is looked at too."""
    frozen = Frozen()
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        where = jax.tree_util.keystr(path)
        about: dict[str, Any] = {"path": where}
        if isinstance(leaf, bool | int | str):
            about |= {"kind": "value", "value": leaf}
        elif isinstance(leaf, float):
            about |= {"kind": "value", "value": {"float": leaf.hex()}}
        elif isinstance(leaf, jax.Array | np.ndarray | np.generic):
            about["host"] = not isinstance(leaf, jax.Array)
            about["weak"] = bool(getattr(leaf, "weak_type", False))
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                keys: Any = leaf
                about |= {"kind": "key", "impl": str(jax.random.key_impl(keys))}
                about["key_dtype"] = str(leaf.dtype)
                leaf = jax.random.key_data(keys)
            else:
                about["kind"] = "array"
            array = np.array(leaf)  # a copy: the next step is given the original
            if array.dtype.kind not in "biufcV" or array.dtype.type is np.void:
                return Frozen(obstacle=f"its leaf {where} is an array of {array.dtype}")
            about |= {"dtype": str(array.dtype), "shape": list(array.shape)}
            if array.size:
                name = jax.tree_util.keystr(path, simple=True, separator="/") or "state"
                while name in frozen.arrays:  # a key "0" beside an index 0
                    name += "'"
                about["name"] = name
                frozen.arrays[name] = array
            else:
                about["kind"] += " empty"  # Orbax has no arrays without elements
        else:
            return Frozen(obstacle=f"its leaf {where} is a {type(leaf).__name__}")
        frozen.leaves.append(about)
    return frozen


def thaw(saved: Saved, template: State, *, reshaped: bool = False) -> State:
    """The state in the structure of ``template``, a state or a tree of shapes.

    ``reshaped`` says that shapes and dtypes need not be those of ``template``.

    Raises:
        CheckpointError: The state that was saved has another structure or other shapes.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    about = list(saved.about["leaves"])
    for (path, leaf), was in zip(leaves, about, strict=False):
        here = jax.tree_util.keystr(path)
        if here != was["path"]:
            raise CheckpointError(f"the checkpoint has a leaf {was['path']} where {here} belongs")
        if "shape" in was and not reshaped and hasattr(leaf, "dtype"):
            _match(was, leaf)
    if len(leaves) != len(about):
        raise CheckpointError(
            f"the checkpoint has {len(about)} leaves and the state has {len(leaves)}"
        )
    return jax.tree_util.tree_unflatten(structure, [_leaf(one, saved.arrays) for one in about])


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
        import orbax.checkpoint as ocp

        leaves = [
            one | {"sha256": _digest(frozen.arrays[one["name"]])} if "name" in one else one
            for one in frozen.leaves
        ]
        document = dict(about) | {"of": of, "step": step, "leaves": leaves}
        path = self._of(of) / f"{step:0{STEP_DIGITS}d}"
        try:
            with self._manager(of) as manager:
                if path.exists():  # left by a run that went further than its record did
                    manager.delete(step)
                # Orbax has no empty trees, so the step's number goes with the arrays
                arrays = {**frozen.arrays, "step/": np.int64(step)}
                written = manager.save(
                    step,
                    args=ocp.args.Composite(
                        state=ocp.args.StandardSave(arrays), about=ocp.args.JsonSave(document)
                    ),
                )
                if not written:
                    raise CheckpointError("Orbax declined to write it")
                complete = self.steps(of)
                keep = {*complete[-KEEP:], *self._finite(of, complete)[-1:]}
                for old in complete:
                    if old not in keep:
                        manager.delete(old)
        except Exception as error:
            self.clean()
            raise CheckpointError(
                f"the checkpoint of {of} at step {step} ({size_of(frozen.nbytes)}) could not be "
                f"written to {path.parent}: {_reason(error)}"
            ) from error
        return path

    def load(self, of: str, step: int) -> Saved:
        """Read a checkpoint and check every array.

        Raises:
            CheckpointError: It is damaged.
        """
        reason = ""
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
            if "name" in one and _digest(arrays[one["name"]]) != one["sha256"]:
                raise CheckpointError(f"its array {one['name']} was altered")
        return Saved(about, arrays)

    def about(self, of: str, step: int) -> Mapping[str, Any]:
        """What stands beside a checkpoint; empty where that cannot be read."""
        import json

        try:
            file = self._of(of) / f"{step:0{STEP_DIGITS}d}" / "about" / "metadata"
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
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
        return self.directory / quote(of, safe=" ").replace(".", "%2E")

    def _manager(self, of: str) -> Any:
        import orbax.checkpoint as ocp

        return ocp.CheckpointManager(
            self._of(of).absolute(),
            options=ocp.CheckpointManagerOptions(
                step_format_fixed_length=STEP_DIGITS,
                enable_async_checkpointing=False,  # whoever saves is a thread of its own
                save_root_metadata=False,
                save_decision_policy=ocp.checkpoint_managers.FixedIntervalPolicy(1),
            ),
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing of what a damaged checkpoint makes Orbax log: it is said in one line."""
    logger, hook = logging.getLogger("absl"), sys.unraisablehook
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = hook
        logger.setLevel(level)


def size_of(count: int) -> str:
    """Bytes in words, e.g. ``4.7 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    raise AssertionError


def _leaf(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    kind = about["kind"]
    if kind == "value":
        value = about["value"]
        return float.fromhex(value["float"]) if isinstance(value, dict) else value
    array = (
        arrays[about["name"]].reshape(about["shape"])
        if "name" in about
        else np.zeros(about["shape"], jnp.dtype(about["dtype"]))
    )
    if about["host"]:
        return array.copy()
    if kind.startswith("key"):
        return jax.random.wrap_key_data(jnp.array(array), impl=about["impl"])
    if about["weak"] and array.ndim == 0:
        return jnp.asarray(array.item())
    return jnp.array(array)  # a copy: a buffer of NumPy's could not be donated


def _match(was: Mapping[str, Any], leaf: Any) -> None:
    dtype = was.get("key_dtype", was["dtype"])
    shape = list(was["shape"])[: -1 if "key_dtype" in was else None]  # key data has an axis more
    if (dtype, shape) != (str(leaf.dtype), list(leaf.shape)):
        raise CheckpointError(
            f"the leaf {was['path']} was {dtype}{shape} and is {leaf.dtype}{list(leaf.shape)} now"
        )


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


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
