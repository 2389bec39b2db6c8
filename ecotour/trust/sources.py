"""The source of a demo: found without importing it, and the fingerprint of what it does.

A fingerprint is the SHA-256 of a file's lines without comments, docstrings, blank lines and
trailing space. So a page's prose can be mended without a new run, and nothing else can.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import tokenize
from pathlib import Path

from ecotour.errors import PluginError


def module_file(module: str) -> Path:
    """The file of ``module``, a name with dots; neither it nor its packages are imported.

    Raises:
        PluginError: There is none.
    """
    top, *rest = module.split(".")
    root = _root(top)
    if root is not None:
        if not rest and root.is_file():
            return root
        place = root.joinpath(*rest)
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    raise PluginError(f"there is no source of module {module!r}: install its distribution")


def fingerprints(file: Path, module: str | None = None) -> dict[str, str]:
    """The fingerprint of every Python file that a demo consists of, by its path in the package.

    Args:
        file: The file with the demo's hook.
        module: The name of its module, where it belongs to a package, all of which counts.

    Raises:
        PluginError: A file cannot be read as Python.
    """
    if module is None or "." not in module:
        return {file.name: fingerprint(file)}
    root = file.parents[module.count(".") - 1]
    found = sorted(path for path in root.rglob("*.py") if "__pycache__" not in path.parts)
    return {path.relative_to(root.parent).as_posix(): fingerprint(path) for path in found}


def fingerprint(file: Path) -> str:
    """The fingerprint of one file, as 64 hexadecimal digits.

    Raises:
        PluginError: It cannot be read as Python.
    """
    try:
        text = file.read_text(encoding="utf-8")
        return hashlib.sha256(essence(text).encode()).hexdigest()
    except (OSError, ValueError, SyntaxError, tokenize.TokenError) as error:
        raise PluginError(f"{file} cannot be read as Python: {error}") from error


def essence(source: str) -> str:
    """``source`` without what Python does not act upon."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str())):  # a docstring, or a text that nobody uses
                for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                    lines[number] = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line = lines[token.start[0] - 1]
            lines[token.start[0] - 1] = line[: token.start[1]]
    return "\n".join(line.rstrip() for line in lines if line.strip()) + "\n"


def _root(top: str) -> Path | None:
    """The directory of a package, or the file of a single module."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    for place in spec.submodule_search_locations or ():
        if Path(place).is_dir():
            return Path(place)
    return Path(spec.origin) if spec.origin else None
