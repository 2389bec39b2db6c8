"""Every type that a field can have: typed, shown, kept, done again; or refused by its name."""

from __future__ import annotations

import dataclasses
import enum
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from ecotour import cli, flag
from ecotour.cli.demo_help import help_text
from ecotour.contract import flags
from ecotour.contract.demo import Demo
from ecotour.drawing.page import repeat_command
from ecotour.errors import PluginError, UsageError
from ecotour.rundir.strict_json import to_json


class Kind(enum.Enum):
    ALL_OF_IT = 1
    PART = "a part"


class Name(enum.StrEnum):
    ONE = "eins"
    TWO = "zwei"


class Places(enum.Flag):
    HERE = 1
    THERE = 2


class Alike(enum.Enum):
    a_b = 1
    A_B = 2


@dataclasses.dataclass(frozen=True)
class Nested:
    depth: int = 1


def config_of(hint: Any, default: Any, **bounds: float) -> Any:
    """A configuration with one field, called ``x_y``."""
    return dataclasses.make_dataclass(
        "Config", [("x_y", hint, flag(default, "of it", **bounds))], frozen=True
    )


Mode = Literal["slow", "fast", "-x"]
# the type, its default; how help shows both; words, their value, and the value in JSON
ACCEPTED: list[tuple[Any, Any, str, str, list[tuple[str, Any, Any]]]] = [
    (int, 1, "--x-y int", "1", [("--x-y 3", 3, 3), ("--x-y=-3", -3, -3), ("--x-y -3", -3, -3)]),
    (float, 1, "--x-y float", "1.0", [("--x-y 1e-9", 1e-9, 1e-9), ("--x-y -1e-5", -1e-5, -1e-5)]),
    (bool, True, "--x-y/--no-x-y", "--x-y", [("--no-x-y", False, False), ("--x-y", True, True)]),
    (bool, False, "--x-y/--no-x-y", "--no-x-y", [("--x-y", True, True)]),
    (
        str, "a b", "--x-y str", "'a b'",
        [("--x-y 'é ;rm ~'", "é ;rm ~", "é ;rm ~"), ("--x-y=--seed", "--seed", "--seed"),
         ("--x-y ''", "", ""), ("--x-y=-", "-", "-"), ("--x-y=--", "--", "--"),
         ("--x-y '[1, {'", "[1, {", "[1, {"), ("--x-y None", "None", "None")],
    ),
    (str, "", "--x-y str", "''", [("--x-y a=b", "a=b", "a=b")]),
    (Mode, "slow", "--x-y slow|fast|-x", "slow", [("--x-y fast", "fast", "fast"),
                                                  ("--x-y=-x", "-x", "-x")]),
    (Literal[16, 32], 16, "--x-y 16|32", "16", [("--x-y 32", 32, 32)]),
    (
        Kind, Kind.PART, "--x-y all-of-it|part", "part",
        [(f"--x-y {word}", Kind.ALL_OF_IT, "all-of-it")
         for word in ("all-of-it", "ALL_OF_IT", "All-Of_It")],
    ),
    (Name, Name.ONE, "--x-y one|two", "one", [("--x-y two", Name.TWO, "two")]),
    (
        Path, Path("a/b"), "--x-y Path", "a/b",
        [("--x-y '../c d'", Path("../c d"), "../c d"), ("--x-y=-p", Path("-p"), "-p")],
    ),
    (int | None, None, "--x-y int", "not given", [("--x-y 0", 0, 0)]),
    (bool | None, None, "--x-y/--no-x-y", "not given", [("--no-x-y", False, False)]),
    (Kind | None, None, "--x-y all-of-it|part", "not given", [("--x-y part", Kind.PART, "part")]),
    (Path | None, None, "--x-y Path", "not given", [("--x-y p", Path("p"), "p")]),
    (
        tuple[int, float], (1, 2), "--x-y int float", "1 2.0",
        [("--x-y 1 2.5", (1, 2.5), [1, 2.5]), ("--x-y -1 -2.5", (-1, -2.5), [-1, -2.5]),
         ("--x-y=3 --x-y=4", (3, 4.0), [3, 4.0])],
    ),
    (tuple[int, int], (1, 2), "--x-y int int", "1 2", [("--x-y 3 4", (3, 4), [3, 4])]),
    (tuple[int], (1,), "--x-y int", "1", [("--x-y 3", (3,), [3])]),
    (
        tuple[Literal["a", "b"], bool, Kind, Path, str], ("a", True, Kind.PART, Path("p"), ""),
        "--x-y a|b true|false all-of-it|part Path str", "a true part p ''",
        [("--x-y b false all-of-it q 's t'", ("b", False, Kind.ALL_OF_IT, Path("q"), "s t"),
          ["b", False, "all-of-it", "q", "s t"])],
    ),
    (
        tuple[int, ...], (8, 16), "--x-y int …", "8 16",
        [("--x-y 1", (1,), [1]), ("--x-y 1 -2 3", (1, -2, 3), [1, -2, 3]), ("--empty-x-y", (), [])],
    ),
    (tuple[str, ...], (), "--x-y str …", "--empty-x-y",
     [("--x-y=-a --x-y=--b --x-y=", ("-a", "--b", ""), ["-a", "--b", ""])]),
    (tuple[Kind, ...], (Kind.PART,), "--x-y all-of-it|part …", "part",
     [("--x-y part all-of-it", (Kind.PART, Kind.ALL_OF_IT), ["part", "all-of-it"])]),
    (tuple[bool, ...], (True,), "--x-y true|false …", "true",
     [("--x-y true false", (True, False), [True, False])]),
    (tuple[int, float] | None, None, "--x-y int float", "not given",
     [("--x-y 1 2", (1, 2.0), [1, 2.0])]),
    (tuple[int, ...] | None, None, "--x-y int …", "not given", [("--empty-x-y", (), [])]),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "default", "usage", "shown", "typed"), ACCEPTED)
