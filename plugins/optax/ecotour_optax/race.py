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
from ecotour.exhibits import Curves, Exhibit, Line, Table
from ecotour_optax import digits, quasi_newton

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


def table(results: Mapping[str, Mapping[str, Any]]) -> Table:
    """The results as a table."""
    columns = ["optimizer", "test accuracy", "lowest", "highest", f"steps to {TARGET:.0%}"]
    columns += ["ms a step", f"seconds to {TARGET:.0%}", "bytes kept"]
    rows: list[list[Any]] = []
    for name, row in results.items():
        accuracy = row["accuracy"]
        numbers = [float(accuracy.mean()), float(accuracy.min()), float(accuracy.max())]
        numbers += [row["steps"], row["ms"], row["seconds"]]
        cells = [None if math.isnan(number) else number for number in numbers]
        rows.append([name, *cells, row["bytes"]])
    return Table(
        columns,
        rows,
        "Mean, lowest and highest test accuracy over the seeds; steps and time (of all seeds "
        "together) until the mean held-out accuracy reaches the target, empty if never; bytes "
        "that the optimizer keeps for one model beside its weights. The steps of L-BFGS include "
        f"the {quasi_newton.POOLED} in which it gathers its pool of images, its bytes do not.",
    )


def curves(outcome: ecotour.Outcome, trained: Mapping[str, Any]) -> dict[str, Exhibit]:
    """Held-out accuracy over steps, and over the images whose gradient was computed."""
    by_step, by_image, losses = {}, {}, {}
    for name in trained:
        history = outcome.history.get(f"digits {name}")
        if not history:
            continue
        steps = history["loss"].steps
        # only where it was measured anew; at the steps between, the last value was repeated
        looked = steps % digits.EVERY == 0

        def band(metric: str, x: Any, looked: Any = looked, history: Any = history) -> Line:
            kept = looked & (x > 0)  # while L-BFGS gathers its pool it differentiates nothing
            parts = [history[metric + end].values[kept] for end in ("", ", lowest", ", highest")]
            return Line(x[kept], *parts)

        by_step[name] = band("held-out accuracy", steps)
        by_image[name] = band("held-out accuracy", history["images differentiated"].values)
        losses[name] = band("loss", steps)
    target = {f"target {TARGET:.0%}": TARGET}
    seeds = "mean over the seeds, band from lowest to highest"
    return {
        "accuracy by step": Curves(
            by_step, f"Held-out accuracy: {seeds}.", y_label="accuracy", guides=target
        ),
        "accuracy by image": Curves(
            by_image,
            "The same by work done: images whose gradient was computed, for each model. L-BFGS "
            "needs few steps and many images.",
            x_label="images differentiated",
            y_label="accuracy",
            guides=target,
            log_x=True,
        ),
        "loss by step": Curves(
            losses, f"Loss on the training batch: {seeds}.", y_label="cross-entropy", log_y=True
        ),
    }
