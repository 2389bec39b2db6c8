"""Where a file lies, as a page says it."""

from __future__ import annotations

import os
from pathlib import Path

from sphinx.util.docutils import SphinxDirective


def relative(directive: SphinxDirective, file: Path) -> str:
    """``file`` as an address from the page's own source."""
    page = Path(directive.env.doc2path(directive.env.docname))
    return Path(os.path.relpath(file, page.parent)).as_posix()