def test_a_type_is_typed_shown_and_comes_out_of_json_as_it_went_in(
    hint: Any, default: Any, usage: str, shown: str, typed: list[tuple[str, Any, Any]]
) -> None:
    config = config_of(hint, default)
    text = help_text("it", Demo("", config, lambda _: None))  # type: ignore[arg-type,return-value]
    assert text.splitlines()[-2:] == [f"  {usage}", f"{'':24}of it (default: {shown})"]
    json.dumps([dataclasses.asdict(one) for one in flags.describe(config)], allow_nan=False)
    for words, value, in_json in [*typed, ("", default, None)]:
        made = flags.parse(config, shlex.split(words))
        assert made == config(value)
        if words:
            assert type(made.x_y) is type(value)
        kept = json.loads(to_json(flags.plain(made)))
        if words:
            assert kept == {"x_y": in_json}
        assert flags.parse(config, flags.words(kept)) == made
        command = shlex.split(repeat_command({"demo": "it", "config": kept}))
        assert flags.parse(config, command[5:]) == made


@pytest.mark.parametrize(
    ("hint", "default", "text"),
    [
        (list[int], None, "list[int]"),
        (list, None, "list"),
        (set[str], None, "set[str]"),
        (frozenset, frozenset(), "frozenset"),
        (dict[str, int], None, "dict[str, int]"),
        (tuple, (), "tuple"),
        (tuple[()], (), "tuple[()]"),
        (tuple[int | None, ...], (), "tuple[int | None, ...]"),
        (tuple[tuple[int, int], ...], (), "tuple[tuple[int, int], ...]"),
        (int | str, 1, "int | str"),
        (int | str | None, None, "int | str | None"),
        (Nested, Nested(), "Nested"),
        (Places, Places.HERE, "Places"),
        (Literal["a", None], "a", "typing.Literal['a', None]"),
        (Literal[True], True, "typing.Literal[True]"),
        (Any, 1, "Any"),
        (object, 1, "object"),
        (complex, 1j, "complex"),
        (bytes, b"", "bytes"),
        (Callable[[], int], int, "collections.abc.Callable[[], int]"),
        (None, None, "NoneType"),
    ],
)
def test_another_type_is_refused_with_the_field_s_name(hint: Any, default: Any, text: str) -> None:
    with pytest.raises(PluginError) as caught:
        flags.describe(config_of(hint, default))
    said = str(caught.value)
    assert said.startswith(f"the field 'x_y' of Config has the type {text}, which no flag can have")
    assert "use int, float" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("hint", "default", "bounds", "said"),
    [
        (int, 2.0, {}, "default 2.0 is not of the type int"),
        (int, True, {}, "default True is not of the type int"),
        (int, None, {}, "default None is not of the type int"),
        (float, "1", {}, "default '1' is not of the type float"),
        (float, float("nan"), {}, "nan is not a finite number"),
        (Literal["a", "b"], "c", {}, "default 'c' is not of the type a|b"),
        (Kind, "part", {}, "default 'part' is not of the type all-of-it|part"),
        (Path, "p", {}, "default 'p' is not of the type Path"),
        (tuple[int, float], (1,), {}, "default (1,) is not of its type, int float"),
        (tuple[int, ...], 1, {}, "default 1 is not of its type, int …"),
        (tuple[int, ...], (1, 2.5), {}, "default 2.5 is not of the type int"),
        (int | None, 1, {}, "default is 1, and no word gives None"),
        (int, 0, {"at_least": 1}, "0 is not at least 1"),
        (tuple[int, float], (1, 2.0), {"below": 2}, "2.0 is not below 2"),
        (str, "a", {"at_least": 1}, "bounds are for numbers, and it has the type str"),
        (Literal[1, "1"], 1, {}, "two choices that are typed alike"),
        (Alike, Alike.a_b, {}, "two choices that are typed alike"),
    ],
)
def test_a_default_that_could_not_be_typed_is_refused(
    hint: Any, default: Any, bounds: dict[str, float], said: str
) -> None:
    with pytest.raises(PluginError, match=r"^the field 'x_y' of Config") as caught:
        flags.describe(config_of(hint, default, **bounds))
    assert said in str(caught.value)


