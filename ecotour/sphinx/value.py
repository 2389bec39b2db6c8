"""The role ``ecotour-value``: a number of a recorded run, within a sentence.

::

    They have a score of :ecotour-value:`gan; classifier score; .1f`.

A demo, then the name of a check or ``STEP.METRIC`` (its last value), then how to write it, as in
Python's format specifications; ``.3g`` by default. The parts stand between semicolons, since names
have commas and colons in them. A sentence like this cannot say what the record does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from ecotour.errors import EcotourError, UnknownNameError, UsageError
from ecotour.trust import records
from ecotour.trust.records import Record

logger = logging.getLogger(__name__)


class ValueRole(SphinxRole):
    """See the module."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Put the number there; what cannot be found is a warning."""
        try:
            return [nodes.Text(self._written())], []
        except EcotourError as error:
            logger.warning(
                "%s", error, type="ecotour", subtype="value", location=self.get_location()
            )
            return [nodes.literal(self.rawtext, self.text)], []

    def _written(self) -> str:
        demo, *rest = (part.strip() for part in self.text.split(";"))
        if len(rest) not in (1, 2):
            raise UsageError(f"{self.text!r}: write DEMO; NAME or DEMO; NAME; FORMAT")
        path = Path(self.env.srcdir) / self.config.ecotour_records / demo
        self.env.note_dependency(str(path / "record.json"))
        known = values(records.read(path))
        if rest[0] not in known:
            raise UnknownNameError(f"value of {demo}", rest[0], known)
        form = rest[1] if len(rest) == 2 else ".3g"
        try:
            return format(known[rest[0]], form)
        except (TypeError, ValueError) as error:  # null, where it was not finite
            value = known[rest[0]]
            raise UsageError(
                f"{rest[0]} of {demo} is {value!r}, not to be written as {form!r}"
            ) from error


def values(record: Record) -> dict[str, Any]:
    """What can be written: the values of the checks, and the last ones of the metrics."""
    last = record.document.get("metrics") or {}
    found = {f"{of}.{name}": value for of, row in last.items() for name, value in row.items()}
    return found | {check["name"]: check["value"] for check in record.document.get("checks") or ()}
