"""Tables whose rows belong together: what is held out, left out, promised and said."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from mvenet import load, persistence, report
from mvenet.workflow import _fitting as fitting
from mvenet.workflow import evaluate, fit_table
from mvenet.workflow._belonging import Belonging
from mvenet.workflow._evaluation import remarks
from mvenet.workflow._ties import Ties

pytestmark = pytest.mark.usefixtures("short", "blank")

RNG = np.random.default_rng(0)
K, M = 24, 6
NUMBERS = np.repeat(np.arange(K), M)
DAYS = np.tile(np.arange(M), K) * 30 + NUMBERS
FRAME = pl.DataFrame(
    {
        "patient": [f"p{number:02d}" for number in NUMBERS],
        "visit": np.datetime64("2020-01-01") + DAYS.astype("timedelta64[D]"),
        "dose": RNG.normal(size=K * M),
        "weight": np.repeat(RNG.normal(70, 10, K), M),
        "score": np.repeat(2.0 * RNG.normal(size=K), M) + 0.3 * RNG.normal(size=K * M),
    }
)


def fitted(frame=FRAME, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_table(frame, "score", search=False, seed=0, **settings)


def test_whole_groups_are_held_out_and_their_column_is_no_input():
    found = fitted(group="patient")
    assert "patient" not in found.model.feature_names_in_
    held = FRAME["patient"].to_numpy()[found.evaluation.rows]
    assert len(set(held)) * M == len(held)
    assert found.promise == "rows of new values of patient"
    assert "Whole groups were left out" in found.model.summary_
    assert any("new values of patient, the 90 % intervals cover" in note for note in found.notes)


def test_the_last_rows_are_held_out_and_time_stays_an_input():
    found = fitted(time="visit")
    when = FRAME["visit"].to_numpy()
    rows = found.evaluation.rows
    assert "visit" in found.model.feature_names_in_
    assert when[np.setdiff1d(np.arange(len(when)), rows)].max() < when[rows].min()
    assert found.promise.startswith("the next ")
    assert found.promise.endswith(" days")


def test_the_horizon_is_what_is_held_out():
    found = fitted(time="visit", horizon=25.0)
    when = FRAME["visit"].to_numpy()
    held = when[found.evaluation.rows]
    assert (held > when.max() - np.timedelta64(25, "D")).all()
    assert found.promise == "the next 25 days"


def test_later_rows_of_new_groups_are_judged_by_folds():
    found = fitted(group="patient", time="visit")
    assert not len(found.test)
    assert len(found.evaluated_rows) == len(found.evaluation.y) < len(FRAME)
    assert found.promise.endswith("of new values of patient")


def test_a_model_tells_for_whom_it_was_made(tmp_path):
    found = fitted(group="patient")
    persistence.save(found.model, tmp_path / "model.mve")
    assert persistence.info(tmp_path / "model.mve")["promise"] == found.promise
    loaded = load(tmp_path / "model.mve")
    assert loaded.promise_ == found.promise
    off = FRAME.with_columns(pl.col("score") + 100.0)
    told = remarks(loaded, evaluate(loaded, off))
    assert told == [
        "What is promised holds for rows of new values of patient.",
        *Ties.of_model(loaded).compared(FRAME).sentences(),
        "100.0% of the values lie above their 90 % interval, 0.0% below.",
    ]


def test_a_file_of_independent_rows_promises_nothing_more(tmp_path):
    found = fitted()
    persistence.save(found.model, tmp_path / "model.mve")
    assert "promise" not in persistence.info(tmp_path / "model.mve")
    assert found.promise == ""


def test_levels_learn_from_other_groups_only():
    frame = FRAME.with_columns(clinic=pl.col("patient").str.replace("p", "clinic "))
    frame = pl.concat([frame, frame.with_columns(pl.col("patient", "clinic") + "x")])
    found = fitted(frame, group="patient", holdout=0)
    encoder = found.model.encoder_
    assert len(encoder.levels_["clinic"].names) > 30
    clinics = encoder.places()["clinic"]
    # Of a clinic that one group alone has, other groups know nothing: all rows get the mean.
    table = fitted(frame, group="patient", holdout=0).train
    assert table.height == len(frame)
    assert len(clinics) == 2


def test_a_category_whose_rows_belong_together_is_named():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit_table(FRAME.drop("weight"), "score", effort="low", seed=0, holdout=0)
    (note,) = [note for note in found.notes if "belong together" in note]
    assert note.startswith("Rows with the same patient belong together")
    assert "group='patient'" in note


def test_what_an_estimator_notices_is_told_in_words_of_the_table():
    rng = np.random.default_rng(0)
    noise = np.convolve(rng.normal(size=204), np.ones(5), "valid")
    frame = pl.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    frame = frame.with_columns(number=np.arange(200), score=pl.Series(noise))
    (note,) = [note for note in fitted(frame).notes if "next to each other" in note]
    assert "use time=COLUMN" in note
    ordered = frame.sort("score").with_columns(number=np.arange(200))
    (note,) = [note for note in fitted(ordered, holdout=0).notes if "counts the rows" in note]
    assert "the column 'number' counts the rows" in note


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"group": "score"}, "group='score' is the target"),
        ({"group": "patent"}, "There is no column 'patent': did you mean 'patient'"),
        ({"time": "patient"}, "The column 'patient' cannot order rows in time"),
        ({"time": "when"}, "There is no column 'when'"),
        ({"horizon": 3.0}, "horizon=3 needs time"),
        ({"group": "visit", "time": "visit"}, "are one column"),
        ({"time": "visit", "horizon": 900.0}, "horizon=900 is more than a third"),
    ],
)
def test_columns_that_cannot_be_meant(settings, match):
    with pytest.raises(ValueError, match=match):
        fitted(**settings)


def test_cells_that_are_empty_are_refused_with_their_row():
    frame = FRAME.with_columns(
        patient=pl.when(pl.int_range(K * M) == 4).then(None).otherwise("patient")
    )
    with pytest.raises(ValueError, match=r"'patient' is empty in 1 row\(s\).* row 5"):
        fitted(frame, group="patient")


def test_two_groups_are_too_few_to_hold_one_out():
    frame = FRAME.with_columns(patient=pl.Series(["a", "b"] * (K * M // 2)))
    with pytest.raises(ValueError, match="too few to hold one out"):
        fitted(frame, group="patient")


def test_numbers_order_rows_as_dates_do():
    numbers = FRAME.with_columns(visit=pl.Series(DAYS))
    assert not Belonging.of(numbers, "score", None, "visit", None).dated
    assert Belonging.of(FRAME, "score", None, "visit", None).dated
    found = fitted(numbers, time="visit", horizon=25.0)
    assert found.promise == "the next 25 of visit"


def test_copies_are_held_out_together_or_apart():
    rows = np.arange(60)
    X, y = pl.DataFrame({"a": np.tile(rows, 2) % 50}), np.tile(rows, 2) * 1.0
    numbers = fitting._copied(X, y, "auto")
    train, test = fitting._split(120, 0.25, 0, numbers)
    assert len(test) == 30
    assert not set(y[train]) & set(y[test])
    assert fitting._copied(X, y, "apart") is None
    assert fitting._copied(X[:65], y[:65], "auto") is None
    assert fitting._copied(X[:65], y[:65], "together") is not None
    assert fitting._copied(X[:60], y[:60], "together") is None
    with pytest.raises(ValueError, match="copies='together' is for a search"):
        fitted(copies="together")


@pytest.fixture(scope="module")
def by_patient():
    return fitted(group="patient")


@pytest.fixture(scope="module")
def by_visit():
    return fitted(time="visit")


def test_a_table_is_told_apart_into_known_and_new_groups(by_patient, tmp_path):
    persistence.save(by_patient.model, tmp_path / "m.mve")
    ties = Ties.of_model(persistence.load_to_predict(tmp_path / "m.mve"))
    held = np.unique(FRAME["patient"].to_numpy()[by_patient.evaluation.rows])
    compared = ties.compared(FRAME)
    assert compared.facts == {"known_groups": K - len(held), "new_groups": len(held)}
    assert (
        f"{M * len(held)} of {K * M} rows are of {len(held)} new values of patient"
        in (compared.sentences()[0])
    )
    assert (ties.compared(FRAME[:50]) + ties.compared(FRAME[50:])).facts == compared.facts
    only_new = ties.compared(FRAME.filter(pl.col("patient").is_in(held.tolist())))
    assert only_new.sentences() == [
        f"All {M * len(held)} rows are of new values of patient ({len(held)})."
    ]
    assert ties.compared(FRAME.drop("patient")).sentences() == []
    assert not any(name.encode() in (tmp_path / "m.mve").read_bytes() for name in held)


def test_later_rows_are_counted(by_visit):
    ties = Ties.of_model(by_visit.model)
    compared = ties.compared(FRAME)
    assert compared.later == len(by_visit.evaluation.rows)
    assert "later than all that was trained on (visit 20" in compared.sentences()[0]
    assert (
        Ties.of_model(by_visit.model).compared(FRAME.with_columns(visit=pl.lit("?"))).later is None
    )


def test_coverage_is_told_by_group_and_along_time(by_patient, by_visit):
    made = evaluate(by_patient.model, FRAME)
    counted, inside = made.coverage_by(), made.inside
    for name, share in zip(counted["group"], counted["coverage"], strict=True):
        assert share == pytest.approx(inside[FRAME["patient"].to_numpy() == name].mean())
    assert made.coverage[0.9] == pytest.approx(inside.mean())
    along = evaluate(by_visit.model, FRAME)
    starts = along.coverage_by()["group"]
    assert along.by.along and starts.tolist() == sorted(starts.tolist()) and len(starts) == 7
    assert evaluate(fitted().model, FRAME).coverage_by() is None


def test_the_report_shows_it_and_advises_nothing_that_cannot_help(by_patient):
    made = evaluate(by_patient.model, FRAME)
    page = report.render(by_patient.model, made, frame=FRAME)
    assert "And group by group?" in page and "rows of new values of patient" in page
    assert "--calibrate" not in page


@pytest.mark.parametrize("kept", [3, {}, {"group": "a"}, {"group": 1, "groups": 2}])
def test_ties_that_no_fit_has_kept_are_none(kept):
    odd = SimpleNamespace(ties_=kept)
    assert (Ties.of_model(odd).group, Ties.of_model(odd).time) == ("", "")
