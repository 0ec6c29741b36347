"""The automatic search beside other libraries' models: same folds, scores recomputed here."""

from __future__ import annotations

import types

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import workflow
from mvenet.distributions import Normal
from mvenet.workflow import _peers

pytestmark = pytest.mark.usefixtures("short")


class Fast:
    """Stands in for our two estimators, whose scores other tests ask for; remembers what it saw."""

    seen: list = []  # noqa: RUF012

    def __init__(self, **settings):
        self.settings = settings

    def get_params(self, deep=True):
        return self.settings

    def fit(self, X, y, **told):
        Fast.seen.append((len(y), told))
        Fast.inputs = X
        self.level = float(np.mean(y))
        return self

    def predict_dist(self, X):
        return Normal(np.full(len(X), self.level), np.ones(len(X)))


@pytest.fixture
def quick(monkeypatch):
    Fast.seen = []
    monkeypatch.setattr(_peers, "AutoRegressor", Fast)
    monkeypatch.setattr(_peers, "MVERegressor", Fast)
    monkeypatch.setattr(_peers, "OTHERS", {})


def rows(n=60):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, 2))
    y = x[:, 0] + 0.3 * rng.standard_normal(n)
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "who": np.arange(n) // 5, "y": y})


def test_scores_of_a_model_with_a_standard_deviation(quick):
    frame = rows().drop("who")
    found = workflow.compare_models(frame, "y", folds=3, seed=4)
    X, y = frame.select("a", "b").to_numpy(), frame["y"].to_numpy()
    place = found.names.index("Bayesian ridge")
    for j, (train, test) in enumerate(KFold(3, shuffle=True, random_state=4).split(X)):
        model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X[train], y[train])
        mean, std = model.predict(X[test], return_std=True)
        low, high = mean - 1.6448536 * std, mean + 1.6448536 * std
        inside = np.mean((low <= y[test]) & (y[test] <= high))
        assert found.scores["rmse"][place, j] == pytest.approx(
            np.sqrt(np.mean((mean - y[test]) ** 2)), rel=1e-9
        )
        assert found.scores["coverage"][place, j] == pytest.approx(inside)
        draws = mean + std * np.random.default_rng(j).standard_normal((20000, len(test)))
        brute = np.abs(draws - y[test]).mean() - np.abs(draws[::2] - draws[1::2]).mean() / 2
        assert found.scores["crps"][place, j] == pytest.approx(brute, rel=0.02)


def test_crps_of_quantiles_is_twice_the_pinball_loss():
    frame = rows()
    X, y = frame.select("a").to_numpy(), frame["y"].to_numpy()
    boosted = HistGradientBoostingRegressor(max_iter=2)
    model = _peers._quantiles(
        boosted,
        lambda q: HistGradientBoostingRegressor(max_iter=2, loss="quantile", quantile=q),
    )
    told = model(X, y, X[:4], {})
    by_hand = []
    for q in _peers.LEVELS:
        each = HistGradientBoostingRegressor(max_iter=2, loss="quantile", quantile=q)
        off = y[:4] - each.fit(X, y).predict(X[:4])
        by_hand.append(np.where(off > 0, q * off, (q - 1) * off))
    assert told.crps(y[:4]) == pytest.approx(2 * np.mean(by_hand, axis=0), rel=0.2)  # sorted there
    assert (told.interval[:, 0] <= told.interval[:, 1]).all()


def test_groups_stay_whole_and_only_we_are_told(quick, monkeypatch):
    torn = []

    def watched(X, y, new, told):
        torn.append(set(X[:, 0]) & set(new[:, 0]))
        return _peers._of_distribution(Normal(np.zeros(len(new)), np.ones(len(new))))

    frame = rows().with_columns(a=pl.col("who").cast(pl.Float64))  # which patient, as a number
    watching = {_peers.OURS[0]: _peers._with_distribution(Fast()), "other": watched}
    monkeypatch.setattr(_peers, "usual_models", lambda effort, seed: watching)
    workflow.compare_models(frame, "y", folds=3, group="who")
    assert torn == [set()] * 3
    assert all(len(told["groups"]) == n for n, told in Fast.seen) and len(Fast.seen) == 3


