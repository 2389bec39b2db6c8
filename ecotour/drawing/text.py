"""Tables and code as pictures, for those who look at the directory; the page shows them as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecotour.contract.exhibits import Code, Table
from ecotour.drawing import canvas, look
from ecotour.drawing.wording import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 40
MOST_LINES = 70
MOST_COLUMNS = 110
ROW = 0.27
"""Inches of a table's row."""


def table(exhibit: Table) -> Figure:
    """Rows under a rule, numbers to the right; past `MOST_ROWS` a line says how many follow."""
    rows = [[canvas.shorten(number(cell), 44) for cell in row] for row in exhibit.rows[:MOST_ROWS]]
    heads = [canvas.shorten(name, 44) for name in exhibit.columns]
    right = [
        bool(exhibit.rows) and all(not isinstance(row[c], str) for row in exhibit.rows)
        for c in range(len(heads))
    ]
    widths = [max([len(heads[c]), *(len(row[c]) for row in rows)]) + 3 for c in range(len(heads))]
    lines = len(rows) + 1 + (len(exhibit.rows) > MOST_ROWS)
    inches = min(14.0, max(3.0, 0.078 * sum(widths) + 0.2))
    tall = ROW * lines + 0.25
    figure = canvas.new_figure(inches, tall, arranged=False)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-1, sum(widths) - 1 or 1)
    axes.set_ylim(lines + 0.1, -0.3)
    left = 0
    for column, head in enumerate(heads):
        place = left + widths[column] - 3 if right[column] else left
        side = "right" if right[column] else "left"
        axes.text(place, 0.45, head, ha=side, va="center", weight="bold", fontsize=look.SMALL_SIZE)
        for position, row in enumerate(rows):
            axes.text(place, position + 1.5, row[column], ha=side, va="center")
        left += widths[column]
    axes.axhline(1.0, color=look.INK, linewidth=0.9)
    for position in range(1, len(rows)):
        axes.axhline(position + 1.0, color=look.HAIRLINE, linewidth=0.7)
    if len(exhibit.rows) > MOST_ROWS:
        axes.text(
            0,
            lines - 0.5,
            f"and {len(exhibit.rows) - MOST_ROWS:,} more rows",
            va="center",
            color=look.MUTED,
        )
    return figure


def code(exhibit: Code) -> Figure:
    """The text in a fixed pitch, cut where it would no longer fit a page."""
    all_lines = exhibit.text.expandtabs(4).splitlines() or [""]
    lines = [_cut(line) for line in all_lines[:MOST_LINES]]
    if len(all_lines) > MOST_LINES:
        lines.append(f"… {len(all_lines) - MOST_LINES:,} more lines: see the report or the JSON")
    longest = max(map(len, lines))
    wide, tall = max(3.0, 0.0725 * longest + 0.5), 0.168 * len(lines) + 0.35
    figure = canvas.new_figure(wide, tall, arranged=False)
    figure.set_facecolor(look.WASH)
    figure.text(
        0.25 / figure.get_figwidth(),
        1 - 0.17 / figure.get_figheight(),
        "\n".join(lines),
        family="DejaVu Sans Mono",
        fontsize=look.SMALL_SIZE + 0.5,
        va="top",
        ha="left",
        linespacing=1.3,
    )
    return figure


def _cut(line: str) -> str:
    printable = "".join(c if c.isprintable() else "�" for c in line)
    return printable if len(printable) <= MOST_COLUMNS else printable[: MOST_COLUMNS - 1] + "…"
