"""The site. Build it from the repository's root, without a network:

uv run --group docs sphinx-build -W docs docs/_build/html
"""

from __future__ import annotations

import sys
from pathlib import Path

import ecotour

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "ecotour"
author = "the ecotour authors"
version = release = ecotour.__version__
language = "en"

extensions = [
    "ecotour.sphinx",
    "house",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
exclude_patterns = ["_build", "records"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
# our docstrings put code into single backticks, and the source of a signature is short
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
toc_object_entries = False

ecotour_records = "records"

SANS = "'Source Sans 3', Inter, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
SERIF = "'Source Serif 4', 'Iowan Old Style', Palatino, Georgia, 'DejaVu Serif', serif"
MONO = "ui-monospace, 'SF Mono', 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"

html_theme = "furo"
html_title = "ecotour"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5f9e",
        "color-brand-content": "#0b66b5",
        "color-api-name": "#0b5f9e",
        "color-api-pre-name": "#5a6675",
        "color-foreground-primary": "#18212d",
        "color-background-secondary": "#f4f6f9",
        "font-stack": SANS,
        "font-stack--monospace": MONO,
        "font-stack--headings": SERIF,
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fb5d8",
        "color-brand-content": "#5aa9f0",
        "color-api-name": "#8fd2f7",
        "color-api-pre-name": "#9aa7b6",
        "color-background-primary": "#12171e",
        "color-background-secondary": "#1a212a",
    },
}
