"""What a callback raises inside a compiled step is said in its own words, in one line."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from ecotour import cli
from ecotour.running.callbacks import LOGGERS, noting

DEMO = '''"""A step, a view and an init that call back to Python."""
from dataclasses import dataclass
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import io_callback
import ecotour
from ecotour import exhibits

@dataclass(frozen=True)
class Config:
    where: str = ecotour.flag("step", "what fails")
    what: str = ecotour.flag("ValueError", "how")
    by: str = ecotour.flag("pure", "pure or io")
    compiled: bool = ecotour.flag(True, "whether the step is")

RAISED = {"ValueError": ValueError("the host said no"), "SystemExit": SystemExit(3),
          "KeyboardInterrupt": KeyboardInterrupt()}

def build(config):
    def one(where, number):
        def host(number):
            if config.where == where and int(number) >= 2:
                raise RAISED[config.what]
            return np.float32(1)
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        call = io_callback if config.by == "io" else jax.pure_callback
        return call(host, shape, number)

    def init(key, batch):
        return {"n": jnp.int32(0), "x": one("init", jnp.int32(5))}
    def step(state, batch, key):
        x = one("step", state["n"])
        return {"n": state["n"] + 1, "x": x}, {"loss": x}
    def view(state, key):
        x = jax.jit(lambda n: one("view", n + 5))(state["n"])
        return {"x": exhibits.Bars(["x"], [float(x)], "a bar")}
    made = ecotour.Step(init, step, 6, view=view, compiled=config.compiled)
    return ecotour.Program({"count": made}, lambda outcome: ecotour.Verdict([]))

@ecotour.hookimpl
def ecotour_demo():
    return ecotour.Demo("calls back", Config, build)
'''


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    file = tmp_path / "calls.py"
    file.write_text(DEMO)
    return file


def run(demo: Path, *words: str) -> tuple[int, dict[str, object]]:
    out = demo.parent / "run"
    code = cli.main(["run", str(demo), "--out", str(out), "--quiet", *words])
    return code, json.loads((out / "run.json").read_text())


@pytest.mark.parametrize("where", ["init", "step"])
@pytest.mark.parametrize("words", [(), ("--by", "io"), ("--no-compiled",)], ids=str)
def test_the_original_exception_and_one_line(
    demo: Path, where: str, words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    code, record = run(demo, "--where", where, *words)
    said = capfd.readouterr().err
    assert code == 1
    assert record["error"] == "calls failed: ValueError: the host said no"
    assert said.splitlines() == [f"ecotour: {record['error']}; `ecotour --debug …` shows where"]


def test_a_callback_that_leaves_the_process_does_not(demo: Path) -> None:
    code, record = run(demo, "--what", "SystemExit")
    assert (code, record["status"]) == (1, "failed")
    assert record["error"] == "calls failed: SystemExit: 3"


@pytest.mark.parametrize("where", ["init", "step", "view"])
def test_an_interrupt_is_one_wherever_it_surfaces(
    demo: Path, where: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, record = run(demo, "--what", "KeyboardInterrupt", "--where", where)
    assert (code, record["status"], record["error"]) == (130, "interrupted", None)
    assert "Traceback" not in capfd.readouterr().err


def test_in_a_view_it_costs_the_view_alone(demo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, record = run(demo, "--where", "view")
    assert (code, record["status"]) == (0, "finished")
    said = capfd.readouterr().err
    assert "ValueError: the host said no" in said
    assert "Traceback" not in said


def test_what_others_log_is_left_alone_and_nothing_stays_behind() -> None:
    logger = logging.getLogger(LOGGERS[0])
    before = list(logger.filters)
    with noting() as raised:
        assert logger.filter(logger.makeRecord("a", 20, "f", 1, "words", (), None))
        error = ValueError("of the step itself")
        assert raised.original(error) is error
    assert logger.filters == before
