"""Part two, concluded: who reaches the target, after how long, and keeping how much."""

# %% [markdown]
# ## The race on the digits
#
# Steps and time to the target come from the held-out curve (looked at every 10 steps) and the
# median time of a step. The bytes are all that a model's optimizer keeps beside the weights to
# predict with: Adam two more copies of them, Lion one, SGD none, L-BFGS more than twenty.

# %%
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour_optax import digits

TARGET = 0.9
"""The held-out accuracy that the optimizers race to."""


def results(
    outcome: ecotour.Outcome, trained: Mapping[str, Any], *, hidden: int
) -> dict[str, dict[str, Any]]:
    """For each optimizer: test accuracy ``[S]``, steps and seconds to the target, bytes."""
    net, test = digits.classifier(hidden), outcome.data["test"].arrays
    image, label = jnp.asarray(test["image"]), jnp.asarray(test["label"])
    accuracies = jax.jit(jax.vmap(lambda params: digits.accuracy(net, params, image, label)))
    rows = {}
    for name, training in trained.items():
        weights = digits.weights(training.params)
        history = outcome.history.get(f"digits {name}", {})
        steps, step_ms = math.nan, outcome.ledger.get(f"digits {name}", {}).get("steady_ms", {})
        if "held-out accuracy" in history:
            series = history["held-out accuracy"]
            there = series.steps[series.values >= TARGET]
            steps = float(there[0]) if len(there) else math.nan
        milliseconds = step_ms.get("p50") or math.nan
        kept = size(training.params) + size(training.optimizer) - size(weights)
        rows[name] = {
            "accuracy": np.asarray(accuracies(weights)),
            "steps": steps,
            "ms": milliseconds,
            "seconds": steps * milliseconds / 1000,
            "bytes": kept // len(training.images),
        }
    return rows


def size(tree: Any) -> int:
    """Bytes of all arrays in ``tree``."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
