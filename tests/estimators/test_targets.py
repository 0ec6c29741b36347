"""Several targets at once: each as if alone, their dependence by rows left out."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fitted import tiny
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import (
    AutoRegressor,
    CalibratedRegressor,
    MVERegressor,
    MVERegressorCV,
    explain,
    metrics,
    onnx,
    plots,
    report,
)
from mvenet.distributions import Joint

pytestmark = pytest.mark.usefixtures("short", "blank")

QUICK = {
    "strategy": "cross-fit",
    "hidden_mean": (8,),
    "hidden_var": (4,),
    "encoding": None,
    "warmup_epochs": 30,
    "epochs": 20,
    "learning_rate": 0.02,
    "random_state": 0,
}
N = 400


def made(n=N, rho=0.9, seed=0, by_region=False):
    """Two targets with errors of known correlation, perhaps of opposite sign by region."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    tied = rho * (np.sign(X[:, 2]) if by_region else np.ones(n))
    e = rng.standard_normal((n, 2))
    e[:, 1] = tied * e[:, 0] + np.sqrt(1 - tied**2) * e[:, 1]
    return X, np.column_stack([X[:, 0], 10 - 5 * X[:, 1]]) + e * [0.5, 2.0]


X, Y = made()


def quick(**settings):
    return MVERegressor(**QUICK | settings)


@pytest.fixture(scope="module")
def model():
    return quick().fit(X, pd.DataFrame(Y, columns=["heat", "cool"]))


@pytest.fixture(scope="module")
def by_region():
    X, Y = made(n=1_000, rho=0.8, by_region=True)
    return quick(epochs=5, warmup_epochs=8).fit(X, Y)


def test_each_target_is_as_if_alone_to_the_bit(model):
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (N, 2)
    for j, part in enumerate(model.estimators_):
        alone = quick().fit(X, Y[:, j])
        for one, other in zip(alone.predict(X, return_std=True), (mean, std), strict=True):
            assert_array_equal(one, other[:, j])
        assert_array_equal(part.oof_mean_, model.oof_mean_[:, j])
        assert_array_equal(alone.oof_std_, model.oof_std_[:, j])
        assert_array_equal(alone.oof_pit_, model.oof_pit_[:, j])
        assert part.summary_ in model.summary_


def test_the_correlation_of_errors_is_found(model):
    dist = model.predict_dist(X)
    assert isinstance(dist, Joint) and dist.names == ("heat", "cool")
    assert model.model_.constant[0, 1] == pytest.approx(0.9, abs=0.04)
    fresh, outcome = made(seed=1)
    predicted = model.predict_dist(fresh)
    alone = sum(metrics.nll(outcome[:, j], predicted.marginal(j)) for j in range(2))
    assert alone - metrics.joint_nll(outcome, predicted) > 0.5 * 0.83
    assert metrics.joint_coverage(outcome, predicted) == pytest.approx(0.9, abs=0.04)
    assert_allclose(model.logpdf(fresh, outcome), predicted.logpdf(outcome))
    assert "Correlation of the errors" in model.summary_


def test_what_is_asked_by_target(model):
    few = X[:7]
    dist = model.predict_dist(few)
    assert_allclose(model.predict(few), dist.mean, rtol=1e-14)
    assert_array_equal(model.predict_interval(few, 0.8), dist.interval(0.8))
    assert model.predict_interval(few, [0.5, 0.8]).shape == (7, 2, 2, 2)
    shortest = model.predict_interval(few, 0.8, kind="shortest")
    assert_allclose(shortest, dist.shortest_interval(0.8))
    together = model.predict_interval(few, 0.8, kind="simultaneous")
    assert (together[..., 0] <= dist.interval(0.8)[..., 0]).all()
    assert_array_equal(model.predict_quantiles(few, [0.1, 0.9]), dist.ppf([0.1, 0.9]))
    assert 0.5 < model.score(X, Y) < 1
    assert list(model.target_names_) == ["heat", "cool"]
    assert model.n_features_in_ == 3 and model.oof_fold_.shape == (N,)


def test_opposite_signs_by_region_are_found(by_region):
    rows, outcome = made(n=1_000, rho=0.8, seed=1, by_region=True)
    correlation = by_region.model_.correlation(rows)[:, 0, 1]
    right = rows[:, 2] > 0
    assert np.median(correlation[right]) > 0.6 and np.median(correlation[~right]) < -0.6
    dist = by_region.predict_dist(rows)
    assert metrics.joint_coverage(outcome, dist) == pytest.approx(0.9, abs=0.03)
    assert "differs from row to row" in by_region.summary_
    assert_allclose(dist[5].cov, dist.cov[[5]])


def test_no_correlation_is_no_correlation():
    X, Y = made(rho=0.0)
    tied = quick(epochs=5, warmup_epochs=8).fit(X, Y).model_
    assert abs(tied.constant[0, 1]) < 0.1 and tied.local is None


