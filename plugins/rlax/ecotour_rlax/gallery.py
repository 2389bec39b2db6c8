# %% [markdown]
# # Pictures
# Exhibits are values, not drawings: arrays with a sentence about what one sees. The runner's sinks
# draw them.

# %%
"""What the demo shows: value maps, a film, curves with bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import ecotour
from ecotour import exhibits
from ecotour_rlax import catch, values

GUIDES = {"best": 1.0, "blind": -0.6}


# %% [markdown]
# ## Values
# Drawn as a map: rows are those of the ball, columns those of the paddle.

# %%
RARE = " An agent that plays well is hardly ever there, and so knows little of it."


def value_map(worth: Any, whose: str, remark: str = "") -> exhibits.Heatmap:
    """Return the map of values ``[EPISODE, COLUMNS]``; empty where the paddle can never be."""
    shown = np.where(values.visited(), np.asarray(worth, np.float64), np.nan)
    return exhibits.Heatmap(
        shown,
        f"Value of the best action, {whose}: ball in the leftmost column, by the ball's row and "
        f"the paddle's column. Near the bottom a paddle that is too far away has lost.{remark}",
        row_names=[str(row) for row in range(catch.EPISODE)],
        column_names=[str(column) for column in range(catch.COLUMNS)],
        annotate=True,
        cells=[["" if np.isnan(x) else f"{x:.2f}" for x in row] for row in shown],
        row_label="row of the ball",
        column_label="column of the paddle",
    )


# %% [markdown]
# ## An episode
# All five balls side by side: the ball orange, the paddle blue, and green where they meet.

# %%
CELL = 12
EMPTY, BALL, PADDLE = (0.12, 0.13, 0.17), (1.0, 0.62, 0.16), (0.25, 0.62, 1.0)
CAUGHT = (0.20, 0.80, 0.40)
MARGIN = 6


def film(boards: catch.Board, caption: str) -> exhibits.Film:
    """Return the film of boards ``[games, T]``; frames are ``float32 [T, H, W, 3]``."""
    ball_row, ball_column, paddle = (np.asarray(x) for x in boards)
    games, length = paddle.shape
    cells = np.full((length, games, catch.ROWS, catch.COLUMNS, 3), EMPTY, np.float32)
    t, game = np.arange(length)[:, None], np.arange(games)[None, :]
    cells[t, game, ball_row.T, ball_column.T] = BALL
    cells[t, game, catch.ROWS - 1, paddle.T] = PADDLE
    caught = (ball_row == catch.ROWS - 1) & (ball_column == paddle)
    at, which = np.nonzero(caught.T)
    cells[at, which, catch.ROWS - 1, paddle.T[at, which]] = CAUGHT
    tiles = cells.repeat(CELL, axis=2).repeat(CELL, axis=3)
    tiles = np.pad(tiles, ((0, 0), (0, 0), *[(MARGIN, MARGIN)] * 2, (0, 0)), constant_values=1.0)
    frames = np.concatenate([tiles[:, game] for game in range(games)], axis=2)
    edge = ((0, 0), (0, 0), (2 * MARGIN, 2 * MARGIN), (0, 0))
    frames = np.pad(frames, edge, constant_values=1.0)
    return exhibits.Film(frames, caption, frames_per_second=3.0)


# %% [markdown]
# ## Curves and the table


# %%
def learning(
    history: Mapping[str, Mapping[str, ecotour.Series]], names: Sequence[str], caption: str
) -> exhibits.Curves:
    """Return the greedy return of the named agents over updates, with its band."""
    lines = {}
    for name in names:
        of = history[name]
        mean, low, high = of["greedy_return"], of["greedy_low"], of["greedy_high"]
        lines[name] = exhibits.Line(mean.steps, mean.values, low.values, high.values)
    return exhibits.Curves(lines, caption, "update", "return without exploration", GUIDES)


FAMILIES = {
    "values_of_actions": (
        "Agents that learn the values of actions. Q(lambda) carries a reward back over a whole "
        "episode at once, the others one step an update.",
        ("q_learning", "double_q", "expected_sarsa", "q_lambda"),
    ),
    "policies": (
        "Agents that learn a policy. PPO and V-MPO learn four times from each episode.",
        ("reinforce", "actor_critic", "ppo", "vmpo"),
    ),
    "an_actor_that_lags": (
        "Acting with parameters up to 20 updates old, with V-trace's correction and without, "
        "beside an actor that keeps up.",
        ("actor_critic", "vtrace", "uncorrected_lag"),
    ),
    "large_rewards": (
        "Q(lambda) on rewards of 1, and on rewards of 10,000: as it is, with PopArt, and with "
        "values squashed by two transforms. Nothing else differs.",
        ("q_lambda", "large_plain", "large_popart", "large_hyperbolic", "large_logarithm"),
    ),
}


def families(
    history: Mapping[str, Mapping[str, ecotour.Series]],
) -> dict[str, exhibits.Exhibit]:
    """Return the learning curves of agents that belong together."""
    return {name: learning(history, who, what) for name, (what, who) in FAMILIES.items()}


def exploration(
    history: Mapping[str, Mapping[str, ecotour.Series]], falling: str, restarting: str
) -> exhibits.Curves:
    """Return the returns of two schedules, while acting and without exploration."""
    lines = {}
    for name in (falling, restarting):
        for metric, what in (("acting_return", "acting"), ("greedy_return", "greedy")):
            series = history[name][metric]
            lines[f"{name}, {what}"] = exhibits.Line(series.steps, series.values)
    return exhibits.Curves(
        lines,
        "The same Q-learning with an epsilon that falls for good, and with one that starts anew "
        "in each episode. Tested without exploration (greedy) both learn, the second even sooner, "
        "for it sees all of the game; only the return while acting shows that it never stops "
        "moving at random.",
        "update",
        "return",
        GUIDES,
    )


def first_at_least(series: ecotour.Series, bound: float) -> int | None:
    """Return the first reported step whose value is at least ``bound``, if there is one."""
    reached = np.flatnonzero(series.values >= bound)
    return int(series.steps[reached[0]]) if reached.size else None


def results(
    history: Mapping[str, Mapping[str, ecotour.Series]], names: Sequence[str]
) -> exhibits.Table:
    """Return one row for each agent."""
    rows: list[list[str | float | int | bool | None]] = []
    for name in names:
        of = history[name]
        low, high = of["greedy_low"].last, of["greedy_high"].last
        rows.append(
            [
                name,
                round(of["greedy_return"].last, 2),
                f"{low:.2f} to {high:.2f}",
                first_at_least(of["greedy_return"], 0.95),
                round(of["acting_return"].last, 2),
                round(float(np.mean(1.0 - of["acting_return"].values)), 2),
            ]
        )
    return exhibits.Table(
        ["agent", "greedy", "95% interval", "updates", "acting", "regret"],
        rows,
        "Interquartile means over the seeds: the return without exploration, its 95% confidence "
        "interval, the updates until it was first 0.95, the return while acting, and the regret, "
        "which is what an episode lost to the best player, a mean over all of the learning.",
    )
