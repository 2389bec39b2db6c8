"""The exhibits: eleven ways to spoil a correct training step, each by replacing one piece of it.

A fault is a few lines that look right. What stands in `training.py` is the piece as it should be;
what stands here is the same piece with the mistake.
"""

# %% What an exhibit consists of
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecotour_chex.training import TRUTH
from ecotour_chex.visit import (
    BLANK_STEP,
    PADDED_STEP,
    VISIT_STEPS,
    Visit,
    error_on_fake_devices,
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One exhibit.

    Attributes:
        name: What it is called on the label.
        pieces: Makes the pieces that replace the correct ones. A function, because one of the
            faults has a memory and needs a fresh one for each visit.
        symptom: What its owner would see, in plain words.
        claimed_by: The tool that must catch it.
        at: The step at which that tool must catch it.
        measured: What `measure` counts; more is worse.
        measure: From a visit without any tool to the symptom as a number.
        beyond: A visit shows the symptom if the number is at least this; the clean run is below.
        context: JAX settings that this fault needs, in force during its visit alone.
        steps: How long it takes until the symptom shows.
    """

    name: str
    pieces: Callable[[], Mapping[str, Any]]
    symptom: str = ""
    claimed_by: str = ""
    at: int = 0
    measured: str = ""
    measure: Callable[[Visit], Any] = lambda seen: 0
    beyond: float = 0.0
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    steps: int = VISIT_STEPS


NO_FAULT = Fault("no fault", pieces=dict)


# %% 1. A wrong shape that broadcasting hides
# `[B, 1] - [B]` is `[B, B]` for NumPy and for JAX: every prediction is compared with every target.
# The mean over all pairs is finite, it even falls, but its minimum is to predict the mean target.
def predict_a_column(params: Any, inputs: jax.Array) -> jax.Array:
    """[B, F] -> [B, 1]; the caller expects [B]."""
    return inputs @ params["weights"][:, None]


HIDDEN_BROADCAST = Fault(
    name="hidden broadcast",
    symptom="the loss falls, then stays at the variance of the targets; nothing is learned",
    pieces=lambda: {"predict": predict_a_column},
    claimed_by="assert_shape",
    at=1,
    measured="distance from the true weights",
    measure=lambda seen: np.linalg.norm(np.float64(seen.state["params"]["weights"]) - TRUTH),
    beyond=1.0,
    steps=40,
)


# %% 2. A silent promotion to float64
# With 64-bit types enabled, a Python float adapts to its partner, but `np.sqrt` returns a NumPy
# float64, and that wins: from here on the state takes twice the memory, and the second step is a
# new program because its input has changed type.
def cool_in_numpy(rate: jax.Array) -> jax.Array:
    """float32 [] -> float64 []."""
    return rate * np.sqrt(0.9604)


@contextmanager
def with_64_bits() -> Iterator[None]:
    """64-bit types allowed, and mixed with 32-bit ones as JAX does by default."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        yield


SILENT_FLOAT64 = Fault(
    name="promotion to float64",
    symptom="twice the memory, half the speed, one more compilation; the numbers look fine",
    pieces=lambda: {"cool": cool_in_numpy},
    claimed_by="assert_trees_all_equal_dtypes",
    at=1,
    measured="bytes of state",
    measure=lambda seen: sum(leaf.nbytes for leaf in jax.tree.leaves(seen.state)),
    beyond=60,
    context=with_64_bits,
)


# %% 3. A NaN at step n
# 0 / 0. Training goes well until the first example without any feature comes along; then the
# gradient is NaN, and with it all parameters, for ever.
def normalise_without_floor(inputs: jax.Array) -> jax.Array:
    """[B, F] -> [B, F], rows of length 1; a row of zeros becomes NaN."""
    return inputs / jnp.linalg.norm(inputs, axis=-1, keepdims=True)


NOT_A_NUMBER = Fault(
    name="NaN at step n",
    symptom="all is well until one odd example comes along; from then on every number is NaN",
    pieces=lambda: {"normalise": normalise_without_floor},
    claimed_by="chexify",
    at=BLANK_STEP,
    measured="parameters that are not finite",
    measure=lambda seen: np.sum(~np.isfinite(seen.state["params"]["weights"])),
    beyond=1,
)


# %% 4. A retrace at each step
# `jax.jit` keeps its compiled programs with the function object. A function made anew in each step
# is a new object each time, so nothing is ever found again.
def compile_in_the_loop(step: Callable[..., Any]) -> Callable[..., Any]:
    """A jit inside the loop instead of around it."""

    def call(state: Any, batch: Any, noise: jax.Array) -> Any:
        return jax.jit(lambda *arguments: step(*arguments))(state, batch, noise)

    return call


RETRACE = Fault(
    name="retrace at each step",
    symptom="right numbers, a hundred times too slow: each step compiles again",
    pieces=lambda: {"compile": compile_in_the_loop},
    claimed_by="assert_max_traces",
    at=2,
    measured="programs compiled",
    measure=lambda seen: seen.traces,
    beyond=VISIT_STEPS,
)


# %% 5. A reused key
# JAX's random numbers are a function of the key. The run's key without the step's number in it
# gives the same "random" numbers at each step: noise that should cancel out adds up.
def same_key_again(key: jax.Array, number: int) -> jax.Array:
    """The run's key, whatever the step's number."""
    return key


REUSED_KEY = Fault(
    name="reused key",
    symptom="the noise never changes, so it does not average out: a bias that no loss curve shows",
    pieces=lambda: {"step_key": same_key_again},
    claimed_by="comparator: key is new",
    at=2,
    measured="steps with the noise of the step before",
    measure=lambda seen: sum(itertools.starmap(np.array_equal, itertools.pairwise(seen.noises))),
    beyond=VISIT_STEPS - 1,
)


# %% 6. A Python float that changes weak type
# `jnp.asarray(0.5)` is a float32 that gives way to other types (`weak_type=True`), as the Python
# float did. One step later it has met a real float32 and is one. Shape and dtype are the same, yet
# the program is another.
def first_rate_from_python() -> jax.Array:
    """float32 [], weakly typed."""
    return jnp.asarray(0.5)


WEAK_TYPE = Fault(
    name="weak type changes",
    symptom="the second step takes as long as the first: it is compiled again, and no dtype tells",
    pieces=lambda: {"first_rate": first_rate_from_python},
    claimed_by="assert_max_traces",
    at=2,
    measured="programs compiled",
    measure=lambda seen: seen.traces,
    beyond=2,
)


# %% 7. A donated buffer used again
# `donate_argnums` allows XLA to write the new state over the old one, which saves memory. The loop
# below looks back at the old state once more; it is gone.
def compile_with_donation(step: Callable[..., Any]) -> Callable[..., Any]:
    """The state that goes in is given away."""
    return jax.jit(step, donate_argnums=0)


DONATED = Fault(
    name="donated buffer used again",
    symptom="RuntimeError, “Array has been deleted”, far from the line that gave it away",
    pieces=lambda: {"compile": compile_with_donation},
    claimed_by="comparator: buffer alive",
    at=1,
    measured="steps that never came to pass",
    measure=lambda seen: len(seen.batches) - seen.done,
    beyond=1,
)


# %% 8. A tree whose structure changes
# A dict takes any name. The misspelt one is a new entry; the velocity that the next step reads is
# still the one from the start, and momentum is off without a word.
def remember_misspelt(params: Any, velocity: Any, rate: Any, number: Any) -> dict[str, Any]:
    """What of the state is new; one name is wrong."""
    return {"params": params, "velocty": velocity, "rate": rate, "number": number}


MISSPELT = Fault(
    name="tree changes structure",
    symptom="momentum has no effect, the second step compiles again; a dict takes any name",
    pieces=lambda: {"remember": remember_misspelt},
    claimed_by="assert_trees_all_equal_structs",
    at=1,
    measured="arrays in the state",
    measure=lambda seen: len(jax.tree.leaves(seen.state)),
    beyond=5,
)


# %% 9. A static argument that should not be
# A static argument is part of the program: each of its values needs a program of its own.
def compile_for_each_number(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step's number as a Python int, declared static."""
    numbered = jax.jit(lambda number, *arguments: step(*arguments), static_argnums=0)
    return lambda state, *others: numbered(int(state["number"]), state, *others)


STATIC_ARGUMENT = Fault(
    name="static argument",
    symptom="right numbers, slow: one compilation for each value of a counter",
    pieces=lambda: {"compile": compile_for_each_number},
    claimed_by="assert_max_traces",
    at=2,
    measured="programs compiled",
    measure=lambda seen: seen.traces,
    beyond=VISIT_STEPS,
)


# %% 10. A result that differs between jit and no jit
# Python runs while JAX traces, once; the compiled program knows nothing of the counter. The rate
# should fall as 1/2, 1/3, …; compiled, it stays where the trace found it.
def cool_by_counting() -> Callable[[jax.Array], jax.Array]:
    """A schedule with a memory outside the state."""
    calls: list[None] = []

    def cool(rate: jax.Array) -> jax.Array:
        calls.append(None)
        return jnp.full_like(rate, 0.5 / len(calls))

    return cool


SIDE_EFFECT = Fault(
    name="jit differs from no jit",
    symptom="fine in the debugger, wrong when compiled: the learning rate never falls",
    pieces=lambda: {"cool": cool_by_counting()},
    claimed_by="variants",
    at=2,
    measured="learning rate at the end",
    measure=lambda seen: seen.state["rate"],
    beyond=0.4,
    steps=40,
)


# %% 11. A wrong mean over devices
# Each device divides by its own number of examples, and then the devices are averaged. That is the
# mean over all examples as long as all devices have equally many. One short batch, and it is not.
def mean_weight_of_one_device(weights: jax.Array, over_devices: Callable[..., Any]) -> jax.Array:
    """float32 []: the mean weight of this device's examples alone."""
    return weights.mean()


WRONG_MEAN = Fault(
    name="wrong mean over devices",
    symptom="right on one device; on several, the examples of a short batch count for more",
    pieces=lambda: {"mean_weight": mean_weight_of_one_device},
    claimed_by="fake_pmap_and_jit",
    at=PADDED_STEP,
    measured="error of the parameters on 4 devices, in %",
    measure=error_on_fake_devices,
    beyond=0.5,
)


# %% In the order of the tour
FAULTS = (
    HIDDEN_BROADCAST, SILENT_FLOAT64, NOT_A_NUMBER, RETRACE, REUSED_KEY, WEAK_TYPE, DONATED,
    MISSPELT, STATIC_ARGUMENT, SIDE_EFFECT, WRONG_MEAN,
)  # fmt: skip