@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "list"])
def test_targets_of_any_kind_of_table(kind, model):
    given = {
        "pandas": pd.DataFrame(Y, columns=["heat", "cool"]).convert_dtypes(),
        "polars": pl.DataFrame(Y, schema=["heat", "cool"]),
        "array": np.asfortranarray(Y),
        "list": Y.tolist(),
    }[kind]
    found = quick().fit(X, given)
    assert_array_equal(found.predict(X), model.predict(X))
    named = kind in ("pandas", "polars")
    assert list(found.target_names_) == (["heat", "cool"] if named else ["y0", "y1"])


def test_one_column_keeps_its_axis():
    column, alone = quick().fit(X, Y[:, :1]), quick().fit(X, Y[:, 0])
    assert_array_equal(column.predict(X)[:, 0], alone.predict(X))
    assert column.predict_interval(X).shape == (N, 1, 2)
    assert column.summary_ == alone.summary_ and column.fingerprint_ == alone.fingerprint_


def test_fitted_to_one_target_after_several():
    few, targets = X[:60], Y[:60]
    again = quick(epochs=1, warmup_epochs=1).fit(few, targets).fit(few, targets[:, 0])
    assert again.predict(few).shape == (60,) and not hasattr(again, "estimators_")
    assert not hasattr(again, "target_names_") and hasattr(again, "history_")
    several = again.fit(few, targets)
    assert several.predict(few).shape == (60, 2) and not hasattr(several, "history_")


def test_other_estimators_and_pipelines():
    n = 40
    search = MVERegressorCV(
        [1e-3], [1e-2], cv=3, n_members=1, epochs=3, warmup_epochs=5, random_state=0
    ).fit(X[:n], Y[:n])
    assert isinstance(search.predict_dist(X), Joint)
    auto = AutoRegressor("low", candidates=["linear"], cv=2, random_state=0).fit(X[:n], Y[:n])
    assert auto.best_score_ > sum(part.best_score_ for part in auto.estimators_)
    piped = make_pipeline(StandardScaler(), quick(epochs=1, warmup_epochs=1)).fit(X[:n], Y[:n])
    assert piped.predict(X).shape == (N, 2)


def test_frames_as_people_have_them():
    n = 59
    frame = pd.DataFrame({"a": X[:n, 0], "kind": np.where(X[:n, 1] > 0, "warm", "cold")})
    frame.loc[3, "a"] = np.nan
    model = quick(epochs=1, warmup_epochs=2).fit(frame, Y[:n])
    assert model.predict(frame).shape == (n, 2)
    assert model.columns_["kind"].kind == "category"
    assert list(model.feature_names_in_) == ["a", "kind"]


