"""compare_strategies: against a loop written by hand, then sharing, significance, bad input."""

from __future__ import annotations

import pickle
import re
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit

from mvenet import MVERegressor, MVERegressorCV, compare_strategies, recipes
from mvenet._training.fleet import derived_seed
from mvenet.comparison import Comparison, plan_comparison, strategy_arms

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] ** 2 + (0.1 + 0.3 * (X[:, 1] > 0)) * RNG.standard_normal(60)
TINY = {
    "strategy": "warmup",
    "hidden_mean": (4,),
    "hidden_var": (3,),
    "epochs": 6,
    "warmup_epochs": 5,
    "reg_mean": (1e-3, 1e-1),
    "reg_var": (1e-3, 1e-1, 1.0),
}
OUTER = KFold(3, shuffle=True, random_state=1)
INNER = KFold(2, shuffle=True, random_state=5)


def six(**settings):
    return strategy_arms(**{**TINY, **settings})


@pytest.fixture(scope="module")
def outcome():
    return compare_strategies(X, Y, six(), OUTER, INNER, random_state=0)


# --- against the procedure written out -----------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The best reg_")
def test_it_is_a_loop_over_outer_folds_and_arms(outcome):
    """Each arm fitted alone, its prediction judged by SciPy's density."""
    table = outcome.to_frame().set_index(["fold", "arm"])
    for fold, (train, test) in enumerate(OUTER.split(X)):
        for name, arm in six(cv=INNER).items():
            arm.set_params(random_state=derived_seed(0, fold) % 2**32).fit(X[train], Y[train])
            mean, std = arm.predict(X[test], return_std=True)
            row = table.loc[(fold, name)]
            assert row.loglik == pytest.approx(stats.norm(mean, std).logpdf(Y[test]).mean())
            assert row.rmse == pytest.approx(np.sqrt(np.mean((Y[test] - mean) ** 2)))
            assert row.crps == pytest.approx(arm.predict_dist(X[test]).crps(Y[test]).mean())
            assert row.coverage == np.mean(np.abs(Y[test] - mean) <= stats.norm.ppf(0.95) * std)
            assert row.inner_score == arm.best_score_
            assert (row.reg_mean, row.reg_var) == (arm.best_reg_mean_, arm.best_reg_var_)
            assert row.reg_mean == row.reg_var or row.regularization == "separate"


def test_the_frame_has_the_columns_of_the_published_results(outcome):
    frame = outcome.to_frame()
    assert list(frame) == [
        "fold", "arm", "strategy", "regularization", "loglik", "rmse", "crps", "coverage",
        "reg_mean", "reg_var", "inner_score",
    ]  # fmt: skip
    assert len(frame) == 3 * 6
    assert set(frame["strategy"]) == {"no-warmup", "warmup", "warmup-fixed-mean"}
    assert set(frame["regularization"]) == {"equal", "separate"}


def test_separate_contains_equal(outcome):
    """Where separate chose a pair on the diagonal, the same network served both columns."""
    frame = outcome.to_frame().set_index(["fold", "strategy", "regularization"])
    same = 0
    for (_, _, kind), row in frame.iterrows():
        if kind == "separate" and row.reg_mean == row.reg_var:
            twin = frame.loc[(*row.name[:2], "equal")]
            same += 1
            assert row.loglik == twin.loglik and row.rmse == twin.rmse
    assert same  # the data were chosen so that it happens


