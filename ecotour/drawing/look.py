"""How ecotour looks: one palette and one type scale, for the pictures, the page and the terminal.

The series colours stay apart for readers who see no red, no green or no blue (a test simulates
all three), have contrast against both papers, and differ in lightness so that a grey print still
separates neighbours. Nothing here is drawn; modules that draw ask for what they need.
"""

from __future__ import annotations

from typing import Final

INK: Final = "#18212d"
MUTED: Final = "#5a6675"
HAIRLINE: Final = "#dbe1e8"
PAPER: Final = "#ffffff"
WASH: Final = "#f4f6f9"

SERIES: Final = (
    "#0b66b5",  # blue
    "#d4540c",  # vermilion
    "#0f9a74",  # green
    "#a8478f",  # purple
    "#d39a00",  # gold
    "#53b3e6",  # sky
    "#4a4f57",  # graphite
    "#8c5a3c",  # umber
)
GOOD: Final = "#0b7a55"
BAD: Final = "#b4281c"

LIGHT: Final = {
    "ink": INK,
    "muted": MUTED,
    "hairline": HAIRLINE,
    "paper": PAPER,
    "wash": WASH,
    "good": GOOD,
    "bad": BAD,
    **{f"series-{number}": colour for number, colour in enumerate(SERIES)},
}
DARK: Final = {
    "ink": "#e6ebf1",
    "muted": "#9aa7b6",
    "hairline": "#303a47",
    "paper": "#12171e",
    "wash": "#1a212a",
    "good": "#3fc796",
    "bad": "#ff7d6e",
    "series-0": "#5aa9f0",
    "series-1": "#ff8a47",
    "series-2": "#35c79c",
    "series-3": "#dd7fc6",
    "series-4": "#efbc3a",
    "series-5": "#8fd2f7",
    "series-6": "#a9b2bd",
    "series-7": "#c69373",
}
"""The same names, for the page on a dark screen."""

SEQUENTIAL: Final = ("#f5f8fb", "#c3dbec", "#7fb5d8", "#3c87bd", "#0b5f9e", "#0a3a66", "#0b1c33")
"""From little to much; lightness falls all the way."""

DIVERGING: Final = ("#0a4a86", "#3f8ac4", "#a9cde6", "#f6f6f4", "#f5bf95", "#dd7430", "#93380a")
"""From below to above zero, which is the light middle."""

PARTS: Final = {
    "import": "#8d99a8",
    "data": "#647286",
    "init": "#b9c2cd",
    "trace": "#f0b98d",
    "lower": "#e58b49",
    "compile": "#d4540c",
    "first": "#d39a00",
    "steady": "#0b66b5",
    "views": "#0f9a74",
    "judging": "#a8478f",
    "sinks": "#8c5a3c",
    "other": "#d2d9e1",
}
"""A colour for each part of the ledger: waiting is grey, compiling warm, working blue."""

TITLE_SIZE: Final = 10.5
TEXT_SIZE: Final = 9.0
SMALL_SIZE: Final = 8.0
"""Points in pictures; the page has its own scale in its stylesheet."""

WIDTH: Final = 6.4
"""Inches of a picture; at `DPI` that is 960 pixels."""
DPI: Final = 150
