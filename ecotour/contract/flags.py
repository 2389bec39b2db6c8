"""A demo's configuration as typed command-line flags, through Cyclopts.

The fields of the demo's dataclass are the flags: ``batch_size: int`` is ``--batch-size N``. What
is not a value of the field's type, or out of its bounds, is refused in one line.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from ecotour.errors import PluginError, UnknownNameError, UsageError

_WORDS = {"at_least": "at least", "at_most": "at most", "above": "above", "below": "below"}
_HOLDS = {
    "at_least": lambda value, bound: value >= bound,
    "at_most": lambda value, bound: value <= bound,
    "above": lambda value, bound: value > bound,
    "below": lambda value, bound: value < bound,
}


@dataclasses.dataclass(frozen=True)
class Flag:
    """One flag of a demo, for help and documentation."""

    name: str
    kind: str
    default: Any
    help: str
    bounds: Mapping[str, float]

    @property
    def bounds_in_words(self) -> list[str]:
        """Such as ``at least 1``, each bound by itself."""
        return [f"{_WORDS[name]} {bound:g}" for name, bound in self.bounds.items()]


def describe(config: type) -> list[Flag]:
    """The flags of a demo's configuration, in the order of its fields.

    Raises:
        PluginError: ``config`` is not a dataclass, or a field has no default.
    """
    if not dataclasses.is_dataclass(config):
        raise PluginError(f"the demo's config {config!r} is not a dataclass")
    try:
        hints = typing.get_type_hints(config)
    except (NameError, TypeError) as error:
        raise PluginError(
            f"the type of a field of {config.__name__} is unknown: {error}"
        ) from error
    described = []
    for field in dataclasses.fields(config):
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            raise PluginError(
                f"the field {field.name!r} of {config.__name__} has no default: a demo must run "
                "without a flag"
            )
        described.append(
            Flag(
                "--" + field.name.replace("_", "-"),
                _kind(hints[field.name]),
                default,
                field.metadata.get("help", ""),
                field.metadata.get("bounds", {}),
            )
        )
    return described


def parse(config: type, tokens: Sequence[str], other_flags: Iterable[str] = ()) -> Any:
    """Make a configuration from command-line tokens.

    Args:
        config: The demo's dataclass.
        tokens: What the user typed, less the flags that every run has.
        other_flags: Those, so that a misspelt one gets the right suggestion.

    Raises:
        UsageError: A flag is unknown, or its value is none of its type or out of bounds.
    """
    import inspect

    import cyclopts

    flags = describe(config)
    hints = typing.get_type_hints(config)
    for token, following in itertools.pairwise([*tokens, "--"]):
        name = token.removeprefix("--").replace("-", "_")
        if hints.get(name) is bool and token.startswith("--") and not following.startswith("-"):
            raise UsageError(f"{token} takes no value: type {token}, or --no-{token[2:]}")
        if _is_tuple(hints.get(name)) and token.startswith("--") and following.startswith("--"):
            none = (
                f"; --empty-{token[2:]} is none at all"
                if ... in typing.get_args(hints[name])
                else ""
            )
            raise UsageError(f"{token} needs a value{none}")
    annotations = {
        field.name: Annotated[
            hints[field.name],
            cyclopts.Parameter(
                converter=_whole if _all_whole(hints[field.name]) else None,
                validator=_validator(field.metadata.get("bounds", {})),
                consume_multiple=_is_tuple(hints[field.name]),
            ),
        ]
        for field in dataclasses.fields(config)
    }

    def collect(**given: Any) -> dict[str, Any]:
        return given

    collect.__annotations__ = annotations
    collect.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotations[field.name],
                default=flag.default,
            )
            for field, flag in zip(dataclasses.fields(config), flags, strict=True)
        ]
    )
    app = cyclopts.App(name="run", help_flags=[], version_flags=[])
    app.default(collect)
    try:
        given = app(
            list(tokens), exit_on_error=False, print_error=False, result_action="return_value"
        )
    except cyclopts.UnknownOptionError as error:
        typed = error.token.keyword or error.token.value
        known = [flag.name for flag in flags] + list(other_flags)
        raise UnknownNameError("flag", typed, known) from None
    except cyclopts.UnusedCliTokensError as error:
        (unexpected, *_) = error.unused_tokens or ["text"]
        raise UsageError(f"unexpected {unexpected!r}: a flag starts with --") from None
    except cyclopts.CycloptsError as error:
        raise UsageError(" ".join(str(error).split())) from None
    try:
        return config(**given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the flags do not go together: {error}") from error


def _whole(type_: Any, tokens: Sequence[Any]) -> Any:
    """Whole numbers only: Cyclopts would round 3.5 to 4."""
    numbers = []
    for token in tokens:
        try:
            numbers.append(int(token.value))
        except ValueError:
            raise ValueError(f"{token.value!r} is not a whole number") from None
    return tuple(numbers) if _is_tuple(type_) else numbers[0]


def _validator(bounds: Mapping[str, float]) -> Any:
    def validate(_: Any, value: Any) -> None:
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, float) and not math.isfinite(one):
                raise ValueError(f"{one} is not a finite number")
            for name, bound in bounds.items():
                if not _HOLDS[name](one, bound):
                    raise ValueError(f"{one} is not {_WORDS[name]} {bound:g}")

    return validate


def _is_tuple(hint: Any) -> bool:
    return typing.get_origin(hint) is tuple


def _element(hint: Any) -> Any:
    return typing.get_args(hint)[0] if _is_tuple(hint) else hint


def _all_whole(hint: Any) -> bool:
    elements = typing.get_args(hint) if _is_tuple(hint) else (hint,)
    return all(one is int for one in elements if one is not ...)


def _kind(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return "|".join(map(str, typing.get_args(hint)))
    name = getattr(_element(hint), "__name__", str(hint))
    return f"{name} …" if _is_tuple(hint) else name
