"""A recorded demo as a page for elsewhere: Markdown with its pictures, or a Jupyter notebook.

Both stand alone. The notebook holds the demo's own cells, then one that runs what they define,
with the recorded output below it; whoever changes a cell and runs all sees what follows from it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ecotour.authoring import cells
from ecotour.authoring.cells import Cell
from ecotour.drawing import account, look, wording
from ecotour.rundir.files import write_whole
from ecotour.trust.records import Record, Shown

_RUN = """\
from IPython.display import Image, display

from ecotour import drawing
from ecotour.contract.events import Judged, Reported, Viewed
from ecotour.contract.plan import Plan
from ecotour.running.runner import run

demo, views, last = ecotour_demo(), {{}}, {{}}
plan = Plan({demo!r}, "this notebook", demo.config({config}), steps={steps}, seed={seed})
for event in run(demo.build(plan.config), plan):
    if isinstance(event, Reported) and event.step % max(1, event.total // 10) < 1:
        print(event.of, event.step, event.metrics)
    elif isinstance(event, Judged):
        for check in event.verdict.checks:
            passed = {{True: "passed", False: "NOT PASSED", None: "too early"}}[check.passed]
            print(passed, check.name, check.value, check.want)
        last = event.verdict.exhibits
    elif isinstance(event, Viewed) and event.step:
        views = event.exhibits
for exhibit in (*views.values(), *last.values()):
    display(Image(drawing.png(exhibit)))
"""


def markdown(record: Record, source: str, out: Path) -> Path:
    """Write a Markdown page and its pictures into the directory ``out``.

    Args:
        record: What was recorded.
        source: The demo's source as it is now.
        out: A directory that exists.

    Returns:
        The page.

    Raises:
        OSError: It cannot be written.
        ValueError: ``source`` is no Python.
    """
    parts = [*_opening(record), "## What came of it", *_outcome(record)]
    for one in record.shown:
        parts += [f"### {_heading(one)}", _as_markdown(record, one, out), f"*{_line(one.caption)}*"]
    parts += ["## The source", cells.markdown(cells.split(source), top=3), _provenance(record)]
    page = out / f"{record.document['demo']}.md"
    write_whole(page, ("\n\n".join(filter(None, parts)).rstrip() + "\n").encode())
    return page


def notebook(record: Record, source: str, out: Path) -> Path:
    """Write a notebook, its outputs in it, into the directory ``out``; see `markdown`."""
    found = cells.split(source)
    body = [_cell("markdown" if cell.kind == "prose" else "code", cell.text) for cell in found]
    run = _RUN.format(
        demo=record.document["demo"],
        config=_config(record),
        steps=record.document.get("steps_asked"),
        seed=record.document.get("seed") or 0,
    )
    outputs = [_output({"text/markdown": "\n\n".join(_outcome(record))})]
    for one in record.shown:
        outputs.append(_output({"text/markdown": f"**{_heading(one)}**: {_line(one.caption)}"}))
        outputs.append(_output(_as_data(record, one)))
    all_cells = [
        _cell("markdown", "\n\n".join(_opening(record))),
        *body,
        _cell("markdown", "## Run it\n\nBelow stands what the recorded run showed."),
        _cell("code", run.rstrip(), outputs),
        _cell("markdown", _provenance(record)),
    ]
    for number, cell in enumerate(all_cells):
        cell["id"] = f"cell-{number}"
    document = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "cells": all_cells,
    }
    page = out / f"{record.document['demo']}.ipynb"
    write_whole(page, (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode())
    return page


def standalone(svg: str) -> str:
    """A drawing of a record as a file of its own: plain colours on paper, not the page's."""
    text = re.sub(r"var\(--([a-z0-9-]+)\)", lambda found: look.LIGHT.get(found[1], look.INK), svg)
    text = text.replace("inherit", "sans-serif")
    if "xmlns=" not in text[:400]:
        text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return text.replace('style="', f'style="background: {look.PAPER}; ', 1)


def _opening(record: Record) -> list[str]:
    document = record.document
    needs = "" if document.get("module") is None else f" It needs {document['distribution']}."
    return [
        f"# {_line(document.get('about') or document['demo'])}",
        _line(document.get("teaches") or ""),
        f"Made by `ecotour export` from a recorded run.{needs}",
        f"```bash\n{document.get('command')}\n```",
    ]


def _outcome(record: Record) -> list[str]:
    document = record.document
    parts = [_line(document.get("summary") or "")]
    if document.get("checks"):
        rows = [
            (
                one["name"], wording.number(one["value"]), wording.wanted(one),
                wording.result(one["passed"]),
            )
            for one in document["checks"]
        ]  # fmt: skip
        parts.append(_table(("check", "measured", "wanted", "passed"), rows))
    found = account.parts(document.get("ledger") or {})
    total = sum(part.seconds for part in found)
    rows = [
        (p.name, wording.duration(p.seconds), wording.share(p.seconds, total), p.sentence)
        for p in found
    ]
    parts.append(_table(("where the time went", "time", "share", "what happens in it"), rows))
    return list(filter(None, parts))


def _provenance(record: Record) -> str:
    document = record.document
    facts = document.get("environment") or {}
    return "\n\n".join(
        [
            "## Where this comes from",
            f"Recorded on {document.get('recorded')}, seed {document.get('seed')}, "
            f"data: {'; '.join(account.data_lines(document)) or 'none'}.",
            _table(("what", "value"), [(name, _plain(value)) for name, value in facts.items()]),
        ]
    )


def _as_markdown(record: Record, one: Shown, out: Path) -> str:
    if one.table is not None:
        return _exhibit_table(one)
    if one.code is not None:
        return cells.markdown([Cell("code", one.code, 1)]).replace(
            "```python", f"```{one.language}", 1
        )
    content = record.picture(one)
    name = str(one.file)
    if name.endswith(".svg"):
        content = standalone(content.decode()).encode()
    write_whole(out / name, content)
    return f"![{_line(one.caption).replace('[', '(').replace(']', ')')}]({name})"


def _as_data(record: Record, one: Shown) -> dict[str, str]:
    if one.table is not None:
        return {"text/markdown": _exhibit_table(one)}
    if one.code is not None:
        return {"text/plain": one.code}
    content = record.picture(one)
    suffix = str(one.file).rpartition(".")[2]
    if suffix == "svg":
        return {"image/svg+xml": standalone(content.decode())}
    return {f"image/{suffix}": base64.b64encode(content).decode("ascii")}


def _exhibit_table(one: Shown) -> str:
    table: Mapping[str, Any] = one.table or {}
    rows = [[wording.number(cell) for cell in row] for row in table["rows"]]
    return _table(table["columns"], rows)


def _table(columns: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    rows = list(rows)
    if not rows:
        return ""
    lines = [list(columns), ["---"] * len(list(rows[0])), *rows]
    return "\n".join("| " + " | ".join(map(_in_table, line)) + " |" for line in lines)


def _in_table(cell: Any) -> str:
    return _line(str(cell)).replace("|", "\\|")


def _line(text: str) -> str:
    """One line in which nothing is taken for HTML."""
    return " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;")


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _heading(one: Shown) -> str:
    after = "" if one.step is None else f", after step {one.step:,}"
    of = f" of {one.of}" if one.of and one.role != "metrics" else ""
    return _line(f"{one.title}{of}{after}")


def _config(record: Record) -> str:
    """The configuration as arguments, where it is not the default."""
    flags = record.document["flags"]
    defaults = {flag["name"].lstrip("-").replace("-", "_"): flag["default"] for flag in flags}
    given = record.document.get("config") or {}
    words = []
    for name, value in given.items():
        if name in defaults and defaults[name] != value:
            words.append(f"{name}={tuple(value) if isinstance(value, list) else value!r}")
    return ", ".join(words)


def _cell(kind: str, text: str, outputs: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": outputs or []}
    return cell


def _output(data: dict[str, str]) -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {}, "data": data}
