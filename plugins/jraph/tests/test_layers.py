"""Each layer against a dense computation in NumPy at double precision."""

from __future__ import annotations

from collections.abc import Callable

import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from ecotour_jraph import club, rumours
from ecotour_jraph.layers import LAYERS, Attention, Convolution, Messages, with_self_edges


def small_graph(nodes: int = 7, features: int = 5) -> jraph.GraphsTuple:
    """Directed, without symmetry; node 6 has no edge at all."""
    rng = np.random.default_rng(3)
    senders = np.array([0, 1, 1, 2, 3, 4, 5, 5, 2], np.int32)
    receivers = np.array([1, 0, 2, 3, 1, 1, 2, 4, 5], np.int32)
    return jraph.GraphsTuple(
        nodes=rng.normal(size=(nodes, features)).astype(np.float32),
        edges=None,
        senders=senders,
        receivers=receivers,
        globals=None,
        n_node=np.array([nodes], np.int32),
        n_edge=np.array([len(senders)], np.int32),
    )


def weights(net: hk.Transformed, graph: jraph.GraphsTuple) -> hk.Params:
    """Any will do for these tests; NumPy's need no compiling."""
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(net.init, jax.random.key(0), graph)
    return jax.tree.map(lambda w: jnp.asarray(rng.normal(0, 0.5, w.shape), w.dtype), shapes)


def apply(
    layer: Callable[[], hk.Module], graph: jraph.GraphsTuple
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Parameters by their last names, and the nodes `float64` that come out."""
    net = hk.without_apply_rng(hk.transform(lambda graph: layer()(graph).nodes))
    params = weights(net, graph)
    flat = {name: np.asarray(a, float) for _, name, a in hk.data_structures.traverse(params)}
    return flat, np.asarray(jax.jit(net.apply)(params, graph), float)


def heard_by(graph: jraph.GraphsTuple, self_edges: bool = True) -> np.ndarray:
    """`[i, j]` is 1 where node i hears node j."""
    matrix = np.eye(len(graph.nodes)) if self_edges else np.zeros([len(graph.nodes)] * 2)
    matrix[graph.receivers, graph.senders] = 1
    return matrix


@pytest.mark.parametrize("self_edges", [True, False])
def test_convolution_of_the_club_is_the_normalised_adjacency_matrix(self_edges: bool) -> None:
    graph = club.graph()
    params, nodes = apply(lambda: Convolution(3, self_edges), graph)
    matrix = heard_by(graph, self_edges)
    scale = np.diag(matrix.sum(axis=1) ** -0.5)
    np.testing.assert_allclose(nodes, scale @ matrix @ scale @ params["w"], atol=1e-6)


def test_convolution_of_a_directed_graph_divides_by_both_degrees() -> None:
    graph = small_graph()
    params, nodes = apply(lambda: Convolution(4), graph)
    matrix = heard_by(graph)
    rows, columns = matrix.sum(axis=1) ** -0.5, matrix.sum(axis=0) ** -0.5
    dense = rows[:, None] * matrix * columns[None, :] @ (np.asarray(graph.nodes) @ params["w"])
    np.testing.assert_allclose(nodes, dense, atol=1e-6)


def test_attention_is_a_softmax_over_the_edges_that_enter_a_node() -> None:
    graph, heads, depth = small_graph(), 2, 3
    params, nodes = apply(lambda: Attention(heads * depth, heads), graph)
    queries = (np.asarray(graph.nodes, float) @ params["w"]).reshape(-1, heads, depth)
    hears, dense = heard_by(graph) > 0, np.zeros_like(queries)
    for head in range(heads):
        of_sender, of_receiver = np.split(params["score"][head], 2)
        logits = queries[:, head] @ of_receiver
        logits = logits[:, None] + (queries[:, head] @ of_sender)[None, :]
        logits = np.where(logits > 0, logits, 0.2 * logits)
        weights = np.where(hears, np.exp(logits), 0)
        weights /= weights.sum(axis=1, keepdims=True)
        dense[:, head] = weights @ queries[:, head]
    np.testing.assert_allclose(nodes, dense.reshape(len(nodes), -1), atol=1e-6)


def test_attention_sums_to_one_over_the_incoming_edges_of_each_node() -> None:
    graph = with_self_edges(club.graph())
    logits = 30 * jax.random.normal(jax.random.key(1), (len(graph.receivers), 4))
    weights = jraph.segment_softmax(logits, graph.receivers, club.MEMBERS)
    sums = jraph.segment_sum(weights, graph.receivers, club.MEMBERS)
    np.testing.assert_allclose(sums, np.ones((club.MEMBERS, 4)), atol=1e-5)


def test_attention_over_equal_nodes_changes_nothing_but_the_projection() -> None:
    # weights that sum to one leave an average of equal things as it is
    graph = small_graph()._replace(nodes=np.ones((7, 5), np.float32))
    params, nodes = apply(lambda: Attention(8), graph)
    np.testing.assert_allclose(nodes, np.ones((7, 5)) @ params["w"], atol=1e-6)


def test_messages_keep_the_largest_and_zero_where_none_arrives() -> None:
    graph = small_graph()
    params, nodes = apply(lambda: Messages(6), graph)
    features = np.asarray(graph.nodes, float)
    dense = np.zeros((7, 6))
    for node in range(7):
        senders = graph.senders[graph.receivers == node]
        ends = [np.concatenate([features[sender], features[node]]) for sender in senders]
        if ends:
            dense[node] = np.maximum(np.stack(ends) @ params["w"] + params["b"], 0).max(axis=0)
    np.testing.assert_allclose(nodes, dense, atol=1e-6)
    assert (nodes[6] == 0).all()


@pytest.mark.parametrize("layer", LAYERS)
def test_nodes_in_another_order_give_the_same_answers_in_that_order(layer: str) -> None:
    graph = small_graph()
    order = np.random.default_rng(0).permutation(7)
    place = np.argsort(order).astype(np.int32)
    moved = graph._replace(
        nodes=graph.nodes[order], senders=place[graph.senders], receivers=place[graph.receivers]
    )
    _, nodes = apply(lambda: LAYERS[layer](8), graph)
    _, again = apply(lambda: LAYERS[layer](8), moved)
    np.testing.assert_allclose(again, nodes[order], atol=1e-6)


@pytest.mark.parametrize("layer", LAYERS)
def test_gradients_are_finite_where_a_node_hears_nobody(layer: str) -> None:
    net = hk.without_apply_rng(hk.transform(lambda graph: LAYERS[layer](8)(graph).nodes))
    params = weights(net, small_graph())
    slope = jax.grad(lambda params: jnp.sum(net.apply(params, small_graph()) ** 2))
    gradient = jax.jit(slope)(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_self_edges_come_after_the_others() -> None:
    graph = with_self_edges(rumours.random_graphs(0, 1, (6, 6))[0]._replace(nodes=np.zeros((6, 1))))
    assert graph.senders[-6:].tolist() == graph.receivers[-6:].tolist() == list(range(6))
