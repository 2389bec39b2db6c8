"""A museum of faults, and the Chex tool that catches each.

A small, correct training step is run clean, and then with one fault at a time. For each fault you
see its symptom as a number, which of Chex's tools notices it and at which step, which do not, and
what each guard costs per step.
"""

# %% What you will see
# Chex is a box of guards for JAX programs: assertions on shapes, types, structure, values and
# traces, test cases that run one test in several ways, and stand-ins for devices that you do not
# have. Its documentation shows each tool; this museum shows what each is for.
#
# The run has four named steps. `clean` trains the correct model, compiled. `museum` visits one
# fault per step, with every tool. `costs` times one guard per step. `apart` does in a process of
# its own what cannot be undone in this one: `chexify`, and four devices.
from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecotour


# %% Configuration
@dataclass(frozen=True)
class Config:
    """The demo's flags."""

    examples_per_device: int = ecotour.flag(16, "of the four; a batch has all", at_least=8)
    noise: float = ecotour.flag(0.01, "standard deviation of the gradient's noise", above=0.0)
    timed_steps: int = ecotour.flag(300, "steps over which a guard is timed", at_least=10)

    @property
    def batch_size(self) -> int:
        """Examples a step: those of four devices, whether or not they are there."""
        return 4 * self.examples_per_device


# %% The data
# A linear rule on four features, scaled to length 1. Most rows are whole. A few have weight 0, as
# padding has, and a few have no feature at all: a correct step takes both in its stride.
FEATURES = 4
TRUTH = np.array([1.0, -2.0, 3.0, 0.5])


