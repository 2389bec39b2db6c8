"""The types that a demo's flags can have: how a value is read, written and checked.

One word: int, float, bool, str, ``Path``, ``Literal`` of strings and whole numbers, ``Enum`` by the
names of its members. Several: a tuple of these, of fixed length (each place has a type) or of any.
Each of them may also be ``| None``. What else a field may be has no form as a flag that comes out
of a record's JSON as it went in, and is refused.
"""

from __future__ import annotations

import enum
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WORDS = {"at_least": "at least", "at_most": "at most", "above": "above", "below": "below"}
_HOLDS = {
    "at_least": lambda value, bound: value >= bound,
    "at_most": lambda value, bound: value <= bound,
    "above": lambda value, bound: value > bound,
    "below": lambda value, bound: value < bound,
}
_PLAIN = (int, float, bool, str, Path)
_INSTEAD = "int, float, bool, str, Path, Literal, Enum, a tuple of these, or any of these | None"


@dataclass(frozen=True)
class Kind:
    """The type of one flag.

    Attributes:
        places: The type of each value; of an open tuple, the one of all.
        form: ``one`` value, a ``fixed`` number of them, or an ``open`` one.
        optional: Whether ``None`` is a value too. It has no word, so it can be the default alone.
    """

    places: tuple[Any, ...]
    form: str = "one"
    optional: bool = False

    @classmethod
    def of(cls, hint: Any) -> Kind:
        """The kind of a field with the type ``hint``.

        Raises:
            TypeError: No flag can have this type; the message says which can.
        """
        inner, optional = hint, False
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            others = [one for one in typing.get_args(hint) if one is not type(None)]
            inner, optional = (others[0] if len(others) == 1 else None), True
        places = typing.get_args(inner)
        if typing.get_origin(inner) is not tuple:
            kind = cls((inner,), "one", optional)
        elif places[-1:] == (...,):
            kind = cls(places[:1], "open", optional)
        else:
            kind = cls(places, "fixed", optional)
        if not kind.places or not all(map(_is_known, kind.places)):
            text = hint.__name__ if isinstance(hint, type) and not places else str(hint)
            raise TypeError(f"has the type {text}, which no flag can have: use {_INSTEAD}")
        for place in kind.places:
            if len(set(words := choices(place))) < len(words):
                raise TypeError(f"has two choices that are typed alike, of {', '.join(words)}")
        return kind

    def read(self, words: Sequence[str]) -> Any:
        """The value that was typed.

        Raises:
            ValueError: A word is no value of its type, or they are too few or too many.
        """
        if self.form == "open":
            return tuple(_read(self.places[0], word) for word in words)
        if len(words) != len(self.places):
            raise ValueError(f"it takes {len(self.places)} values ({self.name}), not {len(words)}")
        read = tuple(map(_read, self.places, words))
        return read if self.form == "fixed" else read[0]

    def checked(self, value: Any, bounds: Mapping[str, float]) -> Any:
        """A default, as reading it would give it: a whole number becomes a float where one is due.

        Raises:
            ValueError: It is no value of this type, or out of its bounds.
        """
        if bounds and not any(map(_is_numeric, self.places)):
            raise ValueError(f"its bounds are for numbers, and it has the type {self.name}")
        if value is None and self.optional:
            return None
        if self.optional:
            raise ValueError(f"its default is {value!r}, and no word gives None: make it None")
        several = self.form != "one"
        given = value if several and isinstance(value, tuple) else (value,)
        places = self.places * len(given) if self.form == "open" else self.places
        if isinstance(value, tuple) != several or len(given) != len(places):
            raise ValueError(f"its default {value!r} is not of its type, {self.name}")
        made = tuple(_made(place, one) for place, one in zip(places, given, strict=True))
        check_bounds(made, bounds)
        return made if several else made[0]

    @property
    def name(self) -> str:
        """A short name, such as ``int`` or ``int …`` or ``slow|fast``."""
        names = list(dict.fromkeys(map(_name, self.places)))
        if self.form != "one" and len(names) == 1:
            return f"{names[0]} …"
        return " ".join(map(_name, self.places))

    def usage(self, flag: str) -> str:
        """How ``flag`` is typed, such as ``--pair int float`` or ``--on/--no-on``."""
        if self.places == (bool,) and self.form == "one":
            return f"{flag}/{negative(flag)}"
        names = ["true|false" if place is bool else _name(place) for place in self.places]
        return " ".join([flag, *names]) + (" …" if self.form == "open" else "")


