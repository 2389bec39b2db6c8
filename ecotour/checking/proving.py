"""Carries out all proofs on one subject."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ecotour.checking.subject import Subject
from ecotour.checking.table import TABLE, Fault, Finding, Found, Report, Unproved, fill
from ecotour.errors import EcotourError


def prove(subject: Subject, tell: Callable[[str], None] = lambda _: None) -> Report:
    """Look for every finding.

    Args:
        subject: The demo.
        tell: Called with the name of each finding as it is looked for.
    """
    fill()
    began, report = time.monotonic(), Report()
    with subject.watch.watching():
        try:
            entry, _ = subject.loaded
            report.demo, report.distribution = entry.name, entry.provenance
        except Fault:
            pass  # comes up again in the first proof that needs the demo
        for finding in TABLE.values():
            if finding.proof is not None:
                tell(finding.id)
                _look(finding, subject, report)
    order = list(TABLE)
    report.found.sort(key=lambda found: order.index(found.id))
    report.seconds = time.monotonic() - began
    return report


def _look(finding: Finding, subject: Subject, report: Report) -> None:
    """Look for one finding wherever it may be."""
    assert finding.proof is not None
    for of, arguments in _cases(finding, subject, report):
        why = _explained(finding, of, report)
        if not why:
            try:
                report.found += [Found(finding.id, of, said) for said in finding.proof(*arguments)]
            except Fault as fault:
                why = _note(fault, report)
            except Unproved as error:
                why = str(error)
            except EcotourError as error:
                why = _note(Fault("run-fails", str(error), of), report)
            except Exception as error:  # noqa: BLE001 - whatever a demo makes JAX raise
                why = _note(Fault("unexpected", _unexpected(finding, error), of), report)
        if why:
            report.unproved[finding.id] = why
    if finding.id not in report.ids and finding.id not in report.unproved:
        report.proved.append(finding.id)


def _explained(finding: Finding, of: str, report: Report) -> str:
    """Which earlier finding makes this one pointless; empty where none does."""
    for found in report.found:
        here = found.of in ("", of) or not of
        stopped = of and TABLE[found.id].proof is None
        if here and (found.id in finding.after or stopped):
            return f"explained by {found.id}"
    return ""


def _cases(finding: Finding, subject: Subject, report: Report) -> list[tuple[str, tuple[Any, ...]]]:
    """Where to look: the named step, or the empty name, and the arguments of the proof."""
    if finding.per == "demo":
        return [("", (subject,))]
    try:
        return [(name, (subject, name)) for name in subject.compiled]
    except Fault as fault:
        report.unproved[finding.id] = _note(fault, report)
        return []


def _unexpected(finding: Finding, error: Exception) -> str:
    import traceback

    at = traceback.extract_tb(error.__traceback__)[-1]
    text = (str(error).strip().splitlines() or ["no message"])[0]
    where = f"{at.filename.rpartition('/')[2]} line {at.lineno}"
    return f"while looking for {finding.id}: {type(error).__name__}: {text}, {where}"


def _note(fault: Fault, report: Report) -> str:
    """Report a fault, once, and say what it means for the proof that met it."""
    if fault.id not in report.ids:
        report.found.append(Found(fault.id, fault.of, fault.detail))
    return f"stopped by {fault.id}"
