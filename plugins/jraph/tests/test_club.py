"""The karate club against what is published of it.

Sources: Zachary (1977), Journal of Anthropological Research 33(4); the counts of triangles, the
diameter and the degrees stand in many textbooks, e.g. as networkx's `karate_club_graph` has them.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csgraph

from ecotour_jraph import club


def adjacency() -> np.ndarray:
    graph = club.graph()
    matrix = np.zeros((club.MEMBERS, club.MEMBERS), int)
    np.add.at(matrix, (graph.senders, graph.receivers), 1)
    return matrix


def test_it_has_34_members_and_78_ties_each_once_in_both_directions() -> None:
    matrix = adjacency()
    assert matrix.shape == (34, 34)
    assert matrix.sum() == 2 * 78
    assert matrix.max() == 1
    assert (matrix == matrix.T).all()
    assert np.trace(matrix) == 0


def test_degrees() -> None:
    degrees = adjacency().sum(axis=0)
    assert degrees[club.MR_HI] == 16
    assert degrees[club.JOHN_A] == 17
    published = [16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2, 2]
    published += [2, 2, 3, 2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17]
    assert degrees.tolist() == published


def test_triangles_and_diameter() -> None:
    matrix = adjacency()
    assert np.trace(np.linalg.matrix_power(matrix, 3)) // 6 == 45
    assert csgraph.shortest_path(matrix, unweighted=True).max() == 5


def test_two_truths_differ_in_the_member_who_changed_sides() -> None:
    assert np.bincount(club.faction).tolist() == [16, 18]
    assert np.bincount(club.club).tolist() == [17, 17]
    assert (np.flatnonzero(club.faction != club.club) + 1).tolist() == [9]
    assert club.club[club.MR_HI] == 0
    assert club.club[club.JOHN_A] == 1


def test_jraphs_own_example_has_the_same_graph_and_clubs() -> None:
    from jraph.examples import zacharys_karate_club as example

    theirs, ours = example.get_zacharys_karate_club(), club.graph()
    edges = {
        tuple(edge)
        for edge in np.stack([np.asarray(theirs.senders), np.asarray(theirs.receivers)], 1).tolist()
    }
    assert edges == {(int(s), int(r)) for s, r in zip(ours.senders, ours.receivers, strict=True)}
    labels = example.get_ground_truth_assignments_for_zacharys_karate_club()
    assert (np.asarray(labels) == club.club).all()


def test_the_truths_cannot_be_changed_by_accident() -> None:
    assert not club.club.flags.writeable
    assert not club.faction.flags.writeable
