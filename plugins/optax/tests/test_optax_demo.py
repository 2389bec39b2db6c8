"""The Optax stop, against closed forms, published figures and independent computations."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats
from jax.flatten_util import ravel_pytree

import ecotour
from ecotour_optax import curvature, demo, digits, discrete, private, quasi_newton, race, surfaces

KEY = jax.random.key(7)


def lenient() -> Any:
    """Optax's Adam raises a float to an integer power, which strict promotion refuses."""
    return jax.numpy_dtype_promotion("standard")


def a_batch(size: int) -> dict[str, jax.Array]:
    data = ecotour.datasets.load("mnist", split="train", source="embedded").arrays
    return {name: jnp.asarray(array[:size]) for name, array in data.items()}


def weights(net: hk.Transformed, inputs: jax.Array, *lead: int) -> Any:
    """First weights where any will do: compiling JAX's takes longer than most of these tests."""
    rng = np.random.default_rng(0)
    one = jax.eval_shape(net.init, KEY, inputs)
    return jax.tree.map(lambda w: jnp.asarray(rng.normal(0, 0.05, (*lead, *w.shape)), w.dtype), one)


@pytest.fixture
def weights_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_weights(net: hk.Transformed, key: jax.Array, batch: Any, seeds: int) -> Any:
        return weights(net, batch["image"][:1], seeds)

    net = curvature.regression
    quick = net._replace(init=lambda key, pixels: weights(net, pixels))
    monkeypatch.setattr(digits, "first_weights", first_weights)
    monkeypatch.setattr(curvature, "regression", quick)


def test_adam_itself_does_not_stand_strict_promotion() -> None:
    adam = optax.adam(0.1)
    with pytest.raises(jax.dtypes.TypePromotionError):
        jax.jit(adam.update)(jnp.ones(2), adam.init(jnp.ones(2)))


# --- the program -------------------------------------------------------------------------------


def signature(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [
        (leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in leaves
    ]


PROGRAM = demo.build(demo.Config(seeds=2, batch_size=4, hidden=3, digit_steps=100, surface_steps=5))


@pytest.mark.parametrize("name", PROGRAM.steps)
def test_every_state_keeps_its_signature(name: str) -> None:
    step, batch = PROGRAM.steps[name], a_batch(8)
    with lenient():
        state = jax.eval_shape(step.init, KEY, batch)
        after, metrics = jax.eval_shape(step.step, state, batch, KEY)
    assert signature(after) == signature(state)
    assert metrics
    assert all(metric.shape == () for metric in metrics.values())
    assert set(step.guides) <= set(metrics)
    assert set(step.lower_is_better) <= set(metrics)


@pytest.mark.usefixtures("weights_by_numpy")
def test_an_untrained_run_passes_no_check() -> None:
    config = demo.Config(seeds=2, batch_size=4, hidden=3, digit_steps=100, surface_steps=5)
    batch = a_batch(8)
    with lenient():
        states = {name: step.init(KEY, batch) for name, step in PROGRAM.steps.items()}
    data = {
        split: ecotour.datasets.load("mnist", split=split, source="embedded")
        for split in ("train", "test")
    }
    verdict = demo.judge(ecotour.Outcome(states, {}, data, KEY, {}), config)
    assert len(verdict.checks) == 4 + 10 + 1 + 1 + 3 + 5
    assert [check.name for check in verdict.checks if check.passed] == []


# --- surfaces ----------------------------------------------------------------------------------

FORMULAS = {
    "rosenbrock": lambda x, y: (1 - x) ** 2 + 100 * (y - x * x) ** 2,
    "beale": lambda x, y: sum(
        (c - x * (1 - y**k)) ** 2 for k, c in ((1, 1.5), (2, 2.25), (3, 2.625))
    ),
    "saddle": lambda x, y: x * x + (y * y - 1) ** 2 / 2 - 0.5,
    "tilted bowl": lambda x, y: (
        0.5 * np.array([x, y]) @ np.array([[36.64, -47.52], [-47.52, 64.36]]) @ np.array([x, y])
    ),
}


@pytest.mark.parametrize("where", surfaces.SURFACES)
def test_minima_are_where_scipy_finds_them(where: str) -> None:
    surface, formula = surfaces.SURFACES[where], FORMULAS[where]
    for minimum in surface.minima:
        near = np.add(minimum, [0.2, -0.15])
        found = scipy.optimize.minimize(lambda p: formula(*p), near, tol=1e-12)
        np.testing.assert_allclose(found.x, minimum, atol=1e-5)
        assert found.fun == pytest.approx(surface.lowest, abs=1e-9)
        left, right, bottom, top = surface.window
        for x, y in (minimum, surface.start):
            assert left < x < right
            assert bottom < y < top


@pytest.mark.parametrize("where", surfaces.SURFACES)
def test_heights_are_the_formula(where: str) -> None:
    points = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    found = jax.vmap(surfaces.SURFACES[where].height)(jnp.asarray(points, jnp.float32))
    wanted = [FORMULAS[where](x, y) for x, y in points]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_the_bowl_has_condition_number_100() -> None:
    hessian = jax.hessian(surfaces.tilted_bowl)(jnp.zeros(2))
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian), [1, 100], rtol=1e-5)


