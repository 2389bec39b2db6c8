"""``ecotour export``: a run, or a recorded demo, as a Markdown page or a notebook."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from ecotour.cli import resume
from ecotour.cli.loading import build, load
from ecotour.errors import EcotourError, RecordError, UsageError
from ecotour.rundir import record
from ecotour.rundir.strict_json import to_json
from ecotour.trust import keep
from ecotour.trust.identity import identify
from ecotour.trust.records import Record, read


def main(arguments: argparse.Namespace) -> int:
    """Export, and print where it lies."""
    path = Path(arguments.what)
    with tempfile.TemporaryDirectory(prefix="ecotour-export-") as scratch:
        if (path / "run.json").is_file():
            kept, source = _of_run(path, arguments, Path(scratch))
        else:
            kept, source = _of_record(Path(arguments.records) / arguments.what, arguments.what)
        page = _write(kept, source, arguments)
    if arguments.json:
        print(to_json({"schema": 1, "status": "finished", "page": str(page)}, indent=1))
    else:
        print(page)
    return 0


def _of_run(path: Path, arguments: argparse.Namespace, scratch: Path) -> tuple[Record, Path]:
    known = record.read(path)
    name = known.get("source_file") or known.get("demo")
    entry, demo = load(str(name), arguments.disable, None)
    resume.plan_of(known, path, entry, demo, None)  # refuses another configuration
    identity = identify(entry, demo, build(demo, demo.config(), entry.name))
    kept, _ = keep.keep(path, scratch / entry.name, identity)
    source = Path(str(name)) if known.get("source_file") else read(kept).source()
    return read(kept), source


def _of_record(path: Path, name: str) -> tuple[Record, Path]:
    if not path.is_dir():
        raise UsageError(
            f"{name} is neither a run's directory nor a demo recorded in {path.parent}: "
            f"give a run's directory, or make a record with `ecotour record {name}`"
        )
    kept = read(path)
    return kept, kept.source()


def _write(kept: Record, source: Path, arguments: argparse.Namespace) -> Path:
    from ecotour.authoring import export

    name = kept.document["demo"]
    out = Path(arguments.out or f"{name}-{arguments.to}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already and not empty: choose another --out")
    form = export.markdown if arguments.to == "markdown" else export.notebook
    try:
        text = source.read_text(encoding="utf-8")
        out.mkdir(parents=True, exist_ok=True)
        return form(kept, text, out)
    except OSError as error:
        raise RecordError(f"cannot write to {out}: {error.strerror or error}") from error
    except ValueError as error:
        raise EcotourError(f"{source}: {error}") from error
