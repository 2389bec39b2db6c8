"""The end of a run on one screen: the verdict, where the time went, and where the files are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.drawing import account, look, wording
from ecotour.sinks import glyphs
from ecotour.sinks.plain import one_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

BAR = 24
_RESULTS = {
    True: ("yes", "✓", "green"),
    False: ("NO", "✗", "bold red"),
    None: (wording.result(None), "", "yellow"),
}
"""Word, sign and style of what a check may come to."""


def summary(record: Mapping[str, Any]) -> Summary:
    """What ``run.json`` holds, for a rich console to print; parts that are missing are left out."""
    return Summary(record)


class Summary:
    """A rich renderable; it asks the console for its width and encoding when it is printed."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        """Summarise ``record``."""
        self._record = record

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield the parts from top to bottom."""
        from rich.text import Text

        ascii_only = options.ascii_only
        record = self._record
        yield self._headline()
        if record.get("error"):
            yield Text(one_line(str(record["error"])), "red")
        if record.get("summary"):
            yield Text(one_line(str(record["summary"])))
        if record.get("checks"):
            yield Text("")
            yield _checks(record["checks"], ascii_only)
        parts = account.parts(record.get("ledger") or {})
        if parts:
            yield Text("")
            yield _bars(parts, ascii_only)
        yield Text("")
        yield from _places(record)

    def _headline(self) -> RenderableType:
        from rich.text import Text

        record = self._record
        status = str(record.get("status") or "unknown")
        checks = record.get("checks") or []
        colour = {"finished": "green", "failed": "red"}.get(status, "yellow")
        line = Text(one_line(str(record.get("demo") or "run")), "bold")
        line.append(f" {status}", f"bold {colour}")
        if checks:
            bad = any(check.get("passed") is False for check in checks)
            line.append(": ").append(account.verdict(record), "bold red" if bad else "")
        return line


def _checks(checks: Any, ascii_only: bool) -> Table:
    table = _table(ascii_only)
    table.add_column("check", overflow="fold")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("wanted", no_wrap=True)
    table.add_column("passed", no_wrap=True)
    from rich.text import Text

    for check in checks:
        passed = check.get("passed")
        word, sign, style = _RESULTS[passed]
        word = word if ascii_only else f"{sign} {word.lower()}".strip()
        table.add_row(
            Text(one_line(str(check.get("name")))),
            Text(wording.number(check.get("value"))),
            Text(wording.wanted(check)),
            Text(word, style),
        )
    return table


def _bars(parts: list[account.Part], ascii_only: bool) -> Table:
    from rich.text import Text

    total = sum(part.seconds for part in parts)
    table = _table(ascii_only)
    table.add_column("where the time went")
    table.add_column(wording.duration(total), justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for part in parts:
        share = part.seconds / total
        table.add_row(
            Text(part.name),
            Text(wording.duration(part.seconds)),
            Text(wording.share(part.seconds, total), "dim"),
            Text(glyphs.bar(share, BAR, ascii_only=ascii_only), look.PARTS[part.name]),
        )
    return table


def _places(record: Mapping[str, Any]) -> Iterator[RenderableType]:
    """A label and a text a line. A path or a command stays in one piece however long it is, so
    that it can be copied: the terminal itself breaks such a line, and a file need not."""
    from rich.table import Table
    from rich.text import Text

    facts, whole = list(_facts(record)), list(_files(record))
    labels = max((len(label) for label, _ in [*facts, *whole]), default=0) + 2
    grid = Table.grid()
    grid.add_column(style="dim", no_wrap=True, width=labels)
    grid.add_column(overflow="fold")
    for label, text in facts:
        grid.add_row(label, Text(text))
    if facts:
        yield grid
    for label, text in whole:
        line = Text(label.ljust(labels), "dim", no_wrap=True, overflow="ignore")
        yield line.append(text, "not dim")


def _facts(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for line in account.data_lines(record):
        yield "data", one_line(line)
    for of, costs in ((record.get("ledger") or {}).get("steps") or {}).items():
        steady = (costs.get("steady_ms") or {}).get("p50")
        if steady is not None:
            p95 = wording.milliseconds((costs.get("steady_ms") or {}).get("p95"))
            text = f"{wording.milliseconds(steady)} a step (median; 95th percentile {p95})"
            yield one_line(str(of)), text
    if record.get("nonfinite"):
        yield "not finite", one_line(", ".join(map(str, record["nonfinite"])))
    for line in account.unshown(record):
        yield "not shown", one_line(line)


def _files(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    run_dir = record.get("run_dir")
    if not run_dir:
        return
    report = Path(run_dir) / ((record.get("artifacts") or {}).get("report") or "report.html")
    if report.exists():
        yield "report", one_line(str(report))
    yield "record", one_line(str(Path(run_dir) / "run.json"))
    status = record.get("status")
    # one that failed before its first step would fail there again
    if status == "interrupted" or (status == "failed" and record.get("progress")):
        yield "go on", one_line(shlex.join(["ecotour", "resume", str(run_dir)]))
    if status == "finished" and (horizon := account.horizon(record)):
        words = ["ecotour", "resume", str(run_dir), "--steps", str(horizon)]
        yield "go on", one_line(shlex.join(words))


def _table(ascii_only: bool) -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
        header_style="dim", padding=(0, 2, 0, 0),
    )  # fmt: skip
