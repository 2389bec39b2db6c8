"""Imports go one way: what a module of the core may know, read from its source."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import ecotour

CORE = Path(ecotour.__file__).parent
MODULES = sorted(CORE.rglob("*.py"))
LATE_ONLY = {"haiku", "rlax", "jraph", "tensorflow", "tensorflow_datasets", "orbax", "matplotlib"}


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


def test_the_root_holds_public_names_and_entries_alone() -> None:
    """Everything else has a room."""
    assert {path.stem for path in CORE.glob("*.py")} == {
        "__init__", "__main__", "demo", "errors", "events", "exhibits", "hookspecs",
        "pytest_plugin", "testing",
    }  # fmt: skip
    for thin in ("demo", "events", "exhibits", "hookspecs"):
        public = importlib.import_module(f"ecotour.{thin}")
        real = importlib.import_module(f"ecotour.contract.{thin}")
        own = {n for n, v in vars(real).items() if getattr(v, "__module__", "") == real.__name__}
        assert own - {n for n in own if n.startswith("_")} <= set(public.__all__), thin
        assert all(getattr(public, each) is getattr(real, each) for each in public.__all__)


def test_every_public_name_can_be_had_from_the_package() -> None:
    for public in ecotour.__all__:
        assert getattr(ecotour, public) is not None
    assert set(dir(ecotour)) == set(ecotour.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Demi'"):
        _ = ecotour.Demi