def walk(name: str, steps: int, capacity: int | None = None) -> surfaces.Walks:
    made = surfaces.walker(name, capacity or steps)
    state = made.init(KEY, None)
    for _ in range(steps):
        state, _ = made.step(state, None, KEY)
    return state


def test_sgd_on_the_bowl_is_the_closed_form() -> None:
    walks = walk("sgd", 20)
    where = list(surfaces.SURFACES).index("tilted bowl")
    matrix = np.array([[36.64, -47.52], [-47.52, 64.36]])
    start = np.array(surfaces.SURFACES["tilted bowl"].start)
    for number, rate in enumerate(surfaces.RATES):
        if rate < 0.02:  # beyond 2 / 100 it diverges
            shrunk = np.linalg.matrix_power(np.eye(2) - rate * matrix, 20) @ start
            np.testing.assert_allclose(walks.points[where, number], shrunk, atol=1e-4)
            np.testing.assert_array_equal(
                walks.paths[where, number, -1], walks.points[where, number]
            )
    assert int(walks.evaluations[where, 0, -1]) == 20
    distances = np.linalg.norm(np.asarray(walks.points[where], np.float64), axis=-1)
    diverged = [rate for rate, d in zip(surfaces.RATES, distances, strict=True) if not d < 2.5]
    assert diverged == [rate for rate in surfaces.RATES if rate > 0.02]


def test_a_walk_longer_than_its_memory_goes_on() -> None:
    walks = walk("sgd", 6, capacity=4)
    assert int(walks.taken) == 6
    assert walks.paths.shape[2] == 5
    assert np.isfinite(walks.paths[:, 0]).all()
    assert not np.array_equal(walks.paths[0, 5, -1], walks.points[0, 5])


def test_line_search_evaluations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def height(point: jax.Array) -> jax.Array:
        jax.debug.callback(lambda _: calls.append(1), point[0])
        return surfaces.rosenbrock(point)

    counted = surfaces.SURFACES["rosenbrock"]._replace(height=height)
    monkeypatch.setattr(surfaces, "SURFACES", {"rosenbrock": counted})
    walks = walk("lbfgs", 12)
    jax.effects_barrier()
    # one more a step is the metric, which is no part of the search
    assert len(calls) - 12 == int(walks.evaluations[0, 0, -1])
    assert len(calls) - 12 > 12


def test_arrival_means_to_stay() -> None:
    surface = surfaces.SURFACES["tilted bowl"]
    far, near = [1.0, 1.0], [0.01, 0.0]
    paths = np.array(
        [[far, near, far, near, near], [far] * 5, [near] * 5, [far] * 4 + [[np.nan] * 2]]
    )
    np.testing.assert_array_equal(surfaces.arrivals(surface, paths), [3, np.inf, 0, np.inf])


# --- digits ------------------------------------------------------------------------------------

PARAMETERS = 784 * 64 + 64 + 64 * 10 + 10


