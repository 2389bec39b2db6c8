"""The record of a run, ``run.json``: written whole or not at all, and read back.

Its JSON is strict: a number that is not finite is ``null``, and ``nonfinite`` names its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ecotour.errors import RecordError
from ecotour.rundir import schema
from ecotour.rundir.files import write_whole
from ecotour.rundir.strict_json import to_json

SCHEMA = 1


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Write the record of the run in ``path``.

    Raises:
        OSError: It could not be written; it is as it was.
    """
    write_whole(path / "run.json", (to_json(record, indent=1) + "\n").encode(), durable=True)


def read(path: Path) -> dict[str, Any]:
    """The record of the run in ``path``, with ``run_dir`` as the directory is called now.

    Raises:
        RecordError: There is none, or it cannot be understood.
    """
    file = path / "run.json"
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"{path} holds no run: there is no run.json in it") from None
    except NotADirectoryError:
        raise RecordError(f"{path} is not a run's directory") from None
    except OSError as error:
        raise RecordError(f"cannot read {file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file} is damaged: {error}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else "none"
        raise RecordError(f"{file} has schema {found}, and this ecotour reads schema {SCHEMA}")
    if said := schema.fault(record):
        raise RecordError(f"{file} is damaged: {said}")
    return record | {"run_dir": str(path)}
