"""A demo's source, cut into prose and code."""

from __future__ import annotations

from pathlib import Path

import pytest

import ecotour_gan
from ecotour.authoring import cells
from ecotour.authoring.cells import Cell

SOURCE = '''"""What it is, in ``code``.

More of it.
"""

# %% [markdown]
# ## First
#
# Words with `code`.
#
# ```
# # no heading
# ```

# %%
x = """
# %% not a marker
"""

# a comment of the code
y = 1

# %% A title
# Prose under it.
#
# - a list

# a comment of the code
z = 2
'''


def test_prose_and_code_alternate_and_know_their_lines() -> None:
    assert cells.split(SOURCE) == [
        Cell("prose", "What it is, in `code`.\n\nMore of it.", 1),
        Cell("prose", "## First\n\nWords with `code`.\n\n```\n# no heading\n```", 7),
        Cell("code", 'x = """\n# %% not a marker\n"""\n\n# a comment of the code\ny = 1', 16),
        Cell("prose", "## A title\n\nProse under it.\n\n- a list", 23),
        Cell("code", "# a comment of the code\nz = 2", 28),
    ]
    lines = SOURCE.splitlines()
    for cell in cells.split(SOURCE):
        if cell.kind == "code":
            assert lines[cell.line - 1] == cell.text.splitlines()[0]


def test_without_markers_all_is_one_cell() -> None:
    assert cells.split("x = 1\n") == [Cell("code", "x = 1", 1)]
    assert cells.split('"""Doc."""\nx = 1\n') == [Cell("code", '"""Doc."""\nx = 1', 1)]
    assert cells.split("") == []


def test_both_orders_of_tag_and_title() -> None:
    for marker in ("# %% [markdown] Title", "# %% Title [markdown]", "#%% Title [md]"):
        assert cells.split(f"{marker}\n# words\n") == [Cell("prose", "## Title\n\nwords", 2)]


def test_markdown_shifts_headings_but_not_comments_in_fences() -> None:
    text = cells.markdown(cells.split(SOURCE), top=1)
    headings = [line for line in text.splitlines() if line.startswith("# ")]
    assert headings == [
        "# First", "# no heading", "# %% not a marker", "# a comment of the code",
        "# A title", "# a comment of the code",
    ]  # fmt: skip
    assert text.count("```python\n") == 2


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    text = cells.markdown([Cell("code", 'a = "````"', 1)])
    assert text == '`````python\na = "````"\n`````\n'


def test_a_section_ends_where_the_next_begins() -> None:
    found = cells.section(cells.split(SOURCE), "First")
    assert [cell.kind for cell in found] == ["prose", "code"]
    with pytest.raises(KeyError, match="A title"):
        cells.section(cells.split(SOURCE), "Second")


def test_what_is_no_python_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be read as Python"):
        cells.split('x = """\n')
    with pytest.raises(ValueError, match="cannot be read as Python"):
        cells.split("x = = 1\n")


def test_nothing_of_the_gan_is_lost() -> None:
    file = Path(ecotour_gan.__file__).parent / "demo.py"
    found = cells.split(file.read_text())
    code = "\n".join(cell.text for cell in found if cell.kind == "code")
    kept = [line for line in code.splitlines() if line.strip()]
    written = [
        line
        for line in file.read_text().partition("# %%\n")[2].splitlines()
        if line.strip() and not line.startswith("# ") and line != "#"
    ]
    assert [line for line in kept if not line.startswith("# ")] == written
    assert sum(cell.kind == "prose" for cell in found) >= 10
