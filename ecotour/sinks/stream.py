"""A stream that never raises, and the console on it: what a terminal is trusted with."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST = 40
"""Columns below which nothing is redrawn in place."""
PLAIN_WIDTH = 100
MOST_DIGITS = 4
"""Of a terminal's size: no one has ten thousand columns."""

_SPELLED = {
    "·": "-", "…": "...", "–": "-", "—": "-", "−": "-", "µ": "u", "✓": "ok", "✗": "x", "∞": "inf",
    "×": "x", "≥": ">=", "≤": "<=", "“": '"', "”": '"', "‘": "'", "’": "'", "→": "->", "█": "#",
    "━": "=", "─": "-", "▀": "#", "é": "e", "²": "2", "³": "3",
}  # fmt: skip


class SafeStream:
    """Wraps a text stream: what its encoding lacks is spelled out, and a dead one is let go.

    A vanished terminal, a closed pipe or a full disk must not end a run, so writing never raises;
    after the first failure nothing more is tried.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        """Wrap ``stream``; ``None``, as a process without a console has it, swallows all."""
        self._stream = stream
        self.alive = stream is not None
        self.failure: OSError | ValueError | None = None
        """Why it is alive no longer."""

    @property
    def encoding(self) -> str:
        """The stream's encoding, ASCII where it does not say."""
        return getattr(self._stream, "encoding", None) or "ascii"

    @property
    def unicode(self) -> bool:
        """Whether every character can be written."""
        return self.encoding.lower().replace("_", "-").startswith("utf")

    def isatty(self) -> bool:
        """Whether somebody watches."""
        try:
            return bool(self._stream and self._stream.isatty())
        except (OSError, ValueError):
            return False

    def fileno(self) -> int:
        """The stream's descriptor.

        Raises:
            OSError: It has none.
        """
        if self._stream is None:
            raise OSError("no stream")
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Write as much of ``text`` as the encoding and the other end allow."""
        if self.alive and self._stream is not None:
            try:
                self._stream.write(text if self.unicode else self._spelled(text))
            except (OSError, ValueError) as error:
                self.alive, self.failure = False, error
        return len(text)

    def flush(self) -> None:
        """Pass on what is buffered."""
        if self.alive and self._stream is not None:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self.alive, self.failure = False, error

    def _spelled(self, text: str) -> str:
        encoding = self.encoding
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            return "".join(c if _fits(c, encoding) else _SPELLED.get(c, "?") for c in text)
        except LookupError:
            return text.encode("ascii", "replace").decode("ascii")
        return text


def is_coloured(stream: SafeStream) -> bool:
    """Whether to write colours: on a terminal that can, or wherever ``FORCE_COLOR`` asks for it.

    ``NO_COLOR`` wins, and an empty variable is none.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or _is_capable(stream)


def is_live(stream: SafeStream) -> bool:
    """Whether to redraw in place: a terminal that can, and that is not too narrow for it."""
    return _is_capable(stream) and _columns(stream) >= NARROWEST


def console(stream: SafeStream, *, live: bool) -> Console:
    """A rich console on ``stream``: no markup, no emoji.

    Codes that move the cursor only if it is ``live``, colours also where they are forced.
    """
    from rich.console import Console

    forced = bool(os.environ.get("FORCE_COLOR")) and is_coloured(stream)
    options: dict[str, Any] = {"color_system": "auto" if live else _palette() if forced else None}
    if not live:
        options["width"] = max(NARROWEST, min(200, _columns(stream)))
    return Console(
        file=stream,  # type: ignore[arg-type]
        force_terminal=live,
        force_jupyter=False,
        legacy_windows=False,
        no_color=bool(os.environ.get("NO_COLOR")) or not (live or forced),
        _environ=_sound_environment(),
        highlight=False,
        markup=False,
        emoji=False,
        **options,
    )


def _is_capable(stream: SafeStream) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown", "")


def _palette() -> str:
    """The colours of whoever will show what goes into a pipe, as far as the environment tells."""
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256color" in os.environ.get("TERM", "") else "standard"


def _sound_environment() -> dict[str, str]:
    """The environment without a size that is none: Rich would draw nothing on 0 columns."""
    sizes = ("COLUMNS", "LINES")
    return {k: v for k, v in os.environ.items() if k not in sizes or _size(k)}


def _size(variable: str) -> int | None:
    """What a variable says of the terminal; ``None`` for 0, negative numbers and nonsense."""
    text = os.environ.get(variable, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        return None
    return int(text) or None


def _columns(stream: SafeStream) -> int:
    """The width, ``COLUMNS`` first."""
    if columns := _size("COLUMNS"):
        return columns
    if not stream.isatty():
        return PLAIN_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _fits(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
