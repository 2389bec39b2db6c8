"""Which of the libraries that are compared with are installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def versions(*names: str) -> dict[str, str]:
    """The version of each that is installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
