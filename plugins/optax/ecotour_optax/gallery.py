# %% [markdown]
# # Pictures and tables
#
# Exhibits are values with a sentence about what one sees; ecotour draws them.

# %%
"""What the verdict shows, part by part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import ecotour
from ecotour.exhibits import Curves, Exhibit, Images, Line, Paths, Table
from ecotour_optax import curvature, digits, discrete, quasi_newton, race, surfaces
from ecotour_optax.discrete import BEST, CAPACITY, COUNTS, PACKS, RUNS, VALUE, WEIGHT, WORTHS

# %% [markdown]
# ## Part one: paths


# %%
def walks(states: Mapping[str, surfaces.Walks]) -> dict[str, Exhibit]:
    """The paths on their contours, and who arrives after how many steps.

    ``states`` holds, by the optimizer's name, the last state of its step.
    """
    shown: dict[str, Exhibit] = {}
    rows: list[list[Any]] = []
    for where, surface in surfaces.SURFACES.items():
        left, right, bottom, top = surface.window
        x, y = np.linspace(left, right, 160), np.linspace(bottom, top, 160)
        grid = jnp.array(np.stack(np.meshgrid(x, y), axis=-1), jnp.float32)
        best = surfaces.best_walks(states, where)
        # a path that leaves the window would shrink the rest of the picture
        corners = [left, bottom], [right, top]
        shown[f"paths on {where}"] = Paths(
            x,
            y,
            np.asarray(jax.vmap(jax.vmap(surface.height))(grid)),
            {name: np.clip(walk["path"], *corners) for name, walk in best.items()},
            f"{where}: the path of each optimizer at its best learning rate; stars are minima.",
            targets=np.array(surface.minima),
        )
        keys = ("rate", "steps", "gradients", "arriving")
        rows += [[where, name, *(walk[key] for key in keys)] for name, walk in best.items()]
    columns = ["surface", "optimizer", "best rate", "steps to arrive", "gradients to arrive"]
    columns += [f"of {len(surfaces.RATES)} rates arrive"]
    caption = (
        f"How long until a walk stays within {surfaces.ARRIVED} of a minimum, at the best of the "
        "same learning rates for all (L-BFGS finds its own by line search). Empty: it never does."
    )
    shown["arrivals"] = Table(columns, rows, caption)
    return shown


# %% [markdown]
# ## Part two: the race, and the price of privacy


# %%
def race_table(results: Mapping[str, Mapping[str, Any]]) -> Table:
    """The results as a table."""
    columns = ["optimizer", "test accuracy", "lowest", "highest", f"steps to {race.TARGET:.0%}"]
    columns += ["ms a step", f"seconds to {race.TARGET:.0%}", "bytes kept"]
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


def race_curves(outcome: ecotour.Outcome, trained: Mapping[str, Any]) -> dict[str, Exhibit]:
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
    target = {f"target {race.TARGET:.0%}": race.TARGET}
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


def privacy(found: Mapping[str, float]) -> Table:
    """Both accounts side by side."""
    return Table(
        ["what is assumed", "epsilon"],
        [
            ["each batch a Poisson sample", found["poisson"]],
            ["a shuffled epoch, no credit for sampling", found["shuffled"]],
        ],
        f"What DP-SGD's {found['steps']:g} steps cost in privacy at delta {found['delta']:g}: the "
        "same noise, two accounts of how the batches are chosen.",
    )


# %% [markdown]
# ## Part three: second derivatives
#
# In softmax regression the second derivative by one weight is the mean of p (1 - p) x^2: large
# where a pixel carries ink *and* the model is unsure of that digit.


# %%
def second_order(fit: curvature.Fit, history: Any) -> dict[str, Exhibit]:
    """The Hessian's diagonal as pictures, and the errors over the steps."""
    _, unravel = ravel_pytree(fit.params)
    diagonal = np.asarray(unravel(fit.hessian)["linear"]["w"]) - curvature.RIDGE
    pictures = diagonal.T.reshape(curvature.CLASSES, curvature.SIDE, curvature.SIDE)
    errors = [name for name in history if name.startswith(("hvp", "hessian", "fisher"))]
    lines = {name: Line(history[name].steps, history[name].values) for name in errors}
    return {
        "hessian diagonal": Images(
            pictures / max(float(pictures.max()), 1e-30),
            "The Hessian's diagonal, one picture of 7x7 weights for each digit: bright weights "
            "are those that the loss is most sensitive to.",
            columns=5,
            labels=[str(digit) for digit in range(curvature.CLASSES)],
        ),
        "second-order errors": Curves(
            lines,
            "Optax against JAX's own second derivatives, and (the line that is not an error) how "
            "little of the Fisher information is left when a whole batch is passed at once.",
            y_label="relative error, or share",
            log_y=True,
        ),
    }


# %% [markdown]
# ## Part four: the estimator and the knapsack


# %%
def packs(packing: discrete.Packing, tally: discrete.Tally) -> dict[str, Exhibit]:
    """The variance against the samples, and what was packed."""
    variance = np.asarray(tally.squares) / max(float(tally.draws), 1.0)
    counts = np.array(COUNTS, np.float64)
    found = np.asarray(jax.vmap(discrete.decide)(packing.logits)).mean(axis=0)
    best = PACKS[WORTHS.argmax()]
    rows: list[list[str | float | bool | None]] = [
        [f"item {i + 1}", float(WEIGHT[i]), float(VALUE[i]), bool(best[i]), float(found[i])]
        for i in range(len(WEIGHT))
    ]
    return {
        "estimator variance": Curves(
            {
                "without baseline": Line(counts, variance[0]),
                "with baseline": Line(counts, variance[1]),
                "1 / samples": Line(counts, variance[1][0] * counts[0] / counts),
            },
            "Variance of the estimated gradient (summed over its 16 entries) against the number "
            "of samples; both lines should run parallel to 1 / samples.",
            x_label="samples",
            y_label="variance",
            log_x=True,
            log_y=True,
        ),
        "knapsack": Table(
            ["item", "weight", "worth", "in the best pack", f"taken by share of {RUNS} runs"],
            rows,
            f"The knapsack of capacity {CAPACITY:g}; the best of its 256 packs is worth {BEST:g}.",
        ),
    }
