"""The values of exhibits between NumPy and JSON, with a word on what does not fit."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def pixels(values: Any) -> np.ndarray:
    """Return pixels as ``uint8``: float ones are clipped to 0 … 1, a NaN is black."""
    array = np.asarray(values)
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if not np.issubdtype(array.dtype, np.floating) and array.dtype.name != "bfloat16":
        raise ValueError(f"pixels are uint8 in 0 … 255 or float in 0 … 1, not {array.dtype}")
    clean = np.nan_to_num(array.astype(np.float32), nan=0.0)
    return np.rint(np.clip(clean, 0.0, 1.0) * 255).astype(np.uint8)


def decode_pixels(document: Mapping[str, Any]) -> np.ndarray:
    """Pixels as `encode_pixels` wrote them."""
    if document["dtype"] != "uint8":
        raise ValueError(f"pixels of dtype {document['dtype']!r}")
    shape = [int(length) for length in document["shape"]]
    try:
        raw = base64.b64decode(document["base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"pixels are not base64 ({error})") from error
    return np.frombuffer(raw, np.uint8).reshape(shape)


def array(values: Any) -> np.ndarray:
    """Numbers as ``float64``; ``None`` becomes NaN."""
    return np.array(values, dtype=np.float64)  # None becomes NaN


def encode_pixels(array: np.ndarray) -> dict[str, Any]:
    """``uint8`` pixels as their bytes in base64."""
    raw = np.ascontiguousarray(array).tobytes()
    return {
        "dtype": "uint8",
        "shape": list(array.shape),
        "base64": base64.b64encode(raw).decode("ascii"),
    }


def picture_stack(what: str, values: Any) -> np.ndarray:
    """Check that these are pixels of one or more pictures."""
    array = pixels(values)
    good = array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3))
    if not good or 0 in array.shape:
        raise ValueError(
            f"{what} have shape {array.shape}, wanted [N, H, W], [N, H, W, 1] or [N, H, W, 3], "
            "none of them 0"
        )
    return array


def floats(what: str, values: Any, shape: Sequence[int | None]) -> np.ndarray:
    """Numbers of a certain shape, in which ``None`` is any length."""
    array = np.asarray(values)
    if array.dtype != np.float64:
        array = array.astype(np.float64)
    if array.size == 0 and len(shape) == 2 and shape[1] is not None:
        array = array.reshape(0, shape[1])
    fits = array.ndim == len(shape) and all(
        wanted is None or wanted == length
        for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted_text = ", ".join("N" if length is None else str(length) for length in shape)
        raise ValueError(f"{what} has shape {array.shape}, wanted [{wanted_text}]")
    return array


def optional(what: str, values: Any, shape: Sequence[int | None]) -> Any:
    """As `floats` and `as_list`; ``None`` stays."""
    return None if values is None else as_list(floats(what, values, shape))


def as_list(array: np.ndarray) -> Any:
    """Nested lists, ``None`` for what is not finite."""
    if np.isfinite(array).all():
        return array.tolist()
    objects = array.astype(object)
    objects[~np.isfinite(array)] = None
    return objects.tolist()


def guides(guides: Mapping[str, float]) -> dict[str, float]:
    """Reference lines; their heights are finite."""
    found = {str(legend): float(height) for legend, height in guides.items()}
    for legend, height in found.items():
        if not math.isfinite(height):
            raise ValueError(f"guide {legend!r} is at {height}: a finite height is needed")
    return found


def texts(what: str, texts: Sequence[str] | None, count: int) -> list[str] | None:
    """As many texts as are wanted, or none at all."""
    if texts is None:
        return None
    found = [str(text) for text in texts]
    if len(found) != count:
        raise ValueError(f"{what} has {len(found)} texts, wanted {count}")
    return found


def cell(cell: Any) -> str | float | int | bool | None:
    """One cell of a table."""
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    value = np.asarray(cell)
    if value.ndim:
        raise ValueError(f"a cell has shape {value.shape}: cells are texts and single numbers")
    if np.issubdtype(value.dtype, np.bool_):
        return bool(value)
    if np.issubdtype(value.dtype, np.integer):
        return int(value)
    as_float = float(value)
    return as_float if math.isfinite(as_float) else None