def test_weights_groups_and_random_generators():
    n, settings = 59, {"epochs": 1, "warmup_epochs": 2}  # too few rows to look for dependent ones
    w = np.ones(n)
    w[::3] = 0.0
    model = quick(**settings).fit(X[:n], Y[:n], sample_weight=w)
    assert np.isnan(model.oof_mean_[::3]).all()
    grouped = quick(**settings).fit(X[:n], Y[:n], groups=np.arange(n) // 5)
    assert "Whole groups" in grouped.summary_
    for seed in (None, np.random.default_rng(0), np.random.RandomState(0)):
        parts = quick(**settings | {"random_state": seed}).fit(X[:n], Y[:n]).estimators_
        assert_array_equal(parts[0].oof_fold_, parts[1].oof_fold_)


def test_copies(model):
    copied = pickle.loads(pickle.dumps(model))
    assert_array_equal(copied.predict_dist(X).cov, model.predict_dist(X).cov)
    assert not hasattr(clone(model), "model_")
    frame = pd.DataFrame(X[:4], index=list("abcd"))
    assert list(model.predict_dist(frame).to_frame().index) == list("abcd")


def test_a_constant_target_goes_with_no_other():
    constant = np.column_stack([Y[:, 0], np.full(N, 7.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = quick(epochs=1, warmup_epochs=2).fit(X[:59], constant[:59])
    assert_allclose(model.predict(X)[:, 1], 7.0)
    assert_array_equal(model.model_.constant, np.eye(2))
    assert np.isfinite(model.logpdf(X, constant)).all()


def test_fifty_targets():
    n, k = 40, 50
    rng = np.random.default_rng(0)
    many = X[:n, :1] + rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, k))
    model = quick(epochs=1, warmup_epochs=1).fit(X[:n], many)
    dist = model.predict_dist(X[:3])
    assert dist.mean.shape == (3, k) and dist.cov.shape == (3, k, k)
    assert np.linalg.eigvalsh(dist.cov).min() > 0
    assert dist.sample(4, random_state=0).shape == (4, 3, k)
    assert np.isfinite(dist.logpdf(many[:3])).all()
    assert model.model_.constant[0, 1] > 0.5
    assert "the largest of them" in model.summary_


def gap(column, value):
    bad = pd.DataFrame(Y, columns=["heat", "cool"])
    bad.loc[[3, 5], column] = value
    return bad


@pytest.mark.parametrize(
    ("targets", "match"),
    [
        (
            gap("cool", np.nan),
            r"missing in column 'cool' in 2 of 400 rows, the first of them row 3",
        ),
        (gap("cool", np.inf), r"infinite in column 'cool', row 3"),
        (gap("cool", np.nan).convert_dtypes(), "missing in column 'cool' in 2"),
        (pl.DataFrame(gap("cool", np.nan)).fill_nan(None), "missing in column 'cool' in 2"),
        (pd.DataFrame(Y, columns=["a", "a"]), "two columns called 'a'"),
        (Y[:-1], "Y has 399 rows, and X has 400"),
        (Y[:, :0], "Y has no columns"),
        (pd.DataFrame({"a": Y[:, 0], "b": ["z"] * N}), "numbers, and column 'b' does not"),
        (Y.astype(complex), "column 'y0' does not"),
        (Y.astype(str), "column 'y0' does not"),
        (np.zeros((N, 2, 2)), "dim 3|1d array|3"),
    ],
)
def test_bad_targets(targets, match):
    with pytest.raises(ValueError, match=match):
        quick().fit(X, targets)


def test_what_leaves_no_rows_out_or_knows_one_target_only():
    with pytest.raises(ValueError, match=r"Several targets need rows left out.*cross-fit"):
        tiny().fit(X, Y)
    with pytest.raises(ValueError, match="Several targets need rows left out"):
        quick().fit(X[:7], Y[:7])
    single = quick(epochs=1, warmup_epochs=1).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="kind='simultaneous' is for several targets"):
        single.predict_interval(X, kind="simultaneous")
    with pytest.raises(AttributeError, match="not fitted to several targets"):
        _ = single.estimators_


def test_what_knows_one_target_only_says_so(model, tmp_path):
    several = "target.*several|several targets|of one target"
    with pytest.raises(ValueError, match=several):
        plots.DensityDisplay.from_estimator(model, X[:3])
    with pytest.raises(ValueError, match=several):
        explain.importance(model, X, Y[:, 0])
    with pytest.raises(ValueError, match=several):
        metrics.crps(Y[:, 0], model.predict_dist(X))
    with pytest.raises(TypeError, match=several):
        onnx.export(model, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="y has 2 columns"):
        CalibratedRegressor(quick()).fit(X, Y)
    assert explain.importance(model.estimators_[0], X[:20], Y[:20, 0], n_repeats=1) is not None


def test_a_report_of_several_targets(model, tmp_path):
    place = tmp_path / "out.html"
    model.report(place, X[:40], Y[:40], unit=["m", "s"])
    page = place.read_text("utf-8")
    assert page.count("<article id=") == 2 and "\N{NO-BREAK SPACE}s</td>" in page
    assert "Do their errors go together?" in report.render(model, None)
    with pytest.raises(ValueError, match="y has shape"):
        model.report(place, X[:40], Y[:40, 0])
    with pytest.raises(ValueError, match="unit has 3 values for 2 targets"):
        model.report(place, X[:40], Y[:40], unit=["m", "s", "kg"])


def test_an_error_says_in_which_target():
    with pytest.raises(ValueError, match="target='log' needs") as caught:
        quick(target="log").fit(X, np.column_stack([np.exp(Y[:, 0]), Y[:, 1] - 100]))
    assert caught.value.__notes__ == ["While target 'y1' was fitted."]


def test_a_cell_that_is_not_known_has_the_usual_correlation():
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-1, 1, (240, 2))
    tied = np.sign(inputs[:, 1]) * 0.95
    one, own = rng.standard_normal((2, 240))
    outcomes = np.column_stack([one, tied * one + np.sqrt(1 - tied**2) * own])
    model = AutoRegressor("low", candidates=["linear"], cv=3, random_state=0).fit(inputs, outcomes)
    assert model.model_.local is not None
    gap = np.array([[0.5, np.nan]])
    found = model.model_.correlation(gap)
    middle = np.median(model.estimators_[0].model_.donors[:, 1])
    assert_array_equal(found, model.model_.correlation(np.array([[0.5, middle]])))
    assert np.isfinite(model.predict_dist(gap).logpdf(outcomes[:1])).all()


def test_dates_are_no_targets():
    dates = pd.date_range("2020-01-01", periods=len(X))
    with pytest.raises(ValueError, match="column 'q' does not: it is of type datetime64"):
        quick().fit(X, pd.DataFrame({"p": Y[:, 0], "q": dates}))
