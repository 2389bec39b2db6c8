"""What the run must reach, and how that is measured."""

# %% [markdown]
# ## Asking on larger graphs
#
# Right answers are counted on 200 graphs of 24 to 48 nodes, after 1, 2, … 24 rounds. Beside them
# stands the *horizon*: after R rounds a node knows nothing that is more than R edges away, so that
# a connected graph whose farthest node is farther looks like a disconnected one. One who knows
# that can still guess, but not know better.

# %%
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np

import ecotour
from ecotour import exhibits
from ecotour_jraph import club, feeds, gallery, karate, rumours
from ecotour_jraph.layers import LAYERS

ROUNDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)
JUDGED_ROUNDS = 12
JUDGED = ROUNDS.index(JUDGED_ROUNDS)
Answers = Callable[..., tuple[jax.Array, ...]]


def labels_and_masks(data: ecotour.Dataset) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For nodes, edges and graphs: labels and whether a row is real, both `bool [batches, …]`."""
    graphs = rumours.unflat(dict(data.arrays))
    labels = [graphs.nodes["reached"], graphs.edges["outward"], graphs.globals["connected"]]
    masks = (
        jraph.get_node_padding_mask,
        jraph.get_edge_padding_mask,
        jraph.get_graph_padding_mask,
    )
    return labels, [np.asarray(jax.vmap(mask)(jax.tree.map(jnp.asarray, graphs))) for mask in masks]


def right_answers(answers: Answers, layer: str, params: Any, data: ecotour.Dataset) -> np.ndarray:
    """Shares of right answers `[R, 3]`: after each of `ROUNDS`, for nodes, edges, graphs."""
    labels, masks = labels_and_masks(data)
    right = np.zeros((len(ROUNDS), 3))
    for number in range(data.info.examples):
        graph = rumours.unflat({name: array[number] for name, array in data.arrays.items()})
        for row, rounds in enumerate(ROUNDS):
            logits = answers(layer, params=params, graph=graph, rounds=jnp.int32(rounds))
            for column, (label, mask) in enumerate(zip(labels, masks, strict=True)):
                said = np.asarray(logits[column]) > 0
                right[row, column] += ((said == label[number]) & mask[number]).sum()
    shares: np.ndarray = right / np.array([mask.sum() for mask in masks])
    return shares


def majority_of(data: ecotour.Dataset) -> np.ndarray:
    """Shares of right answers `[3]` of one who always says what is true more often."""
    shares = [label[mask].mean() for label, mask in zip(*labels_and_masks(data), strict=True)]
    majority: np.ndarray = np.maximum(shares, 1 - np.array(shares))
    return majority


def horizon(data: ecotour.Dataset) -> np.ndarray:
    """Shares of graphs `[R]` that one who sees so many edges far can tell connected or not."""
    _, (_, _, mask) = labels_and_masks(data)
    connected, farthest = (data.arrays[name][mask] for name in ("connected", "farthest"))
    return np.array([(~connected | (farthest <= rounds)).mean() for rounds in ROUNDS])


# %% [markdown]
# ## The verdict
#
# The bounds come from seeds 0 to 4 of the whole run and leave room below the worst of them, which
# are, on larger graphs, 99.7% of the nodes, 99.1% of the edges and 96.5% of the graphs, and in the
# club 97.0% by convolution and 90.5% by attention. Networks that were not trained miss them by far.


# %%
def judge(answers: Answers, outcome: ecotour.Outcome) -> ecotour.Verdict:
    """Judge all nine named steps."""
    wrong, believed = {}, {}
    for kind in karate.KINDS:
        params = outcome.states[f"karate-{kind}"].params
        believed[kind] = np.asarray(karate.beliefs(kind, params)) > 0.5
        wrong[kind] = (believed[kind] != club.club).mean(axis=0)
    right = {
        layer: right_answers(
            answers, layer, outcome.states[f"rumours-{layer}"].params, outcome.data["test"]
        )
        for layer in LAYERS
    }
    feed = {name: outcome.history[f"feed-{name}"] for name in feeds.FEEDS}
    # of the first pass: later, rounding makes any two runs of gradient descent part ways
    first_losses = [feed[name]["loss"].values[0] for name in ("as-they-come", "powers-of-two")]
    check = ecotour.Check
    convolution, attention = 1 - wrong["convolution"].mean(), 1 - wrong["attention"].mean()
    misplaced = int(wrong["convolution"].argmax()) + 1
    checks = [
        check.at_least("karate accuracy, convolution", convolution, 0.96),
        check.at_least("karate accuracy, attention", attention, 0.88),
        check.equals("karate member misplaced most often", misplaced, club.CHANGED_SIDES),
    ]
    for layer in ("messages", "attention"):
        for column, (asked, bound) in enumerate(
            zip(rumours.ASKED, (0.97, 0.97, 0.93), strict=True)
        ):
            name = f"larger graphs, {asked} accuracy, {layer}"
            checks.append(check.at_least(name, right[layer][JUDGED, column], bound))
    checks += [
        check.equals("compilations, one budget", feed["one-budget"]["compiles"].last, 1),
        check.at_most("loss changed by padding", abs(first_losses[0] - first_losses[1]), 1e-4),
    ]
    majority, limit = majority_of(outcome.data["test"]), horizon(outcome.data["test"])
    rows = {"always the commoner answer": majority}
    rows |= {layer: shares[JUDGED] for layer, shares in right.items()}
    shown: dict[str, exhibits.Exhibit] = {
        "club_accuracy": gallery.club_curves(outcome.history, karate.KINDS),
        "club_mistakes": gallery.club_mistakes(wrong),
        "larger_graphs": gallery.large_table(
            rows, f"Right answers on larger graphs after {JUDGED_ROUNDS} rounds."
        ),
        "rounds": gallery.rounds_curves(
            ROUNDS, {layer: shares[:, 2] for layer, shares in right.items()}, limit, majority[2]
        ),
        "feeds": gallery.feed_table(outcome.history, tuple(feeds.FEEDS)),
        "feed_speed": gallery.feed_curves(outcome.history, tuple(feeds.FEEDS)),
    }
    by_faction = (believed["convolution"] == club.faction).mean()
    summary = (
        f"From two labels, {100 * convolution:.1f}% of the club are placed rightly, and "
        f"{100 * by_faction:.1f}% as they stood before the split: member 9 alone changed sides. "
        f"On larger graphs messages tell {100 * right['messages'][JUDGED, 2]:.1f}% connected or "
        f"not, convolution {100 * right['convolution'][JUDGED, 2]:.1f}%. The same graphs cost "
        f"{int(feed['as-they-come']['compiles'].last)} compilations as they come, "
        f"{int(feed['powers-of-two']['compiles'].last)} padded to powers of two and "
        f"{int(feed['one-budget']['compiles'].last)} in one budget."
    )
    return ecotour.Verdict(checks, shown, summary)
