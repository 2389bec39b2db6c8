"""Whether a recorded run is still what the demo does: what differs, and why it may.

Compared exactly: source, flags, shapes, names of metrics, exhibits and checks, whether a check
passed. Within `TOLERANCES`: metrics and the values of checks. Never: times, nor a quantity whose
name says that it is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecotour.contract.events import NOT_METRICS
from ecotour.drawing import wording
from ecotour.rundir import record
from ecotour.rundir.metric_rows import read_rows
from ecotour.rundir.stored_exhibits import read_exhibits
from ecotour.rundir.strict_json import to_json
from ecotour.trust.identity import Identity
from ecotour.trust.records import Record

TOLERANCES = {
    "metrics of the first 10 steps": 0.001,
    "metrics of steps 11 to 100": 0.05,
    "metrics of later steps": 0.5,
    "values of checks": 0.15,
}
"""Relative. Another processor rounds otherwise, and training makes that grow with the steps."""

NEGLIGIBLE = 1e-4
"""Differences below this are none: a loss that has come to 1e-6 may end at 3e-6."""

_CLOCK = re.compile(
    r"(?:^|[\W_])(?:n?s|ms|us|µs|seconds?|minutes?|times?|speed(?:up)?|fast(?:er)?|slow(?:er)?|rate"
    r"|throughput|overhead|costs?|flops?|bytes|per_s|per second|price)(?:$|[\W_])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Difference:
    """One thing that is not as recorded.

    Attributes:
        quantity: What, e.g. ``update.gen_loss at step 20``.
        old: As recorded.
        new: As it is.
        allowed: The tolerance, in words; empty where the comparison is exact.
    """

    quantity: str
    old: str
    new: str
    allowed: str = ""

    def __str__(self) -> str:
        """One line."""
        allowed = f" ({self.allowed})" if self.allowed else ""
        return f"{self.quantity}: recorded {self.old}, now {self.new}{allowed}"


def of_identity(old: Record, now: Identity) -> Iterator[Difference]:
    """What differs without running anything: source, flags, shapes."""
    document = old.document
    yield from _mapping("source", document.get("sources") or {}, now.sources, cut=12)
    was = {flag["name"]: flag for flag in document.get("flags") or ()}
    flags = {flag["name"]: flag for flag in record_form(now.flags)}
    for name in sorted({*was, *flags}):
        before, after = was.get(name), flags.get(name)
        if before is None or after is None:
            yield _presence(f"flag {name}", before, after)
            continue
        for key, of in (("default", "default of "), ("kind", "type of "), ("bounds", "bounds of ")):
            if before[key] != after[key]:
                yield Difference(of + name, _text(before[key]), _text(after[key]))
    shapes = document.get("shapes") or {}
    for of in sorted({*shapes, *now.shapes}):
        yield from _mapping(f"shape of {of}", shapes.get(of) or {}, now.shapes.get(of) or {})


def of_run(old: Record, run_dir: Path, *, whole: bool) -> Iterator[Difference]:
    """What differs between a record and a new run of the same demo.

    Args:
        old: The record.
        run_dir: The directory of the new run, which is finished.
        whole: Whether the new run went through all steps: only then its verdict is compared.

    Raises:
        RecordError: One of them cannot be read.
    """
    rows, damaged = read_rows(run_dir)
    yield from (Difference("metrics.jsonl", "whole", line) for line in damaged)
    yield from _metrics(old.rows(), rows)
    names = {(one.of, one.name) for one in read_exhibits(run_dir, [])}
    kept = {(one.of, one.name) for one in old.shown if one.role != "metrics"}
    if not whole:  # an untrained model may not be worth a picture
        kept, names = ({n for n in some if n[0] is not None} for some in (kept, names))
    for of, name in sorted(kept ^ names, key=str):
        where = f"exhibit {name}" + (f" of {of}" if of else "")
        there = (True if (of, name) in some else None for some in (kept, names))
        yield _presence(where, *there)
    if whole:
        now = record.read(run_dir)
        was, are = (
            {name: str(total) for name, total in (totals or {}).items()}
            for totals in (old.document.get("totals"), now.get("totals"))
        )
        yield from _mapping("steps of", was, are)
        yield from _checks(old.document.get("checks") or (), now["checks"])


def versions(old: Record, now: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, recorded and present value of whatever differs of versions and hardware."""
    was = old.document.get("environment") or {}
    names = sorted({*was, *now} - {"platform"})
    return [
        (name, _text(was.get(name)), _text(now.get(name)))
        for name in names
        if was.get(name) != now.get(name)
    ]


