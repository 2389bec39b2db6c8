# %% [markdown]
# # Catch, in pure JAX
#
# A ball falls down a board of 10 rows and 5 columns, one row a step. The player moves a paddle in
# the bottom row: left, not at all, or right. After 9 steps the ball is in the bottom row; the
# reward is +1 if the paddle is under it and -1 if not. Then the next ball falls.
#
# These are the rules of bsuite's Catch (Osband et al., "Behaviour Suite for Reinforcement
# Learning", 2020). There the board is an object with a random state inside, and `step` changes it.
# Here a board is three integers, and every function returns new ones: a function without memory
# is one that JAX can compile, repeat (`scan`) and run for many boards at once (`vmap`).
#
# Everything below is written for **one** board. Nobody has to think of 512.

# %%
"""Catch in pure JAX, by the rules of bsuite: one board, one ball, one paddle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

ROWS = 10
COLUMNS = 5
ACTIONS = 3
"""Left, stay, right: the paddle moves by ``action - 1``."""

EPISODE = ROWS - 1
"""Steps from the top row to the bottom row."""


class Board(NamedTuple):
    """Where things are: three integers, ``int32 []``. The paddle is always in the last row."""

    ball_row: jax.Array
    ball_column: jax.Array
    paddle: jax.Array


# %% [markdown]
# ## A new ball
# The only chance in the game: the column in which the ball starts. The key is JAX's explicit
# random state; the same key gives the same column.


# %%
def reset(key: jax.Array) -> Board:
    """Return a board with the ball in the top row of a random column, the paddle in the middle."""
    return start(jax.random.randint(key, (), 0, COLUMNS))


def start(ball_column: jax.Array) -> Board:
    """Return a board with the ball in the top row of ``ball_column`` ``int32 []``."""
    middle = jnp.int32(COLUMNS // 2)
    return Board(ball_row=jnp.int32(0), ball_column=ball_column, paddle=middle)


# %% [markdown]
# ## What the player sees
# A picture of zeros with a one where the ball and the paddle are. NumPy would write
# `picture[row, column] = 1`; comparing the coordinates gives the same picture, and on a CPU it is
# much faster than writing to 512 pictures in 512 places.


# %%
def observe(board: Board) -> jax.Array:
    """Return the picture of the board, ``float32 [ROWS, COLUMNS]``, as in bsuite."""
    rows, columns = jnp.arange(ROWS)[:, None], jnp.arange(COLUMNS)[None, :]
    ball = (rows == board.ball_row) & (columns == board.ball_column)
    paddle = (rows == ROWS - 1) & (columns == board.paddle)
    return (ball | paddle).astype(jnp.float32)


# %% [markdown]
# ## One step
# First the paddle moves, then the ball falls, then the reward is given. `done` says that the
# episode is over. Python's `if` cannot look at a value that is computed later, on the device;
# `jnp.where` computes both sides and picks one.


# %%
def fall(board: Board, action: jax.Array) -> tuple[Board, jax.Array, jax.Array]:
    """Return the next board, the reward ``float32 []`` and whether the episode is over."""
    paddle = jnp.clip(board.paddle + action.astype(jnp.int32) - 1, 0, COLUMNS - 1)
    board = Board(board.ball_row + 1, board.ball_column, paddle)
    done = board.ball_row == ROWS - 1
    caught = board.paddle == board.ball_column
    reward = jnp.where(done, jnp.where(caught, 1.0, -1.0), 0.0)
    return board, reward, done


# %% [markdown]
# ## Many steps
# `unroll` plays on for a number of steps. When an episode is over the next ball falls at once.
# `discount` is 1, or 0 where an episode ends: what comes after is not a consequence of what was
# done before, and every loss of RLax reads that from the discount.
#
# `lax.scan` is the loop: `state, outputs = scan(function, state, inputs)`. It is compiled once,
# whatever the number of steps. The random numbers of all steps come in as an array: drawn in one
# go for all boards they cost little, and the compiler has one generator to compile, not many. It
# is drawn as one row and then folded: the same numbers, and XLA compiles that four times as fast
# (0.2 s instead of 0.9 s, for each of fifteen agents).


# %%
def chance(key: jax.Array, *shape: int) -> jax.Array:
    """Return what chance decides: uniform in [0, 1), ``float32 [*shape, 2]``."""
    row = jax.random.uniform(key, (math.prod(shape) * 2,))
    return row.reshape(*shape, 2)


class Trajectory(NamedTuple):
    """What happened on one board in T steps; element t of `reward` follows from `action` t.

    Attributes:
        observation: ``float32 [T + 1, ROWS, COLUMNS]``; the last one is where the next unroll
            goes on.
        action: ``int32 [T]``.
        policy: ``float32 [T + 1, ACTIONS]``, the probabilities from which the action was drawn.
        reward: ``float32 [T]``.
        discount: ``float32 [T]``, 0 where an episode ended, else 1.
    """

    observation: jax.Array
    action: jax.Array
    policy: jax.Array
    reward: jax.Array
    discount: jax.Array


Policy: TypeAlias = Callable[[Board], jax.Array]
"""From a board to the probabilities of the actions, ``float32 [ACTIONS]``."""


def unroll(policy: Policy, board: Board, chance: jax.Array) -> tuple[Board, Trajectory]:
    """Play T steps from ``board`` on; return the last board and what happened.

    Args:
        policy: From a board to the probabilities of the actions.
        board: Where to start.
        chance: ``float32 [T, 2]``, uniform in [0, 1): for each step a number that picks the action
            and one that picks the column of the next ball, should one be needed.
    """

    def one(board: Board, chance: jax.Array) -> tuple[Board, tuple[jax.Array, ...]]:
        probabilities = policy(board)
        action = pick(probabilities, chance[0])
        after, reward, done = fall(board, action)
        new = start((chance[1] * COLUMNS).astype(jnp.int32))
        following = jax.tree.map(lambda new, old: jnp.where(done, new, old), new, after)
        discount = jnp.where(done, 0.0, 1.0)
        return following, (observe(board), action, probabilities, reward, discount)

    board, (observation, action, probabilities, reward, discount) = jax.lax.scan(one, board, chance)
    observation = jnp.concatenate([observation, observe(board)[None]])
    probabilities = jnp.concatenate([probabilities, policy(board)[None]])
    return board, Trajectory(observation, action, probabilities, reward, discount)


def pick(probabilities: jax.Array, uniform: jax.Array) -> jax.Array:
    """Return an action ``int32 []`` by its probability: where ``uniform`` falls in their sum."""
    passed = jnp.sum(uniform >= jnp.cumsum(probabilities), dtype=jnp.int32)
    return jnp.minimum(passed, ACTIONS - 1)  # the sum may be a rounding error below 1


# %% [markdown]
# ## One episode without chance
# For judging: a deterministic player on a given ball. There are only 5 balls, so five episodes
# give the exact mean return, not an estimate of it.


# %%
def play(choose: Callable[[Board], jax.Array], board: Board) -> tuple[Board, jax.Array]:
    """Play one episode; return the boards ``[EPISODE + 1]`` and the return ``float32 []``."""

    def one(board: Board, _: None) -> tuple[Board, tuple[Board, jax.Array]]:
        after, reward, _done = fall(board, choose(board))
        return after, (after, reward)

    _, (boards, rewards) = jax.lax.scan(one, board, None, length=EPISODE)
    boards = jax.tree.map(lambda first, rest: jnp.append(first[None], rest), board, boards)
    return boards, jnp.sum(rewards)
