"""The task's labels against SciPy's graph routines, and the packing against its budget."""

from __future__ import annotations

import jraph
import numpy as np
import pytest
from scipy.sparse import csgraph

from ecotour_jraph import rumours
from ecotour_jraph.rumours import Budget

GRAPHS = rumours.random_graphs(5, 300, (6, 40))


def adjacency(graph: jraph.GraphsTuple) -> np.ndarray:
    matrix = np.zeros([int(graph.n_node[0])] * 2, int)
    np.add.at(matrix, (graph.senders, graph.receivers), 1)
    return matrix


def test_labels_are_those_of_scipys_shortest_paths_and_components() -> None:
    for graph in GRAPHS:
        root = int(graph.nodes["root"][:, 0].argmax())
        matrix = adjacency(graph)
        distance = csgraph.shortest_path(matrix, unweighted=True)[root]
        parts, _ = csgraph.connected_components(matrix)
        assert graph.nodes["root"].sum() == 1
        assert (graph.nodes["reached"] == np.isfinite(distance)).all()
        with np.errstate(invalid="ignore"):  # inf - inf, in the part without the root
            step = distance[graph.receivers] - distance[graph.senders]
        assert (graph.edges["outward"] == (step == 1)).all()
        assert graph.globals["connected"].tolist() == [parts == 1]
        assert graph.globals["farthest"].tolist() == [distance[np.isfinite(distance)].max()]


def test_graphs_are_simple_undirected_and_of_the_sizes_asked_for() -> None:
    for graph in GRAPHS:
        matrix = adjacency(graph)
        assert matrix.max() == 1
        assert (matrix == matrix.T).all()
        assert np.trace(matrix) == 0
        assert matrix.sum() == graph.n_edge[0] == len(graph.senders)
        assert 6 <= graph.n_node[0] <= 40
    assert {int(graph.n_node[0]) for graph in GRAPHS} == set(range(6, 41))


def test_counting_edges_does_not_tell_connected_from_disconnected() -> None:
    graphs = rumours.random_graphs(9, 4000, (6, 16))
    connected = np.array([graph.globals["connected"][0] for graph in graphs])
    more = np.array([graph.n_edge[0] / 2 - graph.n_node[0] for graph in graphs])
    assert 0.47 < connected.mean() < 0.53  # 0.5 +- 4 standard errors
    # the standard error of the difference is 0.05; one edge would give the answer away
    assert abs(more[connected].mean() - more[~connected].mean()) < 0.2


def test_the_same_seed_draws_the_same_graphs() -> None:
    one, again = (rumours.flat(rumours.random_graphs(4, 3, (6, 16))[2]) for _ in range(2))
    other = rumours.flat(rumours.random_graphs(5, 3, (6, 16))[2])
    assert all((one[name] == again[name]).all() for name in one)
    assert any(
        one[name].shape != other[name].shape or (one[name] != other[name]).any() for name in one
    )


def test_packed_batches_have_the_budgets_shape_and_lose_no_graph() -> None:
    budget = Budget(n_node=128, n_edge=400, n_graph=9)
    batches = list(rumours.packed(GRAPHS, budget))
    kept = []
    for batch in batches:
        assert (len(batch.nodes["root"]), len(batch.senders), len(batch.n_node)) == budget
        assert batch.n_node.sum() == budget.n_node
        assert batch.n_edge.sum() == budget.n_edge
        kept += jraph.unbatch_np(jraph.unpad_with_graphs(batch))
    assert len(kept) == len(GRAPHS)
    for ours, theirs in zip(GRAPHS, kept, strict=True):
        assert (ours.senders == theirs.senders).all()
        assert (ours.nodes["reached"] == theirs.nodes["reached"]).all()
    # no batch could have taken the first graph of the next one
    sizes = [
        [int(g.n_node[0]) for g in jraph.unbatch_np(jraph.unpad_with_graphs(b))] for b in batches
    ]
    real = [jraph.unpad_with_graphs(b) for b in batches]
    for here, following in zip(range(len(batches) - 1), real[1:], strict=True):
        assert (
            sum(sizes[here]) + following.n_node[0] > budget.n_node - 1
            or len(real[here].senders) + following.n_edge[0] > budget.n_edge
            or len(sizes[here]) + 1 > budget.n_graph - 1
        )


def test_a_graph_larger_than_the_budget_is_refused() -> None:
    with pytest.raises(RuntimeError, match="bigger than batch size"):
        list(rumours.packed(GRAPHS, Budget(n_node=20, n_edge=400, n_graph=9)))


def test_dataset_arrays_give_the_graphs_back() -> None:
    budget = Budget(n_node=128, n_edge=400, n_graph=9)
    data = rumours.dataset("train", GRAPHS, budget)
    assert {len(array) for array in data.arrays.values()} == {data.info.examples}
    assert data.info.source == "synthetic"
    assert {array.dtype.name for array in data.arrays.values()} == {"int32", "float32", "bool"}
    for number, batch in enumerate(rumours.packed(GRAPHS, budget)):
        back = rumours.unflat({name: array[number] for name, array in data.arrays.items()})
        assert (back.senders == batch.senders).all()
        assert (back.nodes["root"] == batch.nodes["root"]).all()
        assert (back.globals["farthest"] == batch.globals["farthest"]).all()
