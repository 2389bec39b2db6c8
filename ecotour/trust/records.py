"""What the documentation keeps of a run: small, reviewable, without a trace of the machine's paths.

::

    record.json      what was run and what came of it: verdict, ledger, versions, tables, texts
    metrics.jsonl    the reported metrics, thinned out
    *.svg *.png *.gif  the pictures, named in record.json

A record is made of a run's directory by `ecotour.trust.keep`, laid out by `ecotour.sphinx`,
exported by `ecotour.authoring.export`, and compared with a new run by `ecotour.trust.drift`.
This module reads it; neither JAX nor a plugin is needed for that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecotour.errors import RecordError

SCHEMA = 1
KIND = "ecotour documentation record"
DEFAULT_DIRECTORY = Path("docs/records")


@dataclass(frozen=True)
class Shown:
    """One thing that a demo showed.

    Attributes:
        name: What the demo calls it; for curves of metrics, the metric's name.
        of: The named step that showed it, or ``None`` for the verdict.
        step: After which step, or ``None``.
        role: ``view`` (along the way), ``metrics`` (curves of what was reported) or ``verdict``.
        caption: One sentence.
        file: The picture's file in the record, or nothing.
        pixelated: Whether the picture is made of large pixels that must stay sharp.
        table: ``columns`` and ``rows``, where it is a table.
        code: The text, where it is one.
        language: Of ``code``, as Pygments calls it.
    """

    name: str
    role: str
    caption: str
    of: str | None = None
    step: int | None = None
    file: str | None = None
    pixelated: bool = False
    table: Mapping[str, Any] | None = None
    code: str | None = None
    language: str = "text"

    @property
    def title(self) -> str:
        """A heading."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Record:
    """A record that was read.

    Attributes:
        path: Its directory.
        document: What ``record.json`` holds.
        shown: The exhibits in order.
    """

    path: Path
    document: Mapping[str, Any]
    shown: tuple[Shown, ...]

    @property
    def files(self) -> list[Path]:
        """All files that the record consists of."""
        names = {one.file for one in self.shown if one.file}
        return [self.path / name for name in ("record.json", "metrics.jsonl", *sorted(names))]

    def source(self) -> Path:
        """The file with the demo's hook, as it is now.

        Raises:
            PluginError: It is not at hand.
        """
        from ecotour.errors import PluginError
        from ecotour.trust.sources import module_file

        if self.document.get("module"):
            return module_file(str(self.document["module"]))
        file = Path(os.path.normpath(self.path / str(self.document.get("file"))))
        if not file.is_file():
            raise PluginError(f"{file} is not there, of which {self.path} is a record")
        return file

    def picture(self, one: Shown) -> bytes:
        """The content of an exhibit's file.

        Raises:
            RecordError: It is not there.
        """
        try:
            file = self.path / str(one.file)
            return file.read_bytes()
        except OSError as error:
            raise RecordError(f"cannot read {file}: {error.strerror}") from None

    def rows(self) -> list[dict[str, Any]]:
        """The kept rows of ``metrics.jsonl``.

        Raises:
            RecordError: A row is damaged.
        """
        from ecotour.rundir.metric_rows import read_rows

        rows, damaged = read_rows(self.path)
        if damaged:
            raise RecordError(damaged[0])
        return rows


def read(path: Path) -> Record:
    """Read the record in ``path``.

    Raises:
        RecordError: There is none, or it cannot be understood.
    """
    file = path / "record.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise RecordError(f"{path} holds no record: there is no record.json in it") from None
    except OSError as error:
        raise RecordError(f"cannot read {file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file} is damaged: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise RecordError(f"{file} is no record made by `ecotour record`")
    if document.get("schema") != SCHEMA:
        found = document.get("schema")
        raise RecordError(f"{file} has schema {found}, and this ecotour reads schema {SCHEMA}")
    try:
        shown = tuple(Shown(**one) for one in document["exhibits"])
        for one in shown:
            if one.file and Path(one.file).name != one.file:
                raise ValueError(f"{one.file!r} is no plain file name")
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{file} is damaged: {error}") from None
    return Record(path, document, shown)


def find(directory: Path) -> list[Path]:
    """The records in ``directory``, by name."""
    return sorted(file.parent for file in directory.glob("*/record.json"))
