"""The judge is judged first: by finite differences, SciPy, published vectors and closed forms."""

from itertools import islice
from math import cos, e, log, pi, sqrt

import numpy as np
import pytest
import reference as ref
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from mvenet import _engine

OBJECTIVES = _engine.objectives()
ACTIVATIONS = _engine.activations()
MODES = ("warmup", "joint", "variance")
ARCHITECTURES = (
    ((5, 3), (4, 2)),
    ((5,), (3, 4, 2)),
    ((5, 3), ()),
    ((4,), None),
    ((), (3,)),
    (None, (3, 2)),
)


def data(n=23, d=3, seed=0):
    """X, y, w with weights of mean 1."""
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.2, 2, n)
    return rng.normal(size=(n, d)), rng.normal(size=n), w / w.mean()


def some_theta(net, seed=0):
    """Parameters with no zero among them."""
    return ref.initial(net, seed) + np.random.default_rng(seed).normal(0, 0.3, net.n_params)


def weight_mask(net):
    """True for the elements of weight matrices, False for biases."""
    mask = np.zeros(net.n_params)
    for layers in net.split(mask):
        for W, _ in layers:
            W[:] = 1
    return mask.astype(bool)


# --- random streams ------------------------------------------------------------------------------


def test_splitmix64_published_vector():
    assert list(islice(ref.splitmix64(1234567), 5)) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_xoshiro256plusplus_published_vector():
    rng = ref.Rng(0, 0)
    rng.state = [1, 2, 3, 4]
    assert [rng.next() for _ in range(10)] == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ]


def test_streams_are_seeded_by_splitmix64():
    assert ref.Rng(1234567, 0).state == list(islice(ref.splitmix64(1234567), 4))
    start = 2**64 - 1 ^ (3 * 0xD1342543DE82EF95) % 2**64
    assert ref.Rng(2**64 - 1, 3).state == list(islice(ref.splitmix64(start), 4))
    assert len({ref.Rng(7, stream).next() for stream in range(4)}) == 4


def test_uniform_and_below_use_the_high_bits():
    raw, one, two = (ref.Rng(5, 2) for _ in range(3))
    for n in (1, 2, 7, 1000, 2**40):
        x = raw.next()
        u = one.uniform()
        assert u == (x >> 11) / 2**53 and 0 <= u < 1
        assert two.below(n) == x * n // 2**64 < n
    draws = np.array([ref.Rng(seed, 0).uniform() for seed in range(4000)])
    assert abs(draws.mean() - 0.5) < 0.02 and abs(draws.var() - 1 / 12) < 0.005


def test_shuffle_permutes_and_continues_from_the_last_permutation():
    rng, perm = ref.Rng(3, 3), np.arange(50)
    ref.shuffle(perm, rng)
    first = perm.copy()
    ref.shuffle(perm, rng)
    assert_array_equal(np.sort(first), np.arange(50))
    assert_array_equal(np.sort(perm), np.arange(50))
    assert not np.array_equal(first, perm) and not np.array_equal(first, np.arange(50))


def test_shuffle_is_uniform():
    rng, counts = ref.Rng(11, 2), {}
    for _ in range(6000):
        perm = np.arange(3)
        ref.shuffle(perm, rng)
        counts[tuple(perm)] = counts.get(tuple(perm), 0) + 1
    assert len(counts) == 6 and all(abs(c - 1000) < 150 for c in counts.values())


# --- architecture and start ----------------------------------------------------------------------


def test_layout_of_parameters():
    net = ref.Net(2, (3,), ())
    theta = np.arange(net.n_params, dtype=float)
    (first, second), (var,) = net.split(theta)
    assert_array_equal(first[0], [[0, 1], [2, 3], [4, 5]])
    assert_array_equal(first[1], [6, 7, 8])
    assert_array_equal(second[0], [[9, 10, 11]])
    assert_array_equal(second[1], [12])
    assert_array_equal(var[0], [[13, 14]])
    assert_array_equal(var[1], [15])
    assert net.n_params == 16 and net.n_mean == 13
    paper = ref.Net(13, (40, 20), (40, 20))
    assert paper.n_params == 2 * (13 * 40 + 40 + 40 * 20 + 20 + 20 + 1)
    assert ref.Net(2, (3,), None).n_params == 14


