"""Steps of Catch and its agent, fused: ours beside gymnax's.

    python tests/benchmarks/catch_steps.py [--rounds 30] [--json FILE]

The same agent for both: 32 seeds, each with parameters of its own for a network of 50-64-3 units
that acts on 16 boards by the softmax of its logits; 90 steps in one compiled `lax.scan`. Ours is
`ecotour_rlax.catch.unroll`. gymnax's environment is driven as its documentation does it (keys split
in every step, `jax.random.categorical`), and once more with actions picked as ours are, from
numbers drawn beforehand: what then remains is the environment. Without gymnax (which belongs to no
dependency of ecotour; `pip install gymnax`) only ours is measured.

The three take turns, so that a busy moment of the machine falls on all of them. Reported are
medians, and medians of the ratios of turns that stand side by side: above 1, ours is faster.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import peers
from turns import spread

from ecotour.machine import environment
from ecotour_rlax import catch

SEEDS, BOARDS, HIDDEN, STEPS = 32, 16, 64, 90
Params = dict[str, jax.Array]
Loop = Callable[[Params, Any, jax.Array], tuple[Any, jax.Array]]


def parameters() -> Params:
    """Weights for all seeds, with the seed as leading axis."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (50, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, 3), "b2": (3,)}
    return {
        name: jnp.asarray(rng.normal(size=(SEEDS, *shape)) / 8, jnp.float32)
        for name, shape in shapes.items()
    }


def logits(params: Params, picture: jax.Array) -> jax.Array:
    """``[10, 5]`` to ``[3]``; for one seed and one board."""
    hidden = jax.nn.relu(jnp.ravel(picture) @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def ours() -> tuple[Any, Loop]:
    """Boards ``[SEEDS, BOARDS]`` and 90 steps on them."""
    keys = jax.random.split(jax.random.key(0), (SEEDS, BOARDS))
    boards = jax.vmap(jax.vmap(catch.reset))(keys)

    def one_seed(params: Params, boards: catch.Board, chance: jax.Array) -> Any:
        def policy(board: catch.Board) -> jax.Array:
            return jax.nn.softmax(logits(params, catch.observe(board)))

        boards, played = jax.vmap(catch.unroll, (None, 0, 0))(policy, boards, chance)
        return boards, played.reward

    def loop(params: Params, boards: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        chance = jax.random.uniform(key, (SEEDS, BOARDS, STEPS, 2))
        boards, rewards = jax.vmap(one_seed)(params, boards, chance)
        return boards, jnp.sum(rewards)

    return boards, loop


def gymnax_loop(drawn_before: bool) -> tuple[Any, Loop]:
    """The same with gymnax's environment, which starts a new episode by itself."""
    import gymnax

    environment, settings = gymnax.make("Catch-bsuite")
    keys = jax.random.split(jax.random.key(0), (SEEDS, BOARDS))
    reset = jax.vmap(jax.vmap(environment.reset, (0, None)), (0, None))
    step = jax.vmap(environment.step, (0, 0, 0, None))
    act = jax.vmap(logits, (None, 0))

    def one_seed(params: Params, now: Any, key: jax.Array) -> Any:
        def one(carry: Any, uniform: jax.Array) -> Any:
            pictures, states, key = carry
            key, act_key, step_key = jax.random.split(key, 3)
            preferences = act(params, pictures)
            if drawn_before:
                action = jax.vmap(catch.pick)(jax.nn.softmax(preferences), uniform)
            else:
                action = jax.random.categorical(act_key, preferences)
            step_keys = jax.random.split(step_key, BOARDS)
            pictures, states, reward, *_ = step(step_keys, states, action, settings)
            return (pictures, states, key), reward

        draw_key, key = jax.random.split(key)
        uniform = jax.random.uniform(draw_key, (STEPS, BOARDS))
        (pictures, states, _), rewards = jax.lax.scan(one, (*now, key), uniform)
        return (pictures, states), rewards

    def loop(params: Params, now: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        now, rewards = jax.vmap(one_seed)(params, now, jax.random.split(key, SEEDS))
        return now, jnp.sum(rewards)

    return jax.jit(reset)(keys, settings), loop


def measure(rounds: int = 30) -> dict[str, Any]:
    """Let all take turns, and return steps per second and ratios."""
    loops = {"ecotour": ours()}
    if peers.versions("gymnax"):
        loops["gymnax"] = gymnax_loop(drawn_before=False)
        loops["gymnax_drawn_before"] = gymnax_loop(drawn_before=True)
    params = parameters()
    states, programs, returns = {}, {}, {}
    rates: dict[str, list[float]] = {name: [] for name in loops}
    for name, (state, loop) in loops.items():
        states[name] = state
        programs[name] = jax.jit(loop).lower(params, state, jax.random.key(0)).compile()
        returns[name] = 0.0
    for number in range(-2, rounds):  # the first two are warm-up
        for name in loops if number % 2 else reversed(loops):
            key = jax.random.fold_in(jax.random.key(1), number + 2)
            began = time.perf_counter()
            states[name], reward = jax.block_until_ready(programs[name](params, states[name], key))
            if number >= 0:
                rates[name].append(SEEDS * BOARDS * STEPS / (time.perf_counter() - began))
                returns[name] += float(reward)
    episodes = rounds * SEEDS * BOARDS * STEPS / catch.EPISODE
    return {
        "steps_per_s": {name: spread(values, 0) for name, values in rates.items()},
        "ratios": {
            name: spread([a / b for a, b in zip(rates["ecotour"], values, strict=True)])
            for name, values in rates.items()
            if name != "ecotour"
        },
        # the same game and the same agent: these must agree within a few thousandths
        "mean_return": {name: round(total / episodes, 4) for name, total in returns.items()},
        "machine": environment.describe() | peers.versions("gymnax"),
    }


def main() -> None:
    """Measure and print; with ``--json`` also write the figures to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="timed turns of each")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    figures = measure(arguments.rounds)
    for name, row in figures["steps_per_s"].items():
        print(
            f"{name:20s} {row['median']:12,.0f} steps/s   quartiles {row['p25']:,.0f} to"
            f" {row['p75']:,.0f}   mean return {figures['mean_return'][name]}"
        )
    for name, row in figures["ratios"].items():
        print(f"ecotour / {name:20s} {row['median']:.2f}   quartiles {row['p25']} to {row['p75']}")
    if not figures["ratios"]:
        print(
            "gymnax is not installed here, so there is nothing to compare with: pip install gymnax"
        )
    print(figures["machine"])
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
