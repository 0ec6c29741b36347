"""The engine against helpers/reference.py: same start, same batches, float64, every option."""

from __future__ import annotations

import dataclasses
import itertools
import time
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
import reference as ref
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from mvenet import _engine
from mvenet._models.architecture import Architecture
from mvenet._models.piecewise import Piecewise
from mvenet._training import fleet
from mvenet.recipes import Stage, Training

SETS = _engine.instruction_sets()


@pytest.fixture(params=SETS)
def simd(request, monkeypatch):
    monkeypatch.setenv("MVENET_SIMD", request.param)
    return request.param


def table(n=53, d=3, seed=0, weights=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n, d))
    y = 5 + 2 * np.sin(X[:, 0]) + 0.3 * X[:, -1] * rng.standard_normal(n)
    return X, y, rng.uniform(0.2, 3.0, n) if weights else None


def engine(X, y, w, stages, arch, training, seed=7, valid=0, precise=True, **options):
    """Train one network on all rows but the last `valid`; return its parameters and history."""
    rows = np.arange(len(y))
    subset = (rows[: len(y) - valid], rows[len(y) - valid :])
    network = fleet.Network(tuple(stages), seed)
    result = fleet.train(
        X,
        y,
        w,
        [subset],
        [network],
        architecture=arch,
        training=training,
        precise=precise,
        record_history=True,
        **options,
    )
    assert not result.diverged.any()
    return result


def judge(X, y, w, stages, arch, training, seed=7, valid=0):
    """The same by the reference."""
    net = ref.Net(X.shape[1], arch.hidden_mean, arch.hidden_var, arch.activation)
    theta = ref.initial(net, seed)
    n = len(y) - valid
    part = (lambda a: None) if w is None else (lambda a: a)
    Xs, ys, scaling = ref.standardise(
        X[:n], y[:n], part(w)[:n] if w is not None else None, arch.input_bound
    )
    Xv, yv = scaling.apply(X[n:], y[n:])
    history = []
    for stage in stages:
        theta, seen = ref.train_stage(
            net,
            theta,
            Xs,
            ys,
            None if w is None else w[:n],
            Xv if valid else None,
            yv if valid else None,
            w[n:] if valid and w is not None else None,
            mode=stage.mode,
            epochs=stage.epochs,
            objective=training.objective,
            beta=training.beta,
            df=training.df,
            batch_size=training.batch_size,
            learning_rate=stage.learning_rate,
            schedule=stage.schedule,
            clip_value=training.clip_value,
            reg_mean=stage.reg_mean,
            reg_var=stage.reg_var,
            seed=seed,
            init_var_bias=stage.init_var_bias,
            patience=stage.patience,
            window=stage.window,
        )
        history.append(seen)
    return net, theta, scaling, history


def assert_same(X, y, w, stages, arch, training, valid=0, rtol=1e-8, steps=None):
    result = engine(X, y, w, stages, arch, training, valid=valid, steps=steps)
    net, theta, scaling, history = judge(X, y, w, stages, arch, training, valid=valid)
    np.testing.assert_allclose(result.networks.parameters[0], theta, rtol=rtol, atol=1e-10)
    for got, expected in zip(result.history[0], history, strict=True):
        assert len(got) == len(expected["loss"])
        np.testing.assert_allclose(got[:, 0], expected["loss"], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[:, 1], expected["validation"], rtol=1e-5, atol=1e-6)
    mean, std = result.networks.predict(X)
    mu, s = ref.forward(net, theta, scaling.apply(X, y)[0])
    if training.objective == "natural":
        mu = mu * ref.variance(s)
    np.testing.assert_array_equal(result.networks.means(X), mean)
    np.testing.assert_allclose(mean[0], scaling.y_mean + scaling.y_scale * mu, rtol=1e-8)
    np.testing.assert_allclose(std[0], scaling.y_scale * np.sqrt(ref.variance(s)), rtol=1e-8)


def strategy(name, epochs=4, **settings):
    settings = {"learning_rate": 0.01, "reg_mean": 1e-3, "reg_var": 1e-2} | settings
    if name == "no-warmup":
        return [Stage("joint", epochs, **settings)]
    second = "joint" if name == "warmup" else "variance"
    return [
        Stage("warmup", epochs, **settings),
        Stage(second, epochs, init_var_bias=True, **settings),
    ]


STRATEGIES = ["no-warmup", "warmup", "warmup-fixed-mean"]