def make_examples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Return ``inputs`` [N, 4], ``targets`` [N] and ``weights`` [N], all float32."""
    inputs = generator.normal(size=(count, FEATURES))
    unit = inputs / np.linalg.norm(inputs, axis=-1, keepdims=True)
    targets = unit @ TRUTH + 0.01 * generator.normal(size=count)
    arrays = {"inputs": inputs, "targets": targets, "weights": np.ones(count)}
    return {name: array.astype(np.float32) for name, array in arrays.items()}


# %% The training step, piece by piece
# State: params {weights [4]}, velocity of the same shape, rate [], all float32, number [] int32.
# Metrics: loss [], and the distance [] of the weights from the true ones.
# Each piece is a function of its own, since each fault replaces one of them.
def normalise(inputs: jax.Array) -> jax.Array:
    """[B, 4] -> [B, 4], rows of length 1; a row of zeros stays one."""
    return inputs / (jnp.linalg.norm(inputs, axis=-1, keepdims=True) + 1e-6)


def predict(params: Mapping[str, jax.Array], inputs: jax.Array) -> jax.Array:
    """[B, 4] -> [B]."""
    return inputs @ params["weights"]


def mean_weight(weights: jax.Array, over_devices: Callable[[Any], Any]) -> jax.Array:
    """[B] -> []: the mean weight of the whole batch, wherever its parts are."""
    return over_devices(weights.mean())


def first_rate() -> jax.Array:
    """float32 []: the learning rate before step 1."""
    return jnp.float32(0.5)


def cool(rate: jax.Array) -> jax.Array:
    """float32 [] -> float32 []: a little less at each step."""
    return rate * jnp.float32(0.98)


def remember(params: Any, velocity: Any, rate: Any, number: Any) -> dict[str, Any]:
    """What of the state is new after a step."""
    return {"params": params, "velocity": velocity, "rate": rate, "number": number}


def step_key(key: jax.Array, number: int) -> jax.Array:
    """The key of a step: the run's key with the step's number folded in."""
    return jax.random.fold_in(key, number)


@jax.jit
def draw_noise(key: jax.Array) -> jax.Array:
    """float32 [4], standard normal; compiled by itself, so that the step below stays small."""
    return jax.random.normal(key, (FEATURES,), jnp.float32)


@dataclass(frozen=True)
class Training:
    """A training in pieces; those above unless a fault or a tool puts another in their place.

    ``compile`` makes the step callable, ``over_devices`` is the mean over devices (there is one),
    ``record`` the type of the state, ``farewell(call)`` a last word to what ``compile`` returned,
    ``context`` the JAX settings during the loop.
    """

    noise: float = 0.01
    truth: Any = None
    normalise: Callable[..., Any] = normalise
    predict: Callable[..., Any] = predict
    mean_weight: Callable[..., Any] = mean_weight
    first_rate: Callable[..., Any] = first_rate
    cool: Callable[..., Any] = cool
    remember: Callable[..., Any] = remember
    step_key: Callable[..., Any] = step_key
    compile: Callable[..., Any] = jax.jit
    over_devices: Callable[..., Any] = lambda value: value
    record: Callable[..., Any] = dict
    farewell: Callable[..., Any] = lambda call: None
    context: Callable[..., Any] = nullcontext

    def with_pieces(self, **pieces: Any) -> Training:
        """Return the same training with other pieces."""
        return replace(self, **pieces)

    def begin(self) -> Any:
        """Return the state before step 1."""

        def zeros() -> dict[str, jax.Array]:
            return {"weights": jnp.zeros(FEATURES, jnp.float32)}

        rate, number = self.first_rate(), jnp.zeros((), jnp.int32)
        return self.record(params=zeros(), velocity=zeros(), rate=rate, number=number)

    def step(self) -> Callable[[Any, Any, jax.Array], tuple[Any, jax.Array]]:
        """Return ``(state, batch, noise [4]) -> (state, loss [])``: momentum, noisy gradients."""

        def train_step(state: Any, batch: Any, noise: jax.Array) -> Any:
            def loss_of(params: Any) -> jax.Array:
                predictions = self.predict(params, self.normalise(batch["inputs"]))
                errors = batch["weights"] * (predictions - batch["targets"]) ** 2
                return errors.mean() / self.mean_weight(batch["weights"], self.over_devices)

            loss, gradients = jax.value_and_grad(loss_of)(state["params"])
            loss, gradients = self.over_devices((loss, gradients))
            gradients = {"weights": gradients["weights"] + self.noise * noise}
            velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], gradients)
            rate = self.cool(state["rate"])
            params = jax.tree.map(lambda p, v: p - rate * v, state["params"], velocity)
            new = self.remember(params, velocity, rate, state["number"] + 1)
            # `{**old, **new}` makes a new dict; a chex.dataclass is made from its fields by name
            return type(state)(**{**state, **new}), loss

        return train_step


# %% The named steps
# `clean` is the training as it stands; the runner compiles it, and gives it batches and keys.
def clean_step(config: Config) -> ecotour.Step:
    """The correct training as the contract wants it: pure and jitted."""
    training = Training(noise=config.noise)
    step = jax.jit(training.step())

    def run(state: Any, batch: Any, key: jax.Array) -> Any:
        state, loss = step(state, batch, draw_noise(key))
        error = jnp.linalg.norm(state["params"]["weights"] - jnp.asarray(TRUTH, jnp.float32))
        return state, {"loss": loss, "distance_from_truth": error}

    return ecotour.Step(init=lambda key, batch: training.begin(), step=run, steps=200)


# `museum` visits one row of the table per step: first the correct training, on which no tool may
# sound an alarm, then one fault after the other, each with all tools. `costs` times one guard per
# step: what a guard costs has nothing to do with the fault that it waits for, so the correct
# training will do. `apart` starts a fresh Python with four host devices and reads what it prints.
# The faults and the tools are changes to the pieces above; see `faults.py` and `tools.py`.
def museum_steps(config: Config) -> dict[str, ecotour.Step]:
    """Three steps in plain Python. Their states are arrays of findings, a row for each step."""
    from ecotour_chex import apart, museum
    from ecotour_chex.tools import HERE

    def visit_next(found: Any, batch: Any, key: jax.Array) -> Any:
        return museum.visit_next(found, config)

    def time_next(found: Any, batch: Any, key: jax.Array) -> Any:
        return museum.time_next(found, config)

    def ask_apart(found: Any, batch: Any, key: jax.Array) -> Any:
        return apart.ask(found, config)

    rows = len(museum.ROWS)
    return {
        "museum": ecotour.Step(museum.nothing_visited, visit_next, steps=rows, compiled=False),
        "costs": ecotour.Step(museum.nothing_timed, time_next, steps=len(HERE), compiled=False),
        "apart": ecotour.Step(apart.nothing_asked, ask_apart, steps=1, compiled=False),
    }


# %% The verdict
# Every fault shows its symptom, and is caught by the tool that claims it at the step claimed; no
# tool raises an alarm on the correct training, and that training finds the rule behind its data.
def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Compare what was found with what the labels claim."""
    from ecotour_chex import labels, museum
    from ecotour_chex.faults import FAULTS

    check, states = ecotour.Check, outcome.states
    kind, at = labels.whole_matrix(states["museum"], states["apart"])
    symptom = states["museum"]["symptom"]
    distance = outcome.history["clean"]["distance_from_truth"].last
    checks = [
        check.at_most("clean run: distance from the true weights", distance, 0.1),
        check.equals("clean run: alarms", int(np.sum(kind[0] != museum.SILENT)), 0),
    ]
    for row, fault in enumerate(FAULTS, 1):
        column = labels.COLUMNS.index(fault.claimed_by)
        found = int(at[row, column]) if kind[row, column] == museum.CAUGHT else 0
        checks.append(check.equals(f"{fault.name}: {fault.claimed_by}, step", found, fault.at))
        shown = bool(symptom[row, 0] < fault.beyond <= symptom[row, 1])
        checks.append(check.equals(f"{fault.name}: the symptom shows", shown, True))
    (right, right_fake, gap), (wrong, wrong_fake, wrong_gap) = states["apart"]["devices"]
    passed = states["apart"]["variants"] == 0
    checks += [
        check.at_most("4 devices: error of the correct mean, %", max(right, right_fake), 0.01),
        check.at_least("4 devices: error of the wrong mean, %", min(wrong, wrong_fake), 0.5),
        check.at_most("4 devices: real and fake differ by", max(gap, wrong_gap), 1e-5),
        check.equals("variants: passed by the correct training", int(passed[0].sum()), 5),
        check.equals("variants: failed by the one with a side effect", int((~passed[1]).sum()), 2),
    ]
    caught = int(np.sum(np.any(kind[1:] == museum.CAUGHT, axis=1)))
    summary = f"{caught} of {len(FAULTS)} faults were caught by at least one tool."
    return ecotour.Verdict(checks, labels.all_exhibits(states), summary)


# %% The program, and the hook
def build(config: Config) -> ecotour.Program:
    """The four named steps on one synthetic dataset."""
    arrays = make_examples(np.random.default_rng(0), 4096)
    arrays["weights"][::50] = 0.0  # padding
    arrays["inputs"][25::200] = 0.0  # blank examples
    arrays["targets"][25::200] = 0.0
    info = ecotour.DataInfo("a linear rule", "synthetic", "train", len(arrays["targets"]))
    return ecotour.Program(
        steps={"clean": clean_step(config), **museum_steps(config)},
        judge=judge,
        data={"train": ecotour.Dataset(info, arrays)},
        batch_size=config.batch_size,
    )


@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Announce the demo."""
    return ecotour.Demo(
        summary="A museum of faults, and the Chex tool that catches each.",
        config=Config,
        build=build,
        teaches=(
            "Eleven faults that a JAX program can carry without a word, how each looks from the "
            "outside, which of Chex's guards notices it and when, and what the guards cost."
        ),
    )
