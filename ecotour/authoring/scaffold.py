"""A new plugin from the templates: names made fit, or refused with the reason."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ecotour.discovery import registry
from ecotour.errors import UsageError
from ecotour.machine import names
from ecotour.machine.version import __version__

FILES = {
    "pyproject.toml": "pyproject.toml.j2",
    "README.md": "README.md.j2",
    "{module}/__init__.py": "__init__.py.j2",
    "{module}/demo.py": "demo.py.j2",
    "tests/test_{module}.py": "test.py.j2",
}
"""Where each template goes."""


@dataclass(frozen=True)
class Plugin:
    """What was written: the demo's name, its distribution, its module, and where they are."""

    name: str
    distribution: str
    module: str
    directory: Path
    files: tuple[Path, ...]


def module_for(name: str) -> str:
    """The module of a demo called ``name``: ``my-demo`` becomes ``my_demo``.

    Raises:
        UsageError: There can be no such demo here; the message says why.
    """
    if not name.strip():
        raise UsageError("a demo needs a name: ecotour new my-demo")
    if "/" in name or "\\" in name or name in (".", ".."):
        raise UsageError(f"{name!r} is a path, not a name: put it elsewhere with --dir")
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,40}", name):
        raise UsageError(
            f"{name!r} cannot be a demo's name: use small letters, digits and hyphens, a letter "
            "first, at most 41 of them"
        )
    if names.is_device(name):
        raise UsageError(f"{name!r} is a device to Windows, not a folder: try {name}-demo")
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or keyword.issoftkeyword(module):
        raise UsageError(f"{name!r} is a keyword of Python: try {name}-demo")
    if module in sys.stdlib_module_names:
        raise UsageError(f"{name!r} is a module of Python's own library: try {name}-demo")
    for entry in registry.find():
        if entry.name == name:
            raise UsageError(f"there is a demo {name!r} already, of {entry.provenance}")
    if _importable(module):
        raise UsageError(
            f"a module {module!r} is installed, and the demo's would hide it: try {name}-demo"
        )
    return module


def create(name: str, directory: Path | None = None) -> Plugin:
    """Write a plugin: all of it, or nothing.

    Args:
        name: What users will type.
        directory: Where; new or empty. ``./NAME`` by default.

    Raises:
        UsageError: The name cannot be had, or there is something in the directory already.
    """
    import jinja2

    module = module_for(name)
    target = Path(name) if directory is None else directory
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists and is not empty: choose another place with --dir")
    major, minor = __version__.split(".")[:2]
    values = {
        "name": name,
        "module": module,
        "distribution": f"ecotour-{name.replace('_', '-')}",
        "contract": f"{major}.{minor}",
        "next_contract": f"{major}.{int(minor) + 1}" if major == "0" else str(int(major) + 1),
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates" / "plugin"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # Python and TOML, and names of small letters only
    )
    files = {
        path.format(module=module): environment.get_template(template).render(values)
        for path, template in FILES.items()
    }
    files[f"{module}/py.typed"] = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            for path, text in files.items():
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_text(text, encoding="utf-8")
            made.chmod(0o755)
            if target.exists():
                target.rmdir()  # it is empty
            made.rename(target)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from error
    written = tuple(target / path for path in files)
    return Plugin(name, values["distribution"], module, target, written)


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False
