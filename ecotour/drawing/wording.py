"""Numbers as people read them: the same in the terminal, the pictures and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

UNKNOWN = "unknown"
MISSING = "–"


def number(value: Any) -> str:
    """A value of a metric, a check or a cell: about five digits, counts in full."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "yes" if value else "no"
    try:
        as_float = float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)
    if math.isnan(as_float):
        return MISSING
    if math.isinf(as_float):
        return "∞" if as_float > 0 else "-∞"
    if isinstance(value, int) or (as_float.is_integer() and 1000 <= abs(as_float) < 1e9):
        return f"{int(value):,}"
    if as_float and not 1e-3 <= abs(as_float) < 1e6:
        return f"{as_float:.3g}"
    if abs(as_float) >= 1000:
        return f"{as_float:,.1f}"
    return f"{as_float:.4g}"


def wanted(check: Mapping[str, Any]) -> str:
    """What a check of a record wanted; of a truth value in the words that `number` has for it."""
    want = str(check.get("want"))
    if isinstance(check.get("value"), bool):
        return {"== 1": "== yes", "== 0": "== no"}.get(want, want)
    return want


def result(passed: bool | None) -> str:
    """Whether a check passed, which it may be too early to say."""
    return "too early" if passed is None else "yes" if passed else "no"


def duration(seconds: float | None) -> str:
    """A span of time with a fitting unit: ``850 µs``, ``12 ms``, ``3.4 s``, ``4 min 05 s``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def milliseconds(value: float | None) -> str:
    """A time that is counted in milliseconds, with a fitting unit."""
    return UNKNOWN if value is None else duration(value / 1e3)


def amount(value: float | None, unit: str) -> str:
    """A large count with a prefix: ``6.21 GFLOP``. ``None`` and negative ones are unknown."""
    if value is None or not math.isfinite(value) or value < 0:
        return UNKNOWN
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def size(bytes_: float | None) -> str:
    """Bytes with a binary prefix: ``45.2 MiB``. ``None`` and negative ones are unknown."""
    if bytes_ is None or not math.isfinite(bytes_) or bytes_ < 0:
        return UNKNOWN
    value = float(bytes_)
    for prefix in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.3g} {prefix}" if value < 999.5 else f"{value:.0f} {prefix}"
        value /= 1024
    return f"{value:,.4g} TiB"


def share(part: float, whole: float) -> str:
    """A percentage, small ones as ``< 0.1%``."""
    if whole <= 0:
        return MISSING
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1%"
    return f"{percent:.1f}%"
