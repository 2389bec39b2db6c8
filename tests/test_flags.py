"""A demo's dataclass as flags: values, bounds, and one clear line for what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from ecotour import flag
from ecotour.contract import flags
from ecotour.errors import PluginError, UnknownNameError, UsageError


@dataclass(frozen=True)
class Config:
    batch_size: int = flag(64, "images a step", at_least=1)
    rate: float = flag(1e-4, "step size", above=0)
    channels: tuple[int, ...] = flag((8, 16), "of each layer", at_least=1)
    pair: tuple[int, int] = flag((1, 2), "two of them")
    mixed: tuple[int, float] = flag((1, 2.0), "a count and a share")
    mode: Literal["slow", "fast"] = flag("slow", "how")
    shuffle: bool = flag(True, "in a new order")
    name: str = flag("x", "what to call it")

    def __post_init__(self) -> None:
        if self.name == "both" and not self.shuffle:
            raise ValueError("'both' needs --shuffle")


@pytest.mark.parametrize(
    ("tokens", "changed"),
    [
        ([], {}),
        (["--batch-size", "3"], {"batch_size": 3}),
        (["--batch-size=3"], {"batch_size": 3}),
        (["--rate", "1e-3"], {"rate": 1e-3}),
        (["--channels", "1", "2", "3"], {"channels": (1, 2, 3)}),
        (["--channels", "7", "--mode", "fast"], {"channels": (7,), "mode": "fast"}),
        (["--empty-channels"], {"channels": ()}),
        (["--pair", "5", "6"], {"pair": (5, 6)}),
        (["--mixed", "1", "2.5"], {"mixed": (1, 2.5)}),
        (["--no-shuffle"], {"shuffle": False}),
        (["--name", "-1"], {"name": "-1"}),
    ],
)
def test_values_arrive_with_their_types(tokens: list[str], changed: dict[str, Any]) -> None:
    assert flags.parse(Config, tokens) == Config(**changed)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["--batch-size", "0"], "--batch-size.*0 is not at least 1"),
        (["--batch-size", "3.5"], "--batch-size.*'3.5' is not a whole number"),
        (["--batch-size", "many"], "--batch-size.*'many' is not a whole number"),
        (["--batch-size"], "--batch-size"),
        (["--batch-size", "1", "--batch-size", "2"], "--batch-size"),
        (["--rate", "0"], "0.0 is not above 0"),
        (["--rate", "nan"], "not a finite number"),
        (["--rate", "inf"], "not a finite number"),
        (["--channels", "8", "0"], "0 is not at least 1"),
        (["--channels", "8", "x"], "'x' is not a whole number"),
        (["--channels"], "--channels needs a value; --empty-channels is none at all"),
        (["--channels", "--rate", "1"], "--channels needs a value"),
        (["--pair"], "--pair needs a value$"),
        (["--pair", "1"], "--pair"),
        (["--mode", "fats"], '"slow", "fast"'),
        (
            ["--shuffle", "false"],
            "--shuffle takes no value such as 'false': --shuffle is yes, --no-shuffle is no",
        ),
        (["stray"], "unexpected 'stray'"),
        (["--name", "both", "--no-shuffle"], "'both' needs --shuffle"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tokens: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        flags.parse(Config, tokens)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("--batchsize", "--batch-size"), ("--chanels", "--channels"), ("--stesp", "--steps")],
)
def test_an_unknown_flag_gets_the_nearest_of_all_flags(typed: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean {meant}"):
        flags.parse(Config, [typed, "1"], ["--steps", "--seed"])


def test_the_flags_are_described_for_help() -> None:
    described = {f.name: (f.kind, f.default) for f in flags.describe(Config)}
    assert described["--channels"] == ("int …", (8, 16))
    assert described["--mode"] == ("slow|fast", "slow")
    assert described["--batch-size"] == ("int", 64)


def test_a_config_that_is_no_dataclass_or_lacks_a_default_is_the_plugin_s_fault() -> None:
    @dataclass(frozen=True)
    class Bare:
        width: int = field()

    with pytest.raises(PluginError, match="'width' of Bare has no default"):
        flags.describe(Bare)

    @dataclass(frozen=True)
    class Nameless:
        width: "Nowhere" = 3  # type: ignore[name-defined]  # noqa: F821, UP037

    with pytest.raises(PluginError, match=r"type of a field of Nameless.*'Nowhere'"):
        flags.describe(Nameless)
    with pytest.raises(PluginError, match="not a dataclass"):
        flags.describe(dict)
