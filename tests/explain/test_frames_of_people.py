"""Reasons of our own estimators, for frames with dates as text, gaps and categories."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.inspection import permutation_importance

from mvenet import MVERegressor, metrics
from mvenet.explain import importance, narrowing, outside, partial_dependence, similar


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 240
    day = pd.date_range("2020-01-01", periods=n, freq="2D")
    X = pd.DataFrame(
        {
            "town": rng.choice(["A", "B", "C"], n),
            "sold": day.strftime("%Y-%m-%d"),
            "size": rng.normal(size=n),
            "flag": rng.choice(["yes", "no"], n),
            "price": [f"{v:.2f}" for v in rng.uniform(1, 9, n)],
        },
        index=[f"r{i}" for i in range(n)],
    )
    X.loc["r3", "size"] = np.nan
    X.loc["r5", "town"] = None
    noise = np.where(X["town"] == "A", 0.2, 2.0)
    y = 3 * X["size"].fillna(0).to_numpy() + noise * rng.normal(size=n)
    model = MVERegressor(
        strategy="warmup", warmup_epochs=60, epochs=80, hidden_mean=(8,), hidden_var=(4,),
        learning_rate=0.02, random_state=0,
    ).fit(X, y)  # fmt: skip
    return model, X, y


def test_what_matters_for_what(people):
    model, X, y = people
    found = importance(model, X[::2], y[::2])
    assert sorted(found.columns) == sorted(X.columns)
    assert found.columns[int(found.mean.argmax())] == "size"
    assert found.columns[int(found.std.argmax())] == "town"
    theirs = permutation_importance(
        model, X[::2], y[::2], scoring=metrics.neg_crps_scorer, n_repeats=5, random_state=0
    )
    ours = found.to_frame().set_index("column")["crps"][list(X.columns)]
    assert_allclose(ours, theirs.importances_mean, atol=0.15 * theirs.importances_mean.max())


def test_columns_are_read_as_the_model_reads_them(people):
    model, X, _ = people
    sold = partial_dependence(model, X, "sold")
    assert sold.kind == "date" and len(sold.values) > 50
    assert isinstance(sold.values[0], datetime.datetime)
    price = partial_dependence(model, X, "price", grid=3)
    assert price.kind == "number" and len(price.values) == 3
    assert partial_dependence(model, X, "flag").values == ["no", "yes"]
    town = partial_dependence(model, X, "town")
    assert town.values == ["A", "B", "C"] and town.std[0] < town.std[1:].min()
    same = partial_dependence(model, pl.from_pandas(X), "town")
    assert_allclose(same.ice_std, town.ice_std)


def test_rows(people):
    model, X, _ = people
    wide = X.iloc[[int(np.flatnonzero(X["town"] == "B")[0])]]
    found = narrowing(model, wide, X)
    assert found.columns[0] == "town" and found.best[0] == "A"
    assert similar(model, X.iloc[[7]], X, k=1).rows.tolist() == [[7]]
    later = X.iloc[[7]].assign(sold="2031-01-01")
    score = outside(model, pd.concat([X.iloc[[7]], later]), X).score
    assert score[0] < 0.9 < score[1]