def zeros() -> dict[str, jax.Array]:
    return {"weights": jnp.zeros(PARAMETERS, jnp.float32)}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("sgd", 0),
        ("momentum", 4 * PARAMETERS),
        ("rmsprop", 4 * PARAMETERS),
        ("adam", 2 * 4 * PARAMETERS + 4),  # two moments and a counter
        ("adamw", 2 * 4 * PARAMETERS + 4 + 4),  # and the counter of the schedule
        ("lion", 4 * PARAMETERS + 4),
    ],
)
def test_bytes_of_optimizer_state(name: str, wanted: int) -> None:
    assert race.size(digits.PANEL[name](100).init(zeros())) == wanted


def test_bytes_of_lbfgs() -> None:
    state = optax.lbfgs(memory_size=quasi_newton.MEMORY).init(zeros())
    # ten pairs of differences, the last weights and gradient, the line search's gradient; then
    # ten weights of the pairs, a counter, and the line search's step, value and three reports
    assert race.size(state) == (2 * 10 + 3) * 4 * PARAMETERS + 10 * 4 + 4 + 2 * 4 + 3 * 4


def test_the_network_has_the_parameters_that_the_bytes_count() -> None:
    params = jax.eval_shape(digits.classifier(64).init, KEY, jnp.zeros((1, 28, 28, 1), jnp.uint8))
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params)) == PARAMETERS


def test_the_chain_by_hand_is_adamw_bit_for_bit() -> None:
    steps, rng = 40, np.random.default_rng(1)
    theirs, ours = digits.PANEL["adamw"](steps), digits.by_hand(steps)
    start = rng.normal(size=257).astype(np.float32)
    weights = {"theirs": jnp.asarray(start), "ours": jnp.asarray(start)}
    states = {"theirs": theirs.init(weights["theirs"]), "ours": ours.init(weights["ours"])}
    # an independent AdamW, in float64
    w, m, v = start.astype(np.float64), np.zeros(257), np.zeros(257)
    for t in range(steps):
        gradient = rng.normal(size=257).astype(np.float32)
        for name, optimizer in (("theirs", theirs), ("ours", ours)):
            with lenient():
                updates, states[name] = jax.jit(optimizer.update)(
                    jnp.asarray(gradient), states[name], weights[name]
                )
            weights[name] = optax.apply_updates(weights[name], updates)
        warm = steps // 10
        part = (t - warm) / (steps - warm)
        rate = digits.PEAK * (t / warm if t < warm else (1 + math.cos(math.pi * part)) / 2)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient.astype(np.float64) ** 2
        direction = m / (1 - 0.9 ** (t + 1)) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
        w = w - rate * (direction + 1e-4 * w)
    np.testing.assert_array_equal(weights["ours"], weights["theirs"])
    np.testing.assert_allclose(weights["ours"], w, rtol=1e-4, atol=1e-5)


def test_each_seed_takes_its_own_slice_and_the_metrics_bound_their_mean() -> None:
    batch = a_batch(8)
    made = digits.trainer("sgd", hidden=3, seeds=2, steps=5)
    state = made.init(KEY, batch)
    after, metrics = made.step(state, batch, KEY)
    slope = jax.jit(jax.grad(partial(digits.cross_entropy, digits.classifier(3))))
    for seed in range(2):
        params = jax.tree.map(lambda leaf, seed=seed: leaf[seed], state.params)
        image, label = (batch[name][4 * seed : 4 * seed + 4] for name in ("image", "label"))
        gradient = slope(params, image, label)
        moved = jax.tree.map(lambda w, g: w - jnp.float32(0.3) * g, params, gradient)
        found = jax.tree.map(lambda leaf, seed=seed: leaf[seed], after.params)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found, moved)
    assert metrics["loss, lowest"] < metrics["loss"] < metrics["loss, highest"]
    assert metrics["images differentiated"] == 4
    np.testing.assert_allclose(metrics["held-out accuracy"], after.accuracy.mean())