@pytest.mark.parametrize("activation", _engine.activations())
@pytest.mark.parametrize("objective", _engine.objectives())
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_objective_activation_and_strategy(simd, objective, activation, name):
    X, y, w = table(weights=True)
    arch = Architecture((9, 5), (6,), activation)
    training = Training(objective=objective, beta=0.5, batch_size=16, clip_value=5.0, df=3.5)
    if objective == "natural" and name != "no-warmup":
        with pytest.raises(ValueError, match="no mean to train by itself"):
            engine(X, y, w, strategy(name), arch, training)
        return
    assert_same(X, y, w, strategy(name), arch, training)


@pytest.mark.parametrize("objective", ["nll", "student-t"])
def test_a_warmup_ends_when_it_has_converged(simd, objective):
    X, y, w = table(n=80, weights=True)
    training = Training(objective=objective, batch_size=8)
    stages = strategy("warmup", epochs=200, learning_rate=0.02)
    stages[0] = dataclasses.replace(stages[0], window=5)
    stages[1] = dataclasses.replace(stages[1], epochs=3)
    result = engine(X, y, w, stages, Architecture((8,), (4,)), training)
    epochs = len(result.history[0][0])
    assert 10 <= epochs < 200
    assert epochs % 5 == 0
    assert_same(X, y, w, stages, Architecture((8,), (4,)), training, rtol=1e-6)


@pytest.mark.parametrize("hidden_mean", [None, (), (1,), (8,), (17, 3), (40, 20), (5, 6, 7, 8)])
@pytest.mark.parametrize("hidden_var", [None, (), (1,), (33, 4)])
def test_every_architecture(simd, hidden_mean, hidden_var):
    X, y, _ = table()
    training = Training(batch_size=16, clip_value=5.0)
    assert_same(X, y, None, strategy("warmup"), Architecture(hidden_mean, hidden_var), training)


def test_a_layer_so_wide_that_it_is_worked_on_in_parts(simd):
    X, y, _ = table()
    arch = Architecture((20, 101), (4,))  # rows of 20 weights: parts must not share a vector
    assert_same(X, y, None, strategy("warmup"), arch, Training(batch_size=16, clip_value=5.0))


@pytest.mark.parametrize("batch_size", [1, 2, 7, 31, 32, 33, 64, 100, 1000])
@pytest.mark.parametrize("n", [2, 33, 97])
def test_every_batch_size(simd, n, batch_size):
    X, y, w = table(n=n, weights=True)
    arch = Architecture((6,), (5,))
    training = Training(batch_size=batch_size, clip_value=5.0)
    assert_same(X, y, w, strategy("warmup"), arch, training)


@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 16, 31, 130])
def test_every_number_of_inputs(simd, d):
    X, y, _ = table(d=d)
    arch = Architecture((6,), ())
    assert_same(X, y, None, strategy("warmup"), arch, Training(batch_size=16, clip_value=5.0))


@pytest.mark.parametrize("schedule", _engine.schedules())
@pytest.mark.parametrize("clip_value", [0.02, 5.0, np.inf])
def test_schedules_and_clipping(simd, schedule, clip_value):
    X, y, _ = table()
    arch, training = Architecture((6,), (4,)), Training(batch_size=16, clip_value=clip_value)
    stages = strategy("warmup", schedule=schedule, learning_rate=0.05)
    assert_same(X, y, None, stages, arch, training)


@pytest.mark.parametrize("input_bound", [0.5, 4.0])
def test_bounded_inputs(simd, input_bound):
    X, y, w = table(weights=True)
    X[3] = 1e5  # far outside
    arch = Architecture((6,), (4,), input_bound=input_bound)
    assert_same(X, y, w, strategy("warmup"), arch, Training())


def test_a_constant_mean_stays_where_it_is_in_a_stage_of_the_variance(simd):
    X, y, _ = table()
    arch = Architecture(None, (6, 4), "silu")
    stage = Stage("variance", 4, 0.01, init_var_bias=True)
    assert_same(X, y, None, [stage], arch, Training(batch_size=16))
    result = engine(X, y, None, [stage], arch, Training(batch_size=16))
    assert result.networks.parameters[0, 0] == 0
    np.testing.assert_allclose(result.networks.predict(X)[0], y.mean(), rtol=1e-12)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("weights", [False, True])