def pages(directory: Path, demo: str) -> list[Path]:
    """The pages in ``directory`` that show the demo."""
    wanted = re.compile(rf"ecotour-demo(?:\}}|::)[ \t]+{re.escape(demo)}[ \t]*$", re.MULTILINE)
    found = [*directory.rglob("*.md"), *directory.rglob("*.rst")]
    return sorted(p for p in found if wanted.search(p.read_text("utf-8", "replace")))


def record_form(value: Any) -> Any:
    """``value`` as it is after a way through JSON."""
    import json

    return json.loads(to_json(value))


def is_timing(name: str) -> bool:
    """Whether a quantity's name says that the clock has a part in it."""
    return bool(_CLOCK.search(name))


def _metrics(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> Iterator[Difference]:
    now = {(row["of"], row["step"]): row for row in new}
    common = [row for row in old if (row["of"], row["step"]) in now]
    for of in sorted({row["of"] for row in old} - {row["of"] for row in common}):
        yield Difference(f"reports of {of}", "there", "none at the same steps")
    told = set()
    for row in common:
        of, step = row["of"], row["step"]
        other = now[of, step]
        for name in sorted({*row, *other} - set(NOT_METRICS)):
            quantity = f"{of}.{name}"
            if quantity in told or is_timing(quantity):
                continue
            allowed = tolerance(step)
            if name not in row or name not in other:
                there = (True if name in one else None for one in (row, other))
                yield _presence(f"metric {quantity}", *there)
            elif _close(row[name], other[name], allowed):
                continue
            else:
                before, after = (_text(one[name]) for one in (row, other))
                what = f"{quantity} at step {step}"
                yield Difference(what, before, after, f"{allowed:.1%} allowed")
            told.add(quantity)  # once it has drifted, all that follows has


def _checks(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> Iterator[Difference]:
    was, now = ({check["name"]: check for check in checks} for checks in (old, new))
    allowed = TOLERANCES["values of checks"]
    for name in sorted({*was, *now}):
        before, after = was.get(name), now.get(name)
        what = f"check {name!r}"
        if before is None or after is None:
            yield _presence(what, before, after)
            continue
        if before["want"] != after["want"]:
            yield Difference(f"{what}, wanted", before["want"], after["want"])
        if is_timing(name):
            continue
        if before["passed"] != after["passed"]:
            words = {True: "passed", False: "not passed", None: "too early to judge"}
            yield Difference(what, words[before["passed"]], words[after["passed"]])
        if not _close(before["value"], after["value"], allowed):
            old_value, new_value = (_text(one["value"]) for one in (before, after))
            yield Difference(f"{what}, value", old_value, new_value, f"{allowed:.0%} allowed")


def _presence(what: str, old: Any, new: Any) -> Difference:
    old, new = ("none" if one is None else "there" for one in (old, new))
    return Difference(what, old, new)


def tolerance(step: int) -> float:
    """How far apart, relative, a metric may lie after ``step``."""
    first, middle, later, _ = TOLERANCES.values()
    return first if step <= 10 else middle if step <= 100 else later


def _close(old: Any, new: Any, allowed: float) -> bool:
    if old is None or new is None:  # not finite
        return old is new
    return math.isclose(old, new, rel_tol=allowed, abs_tol=NEGLIGIBLE)


def _mapping(
    what: str, old: Mapping[str, str], new: Mapping[str, str], cut: int | None = None
) -> Iterator[Difference]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            before, after = (one.get(name, "none")[:cut] for one in (old, new))
            yield Difference(f"{what} {name}", before, after)


def _text(value: Any) -> str:
    if isinstance(value, float) and not isinstance(value, bool):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items()) or "none"
    return wording.MISSING if value is None else str(value)