def test_a_field_that_no_flag_can_set_is_refused() -> None:
    made = dataclasses.make_dataclass(
        "Config", [("x_y", int, dataclasses.field(default=1, init=False))]
    )
    with pytest.raises(PluginError, match="'x_y' of Config is made with init=False"):
        flags.describe(made)


@pytest.mark.parametrize(
    ("hint", "default", "words", "said"),
    [
        (bool, True, "--x-y false", "--x-y takes no value such as 'false'.*--no-x-y is no"),
        (bool, True, "--no-x-y true", "--no-x-y takes no value.*--x-y is yes"),
        (Kind, Kind.PART, "--x-y prat", "--x-y: 'prat' is none of.*did you mean part"),
        (Kind, Kind.PART, "--x-y 1", '--x-y: \'1\' is none of "all-of-it", "part"$'),
        (tuple[int, float], (1, 2.0), "--x-y 1", r"--x-y: it takes 2 values \(int float\), not 1"),
        (tuple[int, float], (1, 2.0), "--x-y 1 2 3", "--x-y: it takes 2 values .*, not 3"),
        (tuple[int, float], (1, 2.0), "--x-y 1.5 2", "--x-y: '1.5' is not a whole number"),
        (tuple[int, float], (1, 2.0), "--x-y 1 nan", "--x-y: nan is not a finite number"),
        (tuple[int, float], (1, 2.0), "--x-y 1 -1", "--x-y: -1.0 is not at least 0"),
        (tuple[int, float], (1, 2.0), "--empty-x-y", "unknown flag '--empty-x-y'"),
        (tuple[bool, int], (True, 2), "--x-y yes 2", '--x-y: \'yes\' is none of "true", "false"'),
        (int | None, None, "--x-y None", "--x-y: 'None' is not a whole number"),
        (float, 1.0, "--x-y x", "--x-y: 'x' is not a number"),
    ],
)
def test_a_wrong_value_is_one_line_with_the_flag_s_name(
    hint: Any, default: Any, words: str, said: str
) -> None:
    numbers = hint == tuple[int, float]
    config = config_of(hint, default, **({"at_least": 0} if numbers else {}))
    with pytest.raises(UsageError, match=said) as caught:
        flags.parse(config, shlex.split(words))
    assert "\n" not in str(caught.value)


