"""No package here imports itself in a circle: not late, and not for the type checker alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / "ecotour", *sorted(ROOT.glob("plugins/*/ecotour_*"))]


def modules_of(package: Path) -> dict[str, Path]:
    """The file of each module, by its name with dots."""
    found = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(file: Path, name: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """Which of ``modules`` the one called ``name`` imports, anywhere in its file."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names if alias.name in modules)
            case ast.ImportFrom(module, names, level):
                package = name if file.name == "__init__.py" else name.rpartition(".")[0]
                base = resolve_name("." * level + (module or ""), package)
                for alias in names:
                    submodule = f"{base}.{alias.name}"
                    if submodule in modules:
                        yield submodule
                    elif base in modules:
                        yield base


def circle_in(package: Path) -> list[str]:
    """The modules of one circle, the first once more at the end; empty where there is none."""
    modules = modules_of(package)
    graph = {name: set(imports(file, name, modules)) for name, file in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))  # graphlib names the imported one first
    return []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_imports_itself_in_no_circle(package: Path) -> None:
    circle = circle_in(package)
    assert not circle, f"each of these imports the next: {' -> '.join(circle)}"


@pytest.mark.parametrize(
    ("late", "circle"),
    [
        ("def f():\n    from p.inner import a", ["p.inner.a", "p.inner.b"]),
        ("if TYPE_CHECKING:\n    import p.inner.a", ["p.inner.a", "p.inner.b"]),
        ("from . import a", ["p.inner.a", "p.inner.b"]),
        ("from .a import x", ["p.inner.a", "p.inner.b"]),
        ("from p import inner", ["p.inner", "p.inner.b"]),
        ("from .. import inner", ["p.inner", "p.inner.b"]),
        ("from p.inner.b import y", ["p.inner.b"]),
        ("import os, p\nfrom os import path\nfrom p import x", []),
    ],
)  # fmt: skip
def test_a_circle_is_found_however_it_is_written(
    late: str, circle: list[str], tmp_path: Path
) -> None:
    package = tmp_path / "p"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("x = 1\n")
    (package / "inner" / "__init__.py").write_text("from p.inner.b import y\n")
    (package / "inner" / "a.py").write_text("from p.inner import b\nx = b.y\n")
    (package / "inner" / "b.py").write_text(f"y = 1\n{late}\n")
    found = circle_in(package)
    assert set(found) == set(circle)
    assert found[:1] == found[-1:]