def test_cross_entropy_and_accuracy_by_numpy() -> None:
    batch, net = a_batch(20), digits.classifier(5)
    params = weights(net, batch["image"])
    hidden, last = jax.tree.map(np.asarray, [params[f"mlp/~/linear_{i}"] for i in (0, 1)])
    x = np.asarray(batch["image"], np.float64).reshape(20, 784) / 255
    logits = np.maximum(x @ hidden["w"] + hidden["b"], 0) @ last["w"] + last["b"]
    label = np.asarray(batch["label"])
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss = digits.cross_entropy(net, params, **batch)
    np.testing.assert_allclose(loss, -np.log(chance[np.arange(20), label]).mean(), rtol=1e-5)
    found = digits.accuracy(net, params, **batch)
    np.testing.assert_allclose(found, (logits.argmax(axis=1) == label).mean())


@pytest.mark.usefixtures("weights_by_numpy")
def test_lbfgs_gathers_then_descends_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = digits.cross_entropy

    def counted(*args: Any, **kwargs: Any) -> jax.Array:
        loss = real(*args, **kwargs)
        jax.debug.callback(lambda _: calls.append(1), loss)
        return loss

    monkeypatch.setattr(digits, "cross_entropy", counted)
    monkeypatch.setattr(quasi_newton, "POOLED", 2)
    made = quasi_newton.trainer(hidden=3, seeds=2, steps=8)
    batches = [{name: x[i : i + 8] for name, x in a_batch(32).items()} for i in (0, 8, 16, 24)]
    state = made.init(KEY, batches[0])
    losses = []
    for batch in [*batches, *batches]:
        before = state.params
        state, metrics = made.step(state, batch, KEY)
        jax.effects_barrier()
        losses.append(float(metrics["loss"]))
        if int(state.taken) <= 2:
            calls.clear()
            jax.tree.map(np.testing.assert_array_equal, before, state.params)
    np.testing.assert_array_equal(state.pool["label"], a_batch(16)["label"])
    assert len(calls) * 16 == int(state.images.sum())
    assert losses[3:] == sorted(losses[3:], reverse=True)


# --- privacy -----------------------------------------------------------------------------------


def gaussian_epsilon(noise: float, delta: float) -> float:
    """The exact epsilon of the Gaussian mechanism (Balle and Wang, 2018, theorem 8)."""
    cdf = scipy.stats.norm.cdf

    def excess(epsilon: float) -> float:
        a, b = 1 / (2 * noise), epsilon * noise
        return float(cdf(a - b) - math.exp(epsilon) * cdf(-a - b) - delta)

    return float(scipy.optimize.brentq(excess, 0, 100))


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1), (2.0, 6), (4.0, 30)])
def test_epsilon_without_sampling_is_the_closed_form(noise: float, steps: int) -> None:
    # n sums with noise s are worth one sum with noise s / sqrt(n)
    found = private.epsilon(noise=noise, share=1.0, steps=steps, delta=1e-5)
    assert found == pytest.approx(gaussian_epsilon(noise / math.sqrt(steps), 1e-5), rel=2e-3)


def test_epsilon_of_one_sampled_sum_by_integration() -> None:
    share, noise, delta = 0.1, 1.0, 1e-4
    epsilon = private.epsilon(noise=noise, share=share, steps=1, delta=delta)
    pdf = scipy.stats.norm.pdf

    def excess(x: float) -> float:
        with_it = (1 - share) * pdf(x, 0, noise) + share * pdf(x, 1, noise)
        return float(max(0.0, with_it - math.exp(epsilon) * pdf(x, 0, noise)))

    found, _ = scipy.integrate.quad(excess, -10, 12, limit=500, points=[0, 1, 2, 3, 4, 5])
    assert found == pytest.approx(delta, rel=0.01)


def test_epsilon_against_a_published_figure() -> None:
    # Bu, Dong, Long and Su (2020), figure 4: MNIST, batches of 256 of 60,000, noise 1.3, delta
    # 1e-5, 20 epochs: 1.34 by the moments accountant, which is an upper bound, a little loose
    steps = 20 * 60000 // 256
    found = private.epsilon(noise=1.3, share=256 / 60000, steps=steps, delta=1e-5)
    assert 0.7 * 1.34 < found <= 1.34


