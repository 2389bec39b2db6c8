"""A state on the host, from which it can be made again bit for bit: no pickle, no code."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecotour.contract.demo import State
from ecotour.errors import CheckpointError


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
            array = np.array(jax.device_get(leaf))  # a copy: the next step is given the original
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
        return jax.random.wrap_key_data(jnp.copy(jax.device_put(array)), impl=about["impl"])
    if about["weak"] and array.ndim == 0:
        return jax.device_put(array.item())
    return jnp.copy(jax.device_put(array))  # a buffer of NumPy's could not be donated


def _match(was: Mapping[str, Any], leaf: Any) -> None:
    dtype = was.get("key_dtype", was["dtype"])
    shape = list(was["shape"])[: -1 if "key_dtype" in was else None]  # key data has an axis more
    if (dtype, shape) != (str(leaf.dtype), list(leaf.shape)):
        raise CheckpointError(
            f"the leaf {was['path']} was {dtype}{shape} and is {leaf.dtype}{list(leaf.shape)} now"
        )


def digest(array: np.ndarray) -> str:
    """The SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def digests(frozen: Frozen) -> dict[str, str]:
    """By path of each leaf, a SHA-256 of its dtype, shape and bytes, or of its plain value.

    Empty for a state that cannot be saved. Two states with the same digests are the same to the
    last bit, wherever they were computed.
    """
    found = {}
    for one in frozen.leaves:
        what = {k: one.get(k) for k in ("kind", "dtype", "shape", "impl", "value")}
        text = repr(sorted((k, v) for k, v in what.items() if v is not None))
        if "name" in one:
            text += digest(frozen.arrays[one["name"]])
        found[one["path"]] = hashlib.sha256(text.encode()).hexdigest()
    return found
