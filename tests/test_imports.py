"""Imports go one way: what a module of the core may know, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ecotour

CORE = Path(ecotour.__file__).parent
MODULES = sorted(CORE.rglob("*.py"))
LATE_ONLY = {"haiku", "rlax", "jraph", "tensorflow", "tensorflow_datasets", "orbax", "matplotlib"}
LEAVES = {"demo", "exhibits", "events", "errors"}


def imports(path: Path, *, late: bool) -> Iterator[str]:
    """Full names imported by a module: at its top level, or (late) anywhere; not for types only."""
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not late:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        todo.extend(ast.iter_child_nodes(node))


def name(path: Path) -> str:
    return ".".join(path.relative_to(CORE).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_heavy_libraries_are_imported_late_and_plugins_never(path: Path) -> None:
    top = {full.partition(".")[0] for full in imports(path, late=False)}
    if not name(path).startswith("datasets.decode"):  # a program of its own, in its own process
        assert not top & LATE_ONLY
    anywhere = {full.partition(".")[0] for full in imports(path, late=True)}
    assert not {full for full in anywhere if full.startswith("ecotour_")}


@pytest.mark.parametrize("path", [p for p in MODULES if name(p) in LEAVES], ids=name)
def test_the_contract_knows_nothing_else_of_ours(path: Path) -> None:
    ours = {full for full in imports(path, late=True) if full.startswith("ecotour.")}
    allowed = {f"ecotour.{leaf}" for leaf in (*LEAVES, "plan")}
    assert {".".join(full.split(".")[:2]) for full in ours} <= allowed


def test_the_runner_knows_no_sink_and_sinks_know_no_runner() -> None:
    for path in MODULES:
        found = set(imports(path, late=True))
        where = name(path)
        if where in ("runner", "named_step", "progress", "drivers", "feed", "stages", "ledger"):
            assert not {f for f in found if f.startswith(("ecotour.sinks", "ecotour.cli"))}, where
        if where.startswith("sinks"):
            assert not {
                f for f in found if f.startswith(("ecotour.running.runner", "ecotour.cli"))
            }, where
        if not where.startswith("cli") and where not in ("__main__", "testing", "pytest_plugin"):
            assert not {f for f in found if f.startswith("ecotour.cli")}, where


def test_every_public_name_can_be_had_from_the_package() -> None:
    for public in ecotour.__all__:
        assert getattr(ecotour, public) is not None
    assert set(dir(ecotour)) == set(ecotour.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Demi'"):
        _ = ecotour.Demi
