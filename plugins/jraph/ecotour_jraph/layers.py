"""The layers of this stop's networks, from Jraph's models and Haiku's modules.

All take a `jraph.GraphsTuple` with node features `float32 [N, F]` and edges from `senders [E]` to
`receivers [E]`, and let each node listen to the nodes that send to it.
"""

# %% [markdown]
# ## Three ways to listen
#
# Jraph's models are functions that return functions from graph to graph; what is learned are the
# Haiku modules handed to them. A node hears only its neighbours, so without an edge to itself it
# forgets what it was: all three layers see to that.

# %%
from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import haiku as hk
import jax
import jax.numpy as jnp
import jraph

Layer: TypeAlias = Callable[[jraph.GraphsTuple], jraph.GraphsTuple]


# %% [markdown]
# ### Convolution
#
# The average of the neighbours, weighted by nothing but degrees (Kipf & Welling 2017,
# arXiv:1609.02907): `D^-1/2 (A + I) D^-1/2 X W`.
#
# Jraph counts degrees in integers and compares them with 1.0, which JAX refuses under strict
# promotion of dtypes; hence the `with`, which holds for these lines alone.


# %%
class Convolution(hk.Module):
    """Nodes `[N, F]` to `[N, width]`."""

    def __init__(self, width: int, self_edges: bool = True) -> None:
        """Without `self_edges` a node does not hear itself."""
        super().__init__()
        self.width, self.self_edges = width, self_edges

    def __call__(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        """Apply the layer."""
        linear = hk.Linear(self.width, with_bias=False, name="linear")
        with jax.numpy_dtype_promotion("standard"):
            return jraph.GraphConvolution(linear, add_self_edges=self.self_edges)(graph)


# %% [markdown]
# ### Attention
#
# An average again, but the weights are learned (Veličković et al. 2018, "GAT",
# arXiv:1710.10903): each edge gets a logit from the two nodes it joins, and a softmax over the
# edges that enter a node makes weights that sum to one. Several *heads* do so side by side.
# `jraph.GAT` wants self edges in the graph, so they are added and taken away again.


# %%
class Attention(hk.Module):
    """Nodes `[N, F]` to `[N, width]`, a share of the width for each of the heads."""

    def __init__(self, width: int, heads: int = 4) -> None:
        """`width` is a multiple of `heads`."""
        super().__init__()
        self.width, self.heads = width, heads

    def __call__(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        """Apply the layer."""
        n_node, depth = len(graph.nodes), self.width // self.heads
        linear = hk.Linear(self.width, with_bias=False, name="linear")
        score = hk.get_parameter(
            "score", [self.heads, 2 * depth], init=hk.initializers.VarianceScaling()
        )

        def queries(nodes: jax.Array) -> jax.Array:  # [N, heads, depth]
            return jnp.reshape(linear(nodes), (n_node, self.heads, depth))

        def logits(senders: jax.Array, receivers: jax.Array, edges: None) -> jax.Array:
            pairs = jnp.concatenate([senders, receivers], axis=-1)  # [E, heads, 2 depth]
            return jax.nn.leaky_relu((pairs * score[None]).sum(axis=-1, keepdims=True), 0.2)

        def join(heads: jax.Array) -> jax.Array:
            return heads.reshape(n_node, self.width)

        nodes = jraph.GAT(queries, logits, join)(with_self_edges(graph)).nodes
        return graph._replace(nodes=nodes)


def with_self_edges(graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
    """One more edge a node, from itself to itself, after the others; `n_edge` stays as it was.

    Such a graph is good for layers that look at senders and receivers only.
    """
    itself = jnp.arange(len(graph.nodes), dtype=graph.senders.dtype)
    return graph._replace(
        senders=jnp.concatenate([graph.senders, itself]),
        receivers=jnp.concatenate([graph.receivers, itself]),
    )


# %% [markdown]
# ### Messages
#
# The general form (Battaglia et al. 2018, arXiv:1806.01261): a learned function of both ends makes
# a message for each edge, and a node keeps the largest of what arrives. For a node that nothing
# reaches the maximum is -infinity, which turns gradients into NaN;
# `jraph.segment_max_or_constant` says 0 there.


# %%
class Messages(hk.Module):
    """Nodes `[N, F]` to `[N, width]`."""

    def __init__(self, width: int) -> None:
        """Messages have `width` numbers."""
        super().__init__()
        self.width = width

    def __call__(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        """Apply the layer."""
        linear = hk.Linear(self.width, name="linear")

        def message(edges: None, sender: jax.Array, receiver: jax.Array) -> jax.Array:
            return jax.nn.relu(linear(jnp.concatenate([sender, receiver], axis=-1)))

        def keep(node: jax.Array, received: jax.Array) -> jax.Array:
            return received

        layer = jraph.InteractionNetwork(message, keep, jraph.segment_max_or_constant)
        return graph._replace(nodes=layer(graph).nodes)


LAYERS: dict[str, Callable[[int], Layer]] = {
    "convolution": Convolution,
    "attention": Attention,
    "messages": Messages,
}
