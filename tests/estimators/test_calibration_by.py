"""Conformal intervals within groups of rows, and for rows to come that are others: the promises."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import KFold

from mvenet import CalibratedRegressor, MVERegressor, load

RNG = np.random.default_rng(5)
X = np.column_stack([RNG.uniform(-1, 1, 90), np.arange(90) % 2])
Y = X[:, 0] + (0.1 + 0.6 * X[:, 1]) * RNG.normal(size=90)
NEW = np.column_stack([RNG.uniform(-1, 1, 12), np.arange(12) % 2])


class SameEverywhere(RegressorMixin, BaseEstimator):
    """The true mean, and a standard deviation of one: wrong where noise differs."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X, return_std=False):
        mean = np.asarray(X)[:, 0]
        return (mean, np.ones(len(mean))) if return_std else mean


KNOWN = FrozenEstimator(SameEverywhere().fit(X, Y))


def likely(hits, n, share):
    low, high = stats.binom(n, share).interval(0.9999)
    return low <= hits <= high


# --- within groups -------------------------------------------------------------------------------


def test_within_each_group_split_conformal_covers_exactly_what_it_says():
    """Of 19 rows a group, 90 % is the 18th of 20: in the quiet group and in the loud one."""
    rng, hits, together = np.random.default_rng(0), np.zeros(2, int), np.zeros(2, int)
    x = np.column_stack([np.zeros(40), np.arange(40) % 2])
    for _ in range(400):
        y = (0.1 + 0.9 * x[:, 1]) * rng.normal(size=40)
        for model, count in (
            (CalibratedRegressor(KNOWN, by=1), hits),
            (CalibratedRegressor(KNOWN), together),
        ):
            low, high = model.fit(x[:38], y[:38]).predict_interval(x[38:], 0.9).T
            count += (low <= y[38:]) & (y[38:] <= high)
    assert likely(hits[0], 400, 0.9) and likely(hits[1], 400, 0.9)
    assert together[0] > 395 and together[1] < 352  # on average only


@pytest.mark.parametrize("level", [0.3, 0.8])
def test_cv_plus_within_a_group_is_cv_plus_of_its_scores(level):
    folds = KFold(3, shuffle=True, random_state=1)
    model = CalibratedRegressor(BayesianRidge(), cv=folds, by=1).fit(X, Y)
    ends = []
    for train, test in folds.split(X):
        member = BayesianRidge().fit(X[train], Y[train])
        test = test[X[test, 1] == 1]
        mean, std = member.predict(X[test], return_std=True)
        at, spread = member.predict(NEW[1:2], return_std=True)
        scores = np.abs(Y[test] - mean) / std
        ends += [(at[0] - s * spread[0], at[0] + s * spread[0]) for s in scores]
    assert len(ends) == model.n_calibration_by_["1"] == 45
    low, high = np.sort(np.array(ends), axis=0).T
    count = math.ceil(level * 46 - 1e-9)
    told = model.predict_interval(NEW, level)[1]
    if level == 0.8:
        assert_allclose(told, [low[45 - count], high[count - 1]], rtol=1e-12)
    else:
        assert np.diff(told)[0] >= 0


def test_groups_of_rows_by_name_number_list_and_function():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    base = CalibratedRegressor(KNOWN, by=1).fit(X, Y).predict_interval(NEW)
    frame, new = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(NEW, columns=["a", "b"])
    for by in ("b", 1, -1, ["b"], lambda X: np.asarray(X)[:, 1] > 0):
        model = CalibratedRegressor(KNOWN, by=by).fit(frame, Y)
        assert_array_equal(model.predict_interval(new), base)
    both = CalibratedRegressor(KNOWN, by="b").fit(pl.DataFrame(frame.to_dict("list")), Y)
    assert_array_equal(both.predict_interval(pl.DataFrame(new.to_dict("list"))), base)
    whole = frame.assign(b=frame.b.astype(int), c="x")
    model = CalibratedRegressor(KNOWN, by=["b", "c"]).fit(whole, Y)
    assert model.n_calibration_by_ == {"0, x": 45, "1, x": 45}


def test_small_and_unknown_groups_get_the_interval_of_all_rows_and_a_word():
    x = X.copy()
    x[:3, 1] = 7.0
    model = CalibratedRegressor(KNOWN, by=1).fit(x, Y)
    rows = np.array([[0.0, 0.0], [0.0, 7.0], [0.0, 9.0], [0.0, np.nan]])
    with pytest.warns(UserWarning, match=r"3 of 4 rows .* coverage=0\.9 \('7', '9', 'missing'\)"):
        told = model.predict_interval(rows)
    everyone = CalibratedRegressor(KNOWN).fit(x, Y).predict_interval(rows)
    assert_array_equal(told[1:], everyone[1:])
    assert told[0, 1] < everyone[0, 1]


# --- rows to come that are others ----------------------------------------------------------------


def ratio(X):
    return 2 * np.asarray(X)[:, 0]