def test_early_stopping_keeps_the_best_weights(simd, name, weights):
    X, y, w = table(n=80, weights=weights)
    arch, training = Architecture((12,), (8,)), Training(batch_size=8, clip_value=5.0)
    stages = strategy(name, epochs=60, learning_rate=0.05, reg_mean=0.0, reg_var=0.0, patience=3)
    result = engine(X, y, w, stages, arch, training, valid=20)
    assert sum(len(piece) for piece in result.history[0]) < 60 * len(stages)  # it did stop
    assert_same(X, y, w, stages, arch, training, valid=20, rtol=1e-6)


def steps_of(n=80, last=True, weights=False):
    """A table of columns cut into steps, perhaps with one more column: X, y, w, steps.

    Among the columns a constant, which has no steps, and one of two values, which has one.
    """
    source, y, w = table(n=n, d=4, weights=weights)
    source[:, 1] = 7.0
    source[:, 2] = source[:, 0] > 3
    pieces = Piecewise.of(source[: n // 2])  # the other rows reach beyond
    X = pieces.encode(source).astype(np.float64)
    beside = [np.sin(y)[:, None]] if last else []
    return np.hstack([X, *beside]), y, w, (4, pieces.column)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("hidden", [(), (3,), (8,), (40, 20), (32, 32, 32), (100,)])
@pytest.mark.parametrize("last", [False, True])
def test_steps_are_trained_as_any_other_inputs(simd, name, hidden, last):
    X, y, w, steps = steps_of(last=last, weights=last)
    arch, training = Architecture(hidden, (7,), "silu"), Training(batch_size=16, clip_value=5.0)
    assert_same(X, y, w, strategy(name), arch, training, steps=steps, rtol=1e-7)
    assert_same(X, y, w, strategy(name), Architecture(None, hidden), training, steps=steps)


@pytest.mark.parametrize("batch_size", [1, 7, 32, 64, 100, 1000])
def test_steps_in_every_batch(simd, batch_size):
    X, y, w, steps = steps_of(n=97, weights=True)
    arch, training = Architecture((6, 5), (5,)), Training(batch_size=batch_size)
    stages = strategy("warmup", patience=2)
    assert_same(X, y, w, stages, arch, training, valid=20, steps=steps, rtol=1e-7)


def test_steps_whatever_the_threads(simd):
    X, y, w, steps = steps_of(n=900, weights=True)
    arch, training = Architecture((128, 64), (64,)), Training(batch_size=512)
    args = (X.astype(np.float32), y, w, strategy("warmup"), arch, training)
    one, three = (
        engine(*args, precise=False, steps=steps, threads=threads).networks for threads in (1, 3)
    )
    assert one.parameters.tobytes() == three.parameters.tobytes()


def test_inputs_that_are_no_steps_are_refused():
    X, y, _, (first, column) = steps_of()
    stages, arch, training = strategy("warmup"), Architecture((6,), ()), Training()
    for value in (0.5, 1.5, -0.5, np.nan):
        other = X.copy()
        other[3, first : first + 2] = value
        with pytest.raises(ValueError, match="row 3 of x has inputs that are no steps"):
            engine(other, y, None, stages, arch, training, steps=(first, column))
    for steps in ((first + 2, column), (first, column[:0]), (10**9, column)):
        with pytest.raises(ValueError, match="do not fit the table"):
            engine(X, y, None, stages, arch, training, steps=steps)
    with pytest.raises(ValueError, match="do not follow the table's columns"):
        engine(X, y, None, stages, arch, training, steps=(first, column[::-1].copy()))
    bounded = dataclasses.replace(arch, input_bound=3.0)
    with pytest.raises(ValueError, match="no bound on their inputs"):
        engine(X, y, None, stages, bounded, training, steps=(first, column))


def test_float32_follows_float64(simd):
    X, y, w = table(n=200, weights=True)
    arch, training = Architecture(), Training(clip_value=5.0)
    args = (X, y, w, strategy("warmup", epochs=20), arch, training)
    double, single = engine(*args), engine(*args, precise=False)
    assert single.networks.parameters.dtype == np.float32
    for a, b in zip(double.networks.predict(X), single.networks.predict(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-3 * y.std())


@pytest.mark.parametrize("d", [1, 5, 8, 17])
def test_memory_order_and_type_of_the_table(d, simd):
    X, y, _ = table(n=80, d=d)
    X = X.astype(np.float32).astype(np.float64)
    wide = np.zeros((80, 2 * d + 1))
    wide[:, 1::2] = X
    arch, training = Architecture((6,), (4,)), Training(clip_value=5.0)
    args = (y, None, strategy("warmup"), arch, training)
    expected = engine(X, *args, precise=False)
    others = (np.asfortranarray(X), wide[:, 1::2], X.astype(np.float32), X[::-1].copy()[::-1])
    for other in others:
        got = engine(other, *args, precise=False)
        assert got.networks.parameters.tobytes() == expected.networks.parameters.tobytes()
        for a, b in zip(got.networks.predict(other), expected.networks.predict(X), strict=True):
            assert a.tobytes() == b.tobytes()


def test_all_instruction_sets_measure_columns_alike(monkeypatch):
    X, y, w = table(n=500, d=11, weights=True)
    X[:, 3] = 7.0  # centred, and otherwise left alone
    found = []
    for name in SETS:
        monkeypatch.setenv("MVENET_SIMD", name)
        args = (strategy("warmup"), Architecture((2,), (2,)), Training())
        found += [engine(X, y, weight, *args).networks for weight in (None, w)]
    for nets, weight in zip(found, [None, w] * len(SETS), strict=True):
        first = found[0] if weight is None else found[1]
        for name in ("x_mean", "x_scale", "y_mean", "y_scale"):
            assert getattr(nets, name).tobytes() == getattr(first, name).tobytes()
        mean = np.average(X, axis=0, weights=weight)
        std = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
        np.testing.assert_allclose(nets.x_mean[0], mean, rtol=1e-13)
        std[3] = 1.0
        np.testing.assert_allclose(nets.x_scale[0], std, rtol=1e-13)


def test_a_row_is_predicted_alike_wherever_it_stands(simd):
    X, y, _ = table(n=60, d=13)
    rng = np.random.default_rng(1)
    big = rng.normal(3, 2, (9001, 13))
    for activation, precise in itertools.product(_engine.activations(), [False, True]):
        arch = Architecture(activation=activation)
        nets = engine(X, y, None, strategy("warmup"), arch, Training(), precise=precise).networks
        mean, std = (a[0] for a in nets.predict(big, threads=2))
        for pick in ([0], [9000], [4095, 4096], rng.permutation(9001), np.arange(17), [5] * 40):
            one_mean, one_std = (a[0] for a in nets.predict(big[pick]))
            assert one_mean.tobytes() == mean[pick].tobytes()
            assert one_std.tobytes() == std[pick].tobytes()


def test_far_away_rows_give_finite_predictions(simd):
    X, y, _ = table(n=60)
    for activation in _engine.activations():
        arch = Architecture((40, 20, 20, 20), (40, 20, 20), activation)
        nets = engine(X, y, None, strategy("warmup"), arch, Training(), precise=False).networks
        far = np.array([[s * 10.0**e] * 3 for e in range(0, 308, 7) for s in (-1, 1)])
        mean, std = nets.predict(far)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        assert (std > 0).all()


def test_diverging_networks_are_marked_and_leave_the_others_alone(simd):
    X, y, _ = table()
    arch, training = Architecture((6,), (4,)), Training(clip_value=np.inf)
    rows = (np.arange(len(y)), np.arange(0))
    good = fleet.Network(tuple(strategy("warmup")), 1)
    bad = fleet.Network(tuple(strategy("warmup", learning_rate=1e30)), 1)
    both = fleet.train(X, y, None, [rows], [good, bad, good], architecture=arch, training=training)
    alone = fleet.train(X, y, None, [rows], [good], architecture=arch, training=training)
    assert both.diverged.tolist() == [False, True, False]
    for i in (0, 2):
        assert both.networks.parameters[i].tobytes() == alone.networks.parameters[0].tobytes()


def test_instruction_sets(monkeypatch):
    assert SETS[-1] == "baseline"
    monkeypatch.delenv("MVENET_SIMD", raising=False)
    assert _engine.instruction_set() == SETS[0]
    monkeypatch.setenv("MVENET_SIMD", "baseline")
    assert _engine.instruction_set() == "baseline"
    monkeypatch.setenv("MVENET_SIMD", "abacus")
    with pytest.raises(ValueError, match=r"MVENET_SIMD=abacus.*baseline.*unset MVENET_SIMD"):
        _engine.instruction_set()


def test_engine_refuses_what_could_touch_foreign_memory():
    X, y, _ = table()
    arch, training, stages = Architecture((6,), (4,)), Training(), tuple(strategy("warmup"))

    def attempt(subset=None, subset_number=0, y=y):
        rows = np.arange(len(X)) if subset is None else np.asarray(subset)
        networks = [fleet.Network(stages, 1, subset_number)]
        fleet.train(X, y, None, [(rows, rows[:0])], networks, architecture=arch, training=training)

    for bad in ([0, len(X)], [-1, 0]):
        with pytest.raises(ValueError, match="row that the table does not have"):
            attempt(bad)
    with pytest.raises(ValueError, match="without rows"):
        attempt([])
    with pytest.raises(ValueError, match="subset that does not exist"):
        attempt(subset_number=1)
    with pytest.raises(ValueError, match="differ in length"):
        attempt(y=y[:-1])


@pytest.mark.parametrize("batch_size", [32, 100, 300])
def test_threads_that_share_a_network_change_no_bit(simd, batch_size):
    X, y, w = table(n=700, d=5, weights=True)
    arch, training = Architecture((64, 80, 48), (90, 64), "silu"), Training(batch_size=batch_size)
    stages = [*strategy("warmup"), Stage("variance", 3, 1e-3, "cosine", patience=2)]
    results = [
        engine(X, y, w, stages, arch, training, valid=100, precise=False, threads=threads)
        for threads in (1, 2, 3, 7)
    ]
    for other in results[1:]:
        assert other.networks.parameters.tobytes() == results[0].networks.parameters.tobytes()
        for a, b in zip(other.history[0], results[0].history[0], strict=True):
            assert a.tobytes() == b.tobytes()


def test_threads_that_share_a_network_agree_with_the_reference(simd):
    X, y, w = table(n=150, d=5, weights=True)
    arch, training = Architecture((64, 33), (90,), "silu"), Training(batch_size=70)
    stages = strategy("warmup", epochs=2)
    one, three = (engine(X, y, w, stages, arch, training, threads=n) for n in (1, 3))
    assert one.networks.parameters.tobytes() == three.networks.parameters.tobytes()
    assert_same(X, y, w, stages, arch, training)


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 0.0), (1e-3, 1e9), (1e280, 0.0)])
def test_moments_are_those_of_the_mixture(simd, factor, offset):
    X, y, _ = table(n=120, d=4)
    y = y * factor + offset
    rows = [(np.arange(k, len(y), 2), np.arange(0)) for k in (0, 1)]
    networks = [fleet.Network(tuple(strategy("warmup")), k, k % 2) for k in range(3)]
    nets = fleet.train(
        X, y, None, rows, networks, architecture=Architecture((6,), (4,)), training=Training()
    ).networks
    big = np.random.default_rng(0).normal(3, 2, (3001, 4))
    mean, std = nets.moments(big, factor=2.0, threads=2)
    means, stds = nets.predict(big)
    means, stds = (means - offset) / factor, 2.0 * stds / factor
    expected = means.mean(axis=0)
    variance = np.mean(stds**2 + (means - expected) ** 2, axis=0)
    digits = max(1e-12, 1e-15 * offset / factor)
    np.testing.assert_allclose((mean - offset) / factor, expected, rtol=0, atol=30 * digits)
    np.testing.assert_allclose(std / factor, np.sqrt(variance), rtol=30 * digits)
    only_mean, nothing = nets.moments(big, std=False)
    assert nothing is None
    assert only_mean.tobytes() == mean.tobytes()
    for pick in ([0], [17, 3000], np.arange(100)):
        alone = nets.moments(big[pick], factor=2.0)
        assert alone[0].tobytes() == mean[pick].tobytes()
        assert alone[1].tobytes() == std[pick].tobytes()