def test_we_take_the_frame_as_it_is_and_others_numbers(quick, monkeypatch):
    def watched(X, y, new, told):
        assert X.dtype == float and np.isfinite(X).all() and X.shape[1] > 2  # a column a level
        return _peers._of_distribution(Normal(np.zeros(len(new)), np.ones(len(new))))

    watching = {_peers.OURS[0]: _peers._with_distribution(Fast()), "other": watched}
    monkeypatch.setattr(_peers, "usual_models", lambda effort, seed: watching)
    towns = pl.Series(np.resize(["Ulm", "Bonn", "Kiel"], 60))
    workflow.compare_models(rows().select("a", "y", town=towns), "y", folds=2)
    assert Fast.inputs.columns == ["a", "town"]


@pytest.mark.parametrize(
    ("frame", "more", "told"),
    [
        (rows(9), {}, r"folds=5 of 9 rows leave 7 to train on: to compare anything, 8 are needed"),
        (rows().with_columns(y=2.0), {}, "The target 'y' is 2 in every row"),
        (rows().with_columns(g=pl.col("who") > 3), {"group": "g"}, "group='g' has too few values"),
        (rows().with_columns(g=1), {"group": "g"}, "group"),
        (rows(), {"group": "y"}, "is the target"),
        (rows(), {"folds": 61}, "folds=61 must be a number of folds from 2"),
    ],
)
def test_what_cannot_be_compared_is_said(quick, frame, more, told):
    with pytest.raises(ValueError, match=told):
        workflow.compare_models(frame, "y", **more)


@pytest.mark.slow
def test_of_groups_there_are_no_more_folds_than_groups(quick):
    frame = rows().with_columns(who=pl.col("who") % 4)
    assert workflow.compare_models(frame, "y", folds=9, group="who").scores["crps"].shape[1] == 4


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([[1.0, 1.2], [0.1, 0.1], [2.1, 2.3], [9.0, 9.0]], "b has the lowest CRPS, 100 % above"),
        ([[1.0, 1.2], [0.1, 0.1], [0.9, 1.2], [9.0, 9.0]], "4.5 % below AutoRegressor's: within"),
    ],
)
def test_the_conclusion_is_about_the_best_of_the_others(scores, told):
    names = [*_peers.OURS, "b", "c"]
    assert told in workflow.ModelComparison(names, {"crps": np.array(scores)}, []).conclusion


def test_time_goes_forward(quick):
    frame = rows().with_columns(day=pl.Series(np.arange(60.0)))
    workflow.compare_models(frame.drop("who"), "y", folds=2, time="day")
    sizes = [n for n, told in Fast.seen if "time" in told]
    assert sizes == sorted(sizes) and max(sizes) < 60


def test_errors_and_differences():
    scores = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]])
    found = workflow.ModelComparison(["a", "b"], {"crps": scores}, [])
    assert found.mean("crps") == pytest.approx([2.0, 3.0])
    assert found.error("crps")[0] == pytest.approx(1 / np.sqrt(3))
    above, error = found.worse()
    assert above == pytest.approx([0.0, 1.0]) and error == pytest.approx([0.0, 1 / np.sqrt(3)])


def test_other_packages_join_if_they_are_there(monkeypatch):
    """CatBoost's answer has columns of mean and variance, not of standard deviation."""

    class Cat:
        def __init__(self, **settings):
            assert settings["loss_function"] == "RMSEWithUncertainty"

        def copy(self):
            return self

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.column_stack([np.zeros(len(X)), np.full(len(X), 4.0)])

    package = types.SimpleNamespace(CatBoostRegressor=Cat)
    name, model = _peers._catboost(package, 0)
    told = model(np.zeros((5, 1)), np.zeros(5), np.zeros((3, 1)), {})
    assert name == "CatBoost"
    assert told.interval[0] == pytest.approx([-2 * 1.6448536, 2 * 1.6448536])


def test_lightgbm(monkeypatch):
    package = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).uniform(size=(80, 2))
    told = _peers._lightgbm(package, 0)[1](X, X[:, 0], X, {})
    assert told.mean.shape == (80,) and np.isfinite(told.crps(X[:, 0])).all()