def test_under_shift_it_covers_what_it_says():
    """Known rows are uniform, those to come have density 2x: the loud ones are more common."""
    rng, hits, plain, n = np.random.default_rng(1), 0, 0, 300
    for _ in range(n):
        x = np.column_stack([rng.uniform(0, 1, 60), np.zeros(60)])
        y = x[:, 0] + 3 * x[:, 0] ** 3 * rng.normal(size=60)
        new = np.array([[np.sqrt(rng.uniform()), 0.0]])
        outcome = new[0, 0] + 3 * new[0, 0] ** 3 * rng.normal()
        low, high = CalibratedRegressor(KNOWN, shift=ratio).fit(x, y).predict_interval(new)[0]
        hits += low <= outcome <= high
        low, high = CalibratedRegressor(KNOWN).fit(x, y).predict_interval(new)[0]
        plain += low <= outcome <= high
    assert stats.binom(n, 0.9).ppf(1e-4) <= hits <= stats.binom(n, 0.94).ppf(1 - 1e-4)
    assert plain < stats.binom(n, 0.9).ppf(1e-4)


def test_the_weighted_quantile_by_hand():
    """Tibshirani et al. (2019), corollary 1, written out."""
    x = np.abs(X)
    model = CalibratedRegressor(KNOWN, shift=ratio).fit(x, Y)
    scores = np.abs(Y - x[:, 0])
    order = np.argsort(scores)
    for row in np.abs(NEW):
        total = ratio(x).sum() + 2 * row[0]
        reach = scores[order][np.cumsum(ratio(x)[order]) / total >= 0.9][0]
        assert_allclose(model.predict_interval([row])[0], [row[0] - reach, row[0] + reach])


def test_equal_ratios_change_nothing():
    plain = CalibratedRegressor(BayesianRidge(), cv=4).fit(X, Y)
    same = CalibratedRegressor(BayesianRidge(), cv=4, shift=lambda X: np.full(len(X), 3.0))
    told = same.fit(X, Y).predict_interval(NEW, [0.6, 0.9])
    assert_allclose(told, plain.predict_interval(NEW, [0.6, 0.9]), rtol=1e-12)
    low, high = same.predict_interval(NEW, 0.2).T
    assert (low <= high).all()


def test_a_classifier_tells_the_ratio_and_rare_rows_have_no_ends():
    new = np.column_stack([RNG.uniform(0.5, 1, 90), X[:, 1]])
    classes = np.repeat([0, 1], 90)
    judge = LogisticRegression().fit(np.vstack([X, new]), classes)
    odds = CalibratedRegressor(KNOWN, shift=judge).fit(X, Y).predict_interval(NEW, 0.8)
    by_hand = CalibratedRegressor(KNOWN, shift=lambda X: np.exp(judge.decision_function(X)))
    assert_allclose(odds, by_hand.fit(X, Y).predict_interval(NEW, 0.8), rtol=1e-9)
    rare = CalibratedRegressor(KNOWN, shift=lambda X: np.asarray(X)[:, 0] > 0.9).fit(X, Y)
    with pytest.warns(UserWarning, match="1 of 1 intervals have no end"):
        assert_array_equal(rare.predict_interval([[0.95, 0.0]], 0.9), [[-np.inf, np.inf]])


# --- bad input, files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "b"}, "names a column, and X has no names"),
        ({"by": 5}, "by=5 is no column of X, which has 2"),
        ({"by": 0}, "makes 90 groups of 90 rows"),
        ({"by": 0.5}, "by"),
        ({"by": True}, "by must be a column"),
        ({"by": lambda X: X}, "one label a row"),
        ({"by": lambda X: ["a"]}, "1 labels for 90 rows"),
        ({"by": 1, "method": "scale"}, "by=1 is of conformal intervals"),
        ({"shift": 1}, "shift"),
        ({"shift": lambda X: -ratio(X) - 9}, "finite and not negative"),
        ({"shift": lambda X: X}, r"shape \(90, 2\) for 90 rows"),
    ],
)
def test_bad_settings_are_told_before_any_training(given, message):
    model = CalibratedRegressor(SameEverywhere(), **given)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, Y)
    assert not hasattr(model, "members_")


def test_a_column_that_is_not_there_and_groups_besides():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    with pytest.raises(ValueError, match=r"by='region' is no column of X: it has a, b\."):
        CalibratedRegressor(KNOWN, by="region").fit(frame, Y)
    with pytest.raises(ValueError, match="two promises"):
        CalibratedRegressor(KNOWN, by=1).fit(X, Y, groups=np.arange(90) // 3)


def test_a_file_keeps_groups_of_rows(tmp_path):
    network = MVERegressor(
        strategy="warmup", hidden_mean=(3,), hidden_var=(2,), epochs=5, warmup_epochs=5
    )
    model = CalibratedRegressor(network.set_params(random_state=0), cv=2, by=1).fit(X, Y)
    model.save(tmp_path / "by.mve")
    again = load(tmp_path / "by.mve")
    assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
    assert again.n_calibration_by_ == {"0": 45, "1": 45} and clone(again).by == 1
    model.n_calibration_by_ = {"0": 44, "1": 46}
    with pytest.raises(ValueError, match="of other sizes"):
        model.save(tmp_path / "other.mve")


def test_a_pickle_without_these_parameters_is_read():
    model = CalibratedRegressor(KNOWN).fit(X, Y)
    state = {name: value for name, value in vars(model).items() if name not in ("by", "shift")}
    older = CalibratedRegressor.__new__(CalibratedRegressor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        older.__setstate__(state)
    assert clone(older).by is None
    assert_array_equal(older.predict_interval(NEW), model.predict_interval(NEW))