def negative(flag: str, prefix: str = "no") -> str:
    """The flag that says no, or ``empty``: ``--no-on`` of ``--on``."""
    return f"--{prefix}-{flag.removeprefix('--')}"


def plain(value: Any) -> Any:
    """A value as JSON has it: of an enum the name as it is typed, of a path its text."""
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if isinstance(value, enum.Enum):
        return _typed(value.name)
    return str(value) if isinstance(value, Path) else value


def texts(value: Any) -> list[str]:
    """The words for a value as JSON has it, none for an empty tuple."""
    several = value if isinstance(value, tuple | list) else (value,)
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in several]


def choices(place: Any) -> list[str]:
    """The words that may be typed for one place, where they can be counted."""
    if place is bool:
        return ["true", "false"]
    if typing.get_origin(place) is typing.Literal:
        return [str(one) for one in typing.get_args(place)]
    return [_typed(one.name) for one in place] if _is_enum(place) else []


def check_bounds(values: Sequence[Any], bounds: Mapping[str, float]) -> None:
    """Hold each number against its bounds; a float is finite.

    Raises:
        ValueError: One is not.
    """
    for one in values:
        if isinstance(one, bool) or not isinstance(one, int | float):
            continue
        if isinstance(one, float) and not math.isfinite(one):
            raise ValueError(f"{one} is not a finite number")
        for name, bound in bounds.items():
            if not _HOLDS[name](one, bound):
                raise ValueError(f"{one} is not {in_words(name, bound)}")


def in_words(name: str, bound: float) -> str:
    """Such as ``at least 1``."""
    return f"{_WORDS[name]} {bound:g}"


def _is_enum(place: Any) -> bool:
    # members of enum.Flag can be combined, and then have no name
    return isinstance(place, enum.EnumMeta) and not issubclass(place, enum.Flag)


def _is_known(place: Any) -> bool:
    if typing.get_origin(place) is typing.Literal:
        return all(type(one) in (str, int) for one in typing.get_args(place))
    return place in _PLAIN or _is_enum(place)


def _is_numeric(place: Any) -> bool:
    return place in (int, float) or any(type(one) is int for one in typing.get_args(place))


def _name(place: Any) -> str:
    words = [] if place is bool else choices(place)
    return "|".join(words) or str(place.__name__)


def _typed(name: str) -> str:
    """The name of an enum's member as it is typed; what is typed so already stays as it is."""
    return name.lower().strip("_").replace("_", "-")


def _made(place: Any, value: Any) -> Any:
    if place is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if typing.get_origin(place) is typing.Literal:
        fits = any(value == one and type(value) is type(one) for one in typing.get_args(place))
    else:
        fits = isinstance(value, place) if place is Path else type(value) is place
    if not fits:
        raise ValueError(f"its default {value!r} is not of the type {_name(place)}")
    return value


def _read(place: Any, word: str) -> Any:
    if place in (int, float):
        try:
            return place(word)
        except ValueError:
            what = "whole number" if place is int else "number"
            raise ValueError(f"{word!r} is not a {what}") from None
    if place in (str, Path):
        return place(word)
    known = choices(place)
    if _is_enum(place):
        word = _typed(word)
    if word not in known:
        import difflib

        near = difflib.get_close_matches(word, known, n=1)
        among = ", ".join(f'"{one}"' for one in known)
        raise ValueError(
            f"{word!r} is none of {among}" + (f"; did you mean {near[0]}?" if near else "")
        )
    values = (True, False) if place is bool else typing.get_args(place) or tuple(place)
    return values[known.index(word)]
