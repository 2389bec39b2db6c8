"""Pages that need no network, no script and nothing beside them: a template, filled in."""

from __future__ import annotations

from typing import Any

from ecotour.drawing import wording


def render(template: str, **content: Any) -> str:
    """A page as HTML, of a template of this room. Every text is escaped; only our drawings are not.

    Args:
        template: Its file's name, such as ``report.html.j2``.
        content: What it speaks of, by the names that it has for it; a name that it lacks is an
            error.
    """
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ecotour.drawing", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawing"] = markupsafe.Markup  # our SVG, whose texts are escaped in it
    environment.filters["number"] = wording.number
    environment.filters["spaced"] = lambda name: str(name).replace("_", " ")
    return environment.get_template(template).render(**content)