@pytest.mark.parametrize("weights", [False, True])
def test_a_large_table_is_standardised_where_it_is(weights):
    rng = np.random.default_rng(0)
    n, d = 60_000, 300  # 72 MB: no copy of it is made, but of one in column order
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = X[:, 0] + 0.1 * rng.standard_normal(n)
    w = rng.uniform(0.5, 2, n) if weights else None
    stages = [Stage("warmup", 1, 1e-3), Stage("joint", 1, 1e-3, init_var_bias=True)]
    args = (y, w, stages, Architecture((3,), (2,), input_bound=3.0), Training(batch_size=500))
    in_place, copied = (
        engine(table, *args, valid=100, precise=False) for table in (X, np.asfortranarray(X))
    )
    assert in_place.networks.parameters.tobytes() == copied.networks.parameters.tobytes()
    for a, b in zip(in_place.history[0], copied.history[0], strict=True):
        assert a.tobytes() == b.tobytes()


def test_more_memory_than_there_is_is_told_before_the_work_starts():
    X, y, _ = table()
    with pytest.raises(MemoryError, match=r"trainings of networks .* need [\d,]+ bytes, but this"):
        engine(X, y, None, strategy("warmup"), Architecture((65536,) * 30, None), Training())
    small = engine(X, y, None, strategy("warmup"), Architecture((2,), None), Training())
    rows = np.broadcast_to(X[:1], (10**15, X.shape[1]))
    with pytest.raises(MemoryError, match=r"for 1,000,000,000,000,000 rows need [\d,]+ bytes"):
        small.networks.predict(rows)


