"""A demo's configuration as typed command-line flags, through Cyclopts.

The fields of the demo's dataclass are the flags: ``batch_size: int`` is ``--batch-size N``. What
is not a value of the field's type, or out of its bounds, is refused in one line.
"""

from __future__ import annotations

import dataclasses
import itertools
import shlex
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from ecotour.contract import kinds
from ecotour.errors import PluginError, UnknownNameError, UsageError


@dataclasses.dataclass(frozen=True)
class Flag:
    """One flag of a demo, for help and documentation.

    Attributes:
        name: With its hyphens, e.g. ``--batch-size``.
        kind: The name of its type, e.g. ``int``.
        default: As JSON has it: of an enum the name as it is typed, of a path its text.
        help: What it says.
        bounds: By name (``at_least``, ...), of each number.
        usage: How it is typed, e.g. ``--batch-size int`` or ``--shuffle/--no-shuffle``.
    """

    name: str
    kind: str
    default: Any
    help: str
    bounds: Mapping[str, float]
    usage: str = ""

    @property
    def bounds_in_words(self) -> list[str]:
        """Such as ``at least 1``, each bound by itself."""
        return [kinds.in_words(name, bound) for name, bound in self.bounds.items()]

    @property
    def default_as_typed(self) -> str:
        """What a user would type to get the default, quoted for a shell."""
        if self.default is None:
            return "not given"
        if isinstance(self.default, bool) or self.default == ():
            return words({self.name.removeprefix("--"): self.default})[0]
        return shlex.join(kinds.texts(self.default))


def describe(config: type) -> list[Flag]:
    """The flags of a demo's configuration, in the order of its fields.

    Raises:
        PluginError: ``config`` is not a dataclass, or a field has no default, a type that no flag
            can have, or a default that is not of its type.
    """
    return [
        Flag(
            one.flag,
            one.kind.name,
            kinds.plain(one.default),
            one.metadata.get("help", ""),
            one.metadata.get("bounds", {}),
            one.kind.usage(one.flag),
        )
        for one in _fields(config)
    ]


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

    fields = _fields(config)
    _check_values({one.flag: one.kind for one in fields}, tokens)

    def collect(**given: Any) -> dict[str, Any]:
        return given

    collect.__annotations__ = {one.name: _annotation(one) for one in fields}
    collect.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=collect.__annotations__[one.name],
                default=one.default,
            )
            for one in fields
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
        known = [one.flag for one in fields] + list(other_flags)
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


def plain(config: Any) -> dict[str, Any]:
    """A configuration as the record has it: by field, values that JSON has (`kinds.plain`)."""
    return {
        field.name: kinds.plain(getattr(config, field.name)) for field in dataclasses.fields(config)
    }


def words(config: Mapping[str, Any]) -> list[str]:
    """The words of a command line that give ``config`` again, which is as the record has it.

    ``None`` has no word: it can be the default alone.
    """
    words: list[str] = []
    for name, value in config.items():
        flag = "--" + name.replace("_", "-")
        texts = kinds.texts(value)
        if value is None:
            continue
        if isinstance(value, bool):
            words.append(flag if value else kinds.negative(flag))
        elif not texts:
            words.append(kinds.negative(flag, "empty"))
        elif any(text.startswith("-") for text in texts):  # it must not be taken for a flag
            words += [f"{flag}={text}" for text in texts]
        else:
            words += [flag, *texts]
    return words


@dataclasses.dataclass(frozen=True)
class _Field:
    name: str
    flag: str
    kind: kinds.Kind
    default: Any
    metadata: Mapping[str, Any]


def _fields(config: type) -> list[_Field]:
    if not dataclasses.is_dataclass(config):
        raise PluginError(f"the demo's config {config!r} is not a dataclass")
    try:
        hints = typing.get_type_hints(config)
    except (NameError, TypeError) as error:
        raise PluginError(
            f"the type of a field of {config.__name__} is unknown: {error}"
        ) from error
    found = []
    for field in dataclasses.fields(config):
        what = f"the field {field.name!r} of {config.__name__}"
        if not field.init:
            raise PluginError(f"{what} is made with init=False, so no flag can set it")
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            raise PluginError(f"{what} has no default: a demo must run without a flag")
        try:
            kind = kinds.Kind.of(hints[field.name])
            default = kind.checked(default, field.metadata.get("bounds", {}))
        except TypeError as error:
            raise PluginError(f"{what} {error}") from None
        except ValueError as error:
            raise PluginError(f"{what}: {error}") from None
        flag = "--" + field.name.replace("_", "-")
        found.append(_Field(field.name, flag, kind, default, field.metadata))
    return found


def _check_values(known: Mapping[str, kinds.Kind], tokens: Sequence[str]) -> None:
    """Refuse a tuple without a value and a yes or no with one, better than Cyclopts does."""
    switches: dict[str, str] = {}
    for name, kind in known.items():
        if kind.places == (bool,) and kind.form == "one":
            switches |= {name: name, kinds.negative(name): name}
    for token, following in itertools.pairwise([*tokens, "--"]):
        follows = not following.startswith("--")
        if token in switches and follows:
            on = switches[token]
            raise UsageError(
                f"{token} takes no value such as {following!r}: {on} is yes, "
                f"{kinds.negative(on)} is no"
            )
        if token in known and known[token].form != "one" and not follows:
            none = f"; {kinds.negative(token, 'empty')} is none at all"
            raise UsageError(f"{token} needs a value{none if known[token].form == 'open' else ''}")


def _annotation(field: _Field) -> Any:
    """What Cyclopts is to know: how many words a flag takes, and what becomes of them."""
    import cyclopts

    kind = field.kind
    bounds = field.metadata.get("bounds", {})

    def convert(_: Any, tokens: Sequence[Any]) -> Any:
        try:
            value = kind.read([token.value for token in tokens])
            kinds.check_bounds(value if isinstance(value, tuple) else (value,), bounds)
        except ValueError as error:
            # Cyclopts would leave the flag's name out where there are several words
            raise UsageError(f"Invalid value for {field.flag}: {error}") from None
        return value

    if kind.form == "one" and kind.places == (bool,):
        return Annotated[
            bool, cyclopts.Parameter(name=field.flag, negative=kinds.negative(field.flag))
        ]
    if kind.form == "one":
        return Annotated[str, cyclopts.Parameter(name=field.flag, converter=convert)]
    # a fixed tuple counts its words itself: so --pair=-a --pair=-b is one, too
    return Annotated[
        tuple[str, ...],
        cyclopts.Parameter(
            name=field.flag,
            negative=kinds.negative(field.flag, "empty") if kind.form == "open" else (),
            converter=convert,
            consume_multiple=True,
        ),
    ]
