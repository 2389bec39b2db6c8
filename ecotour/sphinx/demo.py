"""The directive ``ecotour-demo``: a demo's source, and what a recorded run of it showed.

::

    .. ecotour-demo:: gan
       :parts: verdict, metrics, views
       :show: samples

``:parts:``
    Which of `PARTS`, in this order; all by default. One part alone has no heading.
``:show:``
    Of pictures and tables only those with these names, in this order; likewise of metrics.
    Names that have a comma in them are parted by semicolons.
``:section:``
    Of the source only what stands under this heading.
``:record:``
    The record's directory, if it is not the one of that name in ``ecotour_records``.
``:no-headings:``
    No headings, also for several parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from ecotour.authoring import cells
from ecotour.errors import EcotourError
from ecotour.sphinx import prose, tables
from ecotour.sphinx.pictures import Pictures
from ecotour.trust import records
from ecotour.trust.records import Record, Shown

PARTS = {
    "about": "What it teaches",
    "verdict": "The verdict",
    "metrics": "What was reported",
    "views": "Along the way",
    "exhibits": "What the verdict stands on",
    "ledger": "Where the time went",
    "source": "The source",
    "flags": "Its flags",
    "provenance": "Where this comes from",
}

logger = logging.getLogger(__name__)


def _names(argument: str | None) -> list[str]:
    sign = ";" if ";" in (argument or "") else ","
    return [name.strip() for name in (argument or "").split(sign) if name.strip()]


class DemoDirective(SphinxDirective):
    """See the module."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "parts": _names,
        "show": _names,
        "section": directives.unchanged_required,
        "record": directives.unchanged_required,
        "no-headings": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Lay the parts out."""
        parts = self.options.get("parts") or list(PARTS)
        unknown = [part for part in parts if part not in PARTS]
        if unknown:
            raise self.error(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}")
        try:
            record = self._record()
        except EcotourError as error:
            name = self.arguments[0]
            logger.warning(
                "%s; make one with `ecotour record %s`", error, name,
                type="ecotour", subtype="record", location=self.get_location(),
            )  # fmt: skip
            text = f"No run of {name} has been recorded yet."
            return [nodes.paragraph("", text, classes=["ecotour-missing"])]
        headings = len(parts) > 1 and "no-headings" not in self.options
        found: list[nodes.Node] = []
        for part in parts:
            content = list(getattr(self, f"_{part}")(record))
            if not content:
                continue
            box = nodes.container("", *content, classes=["ecotour", f"ecotour-{part}"])
            # a section must not lie in a box: what has headings of its own stands by itself
            inside: list[nodes.Node] = content if part == "source" else [box]
            if headings:
                inside = [prose.section(self, PARTS[part], f"{self.arguments[0]}-{part}", inside)]
            found += inside
        return found

    def _record(self) -> Record:
        given = self.options.get("record")
        if given is None:
            base = Path(self.env.srcdir) / self.config.ecotour_records
            path = base / self.arguments[0]
        else:
            path = Path(self.env.relfn2path(given)[1])
        self.env.note_dependency(str(path / "record.json"))
        record = records.read(path)
        for file in record.files:
            self.env.note_dependency(str(file))
        self._pictures = Pictures(self, record)
        return record

    def _about(self, record: Record) -> Iterator[nodes.Node]:
        for key in ("about", "teaches"):
            if record.document.get(key):
                yield nodes.paragraph("", record.document[key])

    def _verdict(self, record: Record) -> Iterator[nodes.Node]:
        yield from tables.verdict(record.document)

    def _metrics(self, record: Record) -> Iterator[nodes.Node]:
        chosen = self._chosen(record, "metrics")
        if chosen:
            yield self._pictures.beside(chosen)
        if record.document.get("left_out") and "show" not in self.options:
            text = f"Not kept here: {'; '.join(record.document['left_out'])}."
            yield nodes.paragraph("", text, classes=["ecotour-quiet"])

    def _views(self, record: Record) -> Iterator[nodes.Node]:
        yield from self._pictures.over_time(self._chosen(record, "view"))

    def _exhibits(self, record: Record) -> Iterator[nodes.Node]:
        for one in self._chosen(record, "verdict"):
            yield self._pictures.figure(one, titled=True)

    def _ledger(self, record: Record) -> Iterator[nodes.Node]:
        yield from tables.ledger(record.document)

    def _flags(self, record: Record) -> Iterator[nodes.Node]:
        yield from tables.flags(record.document)

    def _provenance(self, record: Record) -> Iterator[nodes.Node]:
        yield from tables.provenance(record.document)
        file = self._file(record)
        if file is not None:
            yield nodes.paragraph("", "", *prose.source_link(self, record, file))

    def _source(self, record: Record) -> Iterator[nodes.Node]:
        file = self._file(record)
        if file is None:
            raise self.error(f"the source of {self.arguments[0]} is not at hand: install it")
        self.env.note_dependency(str(file))
        try:
            found = cells.split(file.read_text(encoding="utf-8"))
            if wanted := self.options.get("section"):
                found = cells.section(found, wanted)[1:] or []
        except KeyError as error:
            headings = "; ".join(error.args[0])
            raise self.error(f"{file.name} has no heading {wanted!r}; it has: {headings}") from None
        except ValueError as error:
            raise self.error(f"{file.name} {error}") from None
        yield from prose.parse(self, cells.markdown(found, top=1), file)

    def _file(self, record: Record) -> Path | None:
        try:
            return record.source()
        except EcotourError:
            return None

    def _chosen(self, record: Record, role: str) -> list[Shown]:
        found = [one for one in record.shown if one.role == role]
        names = self.options.get("show")
        if names is None:
            return found
        known = {one.name for one in record.shown}
        for name in names:
            if name not in known:
                raise self.error(
                    f"the record of {self.arguments[0]} shows no {name!r}; "
                    f"it shows {', '.join(sorted(known)) or 'nothing'}"
                )
        return sorted((o for o in found if o.name in names), key=lambda o: names.index(o.name))
