"""A Gaussian process as a mean: against scikit-learn's, finite differences, and odd tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern
from threadpoolctl import threadpool_limits

from mvenet import AutoRegressor, _engine, load
from mvenet._automatic import baselines, gaussian_process_fit
from mvenet._automatic.constants import MOST_ROWS_OF_A_PROCESS
from mvenet._models.checks import MalformedError
from mvenet._models.gaussian_process import Process

pytestmark = pytest.mark.usefixtures("short")

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (180, 3))
Y = 5 + np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.05 * RNG.normal(size=180)
NEW = RNG.uniform(-3, 3, (1001, 3))
WEIGHT = RNG.uniform(0.2, 3, 180)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As in a search, where folds are side by side."""
    with threadpool_limits(1):
        yield


def twice(x, logs):
    """The columns, and each again on the logarithmic scale found for it."""
    u = [(x[:, j] - logs.origin[j]) / logs.length[j] for j in logs.column]
    again = [np.log(1 + rate * v.clip(0, 1)) for rate, v in zip(logs.rate, u, strict=True)]
    return np.array([*x.T, *again]).T


def scikit_learns(weight):
    """The same process by scikit-learn, which is told the scales."""
    share = np.ones(len(Y)) if weight is None else weight / weight.mean()
    order = np.random.default_rng(3).permutation(len(Y))
    logs = gaussian_process_fit.log_columns(X)
    wide = twice(X, logs)
    center, spread = wide.mean(axis=0), wide.std(axis=0)
    z, t = (wide - center) / spread, (Y - Y.mean()) / Y.std()
    found = gaussian_process_fit._Scales.likeliest(z[order], t[order], share[order])
    a, b, c = found.amplitudes
    lengths, slope = found.lengths, found.slope / 7
    kernel = (
        ConstantKernel(a) * Matern(lengths, nu=0.5)
        + ConstantKernel(b) * Matern(np.sqrt(3) * lengths, nu=1.5)
        + ConstantKernel(c) * Matern(np.sqrt(5) * lengths, nu=2.5)
        + ConstantKernel(slope) * DotProduct(1.0)
    )
    theirs = GaussianProcessRegressor(kernel, alpha=found.noise / share + 1e-8, optimizer=None)
    theirs.fit(z, t)
    return lambda new: Y.mean() + Y.std() * theirs.predict((twice(new, logs) - center) / spread)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize("simd", _engine.instruction_sets())
def test_it_is_scikit_learns(simd, weight, monkeypatch):
    monkeypatch.setenv("MVENET_SIMD", simd)
    ours = gaussian_process_fit.fit(X, Y, weight, seed=3)
    assert_allclose(ours.predict(NEW), scikit_learns(weight)(NEW), rtol=0, atol=1e-7)


def test_every_row_has_the_same_bits_whatever_stands_beside_it():
    process = gaussian_process_fit.fit(X, Y, None, seed=0)
    told = process.predict(NEW)
    assert_array_equal(process.predict(NEW, threads=3), told)
    assert_array_equal(process.predict(np.asfortranarray(NEW)), told)
    for row in (0, 2, 500, 1000):
        assert process.predict(NEW[row : row + 1])[0] == told[row]
    single = NEW.astype(np.float32)
    assert_array_equal(process.predict(single), process.predict(single.astype(np.float64)))


def test_the_gradient_of_the_likelihood():
    z, t = X[:40], (Y[:40] - Y.mean()) / Y.std()
    loss = gaussian_process_fit._loss(z, t, WEIGHT[:40], 0.5)
    at = np.array([0.1, 0.5, 0.9, -1.0, -1.5, -2.0, -2.0, -1.0])
    steps = 1e-5 * np.eye(len(at))
    slopes = [(loss(at + step)[0] - loss(at - step)[0]) / 2e-5 for step in steps]
    assert_allclose(loss(at)[1], slopes, rtol=1e-6, atol=1e-6)


def test_it_learns_a_smooth_function_and_which_column_says_nothing():
    process = gaussian_process_fit.fit(X, Y, None, seed=0)
    new = RNG.uniform(-1.8, 1.8, (500, 3))
    truth = 5 + np.sin(2 * new[:, 0]) + 0.5 * new[:, 1]
    assert np.sqrt(np.mean((process.predict(new) - truth) ** 2)) < 0.05
    lengths = process.scale[:3] / X.std(axis=0)
    assert lengths[2] > 3 * lengths[0]


