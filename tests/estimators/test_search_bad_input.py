"""What a search refuses, and networks of it that diverge."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pandas as pd
import pytest
from fitted import assert_unfitted
from numpy.testing import assert_array_equal
from searches import FOLDS, W, X, Y, assert_same_search, fast, split_scores
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
)

from mvenet._training import fleet

# --- bad input -----------------------------------------------------------------------------------


def assert_refused(match, X=X, y=Y, **settings):
    model = fast(**settings)
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)
    assert_unfitted(model, X)


@pytest.mark.parametrize("name", ["reg_mean", "reg_var"])
@pytest.mark.parametrize(
    "grid",
    [[], (), np.array([]), [-1e-3], [1e-3, -1.0], [np.nan], [1e-3, np.nan], [np.inf], ["a"],
     [1e-3, 1e39], ["1e-3", "1e-2"], [None], [[1e-3], [1e-2, 1e-1]], [1j], [{}]],
    ids=str,
)  # fmt: skip
def test_bad_grids(name, grid):
    message = f"The '{name}' parameter must be a list of at least one finite number.*Got .* instead"
    assert_refused(message, **{name: grid})


@pytest.mark.parametrize("name", ["reg_mean", "reg_var"])
@pytest.mark.parametrize("grid", [1e-3, "abc", "auto", None], ids=str)
def test_grids_that_are_no_lists(name, grid):
    assert_refused(
        f"The '{name}' parameter of MVERegressorCV must be an array-like", **{name: grid}
    )


def test_no_common_values():
    message = (
        r"selection='equal' needs values that reg_mean and reg_var have in common: got .*0\.03"
    )
    assert_refused(message, selection="equal")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"final": "best"}, "The 'final' parameter .*'refit'.* Got 'best' instead"),
        ({"final": None}, "The 'final' parameter .* Got None instead"),
        ({"selection": "both"}, "The 'selection' parameter .* Got 'both' instead"),
        ({"scale": "yes"}, "The 'scale' parameter .* Got 'yes' instead"),
        ({"n_members": 0}, "The 'n_members' parameter .* Got 0 instead"),
        ({"cv": 1}, r"The 'cv' parameter .* range \[2, inf\).* Got 1 instead"),
        ({"cv": 0}, "The 'cv' parameter .* Got 0 instead"),
        ({"cv": True}, "The 'cv' parameter .* Got True instead"),
        ({"cv": 2.5}, "The 'cv' parameter .* Got 2.5 instead"),
        ({"cv": "five"}, "The 'cv' parameter .* Got 'five' instead"),
        ({"cv": 91}, "cv=91 must be a number of folds .* 90"),
        ({"cv": []}, r"cv=\[\] gives no folds"),
        ({"cv": GroupKFold(3)}, "leaves out groups, and fit knows of none: give fit"),
    ],
    ids=str,
)
def test_bad_parameters(settings, match):
    assert_refused(match, **settings)


@pytest.mark.parametrize(
    ("number", "folds"),
    [
        (1, [FOLDS[0], (np.arange(50), [])]),
        (0, [(np.arange(50), np.array([], dtype=int)), FOLDS[0]]),
        (0, [([], [1, 2]), FOLDS[0]]),
        (2, [*FOLDS[:2], ([3], [1, 2])]),
    ],
)
def test_folds_without_rows(number, folds):
    n_train, n_test = (len(part) for part in folds[number])
    message = f"cv gives fold {number} {n_train} rows to train on and {n_test} to leave out"
    assert_refused(message, cv=folds)


@pytest.mark.parametrize(
    "settings",
    [{"reg_mean": []}, {"cv": 91}, {"cv": []}, {"selection": "equal"}, {"cv": [([1], [2])]}],
    ids=str,
)
def test_a_refused_fit_unfits_what_was_fitted_before(settings):
    model = fast().fit(X, Y).set_params(**settings)
    with pytest.raises(ValueError, match=r"reg_mean|cv|n_splits"):
        model.fit(X, Y)
    assert_unfitted(model, X)


def test_fewer_rows_than_folds():
    message = "cv=10 must be a number of folds .* 5"
    assert_refused(message, X[:5], Y[:5], cv=10)
    # Rows of weight zero do not count.
    w = np.zeros(90)
    w[:4] = 1.0
    with pytest.raises(ValueError, match=r"cv=5 must be a number of folds .* 4"):
        fast(cv=5).fit(X, Y, w)
    assert_refused("cv gives fold 0 1 rows to train on", X[:2], Y[:2], cv=2)


def test_few_rows():
    for fit in (partial(fast(cv=3).fit, X[:3], Y[:3]), partial(fast(cv=2).fit, X[:4], Y[:4])):
        model = fit()
        assert np.isfinite(model.predict(X, return_std=True)).all()
        assert np.isfinite(model.oof_std_[: model.n_splits_]).all()


def test_inputs_are_never_changed():
    data, target, w = X.copy(), Y.copy(), W.copy()
    grid = np.array([3e-2, 1e-4])
    for array in (data, target, w, grid):
        array.setflags(write=False)
    model = fast(reg_mean=grid, n_members=2).fit(data, target, w)
    assert model.get_params()["reg_mean"] is grid
    assert_same_search(model, fast(n_members=2).fit(X, Y, W))


# --- divergence ----------------------------------------------------------------------------------


def diverging(monkeypatch, condition):
    """Call networks diverged for which condition(network, number of its training rows) holds."""
    train = fleet.train

    def marked(X, y, sample_weight, subsets, networks, **settings):
        result = train(X, y, sample_weight, subsets, networks, **settings)
        flags = [bool(condition(n, len(subsets[n.subset][0]))) for n in networks]
        result.networks.parameters[flags] = np.nan
        return dataclasses.replace(result, diverged=np.array(flags))

    monkeypatch.setattr(fleet, "train", marked)


@pytest.mark.parametrize("scale", [False, True])
def test_pairs_that_diverged_score_minus_infinity(scale, monkeypatch):
    plain = fast(scale=scale).fit(X, Y)
    best = plain.best_reg_mean_, plain.best_reg_var_
    seed = fleet.derived_seed(0, 1, 0)  # in one fold only

    def condition(network, n_rows):
        stage = network.stages[-1]
        return (stage.reg_mean, stage.reg_var) == best and network.seed == seed

    diverging(monkeypatch, condition)
    model = fast(scale=scale).fit(X, Y)
    lost = plain.best_index_
    kept = np.arange(4) != lost
    mean = model.cv_results_["mean_test_score"]
    assert mean[lost] == -np.inf and (split_scores(model)[lost] == -np.inf).all()
    assert np.isnan(model.cv_results_["std_test_score"][lost])
    assert model.cv_results_["rank_test_score"][lost] == 4
    assert_array_equal(mean[kept], plain.cv_results_["mean_test_score"][kept])
    assert model.best_index_ == np.argmax(mean) != lost
    assert np.isfinite(model.best_score_) and np.isfinite(model.predict(X)).all()
    assert np.isnan(pd.DataFrame(model.cv_results_)["std_test_score"]).sum() == 1


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_all_pairs_diverge(final):
    model = fast(final=final).fit(X, Y)
    model.set_params(learning_rate=1e30, clip_value=None)
    with pytest.raises(ValueError, match=r"All 4 penalty pairs diverged: lower learning_rate"):
        model.fit(X, Y)
    assert_unfitted(model, X)


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_some_members_diverge(final, monkeypatch):
    # For folds, a member that lost one of its networks is left out as a whole.
    seed = fleet.derived_seed(0, 3, 1) if final == "refit" else fleet.derived_seed(0, 2, 1)
    diverging(monkeypatch, lambda network, _: network.seed == seed)
    with pytest.warns(ConvergenceWarning, match="1 of 3 members diverged and were left out"):
        model = fast(n_members=3, final=final).fit(X, Y)
    assert len(model.model_.networks) == (2 if final == "refit" else 6)
    assert np.isfinite(model.model_.networks.parameters).all()
    assert np.isfinite(model.oof_std_).all() and np.isfinite(model.model_.scale)


def test_all_refitted_members_diverge(monkeypatch):
    model = fast(n_members=2, final="refit").fit(X, Y)
    diverging(monkeypatch, lambda _, n_rows: n_rows == 90)
    with pytest.raises(ValueError, match=r"diverged .*lower learning_rate"):
        model.fit(X, Y)
    assert_unfitted(model, X)
