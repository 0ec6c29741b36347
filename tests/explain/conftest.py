"""A model whose mean and noise are known: what matters for which is no matter of training."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from mvenet import Normal


class Known(RegressorMixin, BaseEstimator):
    """Mean 2 a, standard deviation exp(b); a third column is of no use."""

    def fit(self, X, y):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict_dist(self, X):
        a, b = (np.asarray(X)[:, j].astype(float) for j in (0, 1))
        return Normal(2 * a, np.exp(b))

    def predict(self, X):
        return self.predict_dist(X).mean


WIDTHS = {"calm": 1.0, "wild": 4.0}


class KnownFrame(BaseEstimator):
    """Mean by the month of a date, standard deviation by a category, of a frame as it is."""

    def fit(self, X, y):
        self.feature_names_in_ = np.array(list(X.columns), dtype=object)
        self.n_features_in_ = X.shape[1]
        return self

    def predict_dist(self, X):
        frame = X if isinstance(X, pd.DataFrame) else X.to_pandas()
        month = pd.to_datetime(frame["day"]).dt.month.to_numpy()
        std = [WIDTHS.get(kind, 2.0) for kind in frame["kind"]]
        return Normal(month.astype(float), np.array(std))


@pytest.fixture
def known():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = 2 * X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=400)
    return Known().fit(X, y), X, y


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame(
        {
            "day": pd.date_range("2020-01-01", periods=n, freq="3D", tz="Europe/Berlin"),
            "kind": pd.Categorical(rng.choice(["calm", "wild"], n), ["calm", "never", "wild"]),
            "count": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "size": rng.normal(size=n),
        },
        index=rng.integers(0, 9, n),
    )
    X.loc[X.index == 3, "count"] = pd.NA
    model = KnownFrame().fit(X, None)
    y = model.predict_dist(X).sample(1, random_state=1)[0]
    return model, X, y
