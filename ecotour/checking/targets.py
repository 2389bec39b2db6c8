"""From what a user names to a subject: an installed demo, a file, or a demo at hand."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ecotour.checking.subject import Subject
from ecotour.contract.demo import Demo
from ecotour.discovery import registry


def is_file(target: str) -> bool:
    """Whether a user means a file and not a name."""
    return target.endswith(".py") or "/" in target or "\\" in target


def subject_for(
    target: str,
    flags: Sequence[str] = (),
    *,
    disable: Sequence[str] = (),
    provider: str | None = None,
) -> Subject:
    """The demo that a user named.

    Raises:
        EcotourError: There is none of that name, or it cannot be asked for.
    """
    if is_file(target):
        path = Path(target).resolve()
        if str(path.parent) not in sys.path:  # `load_file` would, which is none of the demo's doing
            sys.path.insert(0, str(path.parent))

        def load_file() -> tuple[registry.Entry, Demo]:
            return registry.load_file(path)

        return Subject(load_file, flags, own=lambda file: Path(file) == path)
    entry = registry.pick(target, disable, provider)

    def load() -> tuple[registry.Entry, Demo]:
        return entry, registry.load(entry)

    return Subject(load, flags, own=files_of(entry.module))


def subject_of(demo: Demo, flags: Sequence[str] = ()) -> Subject:
    """A demo at hand."""
    file = demo.build.__code__.co_filename if hasattr(demo.build, "__code__") else ""
    entry = registry.Entry(Path(file).stem or "demo", file or "a demo at hand", registry.FILE, "")
    return Subject(lambda: (entry, demo), flags, own=lambda other: bool(file) and other == file)


def files_of(module: str) -> Callable[[str], bool]:
    """Whether a source file belongs to the distribution's package (or module) of ``module``."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    places = [*(spec.submodule_search_locations or ())] if spec else []
    single = spec.origin if spec and not places else None

    def own(file: str) -> bool:
        return file == single or any(Path(file).is_relative_to(place) for place in places)

    return own


def found_at_discovery(target: str) -> list[str]:
    """What looking for demos has imported. Called before anything else is imported."""
    before = set(sys.modules)
    module = next((e.module for e in registry.find() if e.name == target), "")
    heavy = {"jax", "numpy", "tensorflow", "torch", *filter(None, [module])}
    # sitecustomize and .pth files come before us, so what is there already counts too
    return sorted(heavy & (set(sys.modules) | before))
