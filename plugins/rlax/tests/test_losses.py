"""The losses' gradients against plain NumPy; PopArt and the schedules against their formulas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecotour_rlax import agents, catch, improvement, losses
from ecotour_rlax.imports import rlax
from ecotour_rlax.losses import Experience, Outputs

B, T, A = 3, 9, 3
GAMMA = 0.9


@pytest.fixture(scope="module")
def experience() -> Experience:
    """Two halves of episodes on three boards; any numbers will do."""
    rng = np.random.default_rng(1)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    def outputs() -> Outputs:
        return Outputs(normal(B, T + 1, A), normal(B, T + 1))

    played = catch.Trajectory(
        observation=jnp.zeros((B, T + 1, catch.ROWS, catch.COLUMNS)),
        action=jnp.asarray(rng.integers(A, size=(B, T)), jnp.int32),
        policy=jax.nn.softmax(normal(B, T + 1, A)),
        reward=normal(B, T),
        discount=jnp.full((B, T), GAMMA).at[:, 4].set(0.0),
    )
    statistics = rlax.PopArtState(jnp.array([0.7]), jnp.array([3.0]), jnp.array([9.49]))
    duals = {"temperature": jnp.float32(0.5), "alpha": jnp.float32(2.0)}
    return Experience(outputs(), outputs(), played, statistics, duals)


def gradients(loss, e: Experience) -> Outputs:
    slopes = jax.jit(jax.grad(lambda now, e: loss(e._replace(now=now))))
    return jax.device_get(slopes(e.now, e))


def in_float64(e: Experience):
    q, v = (np.asarray(x, np.float64) for x in e.now)
    played = [np.asarray(x, np.float64) for x in (e.played.reward, e.played.discount)]
    return q, v, np.asarray(e.played.action), *played


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("name", ["q_learning", "double_q", "expected_sarsa"])
def test_one_step_losses_have_the_gradient_of_their_definition(name, experience):
    """d/dq of mean(error**2 / 2), the target held still: -error at the action taken."""
    q, _, action, reward, discount = in_float64(experience)
    older = np.asarray(experience.older.preferences, np.float64)
    policy = np.asarray(experience.played.policy, np.float64)
    wanted = np.zeros_like(q)
    for b in range(B):
        for t in range(T):
            after = {
                "q_learning": q[b, t + 1].max(),
                "double_q": older[b, t + 1, q[b, t + 1].argmax()],
                "expected_sarsa": q[b, t + 1] @ policy[b, t + 1],
            }[name]
            error = reward[b, t] + discount[b, t] * after - q[b, t, action[b, t]]
            wanted[b, t, action[b, t]] = -error / (B * T)
    got = gradients(getattr(losses, name), experience)
    np.testing.assert_allclose(got.preferences, wanted, atol=1e-6)
    assert not got.value.any()


def test_q_lambda_is_learning_with_eligibility_traces(experience):
    """The forward view that RLax computes, against traces that run backwards, step by step.

    Watkins' traces are cut where an action was not greedy and where an episode ends. With the
    parameters held still the summed updates of both views are equal (Sutton & Barto, 12.1).
    """
    q, _, action, reward, discount = in_float64(experience)
    wanted = np.zeros_like(q)
    for b in range(B):
        trace = np.zeros_like(q[b])
        for t in range(T):
            if action[b, t] != q[b, t].argmax():
                trace[:] = 0.0
            trace[t, action[b, t]] = 1.0
            error = reward[b, t] + discount[b, t] * q[b, t + 1].max() - q[b, t, action[b, t]]
            wanted[b] -= error * trace / (B * T)
            trace *= discount[b, t] * losses.LAMBDA
    got = gradients(losses.q_lambda, experience)
    np.testing.assert_allclose(got.preferences, wanted, atol=1e-6)


def test_reinforce_and_its_entropy_bonus(experience):
    """d/dlogits of -(log p) * return is (p - onehot) * return; of the entropy, -p (log p + H)."""
    logits, _, action, reward, discount = in_float64(experience)
    wanted = np.zeros_like(logits)
    for b in range(B):
        following = 0.0
        for t in reversed(range(T)):
            following = reward[b, t] + discount[b, t] * following
            p = softmax(logits[b, t])
            entropy = -(p * np.log(p)).sum()
            wanted[b, t] = (p - np.eye(A)[action[b, t]]) * following
            wanted[b, t] += losses.ENTROPY * p * (np.log(p) + entropy)
    got = gradients(losses.reinforce, experience)
    np.testing.assert_allclose(got.preferences, wanted / (B * T), atol=1e-6)


def test_vtrace_weighs_by_clipped_ratios_and_without_them_is_an_actor_critic(experience):
    """The recursion of the IMPALA paper, equation 1, with both clips at 1."""
    logits, v, action, reward, discount = in_float64(experience)
    acted = np.asarray(experience.played.policy, np.float64)
    critic = np.zeros_like(v)
    for b in range(B):
        taken = np.arange(T), action[b]
        ratio = np.minimum(1.0, softmax(logits[b, :-1])[taken] / acted[b, :-1][taken])
        error = 0.0
        for t in reversed(range(T)):
            delta = ratio[t] * (reward[b, t] + discount[b, t] * v[b, t + 1] - v[b, t])
            error = delta + discount[b, t] * ratio[t] * error
            critic[b, t] = -error / (B * T)
    np.testing.assert_allclose(gradients(losses.vtrace, experience).value, critic, atol=1e-6)

    on_policy = experience.played._replace(policy=jax.nn.softmax(experience.now.preferences))
    same = experience._replace(played=on_policy)
    for a, b in zip(
        gradients(losses.vtrace, same), gradients(losses.uncorrected, same), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_ppo_pays_nothing_beyond_its_clip(experience):
    """Where a ratio is past 1 ± 0.2 in the direction that pays, only the entropy still pulls."""
    logits, _, action, *_ = in_float64(experience)
    acted = np.asarray(experience.played.policy, np.float64)
    advantage = np.asarray(jax.jit(improvement.advantages)(experience))
    b, t = np.meshgrid(np.arange(B), np.arange(T), indexing="ij")
    ratio = softmax(logits[:, :-1])[b, t, action] / acted[:, :-1][b, t, action]
    better = advantage > advantage.mean()
    clipped = np.where(better, ratio > 1.2, ratio < 0.8)
    assert 0 < clipped.sum() < clipped.size
    p = softmax(logits[:, :-1])
    entropy = -(p * np.log(p)).sum(axis=-1, keepdims=True)
    bonus = losses.ENTROPY * p * (np.log(p) + entropy) / (B * T)
    got = gradients(improvement.ppo, experience).preferences[:, :-1]
    np.testing.assert_allclose(got[clipped], bonus[clipped], atol=1e-6)
    assert (np.abs(got - bonus)[~clipped].max(axis=-1) > 1e-5).all()


def test_vmpo_imitates_the_better_half(experience):
    """Without a price for divergence only the better half of the actions has a gradient."""
    free = experience._replace(duals=experience.duals | {"alpha": jnp.float32(-40.0)})
    got = gradients(improvement.vmpo, free).preferences[:, :-1]
    advantage = np.asarray(jax.jit(improvement.advantages)(experience))
    better = advantage >= np.sort(advantage, axis=None)[-(B * T // 2)]
    np.testing.assert_array_equal(np.abs(got).max(axis=-1) > 1e-7, better)


@pytest.mark.parametrize("pair", [rlax.SIGNED_HYPERBOLIC_PAIR, rlax.SIGNED_LOGP1_PAIR])
def test_the_transforms_go_back_and_forth(pair):
    x = jnp.array([-10_000.0, -1.0, 0.0, 0.5, 10_000.0])
    np.testing.assert_allclose(pair.apply_inv(pair.apply(x)), x, rtol=2e-3)


def test_popart_changes_the_units_and_not_what_is_said(experience):
    network, rng = agents.make_network(8), np.random.default_rng(0)

    def normal(shape, scale):
        return jnp.asarray(rng.normal(0, scale, shape), jnp.float32)

    pictures = normal((5, catch.ROWS, catch.COLUMNS), 1.0)
    shapes = jax.eval_shape(network.init, jax.random.key(0), pictures[0])
    params = jax.tree.map(lambda leaf: normal(leaf.shape, 0.2), shapes)
    init, update = agents.popart(boards=4)
    before = init()
    targets = normal((4, catch.EPISODE), 10_000.0)
    head, after = jax.jit(update)(
        params["preferences"], before, targets, jnp.zeros(targets.shape, jnp.int32)
    )
    # the statistics: a step of 0.05 towards the batch's first two moments
    mean, square = np.mean(targets), np.mean(np.square(targets))
    np.testing.assert_allclose(after.shift, [0.05 * mean], rtol=1e-5)
    np.testing.assert_allclose(after.second_moment, [0.95 + 0.05 * square], rtol=1e-5)
    np.testing.assert_allclose(
        after.scale, np.sqrt(after.second_moment - np.square(after.shift)), rtol=1e-5
    )

    @jax.jit
    def said(params, statistics):
        values = jax.vmap(network.apply, (None, 0))(params, pictures).preferences
        return losses.popart_pair(statistics).apply_inv(values)

    old, new = said(params, before), said(params | {"preferences": head}, after)
    assert float(after.scale[0]) > 1000
    np.testing.assert_allclose(new, old, atol=2e-3)  # float32 at a scale of 2,000


def test_epsilon_falls_for_good_or_starts_anew():
    """1 - 0.99 * n / 1000, down to 0.01; with the example's fault n is 0 … 8 in each episode."""
    steps = jnp.array([0, 9, 500, 1000, 5000])
    rows = jnp.array([0, 0, 5, 1, 5])
    falling = [1.0, 0.99109, 0.505, 0.01, 0.01]
    np.testing.assert_allclose(agents.falling(steps, rows), falling, atol=1e-6)
    anew = [1.0, 1.0, 0.99505, 0.99901, 0.99505]
    np.testing.assert_allclose(agents.restarting(steps, rows), anew, atol=1e-6)
    assert float(agents.restarting(jnp.int32(10**6), jnp.int32(8))) > 0.99


def test_epsilon_greedy_and_softmax_are_probabilities():
    preferences = jnp.array([1.0, 3.0, 2.0])
    greedy = agents.epsilon_greedy(preferences, jnp.float32(0.3))
    np.testing.assert_allclose(greedy, [0.1, 0.8, 0.1], rtol=1e-6)
    soft = agents.softmax(preferences, jnp.float32(0.3))
    np.testing.assert_allclose(soft, softmax(np.array([1.0, 3.0, 2.0])), rtol=1e-6)
