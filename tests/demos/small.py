"""A demo for the tests of checkpoints: two named steps, and a state with every kind of leaf."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ecotour
from ecotour import exhibits


@dataclass(frozen=True)
class Config:
    """Every kind of flag."""

    rate: float = ecotour.flag(0.05, "of descent", above=0)
    sizes: tuple[int, ...] = ecotour.flag((3, 4), "of the parameters", at_least=1)
    shifted: bool = ecotour.flag(True, "whether the line has an offset")
    word: str = ecotour.flag("plain words", "for nothing")
    bad_from: int = ecotour.flag(0, "the step from which on a metric is no number; 0 is never")


class State(NamedTuple):
    """A state that holds a bit of everything."""

    params: dict[str, Any]
    optimizer: Any
    key: jax.Array
    count: Any
    half: jax.Array
    nothing: None


def build(config: Config) -> ecotour.Program:
    """Fit a line with momentum and some noise, twice."""
    transformation = optax.chain(optax.clip(5.0), optax.trace(0.9), optax.scale(-config.rate))

    def init(key: jax.Array, batch: Any) -> State:
        params = {"layer/~/w": jax.random.normal(key, config.sizes), "empty": jnp.zeros((0, 2))}
        optimizer = transformation.init(params)
        return State(params, optimizer, key, 0, jnp.ones(3, jnp.bfloat16), None)

    @jax.jit
    def step(state: State, batch: Any, key: jax.Array) -> tuple[State, Any]:
        def loss(params: Any) -> jax.Array:
            residual = params["layer/~/w"].sum() * batch["x"] - batch["y"]
            return jnp.mean(residual**2)

        value, gradient = jax.value_and_grad(loss)(state.params)
        updates, optimizer = transformation.update(gradient, state.optimizer)
        params = optax.apply_updates(state.params, updates)
        noise = 0.01 * jax.random.normal(jax.random.fold_in(state.key, 1), config.sizes)
        params["layer/~/w"] += noise
        count = state.count + 1
        if config.bad_from:
            bad = count >= config.bad_from
            value = jnp.where(bad, jnp.where(count % 2 == 0, jnp.nan, jnp.inf), value)
            params["layer/~/w"] = jnp.where(bad, jnp.nan, params["layer/~/w"])
        moved = State(
            params, optimizer, jax.random.split(state.key)[0], count, state.half * 0.99, None
        )
        return moved, {"loss": value, "count": count}

    def view(state: State, key: jax.Array) -> dict[str, exhibits.Exhibit]:
        total = float(state.params["layer/~/w"].sum())
        shown = total if math.isfinite(total) else 0.0
        return {"slope": exhibits.Table(("slope",), ((shown,),), "The slope so far.")}

    def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
        losses = [history["loss"].last for history in outcome.history.values()]
        rows = sum(len(history["loss"].steps) for history in outcome.history.values())
        slopes = [float(s.params["layer/~/w"].sum()) for s in outcome.states.values()]
        return ecotour.Verdict(
            (
                ecotour.Check.at_most("the largest last loss", max(losses), 1e4),
                ecotour.Check.at_least("rows", rows, 1),
                ecotour.Check.between("slopes together", sum(slopes), -1e4, 1e4),
            )
        )

    x = np.linspace(-1, 1, 64, dtype=np.float32)
    info = ecotour.DataInfo("line", "synthetic", "train", 64)
    data = ecotour.Dataset(info, {"x": x, "y": 3 * x + float(config.shifted)})
    return ecotour.Program(
        {
            "first": ecotour.Step(init, step, 40, view=view, lower_is_better={"loss": True}),
            "second": ecotour.Step(init, step, 30, lower_is_better={"count": False}),
        },
        judge,
        {"train": data},
        batch_size=8,
    )


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """A line, fitted twice."""
    return ecotour.Demo("Fits a line, twice.", Config, build)
