"""MVERegressorCV: scikit-learn's contract, what is chosen, and what is told about it."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from fitted import (
    EXPECTED_FAILURES,
    STRICT,
    assert_same_bits,
    assert_unfitted,
    table,
    weights,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from searches import (
    FOLDS,
    GRID_3,
    MEANS,
    PAIRS,
    VARIANCES,
    W,
    X,
    Y,
    assert_same_search,
    fast,
    quietly,
    split_scores,
)
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mvenet import MVERegressor, MVERegressorCV, Normal, NormalMixture, recipes
from mvenet._estimators.regressor_cv import GridEndWarning

# --- contract ------------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        fast(),
        fast(final="refit"),
        fast(n_members=2, scale=False, selection="ratio"),
        fast(n_members=2, final="refit", early_stopping=True),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
    **STRICT,
)
def test_sklearn_contract(estimator, check):
    check(estimator)


def test_every_parameter_is_documented_and_validated():
    names = set(MVERegressorCV().get_params())
    assert names == set(MVERegressorCV._parameter_constraints)
    documented = MVERegressorCV.__doc__.split("Attributes\n")[0]
    assert [name for name in names if name not in documented] == []
    # What MVERegressor leaves to "auto" is here what it is there with the paper's strategies.
    ours, theirs = MVERegressorCV().get_params(), MVERegressor().get_params()
    assert ours["strategy"] == "warmup"
    assert set(theirs) - set(ours) == {"encoding", "target"}
    for name in set(theirs) & set(ours) - {"reg_mean", "reg_var", "n_members", "strategy"}:
        assert theirs[name] in (ours[name], "auto")
        assert ours[name] == recipes.DEFAULT.get(name, ours[name])


def test_the_default_grid_is_the_papers():
    model = MVERegressorCV()
    for grid in (model.reg_mean, model.reg_var):
        assert_allclose(grid, [1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    assert len(model._pairs()) == 25


def test_clone_and_pickle():
    model = fast(n_members=2, cv=FOLDS).fit(X, Y)
    twin = clone(model)
    assert_unfitted(twin, X)
    assert_same_search(twin.fit(X, Y), model)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_bits(copy, model, X)
    assert copy.model_.scale == model.model_.scale != 1
    pd.testing.assert_frame_equal(pd.DataFrame(copy.cv_results_), pd.DataFrame(model.cv_results_))


def test_pipeline_and_cross_validation():
    X, y = table(n=120)
    pipe = make_pipeline(StandardScaler(), fast(epochs=30, warmup_epochs=60))
    scores = cross_val_score(pipe, X, y, cv=3)
    assert scores.shape == (3,) and scores.min() > 0.2
    pipe.fit(X, y, mveregressorcv__sample_weight=weights(len(y)))
    mean, std = pipe.predict(X, return_std=True)
    assert mean.shape == std.shape == y.shape
    search = GridSearchCV(fast(), {"scale": [False, True], "selection": ["ratio"]}, cv=2).fit(X, y)
    assert_same_bits(search.best_estimator_, fast(**search.best_params_).fit(X, y), X)


def test_frames_give_numpys_result_to_the_bit():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = fast().fit(frame, pd.Series(Y), pd.Series(W))
    assert_same_bits(model, fast().fit(X, Y, W), frame, X)
    assert_array_equal(model.feature_names_in_, list("abc"))


@pytest.mark.parametrize("final", ["folds", "refit"])
@pytest.mark.parametrize("scale", [False, True])
def test_the_whole_predict_api(final, scale):
    model = fast(n_members=2, final=final, scale=scale).fit(X, Y)
    means, stds = model.model_.networks.predict(X)
    stds = model.model_.scale * stds
    assert len(means) == (2 if final == "refit" else 6)
    assert (model.model_.scale != 1) == scale
    mean, std = model.predict(X, return_std=True)
    assert_array_equal(mean, model.predict(X))
    assert_allclose(mean, means.mean(axis=0))
    assert_allclose(std**2, (stds**2).mean(axis=0) + means.var(axis=0))
    dist = model.predict_dist(X)
    assert isinstance(dist, NormalMixture)
    mixture = np.mean([norm(m, s).pdf(Y) for m, s in zip(means, stds, strict=True)], axis=0)
    assert_allclose(dist.logpdf(Y), np.log(mixture), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict_interval(X, [0.5, 0.9]), dist.interval([0.5, 0.9]))
    assert_array_equal(model.predict_quantiles(X), dist.ppf([0.1, 0.5, 0.9]))
    assert model.score(X, Y) > 0


def test_one_network_predicts_a_normal():
    dist = fast(final="refit").fit(X, Y).predict_dist(X)
    assert isinstance(dist, Normal)


def test_verbose_shows_progress_and_nothing_else_changes(capsys):
    quiet = fast(n_members=2).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    assert_same_search(fast(n_members=2, verbose=1).fit(X, Y), quiet)
    assert "training" in capsys.readouterr().err


# --- what is told about the search ---------------------------------------------------------------


def test_cv_results_have_grid_searchs_form():
    model = fast(selection="separate").fit(X, Y)
    results = pd.DataFrame(model.cv_results_)
    reference = GridSearchCV(
        MVERegressor(hidden_mean=(2,), hidden_var=(), epochs=1, warmup_epochs=1),
        {"reg_mean": MEANS, "reg_var": VARIANCES}, cv=3,
    ).fit(X, Y)  # fmt: skip
    other = pd.DataFrame(reference.cv_results_)
    assert set(results) - set(other) == {"scale"}
    assert all("time" in name for name in set(other) - set(results))
    for name in set(results) & set(other):
        assert type(model.cv_results_[name]) is type(reference.cv_results_[name])
        assert results[name].dtype == other[name].dtype, name
    assert results["params"].tolist() == other["params"].tolist()
    assert len(results) == 4
    best = results.iloc[model.best_index_]
    assert best["rank_test_score"] == 1 == results["rank_test_score"].min()
    assert best["params"] == {"reg_mean": model.best_reg_mean_, "reg_var": model.best_reg_var_}
    assert best["mean_test_score"] == model.best_score_ == results["mean_test_score"].max()
    assert isinstance(model.best_score_, float)
    ranked = results.sort_values("rank_test_score")["mean_test_score"]
    assert (np.diff(ranked) <= 0).all()


# --- the choice ----------------------------------------------------------------------------------


def test_pairs_of_each_selection():
    def pairs(**settings):
        model = quietly(fast(**settings), X, Y)
        params = model.cv_results_["params"]
        assert_array_equal(model.cv_results_["param_reg_mean"], [p["reg_mean"] for p in params])
        assert_array_equal(model.cv_results_["param_reg_var"], [p["reg_var"] for p in params])
        assert (model.best_reg_mean_, model.best_reg_var_) in [tuple(p.values()) for p in params]
        return {(p["reg_mean"], p["reg_var"]) for p in params}, len(params)

    one, other = (1e-3, 1e-2), (1e-2, 1e-3, 1.0)
    assert pairs(reg_mean=one, reg_var=other) == (set(itertools.product(one, other)), 6)
    expected = {(1e-3, 1e-3), (1e-2, 1e-2)}
    assert pairs(reg_mean=one, reg_var=other, selection="equal") == (expected, 2)
    expected = {(1e-3, 10 * 1e-3), (1e-2, 10 * 1e-2)}
    assert pairs(reg_mean=one, reg_var=other, selection="ratio") == (expected, 2)
    # Neither order nor repetition nor kind of sequence matters; zero is a penalty.
    for grid in ([1, 0, 1], np.array([0, 1]), (1.0, 0.0, 0), pd.Series([0, 1])):
        assert pairs(reg_mean=grid, reg_var=[1e-2]) == ({(0.0, 1e-2), (1.0, 1e-2)}, 2)


def test_order_of_the_grid_does_not_matter_to_the_bit():
    model = fast(n_members=2).fit(X, Y)
    assert_same_search(fast(n_members=2, reg_mean=MEANS[::-1], reg_var=[*VARIANCES] * 2).fit(X, Y),
                       model)  # fmt: skip


def test_other_pairs_do_not_change_a_pairs_score():
    model = fast(cv=FOLDS).fit(X, Y)
    for row, (reg_mean, reg_var) in zip(split_scores(model), PAIRS, strict=True):
        alone = fast(cv=FOLDS, reg_mean=[reg_mean], reg_var=[reg_var]).fit(X, Y)
        assert split_scores(alone)[0].tobytes() == row.tobytes()


def test_ties_go_to_the_stronger_penalty():
    # A constant variance has no weights, so that its penalty does nothing.
    for grid in ((1e-3, 1.0), (1.0, 1e-3)):
        model = fast(hidden_var=None, reg_var=grid).fit(X, Y)
        mean = model.cv_results_["mean_test_score"].reshape(2, 2)
        assert_array_equal(mean[:, 0], mean[:, 1])
        assert model.best_reg_var_ == 1.0
        assert model.cv_results_["rank_test_score"].min() == 1
        assert (model.cv_results_["rank_test_score"] == 1).sum() == 2
    # Both penalties alike: nothing moves at such a learning rate.
    model = fast(learning_rate=1e-30).fit(X, Y)
    assert len(set(model.cv_results_["mean_test_score"])) == 1
    assert (model.best_reg_mean_, model.best_reg_var_) == (max(MEANS), max(VARIANCES))


def edge_warnings(**settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fast(**settings).fit(X, Y)
    for warning in caught:
        assert warning.category is GridEndWarning
        assert warning.filename == __file__  # it points at the user's line
    return model, [str(warning.message) for warning in caught]


BEST = {"reg_mean": 3e-2, "reg_var": 1e-1}  # of X and Y, whatever the others of a grid are


def grid(best, end):
    """Three values of which the best is the smallest, the largest or in the middle."""
    ends = {"smallest": (best, 1.0, 10.0), "largest": (1e-4, 1e-3, best)}
    return ends.get(end, (1e-3, best, 1.0))


@pytest.mark.parametrize(
    ("of_mean", "of_var"),
    [("", ""), ("smallest", ""), ("largest", ""), ("", "largest"), ("largest", "smallest")],
)
def test_a_choice_at_the_end_of_its_grid_is_told(of_mean, of_var):
    ends = {"reg_mean": of_mean, "reg_var": of_var}
    model, messages = edge_warnings(**{name: grid(BEST[name], end) for name, end in ends.items()})
    assert (model.best_reg_mean_, model.best_reg_var_) == tuple(BEST.values())
    told = [(name, end) for name, end in ends.items() if end]
    assert len(messages) == len(told)
    for message, (name, end) in zip(messages, told, strict=True):
        assert message.startswith(f"The best {name}={BEST[name]} is the {end} that was tried")
        assert message.endswith(f"extend {name}.")
    # The model is fitted all the same.
    assert len(model.predict(X)) == 90


@pytest.mark.parametrize("selection", ["equal", "ratio"])
def test_the_end_of_a_grid_of_tied_penalties_is_told_once(selection):
    for end, count in (("smallest", 1), ("", 0), ("largest", 1)):
        values = grid(BEST["reg_mean"], end)
        model, messages = edge_warnings(reg_mean=values, reg_var=values, selection=selection)
        assert model.best_reg_mean_ == BEST["reg_mean"]
        assert len(messages) == count
        assert all("extend reg_mean" in message for message in messages)


def test_a_real_choice_at_the_end_of_its_grid():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match=r"reg_mean=100 is the largest .* extend reg_mean"):
        fast(reg_mean=[1e-5, 1e-4, 100], reg_var=[1.0], warmup_epochs=300, epochs=100).fit(
            X, rng.standard_normal(90)
        )


def test_no_warning_of_a_penalty_that_does_nothing():
    # A constant variance has no weights: extending reg_var is no advice.
    _, messages = edge_warnings(hidden_var=None, reg_var=GRID_3)
    assert messages == []


def test_no_warning_that_nothing_was_tried_below_zero():
    model, messages = edge_warnings(reg_mean=(0.0, 1.0, 10.0), reg_var=grid(1e-1, ""))
    assert model.best_reg_mean_ == 0.0 and messages == []


def test_a_search_finds_a_penalty_that_predicts():
    # Pure noise asks for a strong penalty on the mean; a strong signal for a weak one.
    rng = np.random.default_rng(1)
    options = {"reg_mean": (1e-4, 10.0), "warmup_epochs": 200, "epochs": 60}
    assert fast(**options).fit(X, rng.standard_normal(90)).best_reg_mean_ == 10
    assert fast(**options).fit(X, X[:, 0] + 0.1 * rng.standard_normal(90)).best_reg_mean_ == 1e-4
