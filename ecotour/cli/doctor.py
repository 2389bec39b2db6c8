"""``ecotour doctor``: what is here, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from typing import Any

from ecotour.contract.plan import DataChoice
from ecotour.discovery import apart, metadata, registry
from ecotour.errors import EcotourError
from ecotour.machine import backend, environment, variables
from ecotour.machine.version import __version__


def main(arguments: argparse.Namespace) -> int:
    """Print the findings. 0 where a demo can run, 1 where none can."""
    found = examine(arguments.timeout)
    if arguments.json:
        from ecotour.rundir.strict_json import to_json

        print(to_json(found, indent=1))
    else:
        for title, rows in found["sections"].items():
            print(title)
            for name, value in rows.items():
                print(f"  {name:22}{value}")
        print("findings")
        for line in found["findings"] or ["nothing is missing"]:
            print(f"  {line}")
    return 0 if found["can_run"] else 1


def examine(limit_s: float = apart.LIMIT_S) -> dict[str, Any]:
    """Look at versions, devices, caches, data and demos; load each demo for at most ``limit_s``."""
    findings: list[str] = []
    versions = environment.versions()
    for name in ("jax", "jaxlib", "pluggy", "orbax-checkpoint"):
        if versions[name] is None:
            findings.append(f"{name} is missing: pip install {name}")
    faulty = variables.fault()
    findings += [faulty] if faulty else variables.misspelt()
    devices = None if faulty else _devices(findings)
    entries = registry.find()
    if devices is not None:  # else each of them would end over the same
        entries = [apart.proved(entry, limit_s) for entry in entries]
    if not any(entry.name == "gan" for entry in entries):
        findings.append("the flagship is not installed: pip install ecotour-gan")
    for entry in entries:
        if entry.status not in ("ok", "installed"):
            findings.append(f"demo {entry.name} is {entry.status}: {entry.reason}")
    known = {metadata.canonical(entry.distribution) for entry in entries}
    for name, why in metadata.damaged().items():
        if name not in known:
            findings.append(f"the entry points of {name} cannot be read: {why}: reinstall {name}")
    cache = environment.cache_directory()
    if not _writable(cache):
        findings.append(
            f"the cache directory {cache} cannot be written: set ECOTOUR_CACHE_DIR, or each run "
            "compiles anew"
        )
    if versions["tensorflow-datasets"] is None:
        findings.append(
            "--data tfds needs tensorflow-datasets: pip install 'ecotour-gan[tfds]' "
            "(the embedded digits work without)"
        )
    sections = {
        "machine": {
            "ecotour": __version__,
            "python": f"{platform.python_version()} ({sys.executable})",
            "platform": platform.platform(),
            "processor": f"{environment.processor()}, {environment.cores()} cores",
            "devices": devices or "none",
        },
        "versions": {name: version or "missing" for name, version in versions.items()},
        "caches": {
            "directory": cache,
            "compiled programs": _size(cache / "compiled"),
            "datasets": _size(cache / "datasets"),
        },
        "data": {"embedded digits": _digits("embedded", findings)},
        "demos": {entry.name: f"{entry.status} ({entry.provenance})" for entry in entries},
    }
    can_run = devices is not None and any(entry.status == "ok" for entry in entries)
    return {"schema": 1, "can_run": can_run, "findings": findings, "sections": sections}


def _devices(findings: list[str]) -> str | None:
    try:
        import jax

        if fault := backend.fault():
            findings.append(fault)
            return None
        return ", ".join(f"{d} ({d.device_kind})" for d in jax.devices())
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is a finding
        findings.append(f"JAX finds no device: {type(error).__name__}: {error}")
        return None


def _digits(source: DataChoice, findings: list[str]) -> str:
    from ecotour import datasets

    try:
        return str(datasets.load("mnist", "train", source).info)
    except EcotourError as error:
        findings.append(str(error))
        return "missing"


def _writable(directory: Path) -> bool:
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    return os.access(directory, os.W_OK | os.X_OK)


def _size(directory: Path) -> str:
    files = [file for file in directory.rglob("*") if file.is_file()] if directory.is_dir() else []
    return f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB"
