"""The pictures and tables of this stop, as exhibits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import jraph
import numpy as np

import ecotour
from ecotour.exhibits import Curves, Graph, Heatmap, Line, Table
from ecotour_jraph import club

Histories: TypeAlias = Mapping[str, Mapping[str, ecotour.Series]]
Row: TypeAlias = list[str | float | int | bool | None]


@cache
def layout(edges: tuple[tuple[int, int], ...], n_node: int) -> np.ndarray:
    """Places `float [n_node, 2]` by force: all nodes repel each other, edges pull.

    Fruchterman & Reingold (1991), "Graph drawing by force-directed placement"; a weak pull to the
    middle keeps parts that do not touch on the same sheet.
    """
    rng = np.random.default_rng(7)
    places = rng.normal(size=(n_node, 2))
    pull = np.zeros((n_node, n_node))
    for start, end in edges:
        pull[start, end] = pull[end, start] = 1.0
    for warmth in np.linspace(0.3, 0.01, 400):
        apart = places[:, None] - places[None, :]
        distance = np.maximum(np.linalg.norm(apart, axis=-1, keepdims=True), 1e-3)
        force = (apart / distance**2).sum(axis=1) - (pull[..., None] * apart * distance).sum(axis=1)
        force -= 0.6 * places
        length = np.maximum(np.linalg.norm(force, axis=-1, keepdims=True), 1e-9)
        places = places + force / length * np.minimum(length, warmth)
    return places


def ties(senders: np.ndarray, receivers: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Each undirected edge once; our graphs hold all of one direction first, then the other."""
    half = len(senders) // 2
    return tuple(zip(senders[:half].tolist(), receivers[:half].tolist(), strict=True))


def club_places() -> np.ndarray:
    """The karate club, Mr. Hi on the left."""
    graph = club.graph()
    places = layout(ties(graph.senders, graph.receivers), club.MEMBERS)
    axis = places[club.JOHN_A] - places[club.MR_HI]
    turn = np.array([axis, [-axis[1], axis[0]]]) / np.linalg.norm(axis)
    turned: np.ndarray = places @ turn.T
    return turned


def club_picture(beliefs: Any) -> Graph:
    """The club from probabilities of John A.'s club, `[seeds, 34]`."""
    graph = club.graph()
    wrong = np.mean((np.asarray(beliefs) > 0.5) != club.club, axis=0)
    return Graph(
        positions=club_places(),
        edges=ties(graph.senders, graph.receivers),
        values=np.mean(beliefs, axis=0),
        labels=[str(member + 1) for member in range(club.MEMBERS)],
        marked=[int(member) for member in np.flatnonzero(wrong > 0.5)],
        caption=(
            f"The karate club, coloured by the belief of {len(beliefs)} networks that a member "
            "went with John A. (34), not with Mr. Hi (1); ringed: misplaced by most of them."
        ),
    )


def rumour_picture(graph: jraph.GraphsTuple, beliefs: Any) -> Graph:
    """The first graph of a packed batch in which somebody stays ignorant; `beliefs` are `[N]`."""
    number = int(np.flatnonzero(~graph.globals["connected"])[0])
    start, edge = int(graph.n_node[:number].sum()), int(graph.n_edge[:number].sum())
    n_node, n_edge = int(graph.n_node[number]), int(graph.n_edge[number])
    nodes, edges = slice(start, start + n_node), slice(edge, edge + n_edge)
    paths = ties(graph.senders[edges] - start, graph.receivers[edges] - start)
    return Graph(
        positions=layout(paths, n_node),
        edges=paths,
        values=np.asarray(beliefs)[nodes],
        marked=[int(np.argmax(graph.nodes["root"][nodes, 0]))],
        caption=(
            "A larger graph than any trained on, coloured by the network's belief that a node "
            "hears the rumour; ringed: the root, where it starts. One part never hears it."
        ),
    )


