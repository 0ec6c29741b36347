"""Rows that are alike, against brute force, and the score of rows that are like none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mvenet import MVERegressor
from mvenet.explain import outside, similar


def test_nearest_rows_are_those_of_brute_force(known, monkeypatch):
    model, X, _ = known
    new = np.random.default_rng(5).normal(size=(7, 3))
    shares = np.array([0.5, 0.2, 0.3])
    away = np.abs(new[:, None] - X) / X.std(axis=0) @ shares
    found = similar(model, new, X, k=4, weights=[5, 2, 3])
    order = np.argsort(away, axis=1)[:, :4]
    assert_array_equal(found.rows, order)
    assert_allclose(found.distance, np.take_along_axis(away, order, axis=1))
    monkeypatch.setattr("mvenet.explain._similar.CELLS_AT_ONCE", 900)
    assert_array_equal(similar(model, new, X, k=4, weights=shares).rows, found.rows)


def test_columns_count_as_much_as_they_move_predictions(known):
    model, X, _ = known
    found = similar(model, X[:3], X)
    assert found.weights[2] == 0 and found.weights[0] > found.weights[1] > 0
    assert_array_equal(found.rows[:, 0], [0, 1, 2])
    assert_array_equal(found.distance[:, 0], 0)
    assert found.columns == ["x0", "x1", "x2"]
    assert_allclose(similar(model, X[:3], X, weights="equal").weights, 1 / 3)


def test_equally_near_rows_come_in_order(known):
    model, X, _ = known
    same = np.tile(X[:1], (6, 1))
    assert_array_equal(similar(model, X[:1], same, k=3).rows, [[0, 1, 2]])
    assert_array_equal(similar(model, X[:1], same, k=6).rows, [np.arange(6)])


def test_levels_dates_and_gaps(frame):
    model, X, _ = frame
    equal = {"weights": "equal", "k": len(X)}
    found = similar(model, X.iloc[:1], X, **equal)
    away = np.empty(len(X))
    away[found.rows[0]] = found.distance[0]
    days = X["day"].dt.tz_convert("UTC").dt.tz_localize(None).astype("int64").to_numpy(dtype=float)
    count = X["count"].to_numpy(dtype=float, na_value=np.nan)
    parts = [np.abs(v - v[0]) / np.nanstd(v) for v in (days, count, X["size"].to_numpy())]
    parts[1] = np.where(np.isnan(parts[1]), float(not np.isnan(count[0])), parts[1])
    parts.append((X["kind"] != X["kind"].iloc[0]).to_numpy(dtype=float))
    if not np.isnan(count[0]):
        assert_allclose(away, np.mean(parts, axis=0))
    plain = pl.from_pandas(X.assign(day=X["day"].dt.tz_localize(None)).reset_index(drop=True))
    assert_array_equal(similar(model, plain[:1], plain, k=5, weights="equal").rows[0, 0], 0)


def test_rows_like_the_others_are_outside_as_often_as_claimed(known):
    model, X, _ = known
    score = outside(model, np.random.default_rng(9).normal(size=(2000, 3)), X).score
    for level in (0.5, 0.8, 0.95):
        expected = 1 - level
        assert abs((score > level).mean() - expected) < 0.35 * expected


def test_lonely_rows_are_told_with_their_column(known):
    model, X, _ = known
    found = outside(model, [[0.0, 0.0, 0.0], [0.0, 0.0, 9.0], [6.0, 0.0, 0.0]], X)
    assert found.score[0] < 0.5
    assert_array_equal(found.score[1:], 1.0)
    assert found.column[1:] == ["x2", "x0"]
    assert "3 rows, 2 of them" in repr(found)


def test_another_value_of_a_constant_column_is_outside(known):
    model, X, _ = known
    constant = np.column_stack([X[:, :2], np.full(400, 7.0)])
    found = outside(model, [[0.0, 0.0, 7.0], [0.0, 0.0, 8.0]], constant)
    assert found.score[0] < 0.5 and found.score[1] > 0.95 and found.column[1] == "x2"


def test_a_new_level_is_not_near_any(frame):
    model, X, _ = frame
    new = X.iloc[[50, 50]].copy()
    new["kind"] = pd.Series(["calm", "odd"], index=new.index).to_numpy()
    found = outside(model, new, X)
    assert found.distance[1] > found.distance[0] + 0.1
    assert found.column[1] == "kind"


def test_bad_input(known, frame):
    model, X, _ = known
    for call in (similar, outside):
        with pytest.raises(ValueError, match="k=401 is more than the 400 rows of X_train: use at"):
            call(model, X, X, 401)
        with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
            call(model, X, X, 0)
        with pytest.raises(ValueError, match="X_train has 2 columns, but the model was fitted"):
            call(model, X, X[:, :2])
        with pytest.raises(ValueError, match="X is no table like X_train"):
            call(frame[0], frame[1].iloc[:, ::-1], frame[1])
        with pytest.raises(ValueError, match="not fitted"):
            call(MVERegressor(), X, X)
    with pytest.raises(ValueError, match="weights='some' must be 'model', 'equal' or a number a"):
        similar(model, X, X, weights="some")
    with pytest.raises(ValueError, match="weights must not be negative, nor all zero"):
        similar(model, X, X, weights=[0, 0, 0])
    with pytest.raises(ValueError, match=r"weights must have shape \(3,\), got \(2,\)"):
        similar(model, X, X, weights=[1, 1])
    with pytest.raises(ValueError, match="X_train has 1 row, which has no other"):
        outside(model, X, X[:1], 1)
