"""What only this site needs: reference of the commands, diagram of the layers, benchmarks."""

from __future__ import annotations

import argparse
import html
import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from ecotour.cli.parser import COMMANDS, make_parser
from ecotour.sphinx import tables


class Commands(SphinxDirective):
    """``house-commands``: every command with its arguments and flags, from the parser itself."""

    def run(self) -> list[nodes.Node]:
        """Make a section for each command."""
        _, commands = make_parser()
        return [self._command(name, commands.choices[name]) for name in COMMANDS]

    def _command(self, name: str, parser: argparse.ArgumentParser) -> nodes.section:
        title = f"ecotour {name}"
        usage = parser.format_usage().removeprefix("usage: ").strip()
        section = nodes.section("", nodes.title(title, title), names=[title])
        section += nodes.paragraph("", (parser.description or "").rstrip())
        section += nodes.literal_block(usage, usage, language="text")
        rows = [
            (nodes.literal("", invocation(action)), action.help or "")
            for action in parser._actions
            if action.dest != "help"
        ]
        section += nodes.container("", tables.table(("", ""), rows), classes=["ecotour"])
        self.state.document.note_implicit_target(section, section)
        return section


def invocation(action: argparse.Action) -> str:
    """How an argument is written, as the help has it."""
    choices = "{" + "|".join(map(str, action.choices)) + "}" if action.choices else ""
    value = action.metavar or choices
    if not action.option_strings:
        return str(value or action.dest)
    return " ".join(filter(None, [", ".join(action.option_strings), str(value or "")]))


class Layers(SphinxDirective):
    """``house-layers``: one line a layer, ``title: module, module``; ``|`` parts what is apart.

    A module may import from its own box and from lower lines, never from above nor from beside
    itself. A test reads the same lines and holds the code to them.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw the layers from top to bottom."""
        rows = []
        for layer in read_layers(list(self.content)):
            boxes = "".join(
                f"<div><b>{html.escape(title)}</b><span>{html.escape(names)}</span></div>"
                for title, names in ((title, ", ".join(modules)) for title, modules in layer)
            )
            rows.append(f'<div class="house-layer">{boxes}</div>')
        arrow = '<div class="house-down" aria-hidden="true">↓</div>'
        text = f'<div class="house-layers">{arrow.join(rows)}</div>'
        return [nodes.raw("", text, format="html")]


class Benchmarks(SphinxDirective):
    """``house-benchmarks FILE``: the table that ``python tests/benchmarks --json FILE`` saved."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Say when and on what it was measured, and show the rows."""
        relative, file = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        found = json.loads(Path(file).read_text(encoding="utf-8"))
        machine = found["machine"]
        facts = f"{found['date']}, {machine['processor']}, {machine['cores']} cores, "
        facts += ", ".join(f"{name} {machine[name]}" for name in ("python", "jax", "dm-haiku"))
        facts += f"; load before: {found['load_before'][0]}"
        rows = [
            (row["what"], row["against"], row["ours"], row["theirs"], _ratio(row), row["want"])
            for row in found["table"]
        ]
        columns = ("what", "against", "ours", "theirs", "ratio", "wanted")
        numeric = (False, False, True, True, True, False)
        shown = nodes.container("", tables.table(columns, rows, numeric), classes=["ecotour"])
        return [nodes.paragraph("", facts), shown]


def _ratio(row: dict[str, Any]) -> str:
    spread = "" if row["low"] is None else f" ({row['low']:.3f} to {row['high']:.3f})"
    return f"{row['ratio']:.3f}{spread}"


def read_layers(lines: list[str]) -> list[list[tuple[str, list[str]]]]:
    """Each line as its boxes: title and modules."""
    layers = []
    for line in lines:
        if line.strip():
            boxes = [box.partition(":") for box in line.split("|")]
            layers.append(
                [(t.strip(), [m.strip() for m in names.split(",")]) for t, _, names in boxes]
            )
    return layers


def readable(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str
) -> tuple[str, str] | None:
    """Write the default of a mapping as one: Python has no word for what a dataclass makes anew."""
    if signature and "<factory>" in signature:
        return signature.replace("<factory>", "{}"), returns
    return None


def setup(app: Any) -> dict[str, bool]:
    """Add the directives."""
    app.setup_extension("sphinx.ext.autodoc")  # the event is its own, whoever is set up first
    app.connect("autodoc-process-signature", readable)
    app.add_directive("house-commands", Commands)
    app.add_directive("house-layers", Layers)
    app.add_directive("house-benchmarks", Benchmarks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
