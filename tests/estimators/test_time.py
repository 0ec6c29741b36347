"""Rows in time: what is promised is about the next stretch, and is learned from earlier ones."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pytest
from fitted import assert_same_bits, assert_unfitted
from numpy.testing import assert_array_equal
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import TimeSeriesSplit

from mvenet import AutoRegressor, CalibratedRegressor, MVERegressor, MVERegressorCV
from mvenet._automatic.out_of_fold import OutOfFold
from mvenet._estimators.dependence import Belonging
from mvenet._estimators.folds import folds_of_table, stretches, together
from mvenet._estimators.parameters import held_out
from mvenet._training.dependence import Dependence
from mvenet._training.plan import Table

pytestmark = pytest.mark.usefixtures("short")

RNG = np.random.default_rng(0)
N = 160
DAYS = RNG.permutation(N).astype(float)
X = np.column_stack([RNG.normal(size=N), DAYS])
Y = X[:, 0] + 0.05 * DAYS + 0.1 * RNG.normal(size=N)
GROUPS = RNG.integers(0, 12, N)
SMALL = {"strategy": "warmup", "hidden_mean": (5,), "hidden_var": (4,), "warmup_epochs": 3,
         "epochs": 3, "random_state": 0, "reg_mean": [1e-3], "reg_var": [1e-2]}  # fmt: skip


def search(**settings):
    return MVERegressorCV(**SMALL | settings)


def table(groups=None, horizon=None):
    return Table(X, Y, None, np.arange(N), dependence=Dependence(groups, DAYS, horizon))


# --- stretches -----------------------------------------------------------------------------------


def test_folds_train_on_what_was_before_the_stretch_that_they_leave_out():
    folds = folds_of_table("cv", 5, table(), 0)
    assert len(folds) == 5
    for train, test in folds:
        assert DAYS[train].max() < DAYS[test].min()
        assert len(test) == N // 8
    assert max(DAYS[folds[-1][1]]) == N - 1
    assert len(folds[0][0]) == 3 * N // 8


def test_stretches_are_as_long_as_the_horizon_and_end_with_the_table():
    folds = stretches("cv", 5, DAYS, horizon=10.0)
    assert len(folds) == 5
    for number, (train, test) in enumerate(folds):
        assert len(test) == 10 + (number == 4)
        assert len(train) == N - 1 - 10 * (5 - number)
    assert len(stretches("cv", 5, DAYS, horizon=40.0)) == 2  # no more have enough before them


def test_rows_of_one_moment_are_on_one_side():
    time = np.repeat(np.arange(16.0), 10)
    for train, test in stretches("cv", 4, time, None):
        assert time[train].max() < time[test].min()


def test_later_rows_of_new_groups_are_left_out_if_both_are_given():
    folds = together("cv", 8, Dependence(GROUPS, DAYS), 0)
    assert len(folds) == 8
    for train, test in folds:
        assert DAYS[train].max() < DAYS[test].min()
        assert not set(GROUPS[train]) & set(GROUPS[test])


def test_a_splitter_is_asked_about_the_rows_in_the_order_of_time():
    folds = folds_of_table("cv", TimeSeriesSplit(3), table(), 0)
    assert len(folds) == 3
    assert all(DAYS[train].max() < DAYS[test].min() for train, test in folds)


@pytest.mark.parametrize(
    "model",
    [
        search(cv=3),
        MVERegressor(epochs=2, warmup_epochs=2, random_state=0),
        AutoRegressor("low", ["linear"], cv=3, random_state=0),
    ],
    ids=["CV", "cross-fit", "auto"],
)
def test_every_estimator_leaves_the_first_rows_in_and_the_last_out(model):
    model.fit(X, Y, time=DAYS)
    left_out = np.isfinite(model.oof_mean_)
    assert DAYS[~left_out].max() < DAYS[left_out].min()
    assert left_out[DAYS == N - 1].all()


def test_the_last_rows_stop_a_training_early():
    train, valid = held_out(N, 0.25, 0, Dependence(None, DAYS))
    assert DAYS[train].max() < DAYS[valid].min()
    assert len(valid) == N // 4


def test_a_column_that_runs_with_time_is_followed_as_far_as_rows_left_out_were():
    rows = table()
    held_out = OutOfFold(rows, folds_of_table("cv", 5, rows, 0), log=False)
    below, above = held_out.beyond
    assert above[1] == N // 8
    assert below[1] == 0
    assert_array_equal(held_out.pace, [0, 8 / N])
    model = AutoRegressor("low", ["linear"], random_state=0).fit(X, Y, time=DAYS)
    assert model.model_.range.x_high[1] == N - 1 + N // 8
    next_day = np.column_stack([np.zeros(20), np.arange(N, N + 20.0)])
    low, high = model.predict_interval(next_day).T
    true = 0.05 * next_day[:, 1]
    assert np.mean((low < true) & (true < high)) > 0.9
    assert (high - low).max() < 2.2
    far = np.column_stack([np.zeros(1), [N + 400.0]])
    assert np.diff(model.predict_interval(far)) > 3 * (high - low).max()


def test_calibration_is_by_stretches_of_time():
    model = CalibratedRegressor(BayesianRidge()).fit(X, Y, time=DAYS)
    assert model.n_calibration_ == 5 * N // 8
    assert len(model.members_) == 5


# --- what time may be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dates",
    [
        np.datetime64("2024-01-01") + DAYS.astype("timedelta64[D]"),
        [datetime.date(2024, 1, 1) + datetime.timedelta(day) for day in DAYS],
        [str(np.datetime64("2024-01-01") + np.timedelta64(int(day), "D")) for day in DAYS],
        DAYS.astype(int).astype(object),
    ],
    ids=["datetime64", "date", "text", "whole numbers"],
)
def test_dates_and_numbers_order_the_rows_alike(dates):
    assert_same_bits(search(cv=3).fit(X, Y, time=DAYS), search(cv=3).fit(X, Y, time=dates), X)


def test_a_horizon_of_dates_is_days_or_a_timedelta():
    dates = np.datetime64("2024-01-01") + DAYS.astype("timedelta64[D]")
    one = search(cv=3).fit(X, Y, time=dates, horizon=20)
    for length in (datetime.timedelta(20), np.timedelta64(480, "h"), 20.0):
        other = search(cv=3).fit(X, Y, time=dates, horizon=length)
        assert_array_equal(one.oof_fold_, other.oof_fold_)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"time": np.where(DAYS == 3, np.nan, DAYS)}, r"time is missing in 1 row\(s\)"),
        ({"time": np.where(DAYS == 3, np.inf, DAYS)}, "time holds values that are not finite"),
        ({"time": ["2024-01-01"] * (N - 1) + ["soon"]}, "time holds 'soon', which is neither"),
        ({"time": DAYS + 1j}, "which is neither a number nor a date"),
        ({"time": np.zeros(N)}, r"time is 0\.0 in every row"),
        ({"time": DAYS[1:]}, "time has 159 values, and X has 160 rows"),
        (
            {"time": DAYS, "horizon": 100},
            "horizon=100 is more than a third of what",
        ),
        ({"time": DAYS, "horizon": -1}, "horizon=-1 must be a positive length"),
        ({"time": DAYS, "horizon": "a month"}, "horizon='a month' must be a positive length"),
        ({"horizon": 3}, "horizon=3 needs time"),
    ],
)
def test_bad_time(given, match):
    model = search()
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y, **given)
    assert_unfitted(model, X)


def test_one_stretch_is_too_little_to_learn_a_noise_from():
    with pytest.raises(ValueError, match="use time with more different moments, or a longer"):
        MVERegressor(random_state=0).fit(X, Y, time=DAYS > 100)


def test_moments_with_a_zone_are_those_of_utc():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2024-01-01", periods=N, tz="Europe/Berlin")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = [Belonging(time=kind).checked(N).time for kind in (days, pandas.Series(days))]
    plain = Belonging(time=days.tz_convert("UTC").tz_localize(None)).checked(N).time
    assert_array_equal(both, [plain, plain])


def test_two_moments_are_an_earlier_and_a_later_one():
    time = (DAYS > 100).astype(float)
    (train, test), *more = stretches("cv", 5, time, None)
    assert not more
    assert set(time[train]) == {0.0}
    assert set(time[test]) == {1.0}
