"""A view that raises costs what it would have shown, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs
from runs import ecotour

DEMO = """
import dataclasses, ecotour, jax, jax.numpy as jnp
from typing import Literal
from ecotour import exhibits
from ecotour.errors import ContractError, DataError

class Odd(BaseException):
    pass

KINDS = {
    "value": ValueError("a line\\nand another"), "exit": SystemExit("no"), "odd": Odd(),
    "ours": DataError("no data"), "contract": ContractError("no"), "memory": MemoryError(),
    "interrupt": KeyboardInterrupt(),
}

@dataclasses.dataclass(frozen=True)
class Config:
    kind: Literal["value", "exit", "odd", "ours", "contract", "memory", "interrupt"] = (
        ecotour.flag("value", "what is raised"))
    after: int = ecotour.flag(0, "from which step on")
    compiled: bool = ecotour.flag(True, "or called as it is")

def build(config):
    init = lambda key, batch: jnp.zeros((), jnp.int32)
    step = lambda state, batch, key: (state + 1, {"count": state})
    def view(state, key):
        if int(state) >= config.after:
            raise KINDS[config.kind]
        return {"count": exhibits.Table(("count",), ((int(state),),), "So far.")}
    def judge(outcome):
        return ecotour.Verdict((ecotour.Check.at_least("count", int(outcome.states["up"]), 6),))
    up = ecotour.Step(init, step, 6, view=view, compiled=config.compiled)
    return ecotour.Program({"up": up}, judge)

@ecotour.hookimpl
def ecotour_demo():
    return ecotour.Demo("Counts", Config, build)
"""


@pytest.fixture
def demo(workdir: Path) -> str:
    (workdir / "counting.py").write_text(DEMO)
    return "./counting.py"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("value", "ValueError: a line"), ("exit", "SystemExit: no"), ("odd", "Odd: no message"),
        ("ours", "DataError: no data"), ("contract", "ContractError: no"),
        ("memory", "MemoryError: no message"),
    ],
)  # fmt: skip
def test_training_goes_on_whatever_a_view_raises(
    demo: str, kind: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ecotour("run", demo, "--kind", kind, "--out", "r", "--quiet") == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "failed after" in line]
    assert f"counting: the view of 'up' failed after step 0: {said}: nothing is shown" in line
    record = runs.record(Path("r"))
    assert (record["status"], record["progress"]) == ("finished", {"up": 6})
    assert record["unshown"]["up"] == [0, 1, 2, 3, 4, 5, 6]
    assert record["checks"][0]["passed"] is True
    assert [one for one in record["warnings"] if said in one]


@pytest.mark.parametrize("compiled", ["--compiled", "--no-compiled"])
def test_one_that_fails_late_keeps_what_it_showed_before(
    demo: str, compiled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ecotour("run", demo, "--after", 4, compiled, "--out", "r", "--strict") == 3
    assert "not shown  up: its view failed after step 4, 5, 6" in capsys.readouterr().err
    assert runs.record(Path("r"))["unshown"] == {"up": [4, 5, 6]}
    assert len(list(Path("r/exhibits").glob("up-count-*.json"))) == 4
    assert "Not shown: up: its view failed after step 4, 5, 6." in (
        Path("r/report.html").read_text("utf-8")
    )


def test_a_sound_view_is_none_of_this(demo: str) -> None:
    assert ecotour("run", demo, "--after", 99, "--out", "r", "--strict", "--quiet") == 0
    assert runs.record(Path("r"))["unshown"] == {}


def test_a_longer_run_does_not_count_a_failure_twice(demo: str) -> None:
    words = [demo, "--after", 3, "--steps", 4, "--out", "r", "--quiet"]
    assert ecotour("run", *words, "--checkpoint-every", 2) == 0
    assert runs.record(Path("r"))["unshown"] == {"up": [3, 4]}
    assert ecotour("resume", "r", "--steps", 6, "--quiet", "--strict") == 3
    assert runs.record(Path("r"))["unshown"] == {"up": [3, 4, 5, 6]}


def test_an_interrupt_stays_an_interrupt(demo: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ecotour("run", demo, "--kind", "interrupt", "--out", "r", "--quiet") == 130
    assert "failed after" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["value", "exit", "ours", "contract"])
def test_check_has_it_as_a_finding(demo: str, kind: str) -> None:
    from ecotour.checking.bench import straight
    from ecotour.checking.table import Fault
    from ecotour.checking.targets import subject_of
    from ecotour.discovery import registry

    _, found = registry.load_file(Path(demo))
    with pytest.raises(Fault) as caught:
        straight(subject_of(found, ["--kind", kind, "--after", "2"]))
    assert caught.value.id == "view-fails"
    assert caught.value.of == "up"
