"""Small programs for the tests: stochastic gradient descent on a line, and broken kin of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecotour import Check, DataInfo, Dataset, Outcome, Program, Step, Verdict, exhibits
from ecotour.contract.plan import Plan

RATE = 0.1


@dataclass(frozen=True)
class Config:
    """No flags."""


def plan(steps: int | None = 10, **given: Any) -> Plan:
    return Plan("line", "tests 0", Config(), steps=steps, **given)


def line_data(examples: int = 12) -> Dataset:
    x = np.linspace(-1, 1, examples, dtype=np.float32)
    return Dataset(DataInfo("line", "synthetic", "train", examples), {"x": x, "y": 3 * x + 1})


def line_init(key: jax.Array, batch: Any) -> dict[str, jax.Array]:
    return {"w": jax.random.normal(key, ()), "b": jnp.zeros(())}


@jax.jit
def line_step(state: Any, batch: Any, key: jax.Array) -> tuple[Any, Any]:
    def loss(params: Any) -> jax.Array:
        return jnp.mean((params["w"] * batch["x"] + params["b"] - batch["y"]) ** 2)

    value, gradient = jax.value_and_grad(loss)(state)
    noise = 0.01 * jax.random.normal(key, ())
    moved = jax.tree.map(lambda p, g: p - RATE * g + noise, state, gradient)
    return moved, {"loss": value}


def judge(outcome: Outcome) -> Verdict:
    check = Check.at_most("last loss", outcome.history["fit"]["loss"].last, 1.0)
    shown = {"table": exhibits.Table(("w",), ((1.0,),), "The slope.")}
    return Verdict((check,), shown, "A line.")


def line(
    *, step: Callable[..., Any] = line_step, init: Callable[..., Any] = line_init, **given: Any
) -> Program:
    """The program; its step, its init, or other fields of the step replaced."""
    made = Step(init, step, steps=10, **given)
    return Program({"fit": made}, judge, {"train": line_data()}, batch_size=4)


def without_data(*, judge: Callable[..., Any] = lambda _: Verdict(()), **steps: Step) -> Program:
    """A program of steps that need no data."""
    return Program(steps, judge)
