"""The words and numbers of a record, as nodes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docutils import nodes

from ecotour.drawing import account, wording

_CLASSES = {True: "good", False: "bad", None: "quiet"}
"""Of what a check may come to."""


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[bool] = ()
) -> nodes.table:
    """A table; cells are texts or nodes, those of ``numeric`` columns are set flush right."""
    group = nodes.tgroup("", cols=len(columns))
    texts = [[_text(cell) for cell in row] for row in (columns, *rows)]
    for column in range(len(columns)):  # only builders without a browser ask for it
        widest = max(len(row[column]) for row in texts)
        group += nodes.colspec("", colwidth=max(1, min(60, widest)))
    right = [*numeric, *[False] * len(columns)]
    if any(columns):
        group += nodes.thead("", _row(columns, right))
    group += nodes.tbody("", *[_row(row, right) for row in rows])
    return nodes.table("", group, classes=["ecotour-table", "colwidths-auto"])


def exhibit(found: Mapping[str, Any]) -> nodes.table:
    """A table that a demo showed."""
    rows = found["rows"]
    numeric = [
        bool(rows) and all(not isinstance(row[column], str) for row in rows)
        for column in range(len(found["columns"]))
    ]
    return table(found["columns"], [[wording.number(c) for c in row] for row in rows], numeric)


def verdict(document: Mapping[str, Any]) -> Iterator[nodes.Node]:
    """The judge's words, and every check with what was wanted."""
    if document.get("summary"):
        yield nodes.paragraph("", document["summary"], classes=["ecotour-summary"])
    checks = document.get("checks") or []
    if checks:
        rows = [
            (
                one["name"], wording.number(one["value"]),
                nodes.inline("", wording.wanted(one), classes=["ecotour-label"]),
                _mark(wording.result(one["passed"]), _CLASSES[one["passed"]]),
            )
            for one in checks
        ]  # fmt: skip
        yield table(("check", "measured", "wanted", "passed"), rows, (False, True))
        if account.horizon(document):
            yield nodes.paragraph("", f"The recorded run: {account.verdict(document)}.")
    data = account.data_lines(document)
    yield nodes.paragraph("", f"Data: {'; '.join(data) if data else 'this demo needs none'}.")


def ledger(document: Mapping[str, Any]) -> Iterator[nodes.Node]:
    """The bar of the whole run, its parts in words, and what each compiled step cost."""
    found = account.parts(document.get("ledger") or {})
    total = sum(part.seconds for part in found)
    if not total:
        return
    spans = "".join(
        f'<span class="ecotour-part-{part.name}" style="flex: {part.seconds / total:.6f} 0 0" '
        f'title="{html.escape(part.name)}: {wording.duration(part.seconds)}"></span>'
        for part in found
    )
    bar = f'<div class="ecotour-bar" aria-hidden="true">{spans}</div>'
    yield nodes.raw("", bar, format="html")
    rows = [
        (
            _swatch(part.name), wording.duration(part.seconds), wording.share(part.seconds, total),
            part.sentence,
        )
        for part in found
    ]  # fmt: skip
    yield table(("part", "time", "share", "what happens in it"), rows, (False, True, True))
    steps = (document.get("ledger") or {}).get("steps") or {}
    if steps:
        columns = ("named step", "compile", "first run", "median", "95th percentile", "measured")
        yield table(columns, [_costs(of, one) for of, one in steps.items()], (False, *[True] * 5))


def flags(document: Mapping[str, Any]) -> Iterator[nodes.Node]:
    """Every flag of the demo's own."""
    rows = [
        (
            nodes.literal("", f"{flag['name']} {flag['kind']}"), flag["help"],
            nodes.literal("", _plain(flag["default"])), _plain(flag.get("bounds") or ""),
        )
        for flag in document.get("flags") or ()
    ]  # fmt: skip
    if rows:
        yield table(("flag", "what it says", "default", "allowed"), rows)


def provenance(document: Mapping[str, Any]) -> Iterator[nodes.Node]:
    """Date, command, versions, hardware, data and seed."""
    command = str(document.get("command") or "")
    yield nodes.literal_block(command, command, language="text", classes=["ecotour-command"])
    facts = {
        "recorded": document.get("recorded"),
        "distribution": document.get("distribution"),
        "seed": document.get("seed"),
        "data": "; ".join(account.data_lines(document)) or "none",
        **(document.get("notes") or {}),
        **(document.get("environment") or {}),
    }
    yield table(("", ""), [(name, _plain(value)) for name, value in facts.items()])


def _costs(of: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    steady = one.get("steady_ms") or {}
    compiled = [wording.duration(one.get("compile_s")), *account.origin(one)]
    in_python = one.get("compiles") == 0 and one.get("compile_s") is None
    once = one.get("measured") == 0  # there was no step but the first
    return (
        of,
        wording.MISSING if in_python else ", ".join(compiled),
        wording.duration(one.get("first_s")),
        wording.MISSING if once else wording.milliseconds(steady.get("p50")),
        wording.MISSING if once else wording.milliseconds(steady.get("p95")),
        wording.number(one.get("measured")),
    )


def _row(cells: Sequence[Any], right: Sequence[bool]) -> nodes.row:
    row = nodes.row()
    for cell, flush in zip(cells, right, strict=False):
        inside = cell if isinstance(cell, nodes.Node) else nodes.Text(str(cell))
        classes = ["ecotour-number"] if flush else []
        row += nodes.entry("", nodes.paragraph("", "", inside), classes=classes)
    return row


def _text(cell: Any) -> str:
    return cell.astext() if isinstance(cell, nodes.Node) else str(cell)


def _mark(text: str, kind: str) -> nodes.inline:
    return nodes.inline("", text, classes=[f"ecotour-{kind}"])


def _swatch(name: str) -> nodes.inline:
    colour = nodes.inline("", "", classes=["ecotour-swatch", f"ecotour-part-{name}"])
    return nodes.inline("", "", colour, nodes.Text(name), classes=["ecotour-label"])


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_plain, value)) if value else "none"
    if isinstance(value, Mapping):
        words = {"at_least": "at least", "at_most": "at most"}
        return ", ".join(f"{words.get(key, key)} {_plain(item)}" for key, item in value.items())
    return wording.number(value) if value is None or isinstance(value, bool) else str(value)
