"""A visit to a fault: a small training loop in plain Python, and what it noticed.

The loop is what anybody would write around a step: a key for each step, a call, and a look at how
far the parameters moved. Whatever an exception stops is recorded with the number of the step.
"""

# %% A visit
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import chex
import jax
import jax.numpy as jnp
import numpy as np

from ecotour_chex.training import DEVICES, Training, draw_noise

VISIT_STEPS = 5
"""Steps of a visit with a tool: the last claim is at step 4."""

PADDED_STEP = 3
"""The batch of this step has fewer examples than the others; the rest has weight 0."""

BLANK_STEP = 4
"""The batch of this step holds an example whose features are all zero."""


class Moment(NamedTuple):
    """What a watching tool sees: the state on one side of a step, and the key that was used."""

    state: Any
    key: jax.Array | None


Watch: TypeAlias = Callable[[Moment, Moment], None]


@dataclass
class Visit:
    """What one loop left behind: all that a symptom can be counted from."""

    training: Training
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


def moved(before: Any, after: Any) -> float:
    """Euclidean distance of the weights on the two sides of a step."""
    old, new = (np.asarray(state["params"]["weights"]) for state in (before, after))
    return float(np.linalg.norm(new - old))


def visit(
    training: Training,
    batches: Sequence[Any],
    key: jax.Array,
    watchers: Mapping[str, Watch] | None = None,
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
                for name, watch in (watchers or {}).items():
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


def on_devices(training: Training) -> Callable[..., Any]:
    """The same step on `DEVICES` devices, each with its part of the batch.

    Returns:
        ``(state, batch, noise) -> state`` whose leaves have the devices as leading axis.
    """
    mean = functools.partial(jax.lax.pmean, axis_name="devices")
    step = replace(training, over_devices=mean).step()
    # The noise is the same on all devices, or their parameters would drift apart.
    parallel = jax.pmap(step, axis_name="devices", in_axes=(None, 0, None))

    def call(state: Any, batch: Any, noise: jax.Array) -> Any:
        split = jax.tree.map(lambda x: x.reshape(DEVICES, -1, *x.shape[1:]), batch)
        return parallel(state, split, noise)[0]

    return call


def error_on_fake_devices(seen: Visit) -> float:
    """By how much a step on Chex's fake devices misses the step on one, in % of its length.

    The batch is the padded one.
    """
    training, batch = seen.training, seen.batches[PADDED_STEP - 1]
    start, noise = training.begin(), jnp.zeros(4, jnp.float32)
    one, _ = training.step()(start, batch, noise)
    with chex.fake_pmap():
        many = jax.tree.map(lambda x: x[0], on_devices(training)(start, batch, noise))
    return 100.0 * moved(one, many) / moved(start, one)
