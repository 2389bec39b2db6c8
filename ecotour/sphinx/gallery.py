"""The directive ``ecotour-gallery``: cards with a picture, one for each recorded demo.

::

    .. ecotour-gallery::

       gan  tour/gan
       optax  tour/optax

Each line is a demo's name and the page that a card leads to. A demo without a record has a card
without a picture.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from ecotour.drawing import account
from ecotour.errors import EcotourError
from ecotour.sphinx.pictures import Pictures
from ecotour.trust import records
from ecotour.trust.records import Record, Shown

SMALL_SVG = 60_000

logger = logging.getLogger(__name__)


class GalleryDirective(SphinxDirective):
    """See the module."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the cards."""
        cards = []
        for line in self.content:
            words = line.split()
            if not words:
                continue
            if len(words) != 2:
                raise self.error(f"{line!r}: a line of a gallery is a demo's name and a page")
            cards.append(self._card(*words))
        if not cards:
            raise self.error("a gallery needs a line for each demo: its name and a page")
        return [nodes.container("", *cards, classes=["ecotour", "ecotour-gallery"])]

    def _card(self, name: str, page: str) -> nodes.Node:
        path = Path(self.env.srcdir) / self.config.ecotour_records / name
        self.env.note_dependency(str(path / "record.json"))
        title = self._link(name, page)
        try:
            record = records.read(path)
        except EcotourError as error:
            logger.warning(
                "%s; make one with `ecotour record %s`", error, name,
                type="ecotour", subtype="record", location=self.get_location(),
            )  # fmt: skip
            words = nodes.paragraph("", "No run has been recorded yet.")
            return nodes.container("", title, words, classes=["ecotour-card"])
        inside: list[nodes.Node] = []
        cover = cover_of(record)
        if cover is not None:
            self.env.note_dependency(str(path / str(cover.file)))
            classes = ["ecotour-cover", *(["ecotour-pixels"] if cover.pixelated else [])]
            picture = Pictures(self, record).picture(cover)
            inside.append(nodes.container("", picture, classes=classes))
        verdict = account.verdict(record.document)
        inside += [
            title,
            nodes.paragraph("", str(record.document.get("about") or "")),
            nodes.paragraph("", verdict, classes=["ecotour-quiet"]),
        ]
        return nodes.container("", *inside, classes=["ecotour-card"])

    def _link(self, name: str, page: str) -> nodes.Node:
        link = addnodes.pending_xref(
            "",
            nodes.inline("", name),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{page.lstrip('/')}",
            refexplicit=True,
            refdoc=self.env.docname,
            refwarn=True,
        )
        self.set_source_info(link)
        return nodes.paragraph("", "", link, classes=["ecotour-card-title"])


def cover_of(record: Record) -> Shown | None:
    """The picture that stands for a demo: its last pixels, else its smallest drawing."""
    pictures = [one for one in record.shown if one.file]
    pixels = [one for one in pictures if one.pixelated and one.role == "view"]
    if pixels:
        return pixels[-1]
    small = [one for one in pictures if (record.path / str(one.file)).stat().st_size < SMALL_SVG]
    order = {"view": 0, "verdict": 1, "metrics": 2}
    return min(small, key=lambda one: order.get(one.role, 3), default=None)
