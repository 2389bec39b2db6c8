"""An exhibit and a visit to it: a small training loop in plain Python, and what it noticed.

The loop is what anybody would write around a step: a key for each step, a call, and a look at how
far the parameters moved. Whatever an exception stops is recorded with the number of the step.
"""

# %%
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ecotour_chex.demo import draw_noise

# %% What an exhibit consists of
DEVICES = 4


VISIT_STEPS = 5
"""Steps of a visit with a tool: the last claim is at step 4."""

PADDED_STEP = 3
"""The batch of this step has fewer examples than the others; the rest has weight 0."""

BLANK_STEP = 4
"""The batch of this step holds an example whose features are all zero."""


@dataclass(frozen=True)
class Fault:
    """One exhibit.

    Attributes:
        name: What it is called on the label.
        symptom: What its owner would see, in plain words.
        pieces: Makes the pieces that replace the correct ones. A function, because one of the
            faults has a memory and needs a fresh one for each visit.
        claimed_by: The tool that must catch it.
        at: The step at which that tool must catch it.
        measured: What `measure` counts; more is worse.
        measure: From a `Visit` without any tool to the symptom as a number.
        beyond: A visit shows the symptom if the number is at least this; the clean run is below.
        context: JAX settings that this fault needs, in force during its visit alone.
        steps: How long it takes until the symptom shows.
    """

    name: str
    symptom: str
    pieces: Callable[[], Mapping[str, Any]]
    claimed_by: str
    at: int
    measured: str
    measure: Callable[[Any], float]
    beyond: float
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    steps: int = VISIT_STEPS


# %% A visit
class Moment(NamedTuple):
    """What a watching tool sees: the state on one side of a step, and the key that was used."""

    state: Any
    key: jax.Array | None


Watch: TypeAlias = Callable[[Moment, Moment], None]
NOBODY: Mapping[str, Watch] = MappingProxyType({})


@dataclass
class Visit:
    """What one loop left behind; its properties are the symptoms that the labels count."""

    training: Any
    batches: Sequence[Any]
    done: int = 0
    traces: int = 0
    state: Any = None
    noises: list[np.ndarray] = field(default_factory=list)
    objections: dict[str, tuple[int, str]] = field(default_factory=dict)
    path: float = 0.0
    error: Exception | None = None

    @property
    def raised_at(self) -> int:
        """The step that an exception stopped, or 0."""
        return self.done + 1 if self.error is not None else 0

    @property
    def distance_from_truth(self) -> float:
        """Euclidean distance of the weights from those that made the data."""
        weights = np.asarray(self.state["params"]["weights"], np.float64)
        return float(np.linalg.norm(weights - self.training.truth))

    @property
    def state_bytes(self) -> float:
        """Bytes of all arrays of the state."""
        return float(sum(leaf.nbytes for leaf in jax.tree.leaves(self.state)))

    @property
    def not_finite(self) -> float:
        """How many of the parameters are NaN or infinite."""
        leaves = jax.tree.leaves(self.state["params"])
        return float(sum(np.sum(~np.isfinite(np.asarray(leaf))) for leaf in leaves))

    @property
    def repeated_noise(self) -> float:
        """How many steps drew exactly the noise of the step before."""
        pairs = zip(self.noises, self.noises[1:], strict=False)
        return float(sum(np.array_equal(one, other) for one, other in pairs))

    @property
    def steps_missed(self) -> float:
        """Steps that an exception prevented."""
        return float(len(self.batches) - self.done)

    @property
    def leaves(self) -> float:
        """Arrays in the state."""
        return float(len(jax.tree.leaves(self.state)))

    @property
    def rate(self) -> float:
        """The learning rate after the last step."""
        return float(self.state["rate"])

    @property
    def error_on_devices(self) -> float:
        """By how much a step on devices misses the step on one, in % of the update's length.

        The batch is the padded one, the devices are Chex's fake ones.
        """
        import chex

        with chex.fake_pmap():
            return missed_by_devices(self.training, self.batches[PADDED_STEP - 1])


def moved(before: Any, after: Any) -> float:
    """Euclidean distance of the weights on the two sides of a step."""
    old, new = (np.asarray(state["params"]["weights"]) for state in (before, after))
    return float(np.linalg.norm(new - old))


def missed_by_devices(training: Any, batch: Any) -> float:
    """How far the update on devices is from the one on a single device, in % of the latter."""
    start, noise = training.begin(), jnp.zeros(4, jnp.float32)
    one, _ = training.step()(start, batch, noise)
    many = jax.tree.map(lambda x: x[0], on_devices(training)(start, batch, noise))
    return 100.0 * moved(one, many) / moved(start, one)


def visit(
    training: Any, batches: Sequence[Any], key: jax.Array, watchers: Mapping[str, Watch] = NOBODY
) -> Visit:
    """Train on ``batches`` until something raises; watchers may object without stopping the loop.

    A watcher is called after each step; its first objection counts.
    """
    report = Visit(training, batches)
    plain_step = training.step()

    @functools.wraps(plain_step)
    def counted_step(*arguments: Any) -> Any:
        report.traces += 1  # Python runs when JAX traces, so this counts programs
        return plain_step(*arguments)

    with training.context():
        before = Moment(training.begin(), None)
        report.state = before.state
        try:
            call = training.compile(counted_step)
            for batch in batches:
                step_key = training.step_key(key, report.done + 1)
                noise = draw_noise(step_key)
                state, _ = call(before.state, batch, noise)
                after = Moment(state, step_key)
                for name, watch in watchers.items():
                    try:
                        watch(before, after)
                    except AssertionError as error:
                        report.objections.setdefault(name, (report.done + 1, str(error)))
                report.path += moved(before.state, state)  # the loop looks back
                report.noises.append(np.asarray(noise))
                report.state, report.done, before = state, report.done + 1, after
            training.farewell(call)
        # exactly what a step, a tool or JAX may raise; anything else is a bug in this museum
        except (AssertionError, TypeError, ValueError, RuntimeError) as error:
            report.error = error
    return report


def on_devices(training: Any) -> Callable[..., Any]:
    """The same step on `DEVICES` devices, each with its part of the batch.

    Returns:
        ``(state, batch, noise) -> state`` whose leaves have the devices as leading axis.
    """
    step = training.with_pieces(
        over_devices=functools.partial(jax.lax.pmean, axis_name="devices")
    ).step()
    # The noise is the same on all devices, or their parameters would drift apart.
    parallel = jax.pmap(step, axis_name="devices", in_axes=(None, 0, None))

    def call(state: Any, batch: Any, noise: jax.Array) -> Any:
        split = jax.tree.map(lambda x: x.reshape(DEVICES, -1, *x.shape[1:]), batch)
        return parallel(state, split, noise)[0]

    return call
