"""From a table to a model, its evaluation and its predictions."""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

from mvenet import AutoRegressor, MVERegressor, metrics, workflow  # noqa: E402
from mvenet._columns.cells import split_target  # noqa: E402
from mvenet._utils import wording  # noqa: E402
from mvenet.distributions import Normal, NormalMixture, WithAtoms  # noqa: E402
from mvenet.predictive import predictive_distribution  # noqa: E402
from mvenet.table import TableEncoder  # noqa: E402
from mvenet.workflow import (  # noqa: E402
    _known,
    evaluate,
    evaluate_predictions,
    fit_table,
    predict_file,
    predictions,
)

pytestmark = pytest.mark.usefixtures("short")

QUICK = {"epochs": 5, "warmup_epochs": 5}


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Networks that are trained for a moment: what they learn is tested elsewhere."""
    search = functools.partial(AutoRegressor, effort="low", candidates=["linear"], cv=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workflow._fitting, "MVERegressor", functools.partial(MVERegressor, **QUICK))
        patch.setattr(workflow._fitting, "AutoRegressor", search)
        yield


def houses(n=80):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(20, 200, n),
            "town": rng.choice(["Bonn", "Köln"], n),
            "garden": rng.choice([True, False], n),
        }
    )
    frame["price"] = 3 * frame["size"] + rng.normal(0, 10, n)
    return frame


@pytest.fixture(scope="module")
def fitted():
    return fit_table(houses(), "price", search=False, members=2, seed=0)


# --- fitting -------------------------------------------------------------------------------------


def test_held_out_rows_are_neither_trained_on_nor_lost(fitted):
    frame = houses()
    assert len(fitted.train) == 64 and len(fitted.test) == 16
    held_out = set(fitted.evaluation.rows.tolist())
    assert fitted.test.rows() == [tuple(frame.loc[i]) for i in sorted(held_out)]
    rest = [i for i in range(80) if i not in held_out]
    assert fitted.train.rows() == [tuple(frame.loc[i]) for i in rest]
    again = MVERegressor(n_members=2, random_state=0, **QUICK)
    encoded = fitted.model.encoder_.transform(fitted.train)
    again.fit(encoded, fitted.train["price"])
    assert_array_equal(again.predict(encoded), fitted.model.predict(fitted.train))


def test_the_evaluation_is_of_the_rows_held_out(fitted):
    e, test = fitted.evaluation, fitted.test
    assert_array_equal(e.y, test["price"])
    mean, std = fitted.model.predict(test, return_std=True)
    assert_allclose(e.dist.mean, mean, rtol=1e-12)
    assert_allclose(e.dist.std, std, rtol=1e-12)


def test_a_log_scale_keeps_every_quantile_above_zero(monkeypatch):
    monkeypatch.setattr(
        workflow._fitting, "MVERegressor", MVERegressor
    )  # with no setting of its own
    frame = houses(80)
    frame["price"] = np.exp(np.random.default_rng(0).normal(size=80))
    on_log = fit_table(frame, "price", search=False, target="log", seed=0)
    plain = fit_table(frame, "price", search=False, target="identity", seed=0)
    assert on_log.evaluation.dist.ppf(1e-6).min() > 0 > plain.evaluation.dist.ppf(0.05).min()
    assert "below zero, where price never is: target='log' keeps them above." in plain.notes[-1]
    assert not any("below zero" in note for note in on_log.notes)
    assert "of the logarithm" in workflow.model_in_words(on_log.model)
    with pytest.raises(ValueError, match="effort='low' is for a search: drop it, or use search=T"):
        fit_table(frame, "price", search=False, effort="low")
    with pytest.raises(ValueError, match=r"members=2 is for .*: drop it, or use search=False"):
        fit_table(frame, "price", members=2)
    frame.loc[4, "price"] = 0
    told = r"target='log' needs .* above zero .* price holds 0: use target='auto', or add"
    with pytest.raises(ValueError, match=told):
        fit_table(frame, "price", target="log")


def test_scores_and_coverage():
    rng = np.random.default_rng(0)
    y, dist = rng.normal(size=50), Normal(rng.normal(size=50) / 3, np.full(50, 1.2))
    e = evaluate_predictions(y, dist, np.arange(50))
    assert (
        e.scores["rmse"]
        == metrics.rmse(y, dist)
        == pytest.approx(math.sqrt(np.mean((y - dist.mean) ** 2)))
    )
    assert e.scores["mae"] == pytest.approx(np.abs(y - dist.mean).mean())
    assert e.scores["nll"] == pytest.approx(-stats.norm(dist.mean, 1.2).logpdf(y).mean())
    assert e.scores["r2"] == pytest.approx(1 - np.mean((y - dist.mean) ** 2) / np.var(y))
    assert e.scores["crps"] == metrics.crps(y, dist)
    low, high = dist.interval(0.9).T
    assert e.coverage[0.9] == np.mean((low <= y) & (y <= high))
    assert list(e.coverage) == [0.5, 0.8, 0.9, 0.95, 0.99]
    assert math.isnan(
        evaluate_predictions(np.ones(3), Normal(np.ones(3), np.ones(3)), np.arange(3)).scores["r2"]
    )


def test_the_same_seed_gives_the_same_model(fitted):
    again = fit_table(houses(), "price", search=False, members=2, seed=0)
    assert_array_equal(again.evaluation.dist.mean, fitted.evaluation.dist.mean)
    other = fit_table(houses(), "price", search=False, members=2, seed=1)
    assert other.evaluation.rows.tolist() != fitted.evaluation.rows.tolist()


def test_without_rows_held_out():
    frame = houses(30)
    few = fit_table(frame[:7], "price", search=False, holdout=0, seed=0)
    assert few.evaluation is None and len(few.train) == 7 and len(few.test) == 0
    for search in (False, True):
        fitted = fit_table(frame, "price", search=search, holdout=0, seed=0)
        assert_array_equal(fitted.evaluation.dist.mean, fitted.model.oof_mean_)
        assert_array_equal(fitted.evaluation.y, frame["price"])


def test_a_search_of_hardly_any_rows(monkeypatch):
    monkeypatch.setattr(workflow._fitting, "AutoRegressor", AutoRegressor)
    assert fit_table(houses(6), "price", holdout=0, effort="low").model.n_splits_ == 3
    with pytest.raises(ValueError, match=r"2 rows are too few for a search: .*search=False"):
        fit_table(houses(2), "price", holdout=0)
    assert fit_table(houses(2), "price", search=False, holdout=0).evaluation is None


@pytest.mark.parametrize(("n", "holdout"), [(2, 0.2), (4, 0.6), (3, 0.9), (80, 1.5), (80, np.nan)])
def test_holding_out_too_much(n, holdout):
    with pytest.raises(
        ValueError, match=r"holdout=\S+ leaves [01] of \d+ rows .* use a share such"
    ):
        fit_table(houses(n), "price", search=False, holdout=holdout)


def test_rows_without_a_target_are_told():
    frame = houses(40)
    frame.loc[[3, 7], "price"] = np.nan
    fitted = fit_table(frame, "price", search=False, members=1, seed=0)
    assert fitted.without_target == 2 and fitted.notes == []
    assert not {3, 7} & set(fitted.evaluation.rows.tolist())
    assert len(fitted.train) + len(fitted.test) == 38


def test_warnings_of_the_fit_become_notes_and_those_for_programmers_do_not(monkeypatch):
    class Telling(TableEncoder):
        def transform(self, X, rows=None):
            warnings.warn("for whoever fits", UserWarning, stacklevel=2)
            warnings.warn("for whoever programs", FutureWarning, stacklevel=2)
            return super().transform(X, rows)

    monkeypatch.setattr("mvenet._columns.encoder.TableEncoder", Telling)
    notes = fit_table(houses(20), "price", search=False, members=1).notes
    assert [note for note in notes if "below zero" not in note] == ["for whoever fits"]


@pytest.mark.parametrize(
    ("price", "note"),
    [
        (np.arange(40) % 5, "price holds few whole numbers, perhaps counts: "),
        (np.arange(40) / 39, "price lies between 0 and 1, perhaps a share: "),
        (np.full(40, 7.0), "price is 7 in every row: there is nothing to predict."),
    ],
)
def test_targets_that_are_no_measurements_get_a_note(price, note):
    frame = houses(40).assign(price=price)
    (told,) = fit_table(frame, "price", search=False, members=1, seed=0).notes
    assert told.startswith(note)


@pytest.mark.parametrize("name", ["self", "a$b", "<script>", "mean", 'quo"te', "größe", "x" * 300])
def test_targets_of_any_name(name):
    frame = houses(20).rename(columns={"price": name})
    fitted = fit_table(frame, name, search=False, members=1, seed=0)
    assert _known.target_of(fitted.model) == name
    assert evaluate(fitted.model, frame).scores["mae"] > 0
    assert name in fitted.train


@pytest.mark.parametrize("scale", [1e-9, 1e12])
def test_the_scale_of_the_target_does_not_matter(scale):
    frame = houses(40)
    plain = fit_table(frame, "price", search=False, members=1, seed=0).evaluation
    frame["price"] *= scale
    scaled = fit_table(frame, "price", search=False, members=1, seed=0).evaluation
    assert_allclose(scaled.dist.mean, scale * plain.dist.mean, rtol=1e-4)
    assert scaled.scores["r2"] == pytest.approx(plain.scores["r2"], abs=1e-3)
    assert scaled.coverage == plain.coverage


def test_a_level_that_only_the_held_out_rows_have_is_no_accident():
    frame = houses(40)
    train = fit_table(frame, "price", search=False, members=1, seed=0)
    frame["heating"] = ["yes", "no"] * 20
    frame.loc[train.evaluation.rows[0], "heating"] = "perhaps"
    frame.loc[train.evaluation.rows[1], "town"] = "Aachen"
    again = fit_table(frame, "price", search=False, members=1, seed=0)
    assert np.isfinite(again.evaluation.dist.mean).all()
    assert "Aachen" not in again.model.encoder_.levels_["town"].names


@pytest.mark.parametrize(("usual", "odd"), [(["yes", "no"], "perhaps"), (["1", "2"], "A1")])
def test_what_a_column_is_does_not_depend_on_the_rows_held_out(usual, odd):
    frame = houses(40).assign(code=usual * 20)
    frame.loc[7, "code"] = odd
    seen = set()
    for seed in (3, 4):
        fitted = fit_table(frame, "price", search=False, members=1, holdout=0.5, seed=seed)
        told = fitted.model.columns_["code"]
        assert (told.kind, told.remark) == ("category", "3 levels")
        seen.add(7 in fitted.evaluation.rows)
    assert seen == {True, False}


def test_cells_that_cannot_be_used_are_told_before_the_training(monkeypatch):
    frame = houses(40)
    held_out = fit_table(frame, "price", search=False, members=1, seed=0).evaluation.rows
    frame.loc[held_out[0], "size"] = np.inf
    monkeypatch.setattr(workflow._fitting, "fit_until_stopped", pytest.fail)
    with pytest.raises(ValueError, match=rf"'size' holds infinity \(row {held_out[0] + 1} has"):
        fit_table(frame, "price", search=False, members=1, seed=0)


# --- evaluating ----------------------------------------------------------------------------------


def test_evaluate_takes_columns_in_any_order_and_tells_what_it_left_out(fitted):
    frame = houses()
    plain = evaluate(fitted.model, frame)
    assert plain.without_target == 0 and len(plain.y) == 80
    shuffled = evaluate(fitted.model, frame[["price", "garden", "size", "town"]])
    assert shuffled.scores == plain.scores
    frame.loc[0, "price"] = np.nan
    partly = evaluate(fitted.model, frame)
    assert partly.without_target == 1 and partly.rows.tolist() == list(range(1, 80))
    with pytest.raises(ValueError, match="There is no column 'price'"):
        evaluate(fitted.model, frame.drop(columns="price"))


def test_models_that_do_not_know_their_table():
    model = MVERegressor(**QUICK).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="does not know the name of its target"):
        _known.target_of(model)


def test_verdicts():
    assert wording.verdict(0.9, 0.9, 100)[0] == "as claimed"
    assert wording.verdict(0.9, 0.75, 100)[0] == "too narrow"
    assert wording.verdict(0.9, 1.0, 100)[0] == "too wide"
    word, low, high = wording.verdict(0.9, 1.0, 1)
    assert word == "as claimed" and (low, high) == (0.0, 1.0)
    _, low, high = wording.verdict(0.9, 0.9, 10_000)
    assert stats.binom(10_000, 0.9).cdf(10_000 * low - 1) < 0.03
    assert low < 0.9 < high and high - low < 0.013


# --- predicting ----------------------------------------------------------------------------------


def test_columns_have_names_that_say_what_they_are(fitted):
    frame = houses(5)
    out = predictions(fitted.model, frame, [0.5, 0.9, 0.975], [0.1, 0.025, 0.999])
    assert out.columns == ["mean", "std", "low_50", "high_50", "low_90", "high_90", "low_97.5",
                           "high_97.5", "q_10", "q_2.5", "q_99.9", "outside"]  # fmt: skip
    dist = predictive_distribution(fitted.model, frame)
    assert_array_equal(out[["low_90", "high_90"]], dist.interval(0.9))
    assert_array_equal(out["q_2.5"], dist.ppf(0.025))
    assert (out["std"] > 0).all()
    pd.testing.assert_frame_equal(houses(5), frame)  # which was not changed


def test_a_file_gets_its_columns_part_by_part(fitted, tmp_path):
    frame = pl.DataFrame(houses(9).to_dict("list"))
    frame.write_csv(tmp_path / "new.csv")
    with (tmp_path / "out.csv").open("wb") as file:
        assert predict_file(fitted.model, tmp_path / "new.csv", file, intervals=[0.9]).rows == 9
    out = pl.read_csv(tmp_path / "out.csv")
    expected = frame.hstack(predictions(fitted.model, frame, [0.9]))
    assert out.equals(expected)


def test_a_name_that_is_taken(fitted):
    with pytest.raises(ValueError, match="has a column 'low_90' already: rename it first"):
        predictions(fitted.model, houses(3).assign(low_90=1), [0.9])
    predictions(fitted.model, houses(3).assign(low_90=1), [0.8])


def test_missing_columns_are_named(fitted):
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'town'"):
        predictions(fitted.model, houses(3).drop(columns="town"))
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'town'"):
        workflow.check(fitted.model, houses(30).drop(columns="town"))


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567.8, "1,230,000"), (12.3456, "12.3"), (0.001234, "0.00123"),
     (1.5e-9, "1.5e-09"), (2.5e12, "2,500,000,000,000"), (-4321, "-4,321"), (None, "–"),
     (14_940.2, "14,900"), (-99.96, "-100"), (0.5, "0.5"), (1e15, "1e+15"), (np.nan, "nan")],
)  # fmt: skip
def test_readable(value, text):
    assert wording.readable(value) == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [("5", "", "5"), ("5", "m", "5\N{NO-BREAK SPACE}m"), ("-5", "$", "-$5"), ("5", "£", "£5")],
)
def test_a_unit_stands_where_it_is_written(number, unit, text):
    assert wording.with_unit(number, unit) == text


def test_split_target_and_fit_agree_on_rows(fitted):
    X, y, _ = split_target(houses(), "price")
    assert_array_equal(y[fitted.evaluation.rows], fitted.evaluation.y)
    assert X.columns == ["size", "town", "garden"]


def test_intervals_that_end_at_atoms_are_not_too_wide_for_it():
    n = 500
    smooth = NormalMixture([np.linspace(0, 3, n)], np.full((1, n), 0.5))
    ends = [-np.inf, 0.5, 1.5, 2.5, np.inf]
    dist = WithAtoms(smooth, [0.0, 1.0, 2.0, 3.0], np.column_stack([ends[:-1], ends[1:]]), 1.0)
    y = dist.sample(random_state=0)[0]
    found = evaluate_predictions(y, dist, np.arange(n))
    assert found.coverage[0.5] > 0.6 and found.expected(0.5) == pytest.approx(
        found.coverage[0.5], abs=0.05
    )
    assert {found.verdict(level)[0] for level in found.coverage} == {"as claimed"}
    assert (
        evaluate_predictions(np.round(smooth.mean), dist, np.arange(n)).verdict(0.5)[0]
        == "too wide"
    )
    assert evaluate_predictions(y + 9, dist, np.arange(n)).verdict(0.9)[0] == "too narrow"
    plain = evaluate_predictions(y, smooth, np.arange(n))
    assert plain.expected(0.9) == 0.9
