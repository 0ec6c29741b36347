"""Importance of columns, against a model that is known and against brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import MVERegressor, Normal, metrics
from mvenet.explain import importance
from mvenet.explain._importance import _standard_error


def of(found, name):
    i = found.columns.index(name)
    return tuple(round(float(getattr(found, part)[i]), 14) for part in ("crps", "mean", "std"))


def test_mean_and_std_are_told_apart(known):
    found = importance(*known)
    crps, mean, std = of(found, "x0")
    assert std == 0 and crps == mean > 0.3
    crps, mean, std = of(found, "x1")
    assert mean == 0 and crps == std > 0.1
    assert of(found, "x2") == (0, 0, 0)
    assert found.columns[0] == "x0" and (np.diff(found.crps) <= 0).all()
    assert_allclose(found.score, metrics.crps(known[2], known[0].predict_dist(known[1])), rtol=5e-3)


def test_rises_are_those_of_brute_force(known):
    model, X, y = known
    found = importance(model, X, y, columns=[1], n_repeats=1, random_state=4)
    others = np.random.default_rng(4).permutation(400)
    before = Normal(2 * X[:, 0], np.exp(X[:, 1])).crps(y)
    after = Normal(2 * X[:, 0], np.exp(X[others, 1])).crps(y)
    assert_allclose(found.crps[0], np.mean(after - before), rtol=0.01)
    assert_allclose(found.crps_error[0], np.std(after - before, ddof=1) / 20, rtol=0.01)


def test_both_parts_of_a_column_that_does_both():
    class Both(BayesianRidge):
        def predict_dist(self, X):
            return Normal(X[:, 0], np.exp(X[:, 0]))

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = X[:, 0] + np.exp(X[:, 0]) * rng.normal(size=300)
    found = importance(Both().fit(X, y), X, y, n_repeats=1, random_state=4)
    other = X[np.random.default_rng(4).permutation(300), 0]
    plain = Normal(X[:, 0], np.exp(X[:, 0])).crps(y).mean()
    assert_allclose(found.mean[0], Normal(other, np.exp(X[:, 0])).crps(y).mean() - plain, rtol=0.02)
    assert_allclose(found.std[0], Normal(X[:, 0], np.exp(other)).crps(y).mean() - plain, rtol=0.02)


def test_columns_that_say_the_same_are_shuffled_together():
    class Sum(BayesianRidge):
        def predict_dist(self, X):
            return Normal(X[:, 0] + X[:, 1], np.ones(len(X)))

    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(300, 1)), 2, axis=1)
    found = importance(Sum().fit(X, X[:, 0]), X, X.sum(axis=1), columns=[0, [0, 1]])
    assert found.columns == ["x0 + x1", "x0"]
    assert found.crps[0] > 1.5 * found.crps[1]


def test_frames_are_shuffled_column_by_column(frame):
    model, X, y = frame
    found = importance(model, X, y)
    assert of(found, "day")[2] == 0 and of(found, "kind")[1] == 0
    assert of(found, "day")[0] > 0.5 and of(found, "kind")[0] > 0.1
    assert of(found, "size") == of(found, "count") == (0, 0, 0)
    plain = X.assign(day=X["day"].dt.tz_localize(None), kind=X["kind"].astype(str))
    same = importance(model, pl.from_pandas(plain), y)
    assert same.columns == found.columns
    assert_array_equal(same.crps, importance(model, plain, y).crps)


def test_pipelines_and_estimators_of_others():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    y = X["b"] + rng.normal(size=200)
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    assert importance(model, X, y).columns[0] == "b"


def test_folds_leave_out_what_is_asked_about():
    class Memory(BayesianRidge):
        """Knows the rows that it was fitted to, and no others."""

        def fit(self, X, y):
            self.rows_ = dict(zip(X[:, 0].tolist(), y, strict=True))
            self.n_features_in_ = X.shape[1]
            return self

        def predict_dist(self, X):
            return Normal([self.rows_.get(v, 0.0) for v in X[:, 0].tolist()], np.ones(len(X)))

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 1)), 5 * rng.normal(size=120)
    assert importance(Memory().fit(X, y), X, y).crps[0] > 1
    assert importance(Memory(), X, y, cv=3).crps[0] == 0
    groups = np.repeat(np.arange(12), 10)
    found = importance(Memory(), X, y, cv=GroupKFold(3), groups=groups)
    assert found.n_rows == 120 and found.crps[0] == 0


def test_training_rows_are_noticed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = MVERegressor(strategy="warmup", epochs=2, warmup_epochs=2, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="the rows that the model was trained on"):
        importance(model, X, y)
    importance(model, X[:30], y[:30])


def test_errors_count_rows_or_groups():
    values = np.random.default_rng(0).normal(size=(2, 3, 50))
    plain = values.std(axis=-1, ddof=1) / np.sqrt(50)
    assert_allclose(_standard_error(values, None), plain)
    twice = np.repeat(values, 2, axis=-1)
    assert_allclose(_standard_error(twice, np.repeat(np.arange(50), 2)), plain)
    assert _standard_error(twice, None)[0, 0] < 0.75 * plain[0, 0]


def test_few_of_many_rows_and_the_seed(known):
    model, X, y = known
    first, again, other = (
        importance(model, X, y, max_rows=50, random_state=seed) for seed in (0, 0, 1)
    )
    assert first.n_rows == 50
    assert_array_equal(first.crps, again.crps)
    assert first.crps[0] != other.crps[0]


def test_it_prints_and_is_a_frame(known):
    found = importance(*known)
    lines = repr(found).splitlines()
    assert len(lines) == 5 and lines[2].startswith("x0") and "±" in lines[2]
    table = found.to_frame()
    assert list(table["column"]) == found.columns
    assert_array_equal(table["std_error"], found.std_error)
    rows = np.array([[1.0, 0.0, 0.0]] * 2)
    assert "nan" not in repr(importance(known[0], rows, [2.0, 2.0]))


def test_nothing_is_changed(frame):
    model, X, y = frame
    before = X.copy(deep=True)
    importance(model, X, y, n_repeats=1)
    pd.testing.assert_frame_equal(X, before)


def test_bad_input(known, frame):
    model, X, y = known
    with pytest.raises(ValueError, match=r"columns='size' is no column of X: use a number: X has"):
        importance(model, X, y, columns=["size"])
    with pytest.raises(ValueError, match=r"columns=3 is no column of X: use a name, or a number f"):
        importance(model, X, y, columns=[3])
    with pytest.raises(ValueError, match=r"columns must be a list of columns or None, got 'a'"):
        importance(model, X, y, columns="a")
    with pytest.raises(ValueError, match="columns holds an empty list"):
        importance(model, X, y, columns=[[]])
    with pytest.raises(ValueError, match=r"X has 2 columns, but the model was fitted to 3"):
        importance(model, X[:, :2], y)
    with pytest.raises(ValueError, match=r"y must have shape \(400,\), got \(399,\)"):
        importance(model, X, y[1:])
    with pytest.raises(ValueError, match="n_repeats must be a positive integer, got 0"):
        importance(model, X, y, n_repeats=0)
    with pytest.raises(ValueError, match=r"X must have shape \(n, n_features\), got \(400,\)"):
        importance(model, X[:, 0], y)
    with pytest.raises(NotFittedError):
        importance(MVERegressor(), X, y)
    with pytest.raises(ValueError, match=r"columns='sise' is no column of X: use one of \['day',"):
        importance(*frame, columns=["sise"])
    doubled = pd.concat([frame[1], frame[1]], axis=1)
    with pytest.raises(ValueError, match="X has several columns named 'day': rename them first"):
        importance(frame[0], doubled, frame[2])
    plain = LinearRegression().fit(X, y)
    with pytest.raises(TypeError, match="must have predict_dist"):
        importance(plain, X, y)
