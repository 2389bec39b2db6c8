"""The tour through the museum: each fault with each tool, and what each tool costs.

All conditions are equal: the same data, the same key and the same number of steps for each pair.
Results are arrays, so that a run can be resumed from a checkpoint between two faults.
"""

# %%
from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecotour_chex.demo import TRUTH, Config, Training, draw_noise, make_examples
from ecotour_chex.faults import FAULTS
from ecotour_chex.tools import HERE, Make, Tool
from ecotour_chex.visit import (
    BLANK_STEP,
    DEVICES,
    PADDED_STEP,
    VISIT_STEPS,
    Fault,
    Moment,
    Visit,
    visit,
)

SILENT, STOPPED, CAUGHT = 0, 1, 2
"""What became of a visit: nothing was raised; something else than the tool stopped it; caught."""

MESSAGE_BYTES = 600
ROWS: tuple[Fault | None, ...] = (None, *FAULTS)
"""The clean training first: no tool may sound an alarm there."""


# %% Equal conditions
def key_of(seed: np.ndarray) -> jax.Array:
    """Return the key whose data are ``seed``, uint32 [2]: arrays can be saved, keys cannot."""
    return jax.random.wrap_key_data(jnp.asarray(seed))


def museum_batches(seed: np.ndarray, batch_size: int, count: int) -> list[dict[str, np.ndarray]]:
    """Make ``count`` batches from a key's data: one of them padded, one with a blank example."""
    generator = np.random.default_rng(seed)
    batches = [make_examples(generator, batch_size) for _ in range(count)]
    # the last device of four has a quarter of its examples, the others all of theirs
    part = batch_size // DEVICES
    batches[PADDED_STEP - 1]["weights"][-(part - part // 4) :] = 0.0
    batches[BLANK_STEP - 1]["inputs"][0] = batches[BLANK_STEP - 1]["targets"][0] = 0.0
    return batches


def trainings(fault: Fault | None, config: Config) -> Make:
    """Return a maker of fresh trainings with this fault, or with none."""

    def make() -> Training:
        clean = Training(noise=config.noise, truth=TRUTH)
        if fault is None:
            return clean
        return clean.with_pieces(context=fault.context, **fault.pieces())

    return make


# %% One fault, all tools
def try_tools(
    row: int, tools: Sequence[Tool], config: Config, seed: np.ndarray
) -> list[tuple[int, int, str]]:
    """Try each tool on the fault in this row: what became of it, at which step, what was said.

    The tools that only watch share one visit, since what they watch is the same program.
    """
    make = trainings(ROWS[row], config)
    batches = museum_batches(seed, config.batch_size, VISIT_STEPS)
    key = key_of(seed)
    watchers = {tool.name: tool.watch for tool in tools if tool.watch}
    watched = visit(make(), batches, key, watchers) if watchers else None
    results = []
    for tool in tools:
        if watched and tool.name in watched.objections:
            results.append((CAUGHT, *watched.objections[tool.name]))
            continue
        seen = watched if watched and tool.watch else tool.visit(make, batches, key)
        own = isinstance(seen.error, tool.raises) and not tool.watch
        kind = SILENT if seen.error is None else CAUGHT if own else STOPPED
        results.append((kind, seen.raised_at, "" if seen.error is None else str(seen.error)))
    return results


def claim(row: int, tried: Sequence[tuple[int, int, str]]) -> np.ndarray:
    """Return what the tool that claims the fault in this row said, as bytes; blank if nobody does.

    ``tried`` is the answer of `try_tools` for `tools.HERE`.
    """
    fault = ROWS[row]
    names = [tool.name for tool in HERE]
    if fault is None or fault.claimed_by not in names:
        return as_bytes("")
    return as_bytes(tried[names.index(fault.claimed_by)][2])


def symptom(row: int, config: Config, seed: np.ndarray) -> tuple[float, float]:
    """Return what the fault's label measures, for the clean training and for the faulty one."""
    fault = ROWS[row]
    if fault is None:
        return 0.0, 0.0
    batches = museum_batches(seed, config.batch_size, fault.steps)
    spoilt = visit(trainings(fault, config)(), batches, key_of(seed))
    return fault.measure(clean_visit(config, seed.tobytes(), fault.steps)), fault.measure(spoilt)


@functools.lru_cache(maxsize=2)
def clean_visit(config: Config, seed: bytes, steps: int) -> Visit:
    """The correct training for so many steps: the same for all faults, so kept."""
    words = np.frombuffer(seed, np.uint32)
    batches = museum_batches(words, config.batch_size, steps)
    return visit(trainings(None, config)(), batches, key_of(words))


# %% What a guard costs
def time_guard(tool: Tool, config: Config, seed: np.ndarray) -> tuple[float, float]:
    """Return the median milliseconds of a clean step, and the median of what the guard adds.

    Steps without and with the guard take turns, and each is compared with its neighbour, so that
    whatever else the machine is doing meets both. The first three, which compile, do not count. A
    guard that is very slow gets fewer steps.
    """
    make = trainings(None, config)
    batch = museum_batches(seed, config.batch_size, BLANK_STEP)[0]
    key = key_of(seed)
    loops = [make(), make().with_pieces(**tool.guard(make))]
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


def as_bytes(text: str) -> np.ndarray:
    """Put a message into an array of fixed size, as a checkpoint wants it."""
    raw = text.encode()[:MESSAGE_BYTES].ljust(MESSAGE_BYTES)
    return np.frombuffer(raw, np.uint8)


def as_text(array: Any) -> str:
    """Undo `as_bytes`."""
    return np.asarray(array, np.uint8).tobytes().decode(errors="replace").rstrip()


# %% The named steps: one row, or one guard, per step
def nothing_visited(key: jax.Array, batch: Any) -> dict[str, np.ndarray]:
    """Return the findings before the first visit, one row for each of `ROWS`."""
    rows, columns = len(ROWS), len(HERE)
    return {
        "seed": np.asarray(jax.random.key_data(key)),
        "done": np.zeros((), np.int32),
        "kind": np.zeros((rows, columns), np.int32),
        "at": np.zeros((rows, columns), np.int32),
        "symptom": np.zeros((rows, 2)),
        "says": np.zeros((rows, MESSAGE_BYTES), np.uint8),
    }


def visit_next(found: Mapping[str, Any], config: Config) -> tuple[Any, dict[str, Any]]:
    """Visit the next row; after the last one there is nothing more to do."""
    new = {name: np.array(value) for name, value in found.items()}
    row = int(new["done"])
    if row < len(ROWS):
        tried = try_tools(row, HERE, config, new["seed"])
        new["kind"][row] = [kind for kind, _, _ in tried]
        new["at"][row] = [at for _, at, _ in tried]
        new["symptom"][row] = symptom(row, config, new["seed"])
        new["says"][row] = claim(row, tried)
        new["done"] += 1
    kinds = new["kind"][min(row, len(ROWS) - 1)]
    counted = {"caught": CAUGHT, "stopped": STOPPED, "silent": SILENT}
    return new, {name: np.sum(kinds == kind) for name, kind in counted.items()}


def nothing_timed(key: jax.Array, batch: Any) -> dict[str, np.ndarray]:
    """Return the costs before any is known: ``ms`` ``[guards, 2]``, a bare step and the rest."""
    seed = np.asarray(jax.random.key_data(key))
    return {"seed": seed, "done": np.zeros((), np.int32), "ms": np.zeros((len(HERE), 2))}


def time_next(found: Mapping[str, Any], config: Config) -> tuple[Any, dict[str, Any]]:
    """Time the next guard; after the last one there is nothing more to do."""
    new = {name: np.array(value) for name, value in found.items()}
    which = int(new["done"])
    if which < len(HERE):
        new["ms"][which] = time_guard(HERE[which], config, new["seed"])
        new["done"] += 1
    bare, added = new["ms"][min(which, len(HERE) - 1)]
    return new, {"bare_ms": bare, "added_ms": added}
