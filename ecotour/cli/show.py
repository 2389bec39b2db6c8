"""``ecotour show``: what a demo teaches, its flags, its source."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import sys
from pathlib import Path

from ecotour.cli import process
from ecotour.cli.demo_help import help_text
from ecotour.cli.loading import load
from ecotour.contract import flags
from ecotour.sinks.stream import SafeStream, console, is_coloured, is_live


def main(arguments: argparse.Namespace) -> int:
    """Load the demo and print it; the source last, coloured where there is a terminal."""
    with process.stdout_for_json(arguments.json, is_product=True) as stdout:
        entry, demo = load(arguments.demo, arguments.disable, arguments.provider)
        source = Path(inspect.getsourcefile(demo.build) or "")
        if arguments.json:
            document = {
                "schema": 1,
                **entry._asdict(),
                "summary": demo.summary,
                "teaches": demo.teaches,
                "flags": [dataclasses.asdict(flag) for flag in flags.describe(demo.config)],
                "source": str(source),
            }
            stdout.write(json.dumps(document, indent=1) + "\n")
            return 0
    print(f"{entry.name}: {demo.summary}\n{entry.provenance}\n")
    if demo.teaches:
        import textwrap

        print(textwrap.fill(demo.teaches, 80) + "\n")
    print(help_text(arguments.demo, demo).partition(f"flags of {arguments.demo}:")[2].strip("\n"))
    print(f"\n{source}\n")
    text = source.read_text(encoding="utf-8")
    stream = SafeStream(sys.stdout)
    if not is_coloured(stream):
        print(text)
        return 0
    from rich.syntax import Syntax

    source_code = Syntax(text, "python", theme="ansi_dark", background_color="default")
    console(stream, live=is_live(stream)).print(source_code)
    if isinstance(stream.failure, OSError):
        raise stream.failure
    return 0