def test_initial_weights():
    net = ref.Net(4, (6, 5), (3,))
    theta = ref.initial(net, seed=9)
    for layers, stream in zip(net.split(theta), (0, 1), strict=True):
        rng = ref.Rng(9, stream)
        for W, _ in layers:
            limit = sqrt(6 / (W.shape[0] + W.shape[1]))
            expected = [limit * (2 * rng.uniform() - 1) for _ in range(W.size)]
            assert_array_equal(W.ravel(), expected)
    biases = theta[~weight_mask(net)]
    assert biases[-1] == 1 and not biases[:-1].any()


def test_initial_mean_network_knows_nothing_of_the_variance_network():
    nets = [ref.Net(4, (6, 5), hidden_var) for hidden_var in ((3,), (), None)]
    starts = [ref.initial(net, 9)[: net.n_mean] for net in nets]
    assert_array_equal(starts[0], starts[1])
    assert_array_equal(starts[0], starts[2])


def test_forward_by_hand():
    net = ref.Net(1, (2,), None, "relu")
    theta = np.array([1.0, -1, 0.5, 0, 2, 3, 0.25, -0.75])
    mu, s = ref.forward(net, theta, np.array([[2.0], [-4.0]]))
    assert_allclose(mu, [2 * 2.5 + 0.25, 3 * 4 + 0.25])
    assert_array_equal(s, [-0.75, -0.75])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("elu", lambda z: z if z > 0 else np.exp(z) - 1),
        ("relu", lambda z: max(z, 0)),
        ("tanh", lambda z: (np.exp(2 * z) - 1) / (np.exp(2 * z) + 1)),
        ("silu", lambda z: z / (1 + np.exp(-z))),
    ],
)
def test_activations_by_definition(name, function):
    z = np.linspace(-3, 3, 20)
    assert_allclose(ref.activate(name, z)[0], [function(x) for x in z], rtol=1e-12)
    with np.errstate(all="raise", under="ignore"):
        value, slope = ref.activate(name, np.array([-1e4, 0, 1e4]))
    assert np.isfinite(value).all() and np.isfinite(slope).all()


# --- loss and gradient ---------------------------------------------------------------------------


def test_row_loss_is_scipys_normal_density():
    rng = np.random.default_rng(0)
    mu, s, y = rng.normal(size=(3, 100)) * 3
    std = np.sqrt(np.exp(s) + 1e-6)
    assert_allclose(ref.row_loss(mu, s, y), -2 * norm.logpdf(y, mu, std) - log(2 * pi))
    assert_allclose(
        ref.row_loss(mu, s, y, "warmup"), -2 * norm.logpdf(y, mu, sqrt(e)) - log(2 * pi)
    )
    assert_allclose(ref.variance(np.array([-1e3])), 1e-6)


def central_differences(function, theta, indices, h=1e-5):
    steps = h * np.eye(len(theta))[indices]
    return np.array([(function(theta + d) - function(theta - d)) / (2 * h) for d in steps])