def test_fixed_mean_leaves_the_mean_of_the_warm_up():
    arms = strategy_arms(**{**TINY, "reg_mean": (1e-2,), "reg_var": (1e-2,), "epochs": 50})
    frame = compare_strategies(X, Y, arms, OUTER, INNER, random_state=0).to_frame()
    rmse = frame.pivot_table(index="fold", columns="arm", values="rmse")
    short = strategy_arms(**{**TINY, "reg_mean": (1e-2,), "reg_var": (1e-2,), "epochs": 1})
    again = compare_strategies(X, Y, short, OUTER, INNER, random_state=0).to_frame()
    again = again.pivot_table(index="fold", columns="arm", values="rmse")
    name = "warmup-fixed-mean, equal"
    assert_array_equal(rmse[name], again[name])
    assert (rmse["warmup, equal"] != again["warmup, equal"]).any()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_do_not_matter(outcome, n_jobs):
    again = compare_strategies(X, Y, six(), OUTER, INNER, random_state=0, n_jobs=n_jobs)
    same_tables(again, outcome)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_backends_do_not_matter(outcome, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        again = compare_strategies(X, Y, six(), OUTER, INNER, random_state=0)
    same_tables(again, outcome)


def test_companions_do_not_matter(outcome):
    alone = {"warmup, separate": six()["warmup, separate"]}
    again = compare_strategies(X, Y, alone, OUTER, INNER, random_state=0)
    mine = outcome.results["arm"] == "warmup, separate"
    assert_array_equal(again.results["loglik"], outcome.results["loglik"][mine])


def same_tables(a, b):
    for column in b.results:
        assert_array_equal(a.results[column], b.results[column])
    assert str(a) == str(b)


# --- sharing -------------------------------------------------------------------------------------


def test_what_arms_share_is_trained_once():
    arms = six()
    batches = 1  # 40 rows by outer fold, 20 to train on by inner fold
    plan = plan_comparison(X, Y, arms, OUTER, INNER, random_state=0)
    searched = 3 * 6 * 2  # strategies, pairs, inner folds: equal's pairs are among separate's
    assert plan.workload.networks == 3 * (searched + 6)
    warmups = 2 * 2 * 5  # two mean penalties, two inner folds, five epochs, for both strategies
    trained = 3 * 6 * 2 * 6 + warmups
    no_warmup, warmup, fixed = 2 * (6 * 2), 2 * (11 * 2), 2 * (11 * 2)  # final: 40 rows, 2 batches
    assert plan.workload.steps == 3 * batches * (trained + no_warmup + warmup + fixed)
    alone = 6 * 2 * (6 + 11 + 11)
    assert plan.workload.unshared_steps == 3 * (alone + no_warmup + warmup + fixed)


def test_the_steps_done_are_at_most_those_planned(outcome):
    plan = plan_comparison(X, Y, six(), OUTER, INNER, random_state=0)
    assert 0.8 * plan.workload.steps < outcome.steps <= plan.workload.steps
    assert outcome.seconds > 0


def test_a_dry_run_says_what_it_will_cost():
    text = str(plan_comparison(X, Y, six(), OUTER, INNER, random_state=0))
    assert re.search(r"3 outer folds\. To do: 126 trainings, [\d,]+ gradient steps", text)
    assert "saves" in text and "about" in text


def test_the_paper_needs_7560_trainings():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((308, 6)), rng.standard_normal(308)
    plan = plan_comparison(X, y, strategy_arms(**recipes.PAPER), random_state=0, n_jobs=1)
    assert plan.workload.networks == 7560


def test_a_plan_knows_what_is_done_and_writes_nothing(tmp_path):
    args = (X, Y, {"a": MVERegressor(epochs=5)}, OUTER)
    plan_comparison(*args, store=tmp_path / "new", random_state=0)
    assert not (tmp_path / "new").exists()
    compare_strategies(*args, store=tmp_path, random_state=0)
    plan = plan_comparison(*args, store=tmp_path)
    assert plan.folds_done == 3 and plan.workload.steps == 0
    assert "3 of them done" in str(plan)


# --- arms, splits and seeds ----------------------------------------------------------------------


def test_any_of_our_regressors_is_an_arm():
    arms = {
        "one": MVERegressor(hidden_mean=(4,), epochs=5),
        "ensemble": MVERegressor(hidden_mean=(4,), epochs=5, n_members=3),
        "search": MVERegressorCV(**TINY, n_members=2),
    }
    frame = compare_strategies(X, Y, arms, 3, 2, random_state=0).to_frame()
    assert frame["arm"].tolist() == list(arms) * 3
    assert frame["regularization"].tolist() == ["fixed", "fixed", "separate"] * 3
    assert np.isfinite(frame[["loglik", "rmse", "reg_mean", "reg_var"]]).all(axis=None)


def test_arms_are_left_as_they_were():
    arms = {"a": MVERegressorCV(**TINY, cv=4, random_state=7)}
    compare_strategies(X, Y, arms, 2, 3, random_state=0)
    assert arms["a"].cv == 4 and arms["a"].random_state == 7
    assert not hasattr(arms["a"], "model_")


def test_inner_cv_none_leaves_the_arms_their_own():
    arms = {"a": MVERegressorCV(**TINY, cv=INNER)}
    a = compare_strategies(X, Y, arms, OUTER, None, random_state=0)
    b = compare_strategies(X, Y, arms, OUTER, INNER, random_state=0)
    c = compare_strategies(X, Y, arms, OUTER, 4, random_state=0)
    same_tables(a, b)
    assert (a.results["loglik"] != c.results["loglik"]).any()


def test_the_seed_decides():
    arms = {"a": MVERegressor(epochs=3)}
    first, again, other = (
        compare_strategies(X, Y, arms, 3, random_state=s).results["loglik"] for s in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert (first != other).all()
    fresh = [compare_strategies(X, Y, arms, 3).results["loglik"] for _ in range(2)]
    assert (fresh[0] != fresh[1]).all()


def test_frames_and_lists_give_the_same_table():
    pd = pytest.importorskip("pandas")
    arms = {"a": MVERegressor(epochs=3)}
    a = compare_strategies(X, Y, arms, 3, random_state=0)
    b = compare_strategies(pd.DataFrame(X), Y.tolist(), arms, 3, random_state=0)
    same_tables(a, b)


# --- significance, table and plot ----------------------------------------------------------------


RISING = np.arange(1.0, 5.0)


def made_up(*scores, rmse=None):
    """A Comparison with these log-likelihoods of arms a, b, c … by fold."""
    n_folds, names = len(scores[0]), "abcdefgh"[: len(scores)]
    fold, arm = np.meshgrid(np.arange(n_folds), np.arange(len(scores)), indexing="ij")
    loglik = np.array(scores, dtype=float).T.ravel()
    ones = np.ones(loglik.size)
    results = {
        "fold": fold.ravel(),
        "arm": np.array(list(names))[arm.ravel()],
        "strategy": np.full(loglik.size, "warmup"),
        "regularization": np.full(loglik.size, "fixed"),
        "loglik": loglik,
        "rmse": ones if rmse is None else np.array(rmse, dtype=float).T.ravel(),
        "reg_mean": 0.01 * ones,
        "reg_var": 0.1 * ones,
    }
    return Comparison(results, steps=0, seconds=0.0)


def test_p_values_are_scipys():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((3, 10))
    frame = made_up(*scores, rmse=np.exp(scores)).significance()
    assert len(frame) == 2 * 3
    for _, row in frame.iterrows():
        a, b = (scores["abc".index(x)] for x in (row.arm, row.other))
        if row.metric == "rmse":
            a, b = np.exp(a), np.exp(b)
        test = stats.ttest_rel(a, b)
        assert row.p_value == pytest.approx(test.pvalue, rel=1e-12)
        assert row.difference == pytest.approx((a - b).mean())
        assert row.standard_error == pytest.approx(stats.sem(a - b))


def test_the_better_arm_is_higher_in_likelihood_and_lower_in_rmse():
    noise = np.array([0.0, 0.1, -0.1, 0.05])
    frame = made_up(noise + RISING, 1 + RISING, rmse=(noise + 1, [2, 2, 2, 2]))
    frame = frame.significance()
    assert frame["better"].tolist() == ["b", "a"]
    assert frame["difference"].tolist() == pytest.approx([-0.9875, -0.9875])


def test_the_level_decides():
    scores = [0.0, 1.0, 0.2, 0.9, 0.1], [0.5, 0.8, 1.0, 1.2, 0.3]
    p = stats.ttest_rel(*scores).pvalue
    assert 0.1 < p < 0.4
    outcome = made_up(*scores)
    assert outcome.significance(1 - p - 0.01)["better"][0] == "b"
    assert outcome.significance(1 - p + 0.01)["better"][0] == ""


def test_equal_scores_are_not_significant():
    frame = made_up([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).significance()
    assert frame["p_value"].tolist() == [1.0, 1.0] and frame["better"].tolist() == ["", ""]


def test_an_arm_that_diverged_is_shown_and_not_tested():
    outcome = made_up([1.0, -np.inf, 3.0], [1.0, 2.0, 3.5])
    assert outcome.significance()["better"][0] == ""
    assert "-inf" in str(outcome)
    outcome.plot()


def test_a_single_fold_has_no_error():
    text = str(made_up([1.25], [2.5]))
    assert "1.25" in text and "2.5" in text and "nan" not in text


def test_the_table_marks_what_is_significant():
    noise = np.array([0.0, 0.1, -0.1, 0.05])
    lines = str(made_up(RISING, 1 + RISING + noise, RISING - 1 - noise)).splitlines()
    assert re.search(r"^1  a +2\.50 ± 0\.65 +3 ", lines[1])
    assert re.search(r"^2  b +3\.51 ± 0\.6\d +1, 3 ", lines[2])
    assert re.search(r"^3  c +1\.49 ± 0\.6\d +1 ", lines[3])
    assert "0.01 (4)" in lines[1] and "0.1 (4)" in lines[1]


def test_summary_is_mean_and_standard_error(outcome):
    frame = outcome.to_frame()
    summary = outcome.summary().set_index("arm")
    for arm, part in frame.groupby("arm"):
        assert summary.loc[arm, "loglik"] == pytest.approx(part["loglik"].mean())
        assert summary.loc[arm, "rmse_error"] == pytest.approx(stats.sem(part["rmse"]))


def test_the_plot_shows_every_arm(outcome):
    figure = outcome.plot()
    left, right = figure.axes
    assert [t.get_text() for t in left.get_yticklabels()] == outcome.arms
    assert "log-likelihood" in left.get_xlabel() and "RMSE" in right.get_xlabel()
    points = sum(len(line.get_xdata()) for line in left.lines if line.get_marker() == ".")
    assert points == 3 * 6


def test_an_outcome_can_be_pickled(outcome):
    same_tables(pickle.loads(pickle.dumps(outcome)), outcome)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": {}}, "arms must be a dict of at least one"),
        ({"arms": [MVERegressor()]}, "arms must be a dict"),
        ({"arms": {"ridge": Ridge()}}, "'ridge' is a Ridge"),
        ({"outer_cv": 1}, "outer_cv=1"),
        ({"outer_cv": 61}, "outer_cv=61 .* 60"),
        ({"outer_cv": []}, "gives no folds"),
        ({"outer_cv": [(np.arange(60), [])]}, "fold 0 60 rows to train on and 0"),
        ({"outer_cv": [([3], [4])]}, "fold 0 1 rows"),
        ({"inner_cv": [([0], [1])]}, "inner_cv must be"),
        ({"inner_cv": 50}, "50"),  # more folds than the 40 rows of an outer fold
        ({"inner_cv": 1}, "1"),
        ({"arms": {"a": MVERegressorCV(strategy="warmup", reg_mean=())}}, "reg_mean"),
        ({"arms": {"a": MVERegressorCV(strategy="warmup", reg_var=(-1.0,))}}, "reg_var"),
        ({"arms": {"a": MVERegressor(epochs=0)}}, "epochs"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compare_strategies(
            X,
            Y,
            **{"arms": six(), "outer_cv": OUTER, "inner_cv": INNER, "random_state": 0} | change,
        )


def test_a_table_with_infinity_is_refused():
    broken = X.copy()
    broken[3, 1] = np.inf
    with pytest.raises(ValueError, match="X contains"):
        compare_strategies(broken, Y, six(), OUTER, INNER)


def test_constant_y_within_a_fold_gives_a_finished_table():
    y = np.r_[np.zeros(40), Y[:20]]
    outer = PredefinedSplit(np.r_[np.full(40, -1), np.zeros(20)])  # trained on a constant
    outcome = compare_strategies(X, y, six(), outer, INNER, random_state=0)
    assert np.isfinite(outcome.results["loglik"]).all()


def test_a_splitter_with_groups_says_that_it_needs_them():
    with pytest.raises(ValueError, match="groups"):
        compare_strategies(X, Y, six(), GroupKFold(3), INNER)


def test_an_arm_that_diverges_does_not_take_the_others_with_it():
    arms = {
        "sound": MVERegressor(epochs=5),
        "wild": MVERegressor(epochs=5, learning_rate=1e30, clip_value=None),
    }
    outcome = compare_strategies(X, Y, arms, 3, random_state=0)
    frame = outcome.to_frame()
    assert np.isfinite(frame[frame["arm"] == "sound"]["loglik"]).all()
    wild = frame[frame["arm"] == "wild"]
    assert (wild["loglik"] == -np.inf).all() and (wild["rmse"] == np.inf).all()
    assert wild["reg_mean"].isna().all()
    assert "-inf" in str(outcome)
    alone = compare_strategies(X, Y, {"sound": arms["sound"]}, 3, random_state=0)
    assert_allclose(alone.results["loglik"], frame[frame["arm"] == "sound"]["loglik"], rtol=0)


class Seen(TransformerMixin, BaseEstimator):
    """Notes the rows that it was fitted on."""

    fits: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y=None):
        self.fits.append(X["row"].to_numpy())
        return self

    def transform(self, X):
        return X[["x"]].to_numpy()


def test_an_encoder_is_fitted_without_the_rows_that_judge():
    frame = pd.DataFrame({"row": np.arange(len(Y)), "x": X[:, 0]})
    arms = {"linear": MVERegressor(hidden_mean=(), hidden_var=None, epochs=2, warmup_epochs=2)}
    folds = list(KFold(3).split(frame))
    Seen.fits.clear()
    result = compare_strategies(frame, Y, arms, folds, random_state=0, encoder=Seen())
    trained = [rows for rows in Seen.fits if len(rows) < len(Y)]
    for rows, (train, _) in zip(trained, folds, strict=True):
        assert_array_equal(rows, train)
    plain = compare_strategies(X[:, :1], Y, arms, folds, random_state=0)
    assert str(result) == str(plain)
