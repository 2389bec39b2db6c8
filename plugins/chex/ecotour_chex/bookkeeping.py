"""Each fault with each tool, and what each tool costs: tried, timed and kept.

All conditions are equal: the same data, the same key and the same number of steps for each pair.
Results are arrays, so that a run can be resumed from a checkpoint between two faults.
"""

# %%
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour_chex.faults import FAULTS, NO_FAULT, Fault
from ecotour_chex.tools import APART, HERE, TOOLS, Make, Tool
from ecotour_chex.training import DEVICES, Config, Training, draw_noise, make_examples
from ecotour_chex.visit import BLANK_STEP, PADDED_STEP, VISIT_STEPS, Moment, visit

SILENT, STOPPED, CAUGHT = 0, 1, 2
"""What became of a visit: nothing was raised; something else than the tool stopped it; caught."""

MESSAGE_BYTES = 600
ROWS = (NO_FAULT, *FAULTS)
"""The clean training first: no tool may sound an alarm there."""

COLUMNS = [tool.name for tool in TOOLS]


# %% Equal conditions
def conditions(
    seed: np.ndarray, config: Config, count: int
) -> tuple[list[dict[str, np.ndarray]], jax.Array]:
    """Make ``count`` batches, one of them padded, one with a blank example; and the loop's key.

    ``seed``, uint32 [2], are the data of that key: arrays can be saved, keys cannot.
    """
    generator = np.random.default_rng(seed)
    batches = [make_examples(generator, config.batch_size) for _ in range(count)]
    # the last device of four has a quarter of its examples, the others all of theirs
    part = config.batch_size // DEVICES
    batches[PADDED_STEP - 1]["weights"][-(part - part // 4) :] = 0.0
    batches[BLANK_STEP - 1]["inputs"][0] = batches[BLANK_STEP - 1]["targets"][0] = 0.0
    return batches, jax.random.wrap_key_data(jnp.asarray(seed))


def trainings(fault: Fault, config: Config) -> Make:
    """Return a maker of fresh trainings with this fault."""
    return lambda: Training(noise=config.noise, context=fault.context, **fault.pieces())


# %% One fault, all tools
def try_tools(
    fault: Fault, tools: Sequence[Tool], config: Config, seed: np.ndarray
) -> dict[str, list[Any]]:
    """Try each tool on a fault.

    The tools that only watch share one visit, since what they watch is the same program.

    Returns:
        For each tool the ``kind`` of what became of it, ``at`` which step, and what it ``says``.
    """
    make = trainings(fault, config)
    batches, key = conditions(seed, config, VISIT_STEPS)
    watchers = {tool.name: tool.watch for tool in tools if tool.watch}
    watched = visit(make(), batches, key, watchers) if watchers else None
    found: dict[str, list[Any]] = {"kind": [], "at": [], "says": []}
    for tool in tools:
        seen = watched if watched and tool.watch else tool.visit(make, batches, key)
        own = isinstance(seen.error, tool.raises) and not tool.watch
        kind = SILENT if seen.error is None else CAUGHT if own else STOPPED
        at, says = seen.raised_at, "" if seen.error is None else str(seen.error)
        if tool.watch and tool.name in seen.objections:
            kind, (at, says) = CAUGHT, seen.objections[tool.name]
        for name, value in (("kind", kind), ("at", at), ("says", says)):
            found[name].append(value)
    return found


def tried_row(
    fault: Fault, tools: Sequence[Tool], config: Config, seed: np.ndarray
) -> dict[str, Any]:
    """Return a row of findings: of all that was said, only what the tool with the claim said."""
    found = try_tools(fault, tools, config, seed)
    said = dict(zip((tool.name for tool in tools), found["says"], strict=True))
    return found | {"says": said.get(fault.claimed_by, "")}


def symptom(fault: Fault, config: Config, seed: np.ndarray) -> tuple[float, float]:
    """Return what the fault's label measures, for the clean training and for the faulty one."""
    batches, key = conditions(seed, config, fault.steps)
    clean, spoilt = (
        float(fault.measure(visit(trainings(one, config)(), batches, key)))
        for one in (NO_FAULT, fault)
    )
    return clean, spoilt


# %% What a guard costs
def time_guard(tool: Tool, config: Config, seed: np.ndarray) -> tuple[float, float]:
    """Return the median milliseconds of a clean step, and the median of what the guard adds.

    Steps without and with the guard take turns, and each is compared with its neighbour, so that
    whatever else the machine is doing meets both. The first three, which compile, do not count. A
    guard that is very slow gets fewer steps.
    """
    make = trainings(NO_FAULT, config)
    (batch, *_), key = conditions(seed, config, BLANK_STEP)
    loops = [make(), replace(make(), **tool.guard(make))]
    calls = [training.compile(training.step()) for training in loops]
    states = [training.begin() for training in loops]
    times: list[list[float]] = [[], []]
    noise, other = draw_noise(key), jax.random.fold_in(key, 1)
    deadline = time.perf_counter() + 1.5
    for number in range(config.timed_steps + 3):
        for side, (training, call) in enumerate(zip(loops, calls, strict=True)):
            with training.context():
                start = time.perf_counter()
                state, _ = call(states[side], batch, noise)
                if side == 1 and tool.watch:
                    tool.watch(Moment(states[side], key), Moment(state, other))
                jax.block_until_ready(state["params"])
                times[side].append(1e3 * (time.perf_counter() - start))
            states[side] = state
        if number > 12 and time.perf_counter() > deadline:
            break
    for training, call in zip(loops, calls, strict=True):
        training.farewell(call)
    bare, guarded = (np.array(side[3:]) for side in times)
    return float(np.median(bare)), float(np.median(guarded - bare))


# %% Messages, as a checkpoint wants them
def as_bytes(text: str) -> np.ndarray:
    """Put a message into an array of fixed size."""
    raw = text.encode()[:MESSAGE_BYTES].ljust(MESSAGE_BYTES)
    return np.frombuffer(raw, np.uint8)


def as_text(array: Any) -> str:
    """Undo `as_bytes`."""
    return np.asarray(array, np.uint8).tobytes().decode(errors="replace").rstrip()


def no_findings(tools: Sequence[Tool]) -> dict[str, np.ndarray]:
    """Return what `tried_row` fills: arrays with a row for each of `ROWS`."""
    return {
        "kind": np.zeros((len(ROWS), len(tools)), np.int32),
        "at": np.zeros((len(ROWS), len(tools)), np.int32),
        "says": np.zeros((len(ROWS), MESSAGE_BYTES), np.uint8),
    }


def whole_matrix(museum: Any, apart: Any) -> tuple[np.ndarray, np.ndarray]:
    """Put the two parts together: ``kind`` and ``at``, both int ``[12, 14]``, ROWS by TOOLS."""
    kind = np.zeros((len(ROWS), len(TOOLS)), int)
    at = np.zeros_like(kind)
    for part, tools in ((museum, HERE), (apart, APART)):
        columns = [COLUMNS.index(tool.name) for tool in tools]
        kind[:, columns], at[:, columns] = part["kind"], part["at"]
    return kind, at


# %% The named steps: one row, or one guard, per step
def row_by_row(
    blank: Callable[[], dict[str, np.ndarray]],
    rows: int,
    fill: Callable[[int, np.ndarray], Mapping[str, Any]],
    summary: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> ecotour.Step:
    """Fill a row of ``blank()`` in each step; ``summary`` makes the metrics of it."""

    def init(key: jax.Array, batch: Any) -> dict[str, np.ndarray]:
        seed = np.asarray(jax.random.key_data(key))
        return {"seed": seed, "done": np.zeros((), np.int32), **blank()}

    def step(found: Mapping[str, Any], batch: Any, key: jax.Array) -> Any:
        new = {name: np.array(value) for name, value in found.items()}
        row = int(new["done"])
        if row < rows:  # after the last one there is nothing more to do
            for name, value in fill(row, new["seed"]).items():
                new[name][row] = value
            new["done"] += 1
        last = int(new["done"]) - 1
        return new, summary({name: new[name][last] for name in blank()})

    return ecotour.Step(init, step, steps=rows, compiled=False)


def museum_step(config: Config) -> ecotour.Step:
    """Visit each of `ROWS` with every tool that can be tried in this process."""

    def fill(row: int, seed: np.ndarray) -> dict[str, Any]:
        found = tried_row(ROWS[row], HERE, config, seed)
        return found | {
            "says": as_bytes(found["says"]),
            "symptom": symptom(ROWS[row], config, seed),
        }

    def summary(row: Mapping[str, Any]) -> dict[str, Any]:
        counted = {"caught": CAUGHT, "stopped": STOPPED, "silent": SILENT}
        return {name: np.sum(row["kind"] == kind) for name, kind in counted.items()}

    blank = lambda: no_findings(HERE) | {"symptom": np.zeros((len(ROWS), 2))}  # noqa: E731
    return row_by_row(blank, len(ROWS), fill, summary)


def costs_step(config: Config) -> ecotour.Step:
    """Time each guard: ``ms`` ``[guards, 2]``, a bare step and what the guard adds."""
    return row_by_row(
        lambda: {"ms": np.zeros((len(HERE), 2))},
        len(HERE),
        lambda row, seed: {"ms": time_guard(HERE[row], config, seed)},
        lambda row: {"bare_ms": row["ms"][0], "added_ms": row["ms"][1]},
    )