@pytest.mark.parametrize("hidden", ARCHITECTURES, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradient_is_the_finite_difference(objective, activation, mode, hidden):
    net = ref.Net(3, *hidden, activation)
    theta, (X, y, w) = some_theta(net), data()
    settings = dict(objective=objective, beta=0.7, mode=mode, reg_mean=0.02, reg_var=0.05)
    g = ref.gradient(net, theta, X, y, w, **settings)

    def function(t):
        return ref.objective_value(net, t, X, y, w, **settings, frozen=theta)

    trained = net.trained(mode)
    numeric = central_differences(function, theta, trained)
    scale = np.abs(g).max()
    assert scale > 0.01
    assert_allclose(g[trained], numeric, rtol=1e-6, atol=1e-8 * scale)
    assert not np.delete(g, trained).any()


def test_objectives_agree_where_they_must():
    net = ref.Net(3, (4,), (3,))
    theta, batch = some_theta(net), data()
    nll = ref.gradient(net, theta, *batch)
    assert_allclose(ref.gradient(net, theta, *batch, "beta-nll", beta=0.0), nll, rtol=1e-13)
    faithful = ref.gradient(net, theta, *batch, "faithful")
    assert_array_equal(faithful[net.n_mean :], nll[net.n_mean :])
    beta_one = ref.gradient(net, theta, *batch, "beta-nll", beta=1.0)
    assert_allclose(beta_one[: net.n_mean], faithful[: net.n_mean], rtol=1e-10)
    assert not np.allclose(faithful[: net.n_mean], nll[: net.n_mean])


def test_warmup_is_least_squares_whatever_the_variance_network():
    net = ref.Net(3, (4,), (3,))
    one, batch = some_theta(net), data()
    two = one.copy()
    two[net.n_mean :] *= -50
    g = ref.gradient(net, one, *batch, mode="warmup")
    assert_array_equal(g, ref.gradient(net, two, *batch, mode="warmup"))
    squares = ref.gradient(net, one, *batch, "faithful", mode="warmup")
    assert_allclose(g, squares / e)
    beta = ref.gradient(net, one, *batch, "beta-nll", beta=0.5, mode="warmup")
    assert_allclose(beta, squares / e * sqrt(e))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_penalty_moves_only_the_weights_of_its_own_network(objective):
    net = ref.Net(3, (5, 3), (4, 2))
    theta, batch, weights = some_theta(net), data(), weight_mask(net)
    in_mean = np.arange(net.n_params) < net.n_mean
    g = ref.gradient(net, theta, *batch, objective)
    for own, reg in ((in_mean, {"reg_mean": 0.3}), (~in_mean, {"reg_var": 0.3})):
        moved = ref.gradient(net, theta, *batch, objective, **reg) - g
        assert_allclose(moved[own & weights], 0.6 * theta[own & weights], rtol=1e-9)
        assert not moved[~(own & weights)].any()


def test_weights_multiply_like_repeated_rows():
    net = ref.Net(3, (5,), (4,))
    theta, (X, y, _) = some_theta(net), data()
    times = np.arange(len(y)) % 4
    repeated = [np.repeat(a, times, axis=0) for a in (X, y)]
    g = ref.gradient(net, theta, X, y, times / times.mean())
    assert_allclose(g, ref.gradient(net, theta, *repeated, np.ones(times.sum())), rtol=1e-9)


def test_linear_mean_and_constant_variance_are_ridge_regression():
    X, y, w = data(n=40)
    net, reg, v = ref.Net(3, (), None), 0.1, 0.8
    A = np.column_stack([X, np.ones(len(y))])
    ridge = np.diag([1.0, 1, 1, 0]) * reg * v * len(y)
    coef = np.linalg.solve(A.T @ (w[:, None] * A) + ridge, A.T @ (w * y))
    g = ref.gradient(net, np.append(coef, log(v - 1e-6)), X, y, w, reg_mean=reg)
    assert_allclose(g[:-1], 0, atol=1e-13)
    v = np.mean(w * (y - A @ coef) ** 2)
    g = ref.gradient(net, np.append(coef, log(v - 1e-6)), X, y, w, reg_mean=reg)
    assert_allclose(g[-1], 0, atol=1e-13)


# --- standardisation -----------------------------------------------------------------------------


def test_standardise():
    X, y, _ = data(n=30)
    X = X * [1e-9, 1, 1e9] + [5, 0, 1]
    X[:, 1] = 0.1
    times = np.arange(30) % 3 + 1
    Xs, ys, scaling = ref.standardise(X, y, times)
    X_rep, y_rep = np.repeat(X, times, axis=0), np.repeat(y, times)
    assert_allclose(scaling.x_mean, X_rep.mean(axis=0))
    assert_allclose(scaling.x_scale[[0, 2]], X_rep.std(axis=0)[[0, 2]])
    assert scaling.x_scale[1] == 1
    assert_allclose([scaling.y_mean, scaling.y_scale], [y_rep.mean(), y_rep.std()])
    assert_allclose(Xs, (X - scaling.x_mean) / scaling.x_scale)
    assert_allclose(ys, (y - scaling.y_mean) / scaling.y_scale)
    assert_array_equal(scaling.apply(X[:4], y[:4])[0], Xs[:4])
    assert ref.standardise(X, np.full(30, 7.0))[2].y_scale == 1


# --- training ------------------------------------------------------------------------------------

NET = ref.Net(3, (5, 3), (4, 2))
START = ref.initial(NET, 4)


def train(theta=START, rows=None, val=(None, None, None), net=NET, **settings):
    settings = {"mode": "joint", "epochs": 3, "batch_size": 8, "seed": 4, **settings}
    return ref.train_stage(net, theta, *(rows or data()), *val, **settings)


def replay(theta, X, y, w, epochs, *, mode, objective, clip, regs, rates, seed):
    """Training written once more, scalar by scalar, from an explicit list of batches."""
    n, trained = len(y), np.zeros(NET.n_params, dtype=bool)
    trained[NET.trained(mode)] = True
    rng, order = ref.Rng(seed, {"warmup": 2}.get(mode, 3)), list(range(n))
    theta = theta.copy()
    m, v, t = [0.0] * NET.n_params, [0.0] * NET.n_params, 0
    for _ in range(epochs):
        for i in range(n - 1, 0, -1):
            j = rng.below(i + 1)
            order[i], order[j] = order[j], order[i]
        for rows in (order[:8], order[8:16], order[16:]):
            g = ref.gradient(NET, theta, X[rows], y[rows], w[rows], objective, 0.5, mode, *regs)
            t += 1
            for k in np.flatnonzero(trained):
                gk = min(max(g[k], -clip), clip)
                m[k] += (gk - m[k]) * (1 - 0.9)
                v[k] += (gk * gk - v[k]) * (1 - 0.999)
                step = rates[t - 1] * sqrt(1 - 0.999**t) / (1 - 0.9**t)
                theta[k] -= step * m[k] / (sqrt(v[k]) + 1e-7)
    return theta


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("mode", MODES)
def test_training_equals_a_replay_of_its_batches(mode, objective):
    X, y, w = data()
    rates = [0.01 * (1 + cos(pi * k / 12)) / 2 for k in range(12)]
    theta, _ = train(
        mode=mode,
        objective=objective,
        epochs=4,
        schedule="cosine",
        learning_rate=0.01,
        clip_value=0.1,
        reg_mean=0.01,
        reg_var=0.1,
    )
    expected = replay(
        START, X, y, w, 4, mode=mode, objective=objective, clip=0.1, regs=(0.01, 0.1),
        rates=rates, seed=4,
    )  # fmt: skip
    assert_allclose(theta, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("clip_value", [5.0, 1e-6])
def test_first_step_of_adam_in_closed_form(clip_value):
    theta, _ = train(epochs=1, batch_size=100, clip_value=clip_value, learning_rate=0.01)
    g = np.clip(ref.gradient(NET, START, *data()), -clip_value, clip_value)
    assert_allclose(START - theta, 0.01 * g / (np.abs(g) + 1e-7 / sqrt(0.001)), rtol=1e-6)


def test_schedules():
    assert [ref.rate(2.0, "constant", t, 4) for t in (1, 4)] == [2.0, 2.0]
    cosine = [ref.rate(2.0, "cosine", t, 4) for t in (1, 2, 3, 4)]
    assert_allclose(cosine, [2, 1 + sqrt(0.5), 1, 1 - sqrt(0.5)])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_mode_touches_only_what_it_trains(objective):
    warm, _ = train(mode="warmup", objective=objective, reg_mean=0.1, reg_var=0.1)
    assert_array_equal(warm[NET.n_mean :], START[NET.n_mean :])
    assert (warm != START)[: NET.n_mean].all()
    fixed, _ = train(mode="variance", objective=objective, reg_mean=0.1, reg_var=0.1)
    assert_array_equal(fixed[: NET.n_mean], START[: NET.n_mean])
    assert (fixed != START)[NET.n_mean :].all()


def test_training_does_not_modify_its_arguments_and_repeats_itself():
    start, rows = START.copy(), data()
    one, _ = train(start, rows)
    assert_array_equal(start, START)
    for a, b in zip(rows, data(), strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one, train(start, rows)[0])
    assert not np.array_equal(one, train(start, rows, seed=5)[0])


def test_scale_of_weights_does_not_matter_and_none_means_one():
    (X, y, w), val = data(), data(seed=1)
    theta, history = train(rows=(X, y, w), val=val)
    scaled, scaled_history = train(rows=(X, y, 8 * w), val=(*val[:2], 4 * val[2]))
    assert_allclose(scaled, theta, rtol=1e-9)
    assert_allclose(scaled_history["validation"], history["validation"], rtol=1e-9)
    assert_array_equal(train(rows=(X, y, None))[0], train(rows=(X, y, np.ones(len(y))))[0])


def test_history():
    rows, val = data(), data(n=9, seed=1)
    for mode in MODES:
        theta, history = train(
            rows=rows, val=val, mode=mode, epochs=1, batch_size=100, reg_mean=1.0, reg_var=1.0
        )
        for at, (X, y, w), key in ((START, rows, "loss"), (theta, val, "validation")):
            mu, s = ref.forward(NET, at, X)
            v = np.full(len(y), e) if mode == "warmup" else np.exp(s) + 1e-6
            expected = np.sum(w * (np.log(v) + (y - mu) ** 2 / v)) / len(y)
            assert_allclose(history[key], [expected])
    assert np.isnan(train(rows=rows)[1]["validation"]).all()
    frozen = train(rows=rows, learning_rate=0.0, epochs=2)[1]["loss"]
    assert_allclose(frozen, ref.objective_value(NET, START, *rows))


def test_variance_bias_at_the_start_of_a_stage():
    rows, val = data(), data(n=9, seed=1)
    for used, given in ((rows, (None, None, None)), (val, val)):
        X, y, w = used
        theta, _ = train(rows=rows, val=given, learning_rate=0.0, init_var_bias=True)
        mse = np.mean(w * (y - ref.forward(NET, START, X)[0]) ** 2)
        assert_allclose(theta[-1], log(mse))
        assert_array_equal(theta[:-1], START[:-1])
    X, _, w = rows
    perfect = ref.forward(NET, START, X)[0]
    theta, _ = train(rows=(X, perfect, w), learning_rate=0.0, init_var_bias=True)
    assert theta[-1] == log(1e-6)


def overfitting():
    """Settings under which the validation value falls first and rises later."""
    X, y, w = data()
    noise = np.random.default_rng(1).normal(size=9)
    return {"val": (X[:9], y[:9] + noise, 3 * w[:9]), "learning_rate": 0.02}


def test_early_stopping_keeps_the_best_epoch():
    settings = overfitting()
    full = train(epochs=40, **settings)[1]["validation"]
    best = int(np.argmin(full))
    assert 0 < best < 30 and full[-1] > full[best], "choose data that overfit"
    theta, history = train(epochs=40, patience=10, **settings)
    best = int(np.argmin(history["validation"]))
    assert_array_equal(history["validation"], full[: best + 11])
    assert_array_equal(theta, train(epochs=best + 1, **settings)[0])
    X, y, w = settings["val"]
    value = np.average(ref.row_loss(*ref.forward(NET, theta, X), y), weights=w)
    assert_allclose(value, history["validation"][best])


def test_best_epoch_is_restored_even_if_patience_lasts():
    settings = overfitting()
    theta, history = train(epochs=40, patience=1000, **settings)
    assert len(history["loss"]) == 40
    best = int(np.argmin(history["validation"]))
    assert_array_equal(theta, train(epochs=best + 1, **settings)[0])


def test_no_improvement_means_strictly_lower():
    theta, history = train(val=data(n=9, seed=1), learning_rate=0.0, epochs=20, patience=4)
    assert len(history["loss"]) == 5
    assert_array_equal(theta, START)


def test_patience_without_validation_rows_is_ignored():
    assert len(train(epochs=7, patience=1, learning_rate=0.0)[1]["loss"]) == 7


def test_two_stages_learn_a_known_mean_and_variance():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    y = 2 * x + np.exp(x - 1) * rng.normal(size=400)
    net = ref.Net(1, (), ())
    theta, settings = ref.initial(net, 0), {"batch_size": 50, "learning_rate": 0.05}
    for mode in ("warmup", "joint"):
        theta, history = ref.train_stage(
            net, theta, x[:, None], y, mode=mode, epochs=40, schedule="cosine",
            init_var_bias=mode == "joint", **settings,
        )  # fmt: skip
    assert history["loss"][-1] < history["loss"][0]
    assert_allclose(theta, [2, 0, 2, -2], atol=0.2)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="activation='gelu'"):
        ref.forward(ref.Net(3, (2,), None, "gelu"), np.zeros(12), np.zeros((1, 3)))
    for wrong in ({"objective": "mse"}, {"schedule": "step"}):
        with pytest.raises(ValueError, match="is unknown"):
            train(**wrong)
    with pytest.raises(KeyError):
        train(mode="both")
