"""Catch against bsuite's rules, written out once more in plain Python, and by enumeration."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecotour_rlax import catch


class Rules:
    """The rules as bsuite's environment has them: ``bsuite/environments/catch.py``."""

    def __init__(self, ball_column: int) -> None:
        self.ball = [0, ball_column]
        self.paddle = 5 // 2

    def picture(self) -> np.ndarray:
        board = np.zeros((10, 5), np.float32)
        board[tuple(self.ball)] = 1.0
        board[9, self.paddle] = 1.0
        return board

    def step(self, action: int) -> tuple[float, bool]:
        self.paddle = min(max(self.paddle + (-1, 0, 1)[action], 0), 4)
        self.ball[0] += 1
        if self.ball[0] == 9:
            return (1.0 if self.paddle == self.ball[1] else -1.0), True
        return 0.0, False


def follow(actions: jax.Array) -> catch.Policy:
    """A policy that plays the given actions, whatever it sees."""
    return lambda board: jax.nn.one_hot(actions[board.ball_row], catch.ACTIONS)


@pytest.fixture(scope="module")
def episodes():
    """1,000 random sequences of actions for each of the five balls, played by both."""
    actions = np.random.default_rng(7).integers(3, size=(5, 1000, 9)).astype(np.int32)

    def one(ball, actions):
        chance = jnp.full((9, 2), 0.5)
        return catch.unroll(follow(actions), catch.start(ball), chance)[1]

    played = jax.jit(jax.vmap(jax.vmap(one, (None, 0))))(jnp.arange(5), actions)
    return actions, jax.device_get(played)


def test_every_picture_reward_and_end_is_that_of_the_rules(episodes):
    actions, played = episodes
    assert played.observation.shape == (5, 1000, 10, 10, 5)
    for ball, number in itertools.product(range(5), range(0, 1000, 10)):
        rules = Rules(ball)
        for t, action in enumerate(actions[ball, number]):
            np.testing.assert_array_equal(played.observation[ball, number, t], rules.picture())
            reward, done = rules.step(action)
            assert played.reward[ball, number, t] == reward
            assert played.discount[ball, number, t] == (0.0 if done else 1.0)
        assert done


def test_after_the_ninth_step_a_new_ball_falls(episodes):
    _, played = episodes
    middle = Rules(2).picture()  # chance 0.5 is the middle one of five columns
    np.testing.assert_array_equal(
        played.observation[:, :, 9], np.broadcast_to(middle, (5, 1000, 10, 5))
    )


def test_a_player_that_cannot_see_gets_minus_three_fifths():
    """Exactly, for every one of the 3**9 sequences of actions: one ball of five is caught."""
    actions = np.array(list(itertools.product(range(3), repeat=9)), np.int32)

    def returns(actions):
        board = jax.vmap(catch.start)(jnp.arange(5))
        return jax.vmap(lambda b: catch.play(lambda x: actions[x.ball_row], b)[1])(board)

    total = np.asarray(jax.jit(jax.vmap(returns))(actions))
    assert total.shape == (19683, 5)
    np.testing.assert_allclose(total.mean(axis=1), -0.6, rtol=1e-6)


def test_the_best_player_gets_one():
    """By exhaustive search over all sequences of actions; a player that follows the ball does."""

    def total(ball, sequence):
        rules = Rules(ball)
        return sum(rules.step(action)[0] for action in sequence)

    for ball in range(5):
        assert max(total(ball, s) for s in itertools.product(range(3), repeat=9)) == 1.0

    def chase(board):
        return jnp.sign(board.ball_column - board.paddle) + 1

    boards, returns = jax.vmap(lambda b: catch.play(chase, b))(jax.vmap(catch.start)(jnp.arange(5)))
    np.testing.assert_array_equal(returns, np.ones(5))
    np.testing.assert_array_equal(boards.ball_row, np.tile(np.arange(10), (5, 1)))


def test_new_balls_are_uniform():
    columns = jax.vmap(catch.reset)(jax.random.split(jax.random.key(3), 20_000)).ball_column
    counts = np.bincount(np.asarray(columns), minlength=5)
    assert counts.sum() == 20_000
    # 4 standard deviations of a binomial count
    assert np.abs(counts - 4000).max() < 4 * np.sqrt(20_000 * 0.2 * 0.8)


def test_actions_are_picked_by_their_probability():
    probabilities = jnp.array([0.2, 0.0, 0.8])
    uniform = (jnp.arange(1000, dtype=jnp.float32) + 0.5) / 1000
    picked = jax.vmap(catch.pick, (None, 0))(probabilities, uniform)
    np.testing.assert_array_equal(np.bincount(picked, minlength=3), [200, 0, 800])
    edges = jnp.array([0.0, np.nextafter(np.float32(1), np.float32(0))])
    picked = jax.vmap(catch.pick, (None, 0))(jnp.array([0.0, 0.3333, 0.6666]), edges)
    np.testing.assert_array_equal(picked, [1, 2])
