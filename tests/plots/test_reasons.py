"""Pictures of reasons show what the functions of mvenet.explain compute."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from mvenet import MVERegressor, Normal
from mvenet.distributions import Joint
from mvenet.explain import importance, narrowing, outside, partial_dependence, similar
from mvenet.plots import (
    DependenceDisplay,
    ImportanceDisplay,
    NarrowingDisplay,
    OutsideDisplay,
    SimilarDisplay,
    TargetsDisplay,
)

pytestmark = pytest.mark.usefixtures("short")


class Known(BaseEstimator):
    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict_dist(self, X):
        table = pd.DataFrame(np.asarray(X, dtype=object))
        wild = table[2].map({"calm": 0.0, "$wild": 1.0}).to_numpy(dtype=float)
        return Normal(table[0].to_numpy(dtype=float), np.exp(table[1].to_numpy(dtype=float) + wild))


rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "$b_1$"])
X["kind"] = rng.choice(["calm", "$wild"], 80)
MODEL = Known().fit(X, None)
Y = MODEL.predict_dist(X).sample(1, random_state=0)[0]


@pytest.fixture(autouse=True)
def close():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield
    plt.close("all")


def drawn(display):
    display.figure_.canvas.draw()  # what cannot be drawn, such as half a formula, fails here
    return display


def test_importance():
    display = drawn(ImportanceDisplay.from_estimator(MODEL, X, Y, max_columns=2))
    found = importance(MODEL, X, Y)
    assert [len(bars) for bars in display.bars_] == [2, 2]
    assert_allclose([bar.get_width() for bar in display.bars_[0]], found.mean[:2])
    assert_allclose([bar.get_width() for bar in display.bars_[1]], found.std[:2])
    assert len(display.ax_.get_yticks()) == 2


@pytest.mark.parametrize("show", ["interval", "mean", "std"])
def test_dependence(show):
    display = drawn(DependenceDisplay.from_estimator(MODEL, X, "$b_1$", show=show, max_lines=7))
    found = partial_dependence(MODEL, X, "$b_1$")
    assert_array_equal(display.line_.get_xdata(), found.values)
    assert_array_equal(display.line_.get_ydata(), found.std if show == "std" else found.mean)
    assert len(display.lines_) == 7
    assert (display.band_ is not None) == (show == "interval")


def test_dependence_on_levels_has_no_line():
    display = drawn(DependenceDisplay.from_estimator(MODEL, X, "kind"))
    assert display.line_.get_linestyle() == "None"
    names = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert names == [r"\$wild", "calm"]


def test_narrowing():
    display = drawn(NarrowingDisplay.from_estimator(MODEL, X.iloc[[4]], X))
    found = narrowing(MODEL, X.iloc[[4]], X)
    widths = [bar.get_width() for bar in display.bars_]
    assert_allclose(widths, 100 * (found.factor - 1), atol=1e-9)
    assert_allclose(display.dots_.get_xdata(), 100 * (found.narrowest - 1))


def test_similar_rows():
    display = drawn(SimilarDisplay.from_estimator(MODEL, X.iloc[[4]], X, Y, k=6))
    assert_array_equal(display.outcomes, Y[similar(MODEL, X.iloc[[4]], X, 6).rows[0]])
    area = float(np.sum(display.density * np.diff(display.edges)))
    assert_allclose(area, 1.0, atol=0.01)


def test_rows_outside():
    new = X.iloc[[1, 2]].assign(a=[0.0, 50.0])
    display = drawn(OutsideDisplay.from_estimator(MODEL, new, X))
    assert_array_equal(display.outside.score, outside(MODEL, new, X).score)
    assert display.outside.score[1] == 1


def test_bad_input():
    with pytest.raises(ValueError, match="show='spread' must be 'interval', 'mean' or 'std'"):
        DependenceDisplay.from_estimator(MODEL, X, "a", show="spread")
    with pytest.raises(ValueError, match="row has 2 rows: pass one"):
        SimilarDisplay.from_estimator(MODEL, X[:2], X, Y)
    with pytest.raises(ValueError, match=r"y_train must have shape \(80,\), got \(79,\)"):
        SimilarDisplay.from_estimator(MODEL, X[:1], X, Y[1:])
    with pytest.raises(NotFittedError):
        ImportanceDisplay.from_estimator(MVERegressor(), X[["a"]], Y)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes or None, got str"):
        OutsideDisplay.from_estimator(MODEL, X, X, ax="here")


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match='plots need matplotlib: pip install "mvenet'):
        DependenceDisplay.from_estimator(MODEL, X, "a")
    assert partial_dependence(MODEL, X, "a").column == "a"


@pytest.mark.parametrize("k", [2, 3])
def test_errors_of_targets_beside_each_other(k):
    tied = np.full((k, k), 0.5) + 0.5 * np.eye(k)
    dist = Joint([Normal(np.zeros(50), np.full(50, 2.0))] * k, tied)
    Y = dist.sample(1, random_state=0)[0]
    display = TargetsDisplay.from_predictions(Y, dist)
    np.testing.assert_allclose(display.scores, Y / 2, rtol=1e-9)
    if k == 2:
        x, y = display.ax_.get_lines()[2].get_data()  # where nine in ten should be
        np.testing.assert_allclose((x**2 - x * y + y**2) / 0.75, -2 * np.log(0.1), rtol=1e-9)
    else:
        shown = np.asarray(display.dots_.get_array())
        np.testing.assert_allclose(shown[0, 2], 0.5)
        np.testing.assert_allclose(shown[2, 0], np.corrcoef(Y.T)[2, 0], rtol=1e-9)


def test_targets_whose_errors_go_together_here_and_apart_there():
    each = np.array([[[1, r], [r, 1]] for r in (0.8, 0.8, -0.8, 0.0)])
    dist = Joint([Normal(np.zeros(4), np.ones(4))] * 2, each)
    display = TargetsDisplay.from_predictions(np.ones((4, 2)), dist)
    dots = [line for line in display.ax_.get_lines() if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in dots] == [2, 1, 1]
    with pytest.raises(ValueError, match="of several targets"):
        TargetsDisplay.from_predictions(np.ones(4), Normal(np.zeros(4), np.ones(4)))