def club_curves(history: Histories, kinds: tuple[str, ...]) -> Curves:
    """Accuracy on the club over the steps, with the middle four fifths of the networks."""
    lines = {}
    for kind in kinds:
        seen = history[f"karate-{kind}"]
        accuracy, low, high = (seen[f"accuracy{end}"] for end in ("", "_p10", "_p90"))
        lines[kind] = Line(accuracy.steps, accuracy.values, low.values, high.values)
    caption = (
        "Share of the 34 members placed rightly: mean over the networks, band from the tenth to "
        "the ninetieth percentile. Attention is at its best after some 20 steps; then it learns "
        "the two labels by heart and forgets what the ties said."
    )
    return Curves(lines, caption, y_label="accuracy", guides={"all but member 9": 33 / 34})


def club_mistakes(wrong: Mapping[str, np.ndarray]) -> Heatmap:
    """Who is misplaced by how many networks; `wrong` holds shares `[34]` by kind of network."""
    shares = np.stack(list(wrong.values()))
    members = np.flatnonzero(shares.max(axis=0) >= 0.05)
    return Heatmap(
        100 * shares[:, members],
        "Members of the club that 5% of the networks or more misplace, in percent.",
        row_names=list(wrong),
        column_names=[str(member + 1) for member in members],
        cells=[[f"{100 * share:.0f}" for share in row] for row in shares[:, members]],
        annotate=True,
        column_label="member",
    )


def rounds_curves(
    rounds: tuple[int, ...], right: Mapping[str, np.ndarray], horizon: np.ndarray, majority: float
) -> Curves:
    """Accuracy for whole graphs over the rounds; `right` holds `[R]` by layer."""
    lines = {layer: Line(rounds, shares) for layer, shares in right.items()}
    lines["horizon"] = Line(rounds, horizon)
    caption = (
        "Larger graphs told connected or not, after so many rounds of listening. News travels an "
        "edge a round: the horizon is one who calls a graph disconnected until all of it was seen. "
        "Messages and attention follow it, a round or two behind."
    )
    return Curves(
        lines, caption, "rounds of listening", "accuracy", {"always the commoner": majority}
    )


def large_table(rows: Mapping[str, np.ndarray], caption: str) -> Table:
    """Shares of right answers `[3]` by who gave them."""
    body: list[Row] = [
        [name, *(round(100 * float(share), 2) for share in row)] for name, row in rows.items()
    ]
    return Table(["who answers", "nodes, %", "edges, %", "graphs, %"], body, caption)


def feed_table(history: Histories, names: tuple[str, ...]) -> Table:
    """What each feed cost."""
    rows: list[Row] = []
    for name in names:
        seen = {metric: series.values for metric, series in history[f"feed-{name}"].items()}
        later = seen["graphs_per_second"][1:]
        rows.append(
            [
                name,
                int(seen["compiles"][-1]),
                round(100 * float(seen["padding_nodes"][-1]), 1),
                round(100 * float(seen["padding_edges"][-1]), 1),
                round(float(seen["graphs_per_second"][0]), 1),
                round(float(np.median(later)), 1) if len(later) else None,
            ]
        )
    caption = (
        "Three feeds of the same graphs to the same training step. The first pass compiles; it is "
        "quicker where an earlier run has left the compiled programs in the cache on disk."
    )
    columns = ["feed", "compilations", "padding, % of nodes", "padding, % of edges"]
    columns += ["graphs/s, first pass", "graphs/s, later passes (median)"]
    return Table(columns, rows, caption)


def feed_curves(history: Histories, names: tuple[str, ...]) -> Curves:
    """Throughput, pass by pass."""
    lines = {}
    for name in names:
        speed = history[f"feed-{name}"]["graphs_per_second"]
        lines[name] = Line(speed.steps, speed.values)
    caption = (
        "Graphs trained on in a second, pass by pass. The first pass pays for the compilations; "
        "with fresh graphs each time, `as-they-come` would stay there."
    )
    return Curves(lines, caption, "pass over the graphs", "graphs a second", log_y=True)
