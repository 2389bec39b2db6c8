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
#
# The lesson: `training.py`, the correct step in pieces, and the flags; `faults.py`, each a piece
# spoilt; `tools.py`, each a piece guarded; `visit.py`, the loop in which a fault meets a tool; and
# `apart.py`. The others are no part of it: `bookkeeping.py` keeps what is found, `gallery.py`
# shows it.
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour_chex import apart, bookkeeping, gallery
from ecotour_chex.faults import FAULTS
from ecotour_chex.training import TRUTH, Config, Training, draw_noise, make_examples


# %% The named steps
# `clean` is the training as it stands; the runner compiles it, and gives it batches and keys.
#
# The others are plain Python, and their states are arrays of findings, a row for each step.
# `museum` visits one row of the table per step: first the correct training, on which no tool may
# sound an alarm, then one fault after the other, each with all tools. `costs` times one guard per
# step: what a guard costs has nothing to do with the fault that it waits for, so the correct
# training will do. `apart` starts a fresh Python with four host devices and reads what it prints.
def clean_step(config: Config) -> ecotour.Step:
    """The correct training as the contract wants it: pure and jitted."""
    training = Training(noise=config.noise)
    step = jax.jit(training.step())

    def run(state: Any, batch: Any, key: jax.Array) -> Any:
        state, loss = step(state, batch, draw_noise(key))
        error = jnp.linalg.norm(state["params"]["weights"] - jnp.asarray(TRUTH, jnp.float32))
        return state, {"loss": loss, "distance_from_truth": error}

    return ecotour.Step(init=lambda key, batch: training.begin(), step=run, steps=200)


# %% The verdict
# Every fault shows its symptom, and is caught by the tool that claims it at the step claimed; no
# tool raises an alarm on the correct training, and that training finds the rule behind its data.
def judge(outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Compare what was found with what each fault claims."""
    check, states = ecotour.Check, outcome.states
    kind, at = bookkeeping.whole_matrix(states["museum"], states["apart"])
    symptom = states["museum"]["symptom"]
    distance = outcome.history["clean"]["distance_from_truth"].last
    checks = [
        check.at_most("clean run: distance from the true weights", distance, 0.1),
        check.equals("clean run: alarms", int(np.sum(kind[0] != bookkeeping.SILENT)), 0),
    ]
    for row, fault in enumerate(FAULTS, 1):
        column = bookkeeping.COLUMNS.index(fault.claimed_by)
        found = int(at[row, column]) if kind[row, column] == bookkeeping.CAUGHT else 0
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
    caught = int(np.sum(np.any(kind[1:] == bookkeeping.CAUGHT, axis=1)))
    summary = f"{caught} of {len(FAULTS)} faults were caught by at least one tool."
    return ecotour.Verdict(checks, gallery.all_exhibits(states), summary)


# %% The program, and the hook
def build(config: Config) -> ecotour.Program:
    """The four named steps on one synthetic dataset."""
    arrays = make_examples(np.random.default_rng(0), 4096)
    arrays["weights"][::50] = 0.0  # padding
    arrays["inputs"][25::200] = 0.0  # blank examples
    arrays["targets"][25::200] = 0.0
    info = ecotour.DataInfo("a linear rule", "synthetic", "train", len(arrays["targets"]))
    return ecotour.Program(
        steps={
            "clean": clean_step(config),
            "museum": bookkeeping.museum_step(config),
            "costs": bookkeeping.costs_step(config),
            "apart": apart.apart_step(config),
        },
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
