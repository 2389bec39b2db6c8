"""Markdown to docutils' nodes on any page, whatever markup that page is written in."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes, utils
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from ecotour.sphinx.addresses import relative
from ecotour.trust.records import Record


def parse(directive: SphinxDirective, text: str, file: Path) -> list[nodes.Node]:
    """Parse ``text``, Markdown whose highest heading is of level 1, through MyST.

    Its headings become sections of the page; ``file`` is where a warning says the fault is.
    """
    from myst_parser.config.main import MdParserConfig
    from myst_parser.mdit_to_docutils.base import DocutilsRenderer
    from myst_parser.parsers.mdit import create_md_parser

    main = directive.state.document
    settings = copy.copy(main.settings)
    document = utils.new_document(str(file), settings)
    document.reporter = main.reporter
    config = MdParserConfig(enable_extensions={"deflist", "strikethrough"})
    parser = create_md_parser(config, DocutilsRenderer)
    parser.options["document"] = document
    parser.render(text)
    for section in document.findall(nodes.section):
        section["ids"] = []
        main.note_implicit_target(section, section)
    return list(document.children)


def section(
    directive: SphinxDirective, title: str, name: str, content: Sequence[nodes.Node]
) -> nodes.section:
    """A section of the page; ``name`` becomes its address."""
    names = [nodes.fully_normalize_name(name)]
    made = nodes.section("", nodes.title(title, title), *content, names=names)
    directive.state.document.note_implicit_target(made, made)
    return made


def source_link(directive: SphinxDirective, record: Record, file: Path) -> list[nodes.Node]:
    """The source as a download and, where the site says so, at its home."""
    links: list[nodes.Node] = [nodes.Text("The source: ")]
    download = addnodes.download_reference("", "", reftarget=relative(directive, file))
    download += nodes.literal("", file.name)
    links.append(download)
    pattern = directive.config.ecotour_source_url
    if pattern:
        module = str(record.document.get("module") or "")
        depth = module.count(".") + (file.name == "__init__.py")
        path = "/".join(file.parts[-1 - depth :])
        address = pattern.format(path=path, demo=record.document["demo"])
        links += [nodes.Text(", "), nodes.reference("", "at its home", refuri=address)]
    return [*links, nodes.Text(".")]