@pytest.mark.parametrize("q", [1e-12, 0.05, 0.5, 0.95])
def test_quantiles_of_every_instruction_set_agree_with_scipy(simd, q):
    rng = np.random.default_rng(0)
    means, stds = rng.normal(size=(4, 11)), np.exp(rng.normal(size=(4, 11)))
    weights = rng.dirichlet(np.ones(4))
    by_row = rng.dirichlet(np.ones(4), 11).T.copy()

    def found(columns, weights=weights[:, None]):
        mass, sign = (q, 1.0) if q <= 0.5 else (1 - q, -1.0)
        return _engine.quantiles(
            means=means[:, columns].copy(), stds=stds[:, columns].copy(), weights=weights,
            mass=mass, sign=sign, probit=norm.ppf(mass),
        )  # fmt: skip

    x = found(slice(None))
    for j in range(11):
        excess = lambda v, j=j: weights @ norm.cdf(v, means[:, j], stds[:, j]) / q - 1  # noqa: E731
        ends = norm.ppf(q, means[:, j], stds[:, j])
        expected = brentq(excess, ends.min(), ends.max(), xtol=1e-15, rtol=1e-15)
        assert abs(x[j] - expected) <= 1e-12 * stds[:, j].min()
        assert found([j]) == x[j]  # whoever its neighbours are
    each = found(slice(None), by_row)  # weights of each row
    for j in range(11):
        assert found([j], by_row[:, [j]].copy()) == each[j]
    below = _engine.probabilities(
        means=means, stds=stds, weights=by_row, places=np.array([[0.3], [each[5]]]), sign=1.0
    )
    expected = (by_row * norm.cdf((0.3 - means) / stds)).sum(axis=0)
    assert np.abs(below[0] - expected).max() < 1e-14
    assert abs(below[1, 5] - q) < 1e-12