def test_the_two_accounts() -> None:
    given = {"examples": 1000, "seeds": 2, "batch_size": 50, "noise": 2.0, "delta": 1e-5}
    found = private.costs(steps=25, **given)  # 10 steps an epoch, so in a third epoch
    assert found["shuffled"] == pytest.approx(gaussian_epsilon(2 / math.sqrt(3), 1e-5), rel=2e-3)
    assert 0 < found["poisson"] < found["shuffled"]
    assert private.costs(steps=0, **given)["poisson"] == 0


@pytest.mark.usefixtures("weights_by_numpy")
def test_private_step_clips_each_image_and_noises_each_model() -> None:
    batch = a_batch(8)
    made = private.trainer(hidden=3, seeds=2, steps=5, clip=0.5, noise=1e-6)
    state = made.init(KEY, batch)
    keys = jax.random.key_data(optax.tree.get(state.optimizer, "rng_key"))
    assert not np.array_equal(keys[0], keys[1])
    after, _ = made.step(state, batch, KEY)
    params = jax.tree.map(lambda leaf: leaf[1], state.params)
    slope = jax.jit(jax.grad(partial(digits.cross_entropy, digits.classifier(3))))
    total, clipped = np.zeros(784 * 3 + 3 + 30 + 10), 0
    for i in range(4, 8):
        gradient = slope(params, batch["image"][i : i + 1], batch["label"][i : i + 1])
        flat = np.asarray(ravel_pytree(gradient)[0], np.float64)
        norm = np.linalg.norm(flat)
        clipped += norm > 0.5
        total += flat / max(1.0, norm / 0.5)
    assert clipped == 4
    found = ravel_pytree(jax.tree.map(lambda leaf: leaf[1], after.params))[0]
    wanted = np.asarray(ravel_pytree(params)[0]) - private.RATE * total / 4
    np.testing.assert_allclose(found, wanted, atol=2e-6)


# --- curvature ---------------------------------------------------------------------------------


def by_numpy(params: Any, pixels: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, ...]:
    """Closed forms of softmax regression, in the order in which JAX ravels: biases, weights."""
    w, b = (np.asarray(params["linear"][name], np.float64) for name in ("w", "b"))
    logits = pixels @ w + b
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    inputs = np.concatenate([np.ones((len(pixels), 1)), pixels], axis=1)
    # d2 loss / d(input i, class k) d(input j, class l) = x_i x_j (p_k [k = l] - p_k p_l)
    core = np.einsum("nk,kl->nkl", p, np.eye(10)) - np.einsum("nk,nl->nkl", p, p)
    hessian = np.einsum("ni,nj,nkl->ikjl", inputs, inputs, core) / len(pixels)
    residual = p - np.eye(10)[label]
    gradients = np.einsum("ni,nk->nik", inputs, residual).reshape(len(pixels), -1)
    return hessian.reshape(500, 500), (gradients**2).mean(axis=0), gradients.mean(axis=0) ** 2


