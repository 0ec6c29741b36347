"""Rows of one group: they are never on both sides of a fold, and the promise is about new ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fitted import assert_same_bits, assert_unfitted, fast, tiny
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import skew
from sklearn import config_context
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import (
    AutoRegressor,
    CalibratedRegressor,
    MVERegressor,
    MVERegressorCV,
    compare_strategies,
    load,
)
from mvenet._automatic.kinds import effort_of
from mvenet._automatic.out_of_fold import OutOfFold
from mvenet._automatic.plan import describe
from mvenet._estimators.dependence import Belonging, DependenceWarning
from mvenet._estimators.folds import folds_of_table, whole_groups
from mvenet._estimators.parameters import held_out
from mvenet._training.dependence import Dependence
from mvenet._training.plan import Table

pytestmark = pytest.mark.usefixtures("short")

RNG = np.random.default_rng(0)
N, K = 120, 15
GROUPS = np.repeat(np.arange(K), N // K)[RNG.permutation(N)]
LEVEL = RNG.normal(size=K)  # what the columns do not tell of a group
X = np.column_stack([RNG.normal(size=N), LEVEL[GROUPS] + 1e-3 * RNG.normal(size=N)])
Y = X[:, 0] + 3.0 * RNG.normal(size=K)[GROUPS] + 0.1 * RNG.normal(size=N)
SMALL = {"strategy": "warmup", "hidden_mean": (5,), "hidden_var": (4,), "warmup_epochs": 3,
         "epochs": 3, "random_state": 0, "reg_mean": [1e-3], "reg_var": [1e-2]}  # fmt: skip


def search(**settings):
    return MVERegressorCV(**SMALL | settings)


def auto(**settings):
    return AutoRegressor(**{"effort": "low", "cv": 3, "candidates": ["linear"], "random_state": 0}
                         | settings)  # fmt: skip


def folds_of(model):
    """Groups that each fold left out."""
    return [set(GROUPS[model.oof_fold_ == fold]) for fold in range(model.n_splits_)]


def assert_whole(model, k):
    parts = folds_of(model)
    assert len(parts) == k
    assert sorted(g for part in parts for g in part) == list(range(K))


# --- folds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "k"),
    [
        (search(cv=4), 4),
        (search(), 5),
        (search(cv=GroupKFold(3)), 3),
        (search(cv=LeaveOneGroupOut()), K),
        (auto(), 3),
        (MVERegressor(epochs=2, warmup_epochs=2, random_state=0), 5),
    ],
    ids=["number", "usual", "GroupKFold", "LeaveOneGroupOut", "auto", "cross-fit"],
)
def test_folds_leave_out_whole_groups(model, k):
    model.fit(X, Y, groups=GROUPS)
    if not hasattr(model, "n_splits_"):
        model.n_splits_ = int(model.oof_fold_.max()) + 1
    assert_whole(model, k)


def test_folds_have_about_as_many_rows_each_whatever_the_sizes_of_groups():
    groups = np.repeat(np.arange(30), np.random.default_rng(0).integers(1, 30, 30))
    sizes = [len(test) for _, test in whole_groups("cv", 5, groups, seed=1)]
    assert max(sizes) - min(sizes) <= 5
    assert sum(sizes) == len(groups)


def test_the_seed_decides_which_groups_share_a_fold():
    one, other = (whole_groups("cv", 5, GROUPS, seed=seed) for seed in (1, 2))
    assert any(set(a[1]) != set(b[1]) for a, b in zip(one, other, strict=True))


def test_names_of_groups_do_not_matter_but_for_their_order():
    names = np.array([f"patient {g:02d}" for g in GROUPS])
    assert_same_bits(search().fit(X, Y, groups=GROUPS), search().fit(X, Y, groups=names), X)


def test_without_groups_nothing_changes_to_the_bit():
    plain = search(cv=3).fit(X, Y)
    assert_same_bits(plain, search(cv=3).fit(X, Y, None, None, None, None), X)


def test_rows_of_weight_zero_are_left_out_with_their_groups_to_the_bit():
    weight = np.where(GROUPS == 3, 0.0, 1.0 + X[:, 0] ** 2)
    kept = weight > 0
    everything = search(cv=4).fit(X, Y, weight, groups=GROUPS)
    removed = search(cv=4).fit(X[kept], Y[kept], weight[kept], groups=GROUPS[kept])
    assert_same_bits(everything, removed, X)


def test_a_splitter_that_draws_groups_leaves_some_rows_out_never():
    cv = GroupShuffleSplit(3, test_size=0.3, random_state=0)
    model = search(cv=cv).fit(X, Y, groups=GROUPS)
    left_out = np.isfinite(model.oof_mean_)
    assert 0 < left_out.sum() < N
    assert not set(GROUPS[left_out]) & set(GROUPS[~left_out])


def test_rows_that_stop_a_training_early_are_of_other_groups():
    train, valid = held_out(N, 0.25, 0, Dependence(GROUPS))
    assert not set(GROUPS[train]) & set(GROUPS[valid])
    assert 0.25 * N <= len(valid) <= 0.25 * N + N // K
    assert len(train) + len(valid) == N
    model = tiny(early_stopping=True, epochs=20).fit(X, Y, groups=GROUPS)
    assert np.isfinite(model.predict(X)).all()


def test_rows_that_stop_a_training_early_never_take_the_last_group():
    groups = np.r_[np.zeros(50, int), np.ones(2, int)]
    train, valid = held_out(52, 0.5, 0, Dependence(groups))
    assert len(train) and len(valid)


# --- what is learned from rows left out ----------------------------------------------------------


def table(y=Y, groups=GROUPS):
    return Table(X, y, None, np.arange(N), dependence=Dependence(groups))


def test_folds_of_the_learning_curve_leave_out_whole_groups_too():
    rows = table()
    folds = folds_of_table("cv", 4, rows, 0)
    plan = describe(rows, folds, ("linear",), 0, target="auto", effort=effort_of("low", N))
    for (train, test), (fewer, same) in zip(folds, plan.fewer, strict=False):
        assert_array_equal(test, same)
        assert not set(GROUPS[fewer]) & set(GROUPS[test])
        assert len(fewer) < len(train)
        gone = np.setdiff1d(train, fewer)
        assert not set(GROUPS[fewer]) & set(GROUPS[gone])


def test_a_standard_error_counts_groups_and_not_their_rows():
    rows = table()
    held_out = OutOfFold(rows, folds_of_table("cv", 3, rows, 0), log=False)
    of_groups = np.random.default_rng(1).normal(size=K)
    expected = of_groups.std() / np.sqrt(K)
    assert_allclose(held_out.standard_error(of_groups[GROUPS]), expected, rtol=1e-9)


def test_a_mean_that_runs_away_on_the_log_scale_is_bounded_on_rows_left_out_too():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(12, 1)), 8, axis=0)
    X[-8:] = 400.0  # a group far from all others
    y = np.exp(0.5 * X[:, 0].clip(-3, 3) + 0.1 * rng.normal(size=96))
    assert skew(y) > 0
    model = auto(target="log").fit(X, y, groups=np.repeat(np.arange(12), 8))
    assert np.nanmax(model.oof_mean_) < 30 * y.max()


def test_new_groups_are_covered_and_are_not_without_being_told():
    rng = np.random.default_rng(1)

    def drawn(k, m=10):
        groups = np.repeat(np.arange(k), m)
        fixed = rng.normal(size=(k, 2))[groups]  # columns that tell a group from others
        y = 2.0 * rng.normal(size=k)[groups] + 0.2 * rng.normal(size=k * m)
        return np.column_stack([fixed, rng.normal(size=k * m)]), y, groups

    X, y, groups = drawn(30)
    new, outcome, _ = drawn(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        covered = []
        for given in (None, groups):
            model = auto(candidates=["networks", "trees"]).fit(X, y, groups=given)
            low, high = model.predict_interval(new).T
            covered.append(np.mean((low <= outcome) & (outcome <= high)))
    assert covered[0] < 0.6
    assert 0.8 < covered[1] < 0.98


# --- calibration ---------------------------------------------------------------------------------


def test_conformal_scores_count_groups_alike_and_the_new_one_too():
    groups = np.repeat(np.arange(12), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 54])
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(X, Y, groups=groups)
    scores, shares = np.concatenate(model._scores), np.concatenate(model._shares)
    assert_allclose(shares.sum(), 12 / 13)
    order = np.argsort(scores)
    reach = scores[order][np.argmax(np.cumsum(shares[order]) >= 0.8)]
    assert model.reach(0.8) == reach
    low, high = model.predict_interval(X, 0.8).T
    assert (low < high).all()
    narrow = model.predict_interval(X, 0.2)
    assert (np.diff(narrow, axis=1) < np.diff(model.predict_interval(X, 0.6), axis=1)).all()


def test_groups_of_one_size_make_the_interval_of_as_many_rows():
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(X, Y, groups=GROUPS)
    every = np.sort(np.concatenate(model._scores))
    assert model.reach(0.8) == every[int(np.ceil(0.8 * (K + 1) * N / K)) - 1]


def test_too_few_groups_for_a_coverage_are_an_error():
    groups = GROUPS % 8
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(X, Y, groups=groups)
    assert not model.can_cover(0.9)
    assert model.can_cover(0.85)
    with pytest.raises(ValueError, match=r"coverage=0.9 of new groups needs at least 9 groups"):
        model.predict_interval(X, 0.9)


def test_a_new_group_is_covered_as_often_as_promised():
    rng, hits = np.random.default_rng(5), []
    for _ in range(300):
        sizes = rng.integers(1, 9, 20)
        groups = np.repeat(np.arange(20), sizes)
        x = rng.normal(size=(len(groups) + 1, 1))
        level = rng.normal(size=21)
        y = level[np.append(groups, 20)] + 0.1 * rng.normal(size=len(x))
        split = [(groups < 8, groups >= 8)]
        model = CalibratedRegressor(BayesianRidge(), cv=split).fit(x[:-1], y[:-1], groups=groups)
        low, high = model.predict_interval(x[-1:], 0.75)[0]
        hits.append(low <= y[-1] <= high)
    assert 0.70 < np.mean(hits) < 0.87


@pytest.mark.parametrize("estimator", [search(cv=3), auto(), tiny()], ids=["CV", "auto", "one"])
def test_estimators_of_ours_are_calibrated_by_whole_groups(estimator):
    cv = 3 if isinstance(estimator, MVERegressor) else None
    model = CalibratedRegressor(estimator, cv=cv).fit(X, Y, groups=GROUPS)
    assert model.n_calibration_ == N
    assert_allclose(sum(share.sum() for share in model._shares), K / (K + 1))


def test_a_calibration_by_groups_is_saved_and_loaded(tmp_path):
    model = CalibratedRegressor(tiny(), cv=3).fit(X, Y, groups=GROUPS)
    model.save(tmp_path / "model.mve")
    loaded = load(tmp_path / "model.mve")
    assert_array_equal(loaded.predict_interval(X, 0.8), model.predict_interval(X, 0.8))


# --- scikit-learn --------------------------------------------------------------------------------


def test_groups_are_routed_through_pipelines_searches_and_cross_validation():
    with config_context(enable_metadata_routing=True):
        steps = make_pipeline(StandardScaler(), search(cv=3).set_fit_request(groups=True))
        steps.fit(X, Y, groups=GROUPS)
        assert_whole(steps[-1], 3)
        grid = GridSearchCV(
            search(cv=3).set_fit_request(groups=True), {"hidden_mean": [(2,), (3,)]},
            cv=GroupKFold(2),
        ).fit(X, Y, groups=GROUPS)  # fmt: skip
        assert_whole(grid.best_estimator_, 3)
        found = cross_validate(
            search(cv=3).set_fit_request(groups=True), X, Y, cv=GroupKFold(3),
            params={"groups": GROUPS}, return_estimator=True,
        )  # fmt: skip
        assert all(model.n_splits_ == 3 for model in found["estimator"])
        calibrated = CalibratedRegressor(BayesianRidge(), cv=3).set_fit_request(groups=True)
        cross_validate(calibrated, X, Y, cv=GroupKFold(3), params={"groups": GROUPS})


def test_a_comparison_leaves_out_whole_groups_inside_and_outside():
    arms = {"one": search(cv=3), "other": search(cv=3, reg_mean=[1e-2])}
    plain = compare_strategies(X, Y, arms, 3, None, random_state=0)
    grouped = compare_strategies(X, Y, arms, 3, None, random_state=0, groups=GROUPS)
    split = compare_strategies(X, Y, arms, GroupKFold(3), None, random_state=0, groups=GROUPS)
    assert len(grouped.results["rmse"]) == len(split.results["rmse"]) == 6
    assert not np.allclose(grouped.results["rmse"], plain.results["rmse"])


# --- bad input -----------------------------------------------------------------------------------

HALF = np.where(np.arange(N) < 5, np.nan, GROUPS)
MIXED = np.array([int(g) if g % 2 else str(g) for g in GROUPS], dtype=object)


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (np.zeros(N), "groups holds one group only"),
        (HALF, r"groups is missing in 5 row\(s\), the first of them row 0"),
        (np.where(GROUPS == 2, None, GROUPS), "groups is missing in"),
        (MIXED, r"groups holds values of several types \(int, str\)"),
        (MIXED.tolist(), r"groups holds values of several types \(int, str\)"),
        (3, "groups=3 is one value: give one for each of the 120 rows"),
        (GROUPS[:-1], "groups has 119 values, and X has 120 rows"),
        (np.column_stack([GROUPS, GROUPS]), r"groups has shape \(120, 2\)"),
    ],
)
@pytest.mark.parametrize("model", [search(), fast(), auto()], ids=["CV", "one", "auto"])
def test_bad_groups(model, groups, match):
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y, groups=groups)
    assert_unfitted(model, X)


def test_a_splitter_of_groups_needs_them():
    with pytest.raises(
        ValueError, match=r"cv=GroupKFold.* leaves out groups, and fit knows of none"
    ):
        search(cv=GroupKFold(3)).fit(X, Y)


def test_a_group_a_row_is_the_same_as_none_and_said():
    with pytest.warns(DependenceWarning, match="the same as no groups"):
        model = search(cv=3).fit(X, Y, groups=np.arange(N))
    assert_same_bits(model, search(cv=3).fit(X, Y), X)


def test_fewer_groups_than_folds_are_fewer_folds_and_said():
    with pytest.warns(DependenceWarning, match="cv=10 folds are more than the 4 groups"):
        assert search(cv=10).fit(X, Y, groups=GROUPS % 4).n_splits_ == 4


def test_the_usual_folds_follow_the_groups_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DependenceWarning)
        assert search().fit(X, Y, groups=GROUPS % 4).n_splits_ == 4


def test_a_group_that_is_most_of_the_table_is_said():
    groups = np.where(np.arange(N) < 114, 0, np.arange(N))
    with pytest.warns(DependenceWarning, match=r"groups: 0 holds 95% of the rows"):
        search(cv=3).fit(X, Y, groups=groups)


def test_folds_that_tear_groups_apart_are_refused():
    with pytest.raises(ValueError, match=r"cv=KFold.* has rows of one group on both sides of fold"):
        search(cv=KFold(3)).fit(X, Y, groups=GROUPS)
    with pytest.raises(ValueError, match=r"cv=\(a list of folds\) has rows of one group"):
        search(cv=list(KFold(3).split(X))).fit(X, Y, groups=GROUPS)


def test_a_splitter_for_classes_is_refused():
    with pytest.raises(ValueError, match="spreads classes evenly, and y is a number"):
        search(cv=StratifiedGroupKFold(3)).fit(X, Y, groups=GROUPS)


def test_checks_speak_of_the_rows_that_count():
    weight = np.where(GROUPS == 0, 1.0, 0.0)
    with pytest.raises(ValueError, match="groups holds one group only"):
        search().fit(X, Y, weight, groups=GROUPS)
    assert Belonging().checked(3) is None


@pytest.mark.parametrize("method", ["predict", "predict_dist", "predict_interval"])
def test_groups_are_not_needed_to_predict(method):
    model = tiny().fit(X[:40], Y[:40])
    with pytest.raises(TypeError, match="to predict it is not needed"):
        getattr(model, method)(X[:2], groups=[1, 2])
