"""What jraph 0.0.6.dev0 does on today's JAX: what the demo leans on, and what it goes around.

A test here that fails after an upgrade says that a detour in the demo may be taken out, or that a
new one is needed.
"""

from __future__ import annotations

import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from ecotour_jraph import club, rumours


def padded() -> jraph.GraphsTuple:
    graphs = rumours.random_graphs(0, 3, (6, 9))
    return jraph.pad_with_graphs(jraph.batch_np(graphs), n_node=40, n_edge=80, n_graph=6)


@pytest.mark.parametrize(
    "zero", [jraph.zero_out_padding, jraph.with_zero_out_padding_outputs(lambda g: g)]
)
def test_zeroing_the_padding_is_broken_by_the_removal_of_jax_tree_map(zero: object) -> None:
    with pytest.raises(AttributeError, match="tree_map"):
        zero(padded())  # type: ignore[operator]


def test_fully_connected_graphs_with_features_are_broken_by_that_of_jax_tree_leaves() -> None:
    assert jraph.get_fully_connected_graph(3, 2).senders.shape == (18,)
    with pytest.raises(AttributeError, match="tree_leaves"):
        jraph.get_fully_connected_graph(3, 2, node_features=jnp.ones((6, 1)))


def test_graph_convolution_mixes_integers_and_floats() -> None:
    net = hk.transform(lambda graph: jraph.GraphConvolution(hk.Linear(2))(graph).nodes)
    with (
        jax.numpy_dtype_promotion("strict"),
        pytest.raises(ValueError, match="implicit dtype promotion"),
    ):
        net.init(jax.random.key(0), club.graph())


def test_masks_take_the_last_graph_for_padding_even_where_nothing_was_padded() -> None:
    graphs = rumours.random_graphs(0, 3, (6, 9))
    mask = jraph.get_graph_padding_mask(jraph.batch_np(graphs))
    assert np.asarray(mask).tolist() == [True, True, False]


def test_masks_of_a_padded_batch_mark_what_is_real() -> None:
    graph = padded()
    real = sum(int(g.n_node[0]) for g in rumours.random_graphs(0, 3, (6, 9)))
    edges = sum(int(g.n_edge[0]) for g in rumours.random_graphs(0, 3, (6, 9)))
    assert np.asarray(jraph.get_node_padding_mask(graph)).tolist() == [n < real for n in range(40)]
    assert np.asarray(jraph.get_edge_padding_mask(graph)).tolist() == [e < edges for e in range(80)]
    assert np.asarray(jraph.get_graph_padding_mask(graph)).tolist() == [True] * 3 + [False] * 3


def test_an_empty_segment_has_maximum_minus_infinity_or_the_constant() -> None:
    data, segments = jnp.array([-2.0, -1.0]), jnp.array([0, 0])
    assert jraph.segment_max(data, segments, 2).tolist() == [-1.0, -np.inf]
    assert jraph.segment_max_or_constant(data, segments, 2).tolist() == [-1.0, 0.0]


def test_batching_makes_indices_of_64_bits() -> None:
    graphs = rumours.random_graphs(0, 3, (6, 9))
    assert graphs[0].senders.dtype == np.int32
    assert jraph.batch_np(graphs).senders.dtype == np.int64
    assert rumours.flat(jraph.batch_np(graphs))["senders"].dtype == np.int32
