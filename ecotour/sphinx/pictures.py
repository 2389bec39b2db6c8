"""What a demo showed, as nodes: drawings in the page's own colours, pixels as images."""

from __future__ import annotations

from collections.abc import Sequence

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from ecotour.drawing import wording
from ecotour.sphinx import tables
from ecotour.sphinx.addresses import relative
from ecotour.trust.records import Record, Shown


class Pictures:
    """Makes figures of the exhibits of one record."""

    def __init__(self, directive: SphinxDirective, record: Record) -> None:
        """Make them for the page that ``directive`` stands on."""
        self._directive, self._record = directive, record

    def figure(self, one: Shown, caption: str | None = None, *, titled: bool = False) -> nodes.Node:
        """One exhibit with its caption; a table stays a table, and code stays code."""
        below = nodes.caption("", "")
        if titled:
            below += [nodes.strong("", f"{one.title}."), nodes.Text(" ")]
        below += nodes.Text(one.caption if caption is None else caption)
        if one.table is not None:
            return nodes.container(
                "", tables.exhibit(one.table), below, classes=["ecotour-exhibit"]
            )
        if one.code is not None:
            # a demo's text need not be flawless in its language: what cannot be read stays plain
            language = one.language if _is_lexer(one.language) else "text"
            block = nodes.literal_block(one.code, one.code, language=language, force=True)
            return nodes.container("", block, below, classes=["ecotour-exhibit"])
        classes = ["ecotour-figure", *(["ecotour-pixels"] if one.pixelated else [])]
        return nodes.figure("", self.picture(one), below, classes=classes)

    def picture(self, one: Shown) -> nodes.Node:
        """The picture alone."""
        if str(one.file).endswith(".svg"):
            # in the page itself, where it sees the page's colours
            return nodes.raw("", self._record.picture(one).decode("utf-8"), format="html")
        address = relative(self._directive, self._record.path / str(one.file))
        return nodes.image("", uri=address, alt=one.caption)

    def beside(self, shown: Sequence[Shown]) -> nodes.Node:
        """Figures side by side where there is room."""
        return nodes.container("", *map(self.figure, shown), classes=["ecotour-beside"])

    def over_time(self, shown: Sequence[Shown]) -> list[nodes.Node]:
        """Each thing that was shown along the way: earlier moments small, the last one large."""
        series: dict[tuple[str | None, str], list[Shown]] = {}
        for one in shown:
            series.setdefault((one.of, one.name), []).append(one)
        found: list[nodes.Node] = []
        names = [name for _, name in series]
        for (of, name), moments in series.items():
            *earlier, last = moments
            if earlier:
                small = [self.figure(one, _when(one)) for one in earlier]
                found.append(nodes.container("", *small, classes=["ecotour-moments"]))
            caption = f"{_when(last)}: {last.caption}" if earlier else last.caption
            if names.count(name) > 1:  # several named steps show it, maybe in the same words
                caption = f"{of}: {caption}"
            found.append(self.figure(last, caption))
        return found


def _is_lexer(language: str) -> bool:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        get_lexer_by_name(language)
    except ClassNotFound:
        return False
    return True


def _when(one: Shown) -> str:
    return f"After step {wording.number(one.step)}" if one.step else "Before the first step"