@pytest.mark.usefixtures("weights_by_numpy")
def test_curvature_against_the_closed_forms_of_softmax_regression() -> None:
    batch = a_batch(64)
    pixels, label = curvature.shrink(batch["image"]), batch["label"]
    np.testing.assert_allclose(
        pixels[5].reshape(7, 7)[2, 3],
        np.asarray(batch["image"], np.float64)[5, 8:12, 12:16].mean() / 255,
        rtol=1e-5,
    )
    fit = curvature.init(KEY, batch)
    after, metrics = curvature.step(fit, batch, KEY)
    hessian, fisher, of_mean = by_numpy(
        fit.params, np.asarray(pixels, np.float64), np.asarray(label)
    )
    ridged = hessian + curvature.RIDGE * np.eye(500)
    np.testing.assert_allclose(after.hessian, np.diag(ridged), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(after.fisher, fisher, rtol=1e-3, atol=1e-6)
    share = metrics["fisher_diag of the batch, share of the truth"]
    assert float(share) == pytest.approx(of_mean.sum() / fisher.sum(), rel=1e-3)
    assert float(share) < 0.5
    vector = np.random.default_rng(0).normal(size=500)
    with pytest.warns(DeprecationWarning, match="0.2.9"):
        product = jax.jit(curvature.hvp)(
            jnp.asarray(vector, jnp.float32), fit.params, pixels, label
        )
    np.testing.assert_allclose(product, ridged @ vector, rtol=1e-3, atol=1e-5)
    for name in ("hvp error", "hessian_diag error", "fisher_diag error, by example"):
        assert float(metrics[name]) < 1e-4


@pytest.mark.usefixtures("weights_by_numpy")
def test_newton_arrives_where_scipy_does() -> None:
    batch = a_batch(64)
    pixels, label = curvature.shrink(batch["image"]), batch["label"]
    fit = curvature.init(KEY, batch)
    for _ in range(14):
        fit, _ = curvature.step(fit, batch, KEY)
    x, y = np.asarray(pixels, np.float64), np.asarray(label)

    def loss_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = flat[10:].reshape(49, 10), flat[:10]
        logits = x @ w + b
        log_p = logits - scipy.special.logsumexp(logits, axis=1, keepdims=True)
        residual = (np.exp(log_p) - np.eye(10)[y]) / len(x)
        gradient = np.concatenate([residual.sum(axis=0), (x.T @ residual).ravel()])
        loss = -log_p[np.arange(len(x)), y].mean() + curvature.RIDGE / 2 * (flat**2).sum()
        return loss, gradient + curvature.RIDGE * flat

    found = scipy.optimize.minimize(
        loss_and_gradient, np.zeros(500), jac=True, method="L-BFGS-B", tol=1e-12
    )
    reached = float(curvature.ridge_loss(fit.params, pixels, label))
    assert reached == pytest.approx(found.fun, abs=1e-4)


# --- discrete ----------------------------------------------------------------------------------


def test_the_best_pack_by_dynamic_programming() -> None:
    best = [0] * (int(discrete.CAPACITY) + 1)
    for weight, worth in zip(discrete.WEIGHT, discrete.VALUE, strict=True):
        for room in range(int(discrete.CAPACITY), int(weight) - 1, -1):
            best[room] = max(best[room], best[room - int(weight)] + int(worth))
    assert best[-1] == discrete.BEST == 28


def test_the_exact_mean_by_plain_enumeration() -> None:
    logits = np.random.default_rng(3).normal(size=(8, 2)).astype(np.float32)
    taking = 1 / (1 + np.exp((logits[:, 1] - logits[:, 0]) / discrete.SIGMA))
    mean = 0.0
    for pack in itertools.product((0, 1), repeat=8):
        chance = math.prod(t if bit else 1 - t for t, bit in zip(taking, pack, strict=True))
        heavy = sum(w * bit for w, bit in zip(discrete.WEIGHT, pack, strict=True))
        worth = sum(v * bit for v, bit in zip(discrete.VALUE, pack, strict=True))
        mean += chance * (worth - 2 * max(0, heavy - 20))
    assert float(discrete.exact(jnp.asarray(logits))) == pytest.approx(mean, rel=1e-5)


def test_the_value_has_no_gradient_and_its_estimate_has_one() -> None:
    point = jnp.asarray(discrete.POINT)
    assert float(discrete.value(point)) > 0  # or the baseline would be idle
    assert not np.asarray(jax.jit(jax.grad(discrete.value))(point)).any()
    tally = discrete.init_tally(KEY, None)
    for i in range(60):
        tally, metrics = discrete.draw(tally, None, jax.random.fold_in(KEY, i))
    facts = discrete.facts(tally)
    assert facts["gain"] > 5  # the baseline lowers the variance; measured 13
    assert facts["slope"] == pytest.approx(-1, abs=0.1)
    assert facts["bias"] < 3
    few, many = (float(metrics[f"variance, {n} samples"]) for n in (4, 256))
    assert few / many == pytest.approx(64, rel=0.3)
    # a bias of a tenth of the deviation of one estimate is noticed
    shifted = tally._replace(
        total=tally.total + 0.1 * tally.draws * jnp.sqrt(tally.squares[1, 0] / tally.draws / 16)
    )
    assert discrete.facts(shifted)["bias"] > 3