@pytest.mark.parametrize("rows", [1, 17, 40])
def test_shares_below_places_agree_with_scipy_to_six_decimals(simd, rows):
    rng = np.random.default_rng(2)
    means, stds = 1e6 + rng.normal(size=(9, rows)), np.exp(3 * rng.normal(size=(9, rows)) - 3)
    places = np.concatenate([[-np.inf], means[:3, 0], 1e6 + np.linspace(-5, 5, 41), [np.inf]])
    for weights in (rng.dirichlet(np.ones(9))[:, None], rng.dirichlet(np.ones(9), rows).T.copy()):
        found = _engine.shares_below(means=means, stds=stds, weights=weights, places=places)
        expected = [(weights * norm.cdf((place - means) / stds)).sum(axis=0) for place in places]
        assert np.abs(found - np.array(expected)).max() < 1e-6
    with pytest.raises(ValueError, match="for each member"):
        _engine.shares_below(means=means, stds=stds[:1], weights=weights, places=places)


def test_scores_and_tails_of_every_instruction_set_agree_with_scipy(simd):
    rng = np.random.default_rng(1)
    means, stds = rng.normal(size=(5, 7)), np.exp(rng.normal(size=(5, 7)))
    weights, y = rng.dirichlet(np.ones(5), 7).T.copy(), 2 * rng.normal(size=7)
    members = {"means": means, "stds": stds, "weights": weights}
    score = _engine.crps(**members, y=y)
    for j in range(7):
        for sign in (1.0, -1.0):
            place = y[j] - 9.0 * sign
            expected = weights[:, j] @ norm.cdf(sign * (place - means[:, j]) / stds[:, j])
            found = _engine.probabilities(**members, places=np.full((1, 7), place), sign=sign)
            assert_allclose(found[0, j], expected, rtol=1e-12)

        def square(x, sign, j=j):
            return (weights[:, j] @ norm.cdf(sign * (x - means[:, j]) / stds[:, j])) ** 2

        below, above = (quad(square, *ends, args=(sign,), epsabs=1e-13, epsrel=1e-12, limit=300)[0]
                        for *ends, sign in ((-80, y[j], 1), (y[j], 80, -1)))  # fmt: skip
        assert_allclose(score[j], below + above, rtol=1e-9)


