"""A Sphinx extension: a demo's own source and a recorded run of it, on a page of any site.

In ``conf.py``::

    extensions = ["ecotour.sphinx"]
    ecotour_records = "records"          # relative to conf.py; made by `ecotour record`
    ecotour_source_url = "https://…/{path}"   # optional: where {path}, as in the package, is shown

and on a page the directives ``ecotour-demo`` (see `ecotour.sphinx.demo`) and ``ecotour-gallery``
(see `ecotour.sphinx.gallery`), and in a sentence the role ``ecotour-value`` (see
`ecotour.sphinx.value`). Neither JAX nor the demo is imported: the source is found through the
metadata of the installed distribution, and all else was recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.drawing import look
from ecotour.machine.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

STYLE = "ecotour.css"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives, the settings and the stylesheet."""
    from ecotour.sphinx.demo import DemoDirective
    from ecotour.sphinx.gallery import GalleryDirective
    from ecotour.sphinx.value import ValueRole

    app.add_config_value("ecotour_records", "records", "env", str)
    app.add_config_value("ecotour_source_url", "", "env", str)
    app.add_directive("ecotour-demo", DemoDirective)
    app.add_directive("ecotour-gallery", GalleryDirective)
    app.add_role("ecotour-value", ValueRole())
    app.add_css_file(STYLE)
    app.connect("builder-inited", _write_style)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}


def style() -> str:
    """The stylesheet: the palette of `ecotour.drawing.look` for light and dark, then the rules.

    Dark is a matter of themes that have it: Furo's and pydata's ways of saying so are known.
    """

    def variables(palette: dict[str, str]) -> str:
        return " ".join(f"--{name}: {colour};" for name, colour in palette.items())

    light, dark = variables(look.LIGHT), variables(look.DARK)
    parts = "\n".join(
        f".ecotour-part-{name} {{ background: {colour}; }}" for name, colour in look.PARTS.items()
    )
    rules = (Path(__file__).parent / STYLE).read_text(encoding="utf-8")
    return f"""\
.ecotour {{ {light} }}
[data-theme="dark"] .ecotour {{ {dark} }}
@media screen and (prefers-color-scheme: dark) {{
  body[data-theme="auto"] .ecotour, html[data-mode="auto"]:not([data-theme]) .ecotour {{ {dark} }}
}}
{parts}
{rules}"""


def _write_style(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    file = Path(app.outdir) / "_static" / STYLE
    file.parent.mkdir(parents=True, exist_ok=True)
    text = style()
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
