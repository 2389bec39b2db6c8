"""Strict JSON: a number that is not finite is ``null``, and `nonfinite` names its place."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def to_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON: what is not finite is null; tuples are lists; what JSON lacks is a string.

    A byte of a path that is not UTF-8 is a lone surrogate to Python. Here it is the escape
    ``\\udcff``, so that the text can be written, and read back it is the same path.
    """
    text = json.dumps(_clean(value), allow_nan=False, ensure_ascii=False, indent=indent)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def nonfinite(value: Any, place: str = "") -> list[str]:
    """Where in ``value`` the numbers stand that are not finite, e.g. ``update.gen_loss``."""
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)  # type: ignore[assignment]
    else:
        plain = value.item() if getattr(value, "ndim", None) == 0 else value
        return [place] if isinstance(plain, float) and not math.isfinite(plain) else []
    return [
        found
        for key, item in items
        for found in nonfinite(item, f"{place}.{key}" if place else str(key))
    ]


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if getattr(value, "ndim", None) == 0:  # NumPy's and JAX's own numbers
        return _clean(value.item())
    return str(value)  # whatever a demo says, the record is written