def demo_of(directory: Path) -> Path:
    """The file of a demo with a flag of each kind."""
    (directory / "kinds_demo.py").write_text(DEMO)
    return directory / "kinds_demo.py"


DEMO = """
import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jax.numpy as jnp

import ecotour


class Kind(enum.Enum):
    ALL_OF_IT = 1
    PART = 2


@dataclass(frozen=True)
class Config:
    pair: tuple[int, float] = ecotour.flag((1, 2.0), "two", at_least=-9)
    kinds: tuple[Kind, ...] = ecotour.flag((), "some")
    kind: Kind = ecotour.flag(Kind.PART, "which")
    place: Path | None = ecotour.flag(None, "where")
    words: tuple[str, ...] = ecotour.flag(("a",), "words")
    mode: tuple[Literal["a", "b"], bool] = ecotour.flag(("a", True), "how")
    on: bool = ecotour.flag(True, "or off")


def build(config):
    assert isinstance(config.kind, Kind)

    def step(state, batch, key):
        return state + config.pair[1], {"total": state}

    step_ = ecotour.Step(lambda key, batch: jnp.float32(config.pair[0]), step, 2)
    return ecotour.Program({"add": step_}, lambda outcome: ecotour.Verdict(()))


@ecotour.hookimpl
def ecotour_demo():
    return ecotour.Demo("Adds.", Config, build)
"""


def test_a_run_with_every_kind_is_resumed_and_verified(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, run = demo_of(tmp_path), tmp_path / "run"
    words = shlex.split(
        "--pair -1 2.5 --kinds part all-of-it --kind ALL_OF_IT --place=-p/q "
        "--words=--seed --words=9 --mode b false --no-on"
    )
    common = ["--steps", "2", "--out", str(run), "--checkpoint-every", "1", "--quiet"]
    assert cli.main(["run", str(file), *words, *common]) == 0
    kept = json.loads((run / "run.json").read_text())["config"]
    assert kept == {
        "pair": [-1, 2.5], "kinds": ["part", "all-of-it"], "kind": "all-of-it", "place": "-p/q",
        "words": ["--seed", "9"], "mode": ["b", False], "on": False,
    }  # fmt: skip
    assert cli.main(["resume", str(run), "--steps", "3", "--quiet"]) == 0
    assert json.loads((run / "run.json").read_text())["config"] == kept
    capfd.readouterr()
    assert cli.main(["verify", str(run), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["verdict"] == "same bits"
    assert cli.main(["show", str(file), "--json"]) == 0
    described = {one["name"]: one for one in json.loads(capfd.readouterr().out)["flags"]}
    assert described["--kind"]["default"] == "part"
    assert described["--on"]["usage"] == "--on/--no-on"


def test_a_refused_type_is_one_line_of_every_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = demo_of(tmp_path)
    file.write_text(DEMO.replace("on: bool = ecotour.flag(True", "on: dict = ecotour.flag(None"))
    for words in (["run", "--out", str(tmp_path / "run")], ["run", "--help"], ["show"]):
        assert cli.main([words[0], str(file), *words[1:]]) == 1
        said = capfd.readouterr().err.strip()
        assert "the field 'on' of Config has the type dict, which no flag can have" in said
        assert "\n" not in said
    assert not (tmp_path / "run").exists()
