"""Rows that belong together though nobody said so: found where they do, silent where not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mvenet import AutoRegressor, DependenceWarning, MVERegressor
from mvenet._automatic import detection
from mvenet._estimators import copies
from mvenet._training.dependence import Dependence
from mvenet._training.plan import Table

pytestmark = pytest.mark.usefixtures("short")

QUICK = {"effort": "low", "cv": 2, "candidates": ["linear"], "random_state": 0}


def independent(n=200, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    noise = rng.normal(size=n)
    return X, X[:, 0] + noise, noise


def grouped(k=30, m=8, seed=0):
    """Rows of a group share columns and a level that the columns do not explain."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(k), m)
    X = np.column_stack([rng.normal(size=(k, 2))[groups], rng.normal(size=k * m)])
    y = 2.0 * rng.normal(size=k)[groups] + X[:, 2] + 0.3 * rng.normal(size=k * m)
    return X, y, groups


def kinds(found):
    return [finding.kind for finding in found]


def found(X, y, residual, refit=True):
    return detection.findings(X, y, residual, refit=refit, seed=0)


# --- found ---------------------------------------------------------------------------------------


def test_neighbours_whose_errors_are_alike():
    X, y, noise = independent()
    smooth = np.convolve(noise, np.ones(4), "same")
    (finding,) = found(X, y - noise + smooth, smooth)
    assert (finding.kind, finding.column) == ("order", None)
    assert finding.strength > 0.5
    assert "fit with groups" in finding.sentence()
    assert kinds(found(X, y - noise + smooth, smooth, refit=False)) == ["order"]


def test_groups_that_a_model_has_learned_by_heart_though_its_errors_look_independent():
    X, y, _ = grouped()
    (finding,) = found(X, y, np.random.default_rng(1).normal(size=len(y)))
    assert (finding.kind, finding.column) == ("order", None)
    assert finding.covered < 0.75


def test_the_order_of_a_clock_in_a_table_that_was_shuffled():
    X, y, noise = independent(300)
    smooth = np.convolve(noise, np.ones(4), "same")
    X[:, 2] = 7.0 + 3.0 * np.arange(300)
    order = np.random.default_rng(1).permutation(300)
    told = found(X[order], (y - noise + smooth)[order], smooth[order])
    assert [(f.kind, f.column) for f in told] == [("order", 2)]
    assert "in the order of the column 'day'" in told[0].sentence(["a", "b", "day"])


def test_a_column_of_identifiers_in_a_table_that_was_shuffled():
    X, y, groups = grouped(k=60, m=5)
    X = np.column_stack([X[:, 2], np.random.default_rng(3).permutation(9_000)[groups]])
    y = y + 0.0
    order = np.random.default_rng(1).permutation(len(y))
    told = found(X[order], y[order], np.random.default_rng(2).normal(size=len(y)))
    assert [(f.kind, f.column) for f in told] == [("values", 1)]
    assert told[0].strength > 1.2
    assert "equal values of column 1 belong together" in told[0].sentence()


def test_a_column_that_counts_the_rows_of_a_table_sorted_by_its_target():
    X, y, noise = independent()
    order = np.argsort(y)
    counted = np.column_stack([X[order], np.arange(1.0, 201.0)])
    assert kinds(found(counted, y[order], noise)) == ["counter"]


def test_a_column_that_gives_the_target_away():
    X, y, noise = independent()
    told = found(np.column_stack([X, np.exp(y)]), y, noise)
    assert kinds(told) == ["leak"]
    assert "alone gives the target away" in told[0].sentence()


def test_labels_that_are_no_column():
    X, y, groups = grouped()
    worse, covered = detection.of_labels(X, y, groups, 0)
    assert worse > 1.3
    assert covered < 0.75
    assert detection.of_labels(X, y, np.random.default_rng(0).permutation(groups), 0) is None


def test_rows_a_period_apart_as_in_a_panel():
    period = np.tile([2.5, 0.0, 0.0, 0.0, 0.0, 0.0], 50)
    X, y, noise = independent(300)
    (finding,) = found(X, y + period, noise + period, refit=False)
    assert (finding.kind, finding.apart) == ("order", 6)
    assert "Rows 6 apart in the table are alike" in finding.sentence()


def trending(n=160, seed=0):
    """Columns and target that grow with time, and now and then turn back."""
    rng = np.random.default_rng(seed)
    trend = np.arange(n) / 10
    X = np.column_stack([trend + 0.2 * rng.normal(size=n), rng.normal(size=n)])
    return X, 3 * trend + 0.3 * rng.normal(size=n), rng.normal(size=n)


def test_columns_that_drift_along_the_table():
    X, y, noise = trending()
    (finding,) = found(X, y, noise)
    assert (finding.kind, finding.column) == ("drift", 0)
    assert finding.covered < 0.5
    assert finding.sentence(["size", "b"]).startswith("The column 'size' drifts along the table")
    dated = found(np.column_stack([X, np.arange(160.0) * 7]), y, noise)
    assert ("drift", 0) in [(f.kind, f.column) for f in dated]


