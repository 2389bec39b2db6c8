"""A task on graphs of many sizes whose truth can be computed: how far does a rumour spread?

Graphs are drawn at random and labelled by a breadth-first search, then packed into batches that
all have the same shape.
"""

# %% [markdown]
# ## The task
#
# One node, the *root*, knows a rumour and tells its neighbours, who tell theirs. Three questions,
# one for each kind of thing that a `GraphsTuple` holds:
#
# | of each | question | label |
# | --- | --- | --- |
# | node | will it hear the rumour? | `reached` |
# | edge, directed | does it carry the rumour one step further from the root? | `outward` |
# | graph | will everybody hear it, that is: is the graph connected? | `connected` |
#
# Whoever answers must let information travel: after R rounds of message passing a node knows
# nothing that is more than R edges away. `farthest` keeps how many edges the rumour travels.

# %%
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jraph
import numpy as np

import ecotour

ASKED = ("node", "edge", "graph")  # what the three questions are asked of


def distances_from(root: int, adjacency: np.ndarray) -> np.ndarray:
    """Edges from `root` to each node, -1 where no path leads: breadth-first search.

    `adjacency` is `bool [n, n]`; the answer is `int32 [n]`.
    """
    distance = np.full(len(adjacency), -1, np.int32)
    frontier, step = np.zeros(len(adjacency), bool), 0
    frontier[root] = True
    while frontier.any():
        distance[frontier] = step
        frontier = adjacency[frontier].any(axis=0) & (distance < 0)
        step += 1
    return distance


# %% [markdown]
# ## Drawing a graph
#
# Half the graphs are connected, half fall into two parts. Each part starts as a random tree and
# gets some more edges. Both kinds have equally many edges on average, or else counting edges
# would give the answer away without looking at the graph.


# %%
def random_edges(rng: np.random.Generator, n_node: int) -> np.ndarray:
    """Undirected edges `int [m, 2]` between `n_node` >= 6 nodes, none twice, no self edges."""
    connected = rng.random() < 0.5
    first = n_node if connected else int(rng.integers(3, n_node - 2))
    part = np.arange(n_node) >= first
    starts = np.where(part, first, 0)
    # each node but the first of its part hangs on an earlier one
    below = starts + ((np.arange(n_node) - starts) * rng.random(n_node)).astype(int)
    adjacency = np.zeros((n_node, n_node), bool)
    child = np.flatnonzero(np.arange(n_node) > starts)
    adjacency[below[child], child] = True
    wanted = n_node - 1 + int(rng.integers(1, n_node // 3 + 1))
    pairs = np.argwhere(np.triu(part[:, None] == part[None, :], 1) & ~adjacency)
    more = pairs[rng.permutation(len(pairs))[: wanted - len(child)]]
    adjacency[more[:, 0], more[:, 1]] = True
    return rng.permutation(n_node)[np.argwhere(adjacency)]


def random_graph(rng: np.random.Generator, sizes: tuple[int, int]) -> jraph.GraphsTuple:
    """A graph with a root and its labels; the number of nodes lies in `sizes`, both inclusive."""
    n_node = int(rng.integers(sizes[0], sizes[1] + 1))
    edges = random_edges(rng, n_node).astype(np.int32)
    senders = np.concatenate([edges[:, 0], edges[:, 1]])
    receivers = np.concatenate([edges[:, 1], edges[:, 0]])
    adjacency = np.zeros((n_node, n_node), bool)
    adjacency[senders, receivers] = True
    root = int(rng.integers(n_node))
    distance = distances_from(root, adjacency)
    return jraph.GraphsTuple(
        nodes={
            "root": (np.arange(n_node) == root).astype(np.float32)[:, None],
            "reached": distance >= 0,
        },
        edges={"outward": distance[receivers] == distance[senders] + 1},
        senders=senders,
        receivers=receivers,
        globals={
            "connected": np.array([(distance >= 0).all()]),
            "farthest": distance.max(keepdims=True),
        },
        n_node=np.array([n_node], np.int32),
        n_edge=np.array([len(senders)], np.int32),
    )


def random_graphs(seed: int, count: int, sizes: tuple[int, int]) -> list[jraph.GraphsTuple]:
    """`count` graphs; the same ones for the same arguments."""
    rng = np.random.default_rng(seed)
    return [random_graph(rng, sizes) for _ in range(count)]


# %% [markdown]
# ## Packing
#
# A batch of graphs is one large graph with several parts that do not touch: node arrays one after
# another, `n_node` saying where each graph ends. XLA compiles for one shape, so
# `jraph.dynamically_batch` fills a *budget* of nodes, edges and graphs with as many graphs as fit
# and tops it up with one padding graph (and empty ones). One shape, one compilation.


# %%
class Budget(NamedTuple):
    """How much a batch holds, padding included."""

    n_node: int
    n_edge: int
    n_graph: int


def packed(graphs: Sequence[jraph.GraphsTuple], budget: Budget) -> Iterator[jraph.GraphsTuple]:
    """Batches that all have the budget's shape."""
    yield from jraph.dynamically_batch(iter(graphs), *budget)


def dataset(split: str, graphs: Sequence[jraph.GraphsTuple], budget: Budget) -> ecotour.Dataset:
    """Packed batches as a dataset, in which a whole batch is one example.

    Its arrays have the number of batches as leading axis. The runner draws from it like from
    any other, one packed batch a step.
    """
    batches = [flat(batch) for batch in packed(graphs, budget)]
    arrays = {key: np.stack([batch[key] for batch in batches]) for key in batches[0]}
    label = f"{split}, {len(graphs):,} graphs in packed batches"
    return ecotour.Dataset(ecotour.DataInfo("rumours", "synthetic", label, len(batches)), arrays)


def flat(graph: jraph.GraphsTuple) -> dict[str, np.ndarray]:
    """A GraphsTuple as a dictionary of arrays; `int64`, which Jraph's offsets bring in, to 32."""
    fields = {name: getattr(graph, name) for name in ("senders", "receivers", "n_node", "n_edge")}
    indices = {name: np.asarray(values, np.int32) for name, values in fields.items()}
    return indices | dict(graph.nodes) | dict(graph.edges) | dict(graph.globals)


def unflat(arrays: dict[str, np.ndarray]) -> jraph.GraphsTuple:
    """The GraphsTuple of such a dictionary."""
    return jraph.GraphsTuple(
        nodes={name: arrays[name] for name in ("root", "reached")},
        edges={"outward": arrays["outward"]},
        senders=arrays["senders"],
        receivers=arrays["receivers"],
        globals={name: arrays[name] for name in ("connected", "farthest")},
        n_node=arrays["n_node"],
        n_edge=arrays["n_edge"],
    )
