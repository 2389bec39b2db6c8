"""Three ways to feed graphs of many sizes to a compiled function, measured.

XLA compiles a function for the shapes of its inputs. Graphs have any shape. What then?
"""

# %% [markdown]
# ## The three feeds
#
# The same graphs in the same order, in batches:
#
# - **as they come**: 12 graphs, and as many nodes and edges as they have. Hardly two batches
#   are alike, so nearly each one is compiled for. (Even here one padding graph of a single node
#   is added: Jraph's masks take the last graph of a batch for padding, whether it is or not.)
# - **powers of two**: the same batches, nodes and edges rounded up to the next power of two. A
#   handful of shapes, at the price of empty rows that are computed like any other.
# - **one budget**: `jraph.dynamically_batch`, which puts in as many graphs as fit.

# %%
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import haiku as hk
import jax
import jraph
import numpy as np

from ecotour_jraph.rumours import Budget, packed

Graphs = Sequence[jraph.GraphsTuple]
GRAPHS, GRAPHS_A_BATCH, PASSES = 72, 12, 20
BUDGET = Budget(n_node=144, n_edge=324, n_graph=GRAPHS_A_BATCH + 4)


def in_dozens(graphs: Graphs) -> Iterator[jraph.GraphsTuple]:
    """Batches of 12 graphs, not padded."""
    for start in range(0, len(graphs), GRAPHS_A_BATCH):
        yield jraph.batch_np(graphs[start : start + GRAPHS_A_BATCH])


def as_they_come(graphs: Graphs) -> Iterator[jraph.GraphsTuple]:
    """A batch has room for its own graphs and one padding node."""
    for batch in in_dozens(graphs):
        n_node, n_edge = int(batch.n_node.sum()), int(batch.n_edge.sum())
        yield jraph.pad_with_graphs(batch, n_node + 1, n_edge, len(batch.n_node) + 1)


def powers_of_two(graphs: Graphs) -> Iterator[jraph.GraphsTuple]:
    """A batch has room for the next power of two of nodes and of edges."""
    for batch in in_dozens(graphs):
        n_node, n_edge = int(batch.n_node.sum()), int(batch.n_edge.sum())
        # one node at least must be padding; bit_length gives the power above
        yield jraph.pad_with_graphs(
            batch, 1 << n_node.bit_length(), 1 << (n_edge - 1).bit_length(), len(batch.n_node) + 1
        )


def one_budget(graphs: Graphs) -> Iterator[jraph.GraphsTuple]:
    """A batch has the budget's room."""
    return packed(graphs, BUDGET)


FEEDS: dict[str, Callable[[Graphs], Iterator[jraph.GraphsTuple]]] = {
    "as-they-come": as_they_come,
    "powers-of-two": powers_of_two,
    "one-budget": one_budget,
}

# %% [markdown]
# ## Measuring a feed
#
# A step of this measurement is one pass over all graphs, batching included. It is called as it
# is, not compiled: what is to be measured happens in Python. The first pass pays for the
# compilations, the later ones find everything compiled.
#
# Compilations are counted where they begin: JAX runs the Python body of a jitted function only to
# trace it for shapes that it has not seen.


# %%
class FeedState(NamedTuple):
    """What a pass changes."""

    params: hk.Params
    compiles: np.ndarray  # int64 []: so far


class Feed:
    """The `init` and `step` of one feed.

    Args:
        batches: From graphs to batches, one of `FEEDS`.
        graphs: What to feed.
        make: `make(key, batch)` gives parameters.
        update: `update(params, batch)` gives new parameters and the loss `float32 []`.
    """

    def __init__(
        self,
        batches: Callable[[Graphs], Iterator[jraph.GraphsTuple]],
        graphs: Graphs,
        make: Callable[[jax.Array, jraph.GraphsTuple], hk.Params],
        update: Callable[[hk.Params, jraph.GraphsTuple], tuple[hk.Params, jax.Array]],
    ) -> None:
        """See the class."""
        self.batches, self.graphs, self.make, self.update = batches, graphs, make, update
        self.traces = 0

    def init(self, key: jax.Array, batch: object) -> FeedState:
        """The same weights for each feed, and a function that was never compiled."""

        def counted(params: hk.Params, batch: jraph.GraphsTuple) -> tuple[hk.Params, jax.Array]:
            self.traces += 1
            return self.update(params, batch)

        self.compiled = jax.jit(counted)
        return FeedState(self.make(key, next(one_budget(self.graphs))), np.zeros((), np.int64))

    def step(self, state: FeedState, batch: object, key: jax.Array) -> tuple[FeedState, Any]:
        """Feed all graphs once; `graphs_per_second` is the clock's, all else is reproducible."""
        before, started = self.traces, time.perf_counter()
        params, losses, nodes, edges = state.params, [], 0, 0
        for graph in self.batches(self.graphs):
            params, loss = self.compiled(params, graph)
            losses.append(loss)
            nodes, edges = nodes + len(graph.nodes["root"]), edges + len(graph.senders)
        mean_loss = np.mean([float(loss) for loss in losses])  # waits for the device
        seconds = time.perf_counter() - started
        compiles = state.compiles + (self.traces - before)
        metrics = {
            "loss": mean_loss,
            "compiles": compiles,
            "padding_nodes": np.float64(1 - sum(int(g.n_node[0]) for g in self.graphs) / nodes),
            "padding_edges": np.float64(1 - sum(int(g.n_edge[0]) for g in self.graphs) / edges),
            "graphs_per_second": np.float64(len(self.graphs) / seconds),
        }
        return FeedState(params, np.asarray(compiles)), metrics