def test_columns_are_there_again_on_a_logarithmic_scale_that_makes_them_normal():
    normal = RNG.normal(size=(2_000, 2))
    x = np.column_stack([np.exp(2 * normal[:, 0]), -np.exp(normal[:, 1]), normal[:, 0] > 0])
    logs = gaussian_process_fit.log_columns(x)
    assert logs.column.tolist() == [0, 1]  # two values have no scale
    assert (logs.length > 0).tolist() == [True, False]  # the second has its long tail on the left
    again = logs.beside(x)
    assert_allclose(again, twice(x, logs), rtol=1e-12)
    assert np.abs(stats.skew(again[:, 3:])).max() < 0.5 < stats.skew(x[:, 0]) / 10
    far = np.array([[-1e300, 1e300, 0.0], [1e300, -1e300, 0.0]])
    ends = np.log1p(logs.rate)
    assert_allclose(logs.beside(far)[:, 3:], [[0, 0], ends], atol=1e-12)


def test_a_skewed_column_costs_no_accuracy():
    x = np.exp(2 * RNG.normal(size=(400, 1)))
    y = np.sin(2 * np.log(x[:, 0])) + 0.1 * RNG.normal(size=400)
    new = np.exp(np.linspace(-3, 3, 300))[:, None]
    told = gaussian_process_fit.fit(x, y, None, seed=0).predict(new)
    assert np.sqrt(np.mean((told - np.sin(2 * np.log(new[:, 0]))) ** 2)) < 0.1


def test_rows_without_weight_are_not_there():
    weight = np.where(np.arange(180) < 100, 1.0, 0.0)
    spoilt = np.where(weight > 0, Y, 1e6)
    few = gaussian_process_fit.fit(X, spoilt, weight, seed=0)
    assert few.weights.shape == (100,)
    assert np.abs(few.predict(X) - Y).max() < 2


ODD = {
    "constant y": (X, np.full(180, 3.0)),
    "identical rows": (np.ones((50, 2)), RNG.normal(size=50)),
    "a constant column": (np.column_stack([X, np.ones(180)]), Y),
    "more columns than rows": (RNG.normal(size=(12, 40)), RNG.normal(size=12)),
    "two rows": (X[:2], Y[:2]),
    "an outlier in y": (X, np.where(np.arange(180) == 7, 1e12, Y)),
    "far columns": (1e9 + 1e3 * X, Y),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_tables_give_finite_numbers(odd):
    x, y = ODD[odd]
    process = gaussian_process_fit.fit(x, y, None, seed=0)
    told = process.predict(x)
    assert np.isfinite(told).all()
    assert np.abs(told - y.mean()).max() <= 2 * max(np.abs(y - y.mean()).max(), 1e-9)


def test_many_rows_are_sampled():
    x = RNG.normal(size=(2_500, 1))
    process = gaussian_process_fit.fit(x, x[:, 0], None, seed=0)
    assert process.points.shape == (2, MOST_ROWS_OF_A_PROCESS)
    assert_allclose(process.predict(x), x[:, 0], atol=0.01)


def test_where_it_is_tried_by_itself():
    assert "gaussian process" in baselines.chosen("auto", 2_000, 100)
    assert "gaussian process" not in baselines.chosen("auto", 2_001, 3)
    assert "gaussian process" not in baselines.chosen("auto", 100, 101)


def test_the_engine_refuses_parts_that_do_not_fit():
    process = replace(gaussian_process_fit.fit(X, Y, None, seed=0), slope=np.zeros(2))
    with pytest.raises(ValueError, match="other columns or points"):
        process.predict(NEW)


def test_a_model_file_has_it_and_refuses_a_broken_one(tmp_path):
    model = AutoRegressor(candidates=["gaussian process"], cv=2, random_state=0).fit(X, Y)
    model.save(tmp_path / "model.mve")
    again = load(tmp_path / "model.mve")
    assert_array_equal(again.predict(NEW), model.predict(NEW))
    composite = again.model_
    process = next(mean for mean in composite.means if isinstance(mean, Process))
    composite.check(3)
    broken = [
        {"scale": np.zeros(6)},
        {"points": process.points[:, 1:]},
        {"weights": process.weights * np.nan},
        {"polynomial": np.ones(2)},
        {"slope": np.ones(4)},
        {"logs": replace(process.logs, column=np.array([0, 1, 3]))},
        {"logs": replace(process.logs, length=np.zeros(3))},
        {"logs": replace(process.logs, rate=np.full(3, -1.0))},
        {"logs": None},
        {"intercept": np.inf},
    ]
    for part in broken:
        with pytest.raises(MalformedError):
            replace(composite, means=(replace(process, **part),))
