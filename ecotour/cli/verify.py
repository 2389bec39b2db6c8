"""``ecotour verify``: do a recorded run again, and say whether it is still what it was."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecotour.cli import process
from ecotour.drawing import page
from ecotour.errors import EcotourError, RecordError, UsageError
from ecotour.machine import environment
from ecotour.rundir import record
from ecotour.rundir.metric_rows import read_rows
from ecotour.rundir.strict_json import to_json
from ecotour.trust import child, drift, records, verify

DIVERGED = 4
RECORD_DIGITS = 9
"""Significant digits of the numbers in a record for documentation."""


@dataclass(frozen=True)
class Original:
    """What is to be done again: a run's directory, or a record for documentation.

    Attributes:
        path: Where it lies.
        document: Its ``run.json`` or ``record.json``.
        rows: Its reports.
        digits: Significant digits of their values, if they were rounded.
    """

    path: Path
    document: Mapping[str, Any]
    rows: list[dict[str, Any]]
    digits: int | None = None


def main(arguments: argparse.Namespace) -> int:
    """Verify; 0 where it is the same or close, 4 where it diverged, 1 where it cannot be said."""
    with process.stdout_for_json(arguments.json) as stdout:
        original = read(Path(arguments.run))
        words = words_of(original, arguments.steps)
        with tempfile.TemporaryDirectory(prefix="ecotour-verify-") as scratch:
            run_dir = Path(scratch) / "run"
            try:
                child.run(
                    words, run_dir, seconds=arguments.time_limit, megabytes=arguments.memory_limit
                )
            except EcotourError as error:
                command = shlex.join(["ecotour", "run", *words])
                raise RecordError(f"cannot be repeated: {error} (of `{command}`)") from error
            now = record.read(run_dir)
            finding = verify.compare(
                original.rows,
                read_rows(run_dir)[0],
                original.document.get("digests") or {},
                now.get("digests") or {},
                digits=original.digits,
            )
        if not finding.reports:
            raise RecordError(f"{original.path} has no report that the new run has too")
        causes = causes_of(original.document, now)
        if arguments.json:
            document: dict[str, Any] = {"schema": 1, "what": str(original.path)}
            document["command"] = ["ecotour", "run", *words]
            document |= dataclasses.asdict(finding) | {"causes": causes}
            stdout.write(to_json(document, indent=1) + "\n")
        else:
            tell(original, finding, causes)
    return DIVERGED if finding.verdict == "diverged" else 0


def read(path: Path) -> Original:
    """Read what a user named.

    Raises:
        RecordError: It is neither a run's directory nor a record, is damaged, or has no reports.
    """
    if (path / "record.json").is_file():
        kept = records.read(path)
        document = dict(kept.document)
        if not document.get("module"):
            document["source_file"] = str(kept.source().absolute())
        original = Original(path, document, kept.rows(), RECORD_DIGITS)
    else:
        known = record.read(path)
        rows, damaged = read_rows(path)
        if damaged:
            raise RecordError(damaged[0])
        original = Original(path, known, rows)
    if not original.rows:
        raise RecordError(f"{path} has no reports to compare with")
    return original


def words_of(original: Original, steps: int | None) -> list[str]:
    """What is to follow ``ecotour run``, so that the new run reports at the recorded steps.

    Raises:
        UsageError: Fewer steps are asked for than stand before the first report, or more than
            before the last one.
    """
    document = original.document
    words = shlex.split(page.repeat_command(document))[2:]
    reported = [row["step"] for row in original.rows]
    if steps is not None:
        if steps < min(reported):
            raise UsageError(f"--steps {steps}: the first report is of step {min(reported)}")
        if steps > max(reported):
            raise UsageError(f"--steps {steps}: the last report is of step {max(reported)}")
        words += ["--steps", str(steps)]
    intervals = set((document.get("log_every") or {}).values())
    return words + (["--log-every", str(min(intervals))] if intervals else [])


def causes_of(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What may be behind a difference: versions, processor, devices, precision, source."""
    was = drift.record_form(then.get("environment") or {})
    is_ = drift.record_form(now.get("environment") or environment.describe())
    found = [
        f"{name}: {_text(was.get(name))} then, {_text(is_.get(name))} now"
        for name in sorted({*was, *is_} - {"platform"})
        if name in was and was.get(name) != is_.get(name)
    ]
    for name in ("distribution", "source_hash"):
        if then.get(name) and then[name] != now.get(name):
            found.append(f"{name.replace('_', ' ')}: {then[name]} then, {now.get(name)} now")
    return found


def tell(original: Original, finding: verify.Finding, causes: list[str]) -> None:
    """Print the verdict, and below it what it stands on."""
    looked = _count(finding.reports, "report")
    if finding.leaves:
        looked += f", {_count(finding.leaves, 'leaf', 'leaves')} of the last state"
    print(f"{original.path}: {_sentence(finding)} ({looked} compared)")
    for name, apart in finding.largest.items():
        print(f"  {name}: at most {apart:.2g} apart, relative")
    if finding.leaf:
        print(f"  the first leaf that is not the same: {finding.leaf}")
    if finding.verdict == "close":
        allowed = ", ".join(f"{what} {value:g}" for what, value in finding.tolerances.items())
        print(f"  close is, relative: {allowed}")
    if finding.verdict == "same bits":
        if not finding.leaves:
            print("  the record has no digest of that state: this is said of the reports alone")
        return
    for line in causes or ["nothing that is recorded: look at the code"]:
        print(f"  what is otherwise: {line}")


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _sentence(finding: verify.Finding) -> str:
    if finding.parting is None:
        return finding.verdict
    at = finding.parting
    then, now = (_text(value) for value in (at.then, at.now))
    return f"diverged at step {at.step}: {at.of}.{at.metric} was {then} and is {now}"


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