def test_a_table_that_was_sorted_does_not_drift():
    X, y, noise = trending()
    for order in (np.argsort(X[:, 0]), np.argsort(y)):
        assert "drift" not in kinds(found(X[order], y[order], noise))
    order = np.random.default_rng(1).permutation(160)
    assert found(X[order], y[order], noise) == []


# --- silent --------------------------------------------------------------------------------------


def test_independent_rows_raise_no_alarm():
    alarms = sum(bool(found(*independent(120, seed=seed))) for seed in range(20))
    assert alarms == 0


def test_a_table_in_the_order_of_a_column_raises_no_alarm():
    for seed in range(3):
        X, y, noise = independent(seed=seed)
        order = np.argsort(X[:, 0])
        assert found(X[order], y[order], noise[order]) == []


def test_few_rows_and_constants_are_not_tested():
    X, y, noise = independent(40)
    assert found(X, y, np.sort(noise)) == []
    assert found(*independent()[:1], np.zeros(200), np.zeros(200)) == []


# --- copies --------------------------------------------------------------------------------------


def test_rows_that_all_stand_twice_are_taken_once_and_said():
    X, y, _ = independent(100)
    twice = np.vstack([X, X]), np.r_[y, y]
    with pytest.warns(DependenceWarning, match="100 of 200 rows are exact copies"):
        model = AutoRegressor(**QUICK).fit(*twice)
    once = AutoRegressor(**QUICK).fit(X, y)
    assert_array_equal(model.predict(X), once.predict(X))
    assert_array_equal(model.oof_mean_, np.r_[once.oof_mean_, once.oof_mean_])


def test_some_copies_stay_apart():
    X, y, _ = independent(100)
    table = Table(np.vstack([X, X[:20]]), np.r_[y, y[:20]], None, np.arange(120))
    assert copies.once(table) is table
    assert copies.standing_twice(copies.first_equal(table)) == 40
    assert copies.counted(table).startswith("\n40 of 120 rows stand more than once")
    assert copies.counted(Table(X, y, None, np.arange(100))) == ""


def test_the_user_says_what_copies_are():
    X, y, _ = independent(100)
    some = np.vstack([X, X[:20]]), np.r_[y, y[:20]]
    together = AutoRegressor(**QUICK, copies="together").fit(*some)
    assert_array_equal(together.predict(X), AutoRegressor(**QUICK).fit(X, y).predict(X))
    assert len(together.oof_mean_) == 120
    assert "20 of 120 rows are exact copies" in together.summary_
    twice = np.vstack([X, X]), np.r_[y, y]
    apart = AutoRegressor(**QUICK, copies="apart").fit(*twice)
    assert "200 of 200 rows stand more than once" in apart.summary_
    with pytest.raises(ValueError, match="copies"):
        AutoRegressor(**QUICK, copies="twice").fit(X, y)


def test_copies_of_two_groups_are_not_one_row():
    X, y, _ = independent(60)
    twice = Table(
        np.vstack([X, X]),
        np.r_[y, y],
        None,
        np.arange(120),
        dependence=Dependence(np.arange(120) // 2),
    )
    assert copies.once(twice, "together") is twice
    same = Dependence(np.tile(np.arange(60), 2))
    told = copies.once(replace(twice, dependence=same), "together")
    assert_array_equal(told.rows, np.arange(60))
    assert copies.once(replace(twice, dependence=same), "auto").first is None


def test_equal_columns_with_different_targets_are_no_copies_of_a_table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (400, 2)).astype(float)
    y = rng.integers(0, 3, 400).astype(float)
    table = Table(X, y, None, np.arange(400))
    assert copies.standing_twice(copies.first_equal(table)) > 200
    assert copies.once(table) is table


def test_copies_weigh_what_they_weigh_on_average():
    X, y, _ = independent(60)
    weight = np.r_[np.full(60, 1.0), np.full(60, 0.5)]
    once = copies.once(Table(np.vstack([X, X]), np.r_[y, y], weight, np.arange(120)))
    assert_array_equal(once.rows, np.arange(60))
    assert_array_equal(once.weight[:60], 0.75)


# --- estimators ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [AutoRegressor(**QUICK), MVERegressor(epochs=20, random_state=0)], ids=["auto", "one"]
)
def test_a_fit_warns_once_and_not_if_it_was_told(model):
    X, y, noise = independent()
    y = y - noise + np.convolve(noise, np.ones(5), "same")
    with pytest.warns(DependenceWarning, match="next to each other in the table are alike") as told:
        model.fit(X, y)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, time=np.arange(200))


def test_a_fit_of_independent_rows_says_nothing():
    X, y, _ = independent()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AutoRegressor(**QUICK).fit(X, y)