def test_moments_within_cells_of_every_instruction_set_agree_with_scipy(simd):
    rng = np.random.default_rng(2)
    means, stds = rng.normal(size=(4, 5)), np.exp(rng.normal(size=(4, 5)))
    weights, origin = rng.dirichlet(np.ones(4), 5).T.copy(), rng.normal(size=5)
    cells = np.array([[-np.inf, -0.5], [-0.5, 0.1], [0.3, np.inf], [-np.inf, np.inf]])
    found = _engine.partials(means=means, stds=stds, weights=weights, cells=cells, origin=origin)
    for j in range(5):

        def density(y, power, j=j):
            return (y - origin[j]) ** power * (weights[:, j] @ norm.pdf(y, means[:, j], stds[:, j]))

        for k, (low, high) in enumerate(np.clip(cells, -60, 60)):
            middle = np.clip(0.0, low, high)
            for power in range(3):
                parts = (quad(density, *ends, args=(power,), epsabs=1e-12, limit=300)[0]
                         for ends in ((low, middle), (middle, high)))  # fmt: skip
                assert_allclose(found[power, k, j], sum(parts), rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="two ends"):
        _engine.partials(
            means=means, stds=stds, weights=weights, cells=cells.T.copy(), origin=origin
        )
    with pytest.raises(ValueError, match="one place for each row"):
        _engine.partials(means=means, stds=stds, weights=weights, cells=cells, origin=origin[1:])


@pytest.mark.parametrize("rows", [1, 7, 150])
@pytest.mark.parametrize("unit", [1e-160, 1.0, 1e200])
def test_mean_and_std_of_every_instruction_set_agree_with_exact_sums(simd, rows, unit):
    rng = np.random.default_rng(rows)
    means, stds = unit * rng.normal(size=(6, rows)), unit * np.exp(rng.normal(size=(6, rows)))
    for weights in (rng.dirichlet(np.ones(6))[:, None], rng.dirichlet(np.ones(6), rows).T.copy()):
        found = _engine.moments(means=means, stds=stds, weights=weights)
        for j in {0, rows // 2, rows - 1}:
            shares = [Fraction(share) for share in np.broadcast_to(weights, means.shape)[:, j]]
            m, s = ([Fraction(v) for v in values[:, j]] for values in (means, stds))
            mean = sum(map(mul, shares, m))
            square = sum(
                w * (b * b + (a - mean) ** 2) for w, a, b in zip(shares, m, s, strict=True)
            )
            assert_allclose(found[0, j], float(mean), atol=1e-14 * unit)
            expected = unit * float(square / Fraction(unit) ** 2) ** 0.5
            assert_allclose(found[1, j], expected, rtol=1e-14)
            own = weights if weights.shape[1] == 1 else weights[:, [j]].copy()
            alone = _engine.moments(
                means=means[:, [j]].copy(), stds=stds[:, [j]].copy(), weights=own
            )
            assert np.array_equal(alone[:, 0], found[:, j])  # whoever its neighbours are
    with pytest.raises(ValueError, match="for each member"):
        _engine.moments(means=means, stds=stds[:1], weights=weights)


def test_members_far_from_a_place_cost_no_more_than_near_ones(simd):
    """Their bells are numbers with fewer digits, which take a hundred times as long."""
    rng = np.random.default_rng(0)
    means, weights = rng.normal(size=(32, 400)), np.full((32, 1), 1 / 32)
    y = rng.normal(size=400)

    def seconds(distance):
        members = {"means": means, "stds": np.full(means.shape, 1 / distance), "weights": weights}
        took = []
        for _ in range(5):
            start = time.process_time()
            _engine.crps(**members, y=y)
            took.append(time.process_time() - start)
        return min(took)

    near = seconds(1.0)
    for distance in (12.0, 14.0, 37.5, 38.5):
        assert seconds(distance) < 4 * near
