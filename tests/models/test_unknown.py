"""Cells that are not known: predicted as without their column, and as wide."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from mvenet import AutoRegressor, CalibratedRegressor, MVERegressor, load
from mvenet._models.unknown import (
    apart_from,
    averaged,
    completed,
    donors_of,
    farthest_of,
    nearest_to,
)

pytestmark = pytest.mark.usefixtures("short")

RNG = np.random.default_rng(0)


def rows(n):
    """The first column matters most, the second goes along with it, the third is of no use."""
    X = RNG.normal(size=(n, 4))
    X[:, 1] = 0.6 * X[:, 0] + 0.8 * X[:, 1]
    return X, 2.0 * X[:, 0] + X[:, 3] + 0.5 * RNG.normal(size=n)


X, Y = rows(300)
NEW, OUTCOME = rows(600)


@pytest.fixture(scope="module")
def model():
    return AutoRegressor("low", candidates=["linear", "trees"], cv=3, random_state=0).fit(X, Y)


def without(columns, table=NEW):
    return np.where(np.isin(np.arange(4), columns), np.nan, table)


def covered(dist):
    low, high = dist.interval(0.9).T
    return np.mean((low <= OUTCOME) & (high >= OUTCOME))


@pytest.mark.parametrize("columns", [[0], [3], [0, 3], [0, 1, 2, 3]])
def test_intervals_hold_where_cells_are_unknown(model, columns):
    dist = model.predict_dist(without(columns))
    assert 0.85 <= covered(dist) <= 0.96
    filled = np.where(np.isin(np.arange(4), columns), np.median(X, axis=0), NEW)
    assert covered(model.predict_dist(filled)) < 0.75  # as it was
    assert dist.crps(OUTCOME).mean() < model.predict_dist(filled).crps(OUTCOME).mean()


def test_a_column_that_is_of_no_use_costs_next_to_nothing(model):
    known, unknown = model.predict_dist(NEW).std, model.predict_dist(without([2])).std
    assert np.median(unknown / known) < 1.1


def test_what_is_known_of_other_columns_is_used(model):
    """With the first unknown, the second still tells something of it."""
    rmse = [
        np.sqrt(np.mean((model.predict(without(columns)) - OUTCOME) ** 2))
        for columns in ([0], [0, 1])
    ]
    assert rmse[0] < rmse[1]


def test_rows_that_are_known_do_not_change_to_the_bit(model):
    table = NEW[:40].copy()
    table[::3, 0] = np.nan
    mixed, plain = model.predict_dist(table), model.predict_dist(NEW[:40])
    whole = np.arange(40) % 3 > 0
    assert_array_equal(mixed.mean[whole], plain.mean[whole])
    assert_array_equal(mixed.std[whole], plain.std[whole])
    assert (mixed.std[~whole] > plain.std[~whole]).mean() > 0.9
    mean, std = model.predict(table, return_std=True)
    assert_allclose(mean, mixed.mean, rtol=1e-12)
    assert_allclose(std, mixed.std, rtol=1e-12)
    assert (mixed.epistemic[~whole] > plain.epistemic[~whole]).all()  # to know more would help


def test_a_file_knows_it_and_a_calibration_too(model, tmp_path):
    model.save(tmp_path / "model.mve")
    again = load(tmp_path / "model.mve")
    assert_array_equal(again.predict(without([0])), model.predict(without([0])))
    calibrated = CalibratedRegressor(model, cv=None).fit(X, Y)
    low, high = calibrated.predict_interval(without([0])).T
    assert 0.85 <= np.mean((low <= OUTCOME) & (high >= OUTCOME)) <= 0.97


def test_an_empty_cell_and_a_new_level_of_a_frame():
    pd = pytest.importorskip("pandas")
    kind = RNG.integers(0, 3, 300)
    frame = pd.DataFrame({"a": X[:, 3], "kind": np.array(["u", "v", "w"])[kind]})
    y = 3.0 * kind + X[:, 3] + 0.3 * RNG.normal(size=300)
    model = AutoRegressor("low", candidates=["linear"], cv=3, random_state=0).fit(frame, y)
    row = frame.iloc[:1].assign(kind="u")
    known = model.predict_dist(row).std[0]
    with pytest.warns(UserWarning, match="level of 'kind'"):
        assert model.predict_dist(row.assign(kind="z")).std[0] > 2 * known
    assert model.predict_dist(row.assign(kind=None)).std[0] > 2 * known
    assert model.predict_dist(row.assign(a=np.nan)).std[0] > 2 * known


def test_donors_are_those_most_alike_where_a_row_is_known():
    donors = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [9.0, 8.0]] * 5)
    made, drawn = completed(np.array([[9.0, np.nan], [np.nan, np.nan]]), donors)
    assert drawn == 16
    assert (made[:5, 1] == 8.0).all() and (made[:16, 0] == 9.0).all()
    assert np.isfinite(made).all()
    few = donors_of(np.arange(30.0)[:, None], -np.arange(30.0))
    assert_array_equal(np.sort(few), np.arange(30.0))
    assert np.diff(np.sort(few[:10])).max() < 6  # the first are spread, too
    assert len(donors_of(np.zeros((1_000, 2)), np.arange(1_000.0))) == 256


def test_moments_of_the_average_are_those_of_the_mixture():
    means, stds = RNG.normal(size=(3, 8)), RNG.uniform(0.5, 1, (3, 8))
    for weights in (np.array([0.5, 0.3, 0.2]), RNG.dirichlet(np.ones(3), 8).T):
        m, s, w, _ = averaged(means, stds, weights, np.zeros(8), 4)
        wide = np.broadcast_to(weights.reshape(3, -1), (3, 8))
        for row in range(2):
            part = slice(4 * row, 4 * row + 4)
            mean = (wide * means)[:, part].sum() / 4
            second = (wide * (means**2 + stds**2))[:, part].sum() / 4
            own = w if w.ndim == 1 else w[:, row]
            assert np.isclose(own @ m[:, row], mean)
            assert np.isclose(own @ (m[:, row] ** 2 + s[:, row] ** 2), second)


def test_distances_are_those_of_known_columns_by_brute_force():
    rng = np.random.default_rng(1)
    donors, X = rng.normal(size=(7, 3)) * [1, 10, 100], rng.normal(size=(5, 3))
    X[0, 1] = X[2, 0] = np.nan
    expected = [
        [np.sqrt(np.nanmean(((row - donor) / donors.std(axis=0)) ** 2)) for donor in donors]
        for row in X
    ]
    assert_allclose(apart_from(X, donors), expected, rtol=1e-9)


def test_the_yardstick_is_the_loneliest_row_and_of_groups_another_one():
    X = np.array([[0.0], [1.0], [2.0], [7.0]])
    few, unit = np.arange(4), X.std()
    assert farthest_of(X, few, None) == pytest.approx(5 / unit)
    assert farthest_of(X, few, np.array([0, 0, 1, 1])) == pytest.approx(6 / unit)


def test_a_row_far_from_all_others_is_outside_though_each_column_is_within_its_range(plane):
    model, X = plane
    assert not model.model_.outside(X).any()
    assert model.model_.outside(np.array([[-2.0, 2.0], [1.0, 1.0], [-2.0, np.nan]])).tolist() == [
        True, False, False]  # fmt: skip


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.5, 2.5, 150)
    X = np.column_stack([x, x + 0.1 * rng.normal(size=150)])
    return MVERegressor(random_state=0).fit(X, x + 0.1 * rng.normal(size=150)), X


@pytest.mark.parametrize("n", [1, 40, 2500])
def test_the_nearest_donor_is_as_far_as_scipy_says(n):
    rng = np.random.default_rng(n)
    donors, new = rng.normal(3, 2, (30, 5)), rng.normal(3, 2, (n, 5))
    found = nearest_to(new, donors)
    expected = cdist(new / donors.std(axis=0), donors / donors.std(axis=0)).min(axis=1) / 5**0.5
    assert_allclose(found, expected, rtol=1e-9)
    new[0], new[-1] = 1e300, np.nan
    far = nearest_to(new, donors)
    assert far[-1] == 0.0  # nothing is known of it
    assert n == 1 or far[0] == np.inf
    assert_allclose(far[1:-1], found[1:-1], rtol=1e-12)
