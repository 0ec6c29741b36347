"""Frames as people have them, and gaps, given to the estimators themselves."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from shorter import short_trainings
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import (
    AutoRegressor,
    CalibratedRegressor,
    MVERegressor,
    MVERegressorCV,
    UnseenWarning,
)
from mvenet._columns.encoder import TableEncoder
from mvenet._models.columns import Column

TINY = {"strategy": "warmup", "hidden_mean": (4,), "hidden_var": (3,), "epochs": 15,
        "warmup_epochs": 10, "random_state": 0}  # fmt: skip


def tiny(**settings):
    return MVERegressor(**TINY | settings)


def frame(n=90):
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "size": rng.uniform(1, 9, n).round(2),
            "town": pd.Categorical(rng.choice(["A", "B", "C"], n), categories=["A", "B", "C", "D"]),
            "sort": rng.choice(["x", "y"], n),
            "new": rng.random(n) < 0.5,
            "sold": pd.date_range("2020-01-01", periods=n, freq="9D"),
            "open": pd.to_timedelta(rng.integers(1, 90, n), "D"),
            "rooms": pd.array(rng.integers(1, 6, n), dtype="Int64"),
        }
    )
    made.loc[::7, "size"] = np.nan
    made.loc[::5, "rooms"] = pd.NA
    made.loc[1::8, "sort"] = None
    y = made["size"].fillna(3) + 2 * (made["town"] == "B") + 0.3 * rng.standard_normal(n)
    return made, y.to_numpy()


X, Y = frame()


@pytest.fixture(scope="module")
def fitted():
    return tiny().fit(X, Y)


EVERY = {
    "MVERegressor": tiny(),
    "cross-fit": MVERegressor(**TINY | {"strategy": "cross-fit"}),
    "MVERegressorCV": MVERegressorCV([1e-3], [1e-2], cv=2, **TINY),
    "AutoRegressor": AutoRegressor("low", ["linear"], cv=2, random_state=0),
    "CalibratedRegressor": CalibratedRegressor(tiny(), cv=3),
}


@pytest.mark.parametrize("model", EVERY.values(), ids=EVERY)
@short_trainings()
def test_every_estimator_takes_frames_of_every_kind(model):
    plain = clone(model).fit(X, Y)
    arrow = pa.Table.from_pandas(X)
    expected = plain.predict_interval(X)
    assert np.isfinite(expected).all() and list(plain.feature_names_in_) == list(X.columns)
    for other in (pl.from_arrow(arrow), arrow):
        assert_array_equal(plain.predict_interval(other), expected)
        again = clone(model).fit(other, Y)
        assert again.predict_interval(X).tobytes() == expected.tobytes()
    assert pickle.loads(pickle.dumps(plain)).predict(X).tobytes() == plain.predict(X).tobytes()


def test_a_frame_is_encoded_as_the_encoder_does_it(fitted):
    encoder = TableEncoder()
    numbers = encoder.fit_transform(X, Y)
    alone = tiny().fit(numbers, Y)
    assert fitted.predict(X).tobytes() == alone.predict(encoder.transform(X)).tobytes()
    assert fitted.columns_ == encoder.columns_


def test_what_was_made_of_the_columns_is_said(fitted):
    told = fitted.columns_
    assert {name: c.kind for name, c in told.items()} == {
        "size": "number", "town": "category", "sort": "category", "new": "truth", "sold": "date",
        "open": "number", "rooms": "number",
    }  # fmt: skip
    lines = repr(told).splitlines()
    assert lines[0] == "size   number    13 missing" and lines[1] == "town   category  3 levels"
    hostile = tiny().fit(X.rename(columns={"town": "<script>"}), Y)
    assert "&lt;script&gt;" in hostile.columns_._repr_html_()
    assert "<script>" not in hostile.columns_._repr_html_()


def test_columns_come_in_any_order_with_others_among_them(fitted):
    other = X[X.columns[::-1]].assign(further="text")
    assert fitted.predict(other).tobytes() == fitted.predict(X).tobytes()
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'town', 'sold': add them"):
        fitted.predict(X.drop(columns=["town", "sold"]))


def test_levels_that_nobody_knew_are_said(fitted):
    other = X.assign(town="Q")
    with pytest.warns(UnseenWarning, match=r"90 row\(s\) have a level of 'town'.*such as 'Q'"):
        assert np.isfinite(fitted.predict(other)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(X.assign(town=X["town"].astype(str)))


def test_other_types_at_predict(fitted):
    texts = X.astype({"size": str, "rooms": str, "new": str, "sold": str})
    assert fitted.predict(texts).tobytes() == fitted.predict(X).tobytes()
    with pytest.raises(ValueError, match=r"'size' held numbers .*: row 1 has"):
        fitted.predict(X.assign(size="large"))
    with pytest.raises(ValueError, match="'size' holds infinity"):
        fitted.predict(X.assign(size=np.inf))
    with pytest.raises(ValueError, match="'sold' held dates"):
        fitted.predict(X.assign(sold="then"))


def test_an_array_is_read_by_places(fitted):
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_array_equal(fitted.predict(X.to_numpy()), fitted.predict(X))
    with pytest.raises(ValueError, match="X has 3 features, but MVERegressor is expecting 7"):
        fitted.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        fitted.predict(X[:0])


def test_gaps_that_come_later_are_filled():
    numbers = np.random.default_rng(0).standard_normal((60, 3))
    y = numbers[:, 0] + 0.1 * numbers[:, 1]
    hole = numbers.copy()
    hole[::6, 1] = np.nan
    model = tiny().fit(numbers, y)
    filled = np.where(np.isnan(hole), np.median(numbers, axis=0), hole)
    assert model.predict(hole).tobytes() == model.predict(filled).tobytes()
    assert {c.remark for c in model.columns_.values()} == {""}


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_gap_has_an_indicator_where_it_tells_something(kind):
    numbers = np.random.default_rng(0).standard_normal((300, 5)).astype(kind)
    y = numbers[:, 0].astype(float)
    numbers[::9, 1] = numbers[::9, 2] = np.nan  # the same gaps
    numbers[5, 3], numbers[:, 4] = np.nan, np.nan  # too rare; nothing at all
    model = tiny().fit(numbers, y)
    medians = [*np.nanmedian(numbers[:, :4], axis=0).tolist(), 0]
    filled = np.where(np.isnan(numbers), medians, numbers)
    by_hand = np.column_stack([filled[:, :4], np.isnan(numbers[:, 1])]).astype(kind)
    alone = tiny().fit(by_hand, y)
    assert model.predict(numbers).tobytes() == alone.predict(by_hand).tobytes()
    assert model.columns_["x4"].kind == "dropped"
    assert model.columns_["x1"].remark == "11.3 % missing"


def test_rows_without_weight_teach_the_encoder_nothing():
    weight = np.r_[np.ones(60), np.zeros(30)]
    known = X[:60].assign(town=X["town"][:60].astype(str))
    rest = X[60:].assign(town="Z", size=1e6)
    model = tiny().fit(pd.concat([known, rest]), Y, sample_weight=weight)
    assert model.predict(known).tobytes() == tiny().fit(known, Y[:60]).predict(known).tobytes()


def test_numbers_are_the_same_with_names_and_without():
    numbers = np.random.default_rng(0).standard_normal((60, 3))
    y = numbers[:, 0]
    named = pd.DataFrame(numbers, columns=["a", "b", "c"])
    with_constant = named.assign(d=1.0, e=20200101.0)
    expected = tiny().fit(numbers, y).predict(numbers)
    assert tiny().fit(named, y).predict(named).tobytes() == expected.tobytes()
    model = tiny().fit(with_constant, y)
    assert model.predict(with_constant).tobytes() == expected.tobytes()
    assert model.columns_["d"].remark == "always 1"


def test_within_scikit_learns_compositions():
    parts = ColumnTransformer([("scaled", StandardScaler(), ["size"])], remainder="passthrough")
    model = make_pipeline(parts.set_output(transform="pandas"), tiny()).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    assert model[-1].columns_["remainder__town"].kind == "category"


ODD = {
    "names that are no text": (X.set_axis(range(7), axis=1), None),
    "names of both kinds": (X.set_axis([*"abcdef", 7], axis=1), "all input features have string"),
    "a name twice": (X.set_axis([*"aabcdef"], axis=1), "'a' twice"),
    "an index with duplicates": (X.set_axis([0] * 90), None),
    "lists": (X.assign(l=[[1, 2]] * 90), {"l": "dropped"}),
    "a dictionary": (X.assign(l=[{}] * 90), {"l": "dropped"}),
    "mixed types": (X.assign(m=[1, "a", None] * 30), {"m": "category"}),
    "many levels": (X.assign(i=[f"no {i}" for i in range(90)]), {"i": "dropped"}),
    "numbers as text": (X.assign(t=[f"{i}.5" for i in range(90)]), {"t": "number"}),
    "old dates": (X.assign(d=[dt.date(1500 + i, 1, 1) for i in range(90)]), {"d": "date"}),
    "late dates": (X.assign(d=[dt.date(2300 + i, 1, 1) for i in range(90)]), {"d": "date"}),
    "codes that are said to be categories": (
        X.assign(c=pd.Categorical([i % 4 for i in range(90)])),
        {"c": "category"},
    ),
    "zones": (
        X.assign(z=pd.date_range("2020-01-01", periods=90, freq="h", tz="Asia/Tokyo")),
        {"z": "date"},
    ),
    "all missing": (X.assign(g=None), {"g": "dropped"}),
}


@pytest.mark.parametrize(("odd", "expected"), ODD.values(), ids=ODD)
def test_odd_frames(odd, expected):
    if isinstance(expected, str):
        with pytest.raises((ValueError, TypeError), match=expected):
            tiny().fit(odd, Y)
        return
    model = tiny().fit(odd, Y)
    assert np.isfinite(model.predict(odd)).all()
    for name, kind in (expected or {}).items():
        assert model.columns_[name].kind == kind


def test_null_and_nan_of_polars_are_both_gaps():
    both = pl.DataFrame({"a": [1.0, None, float("nan"), 4.0] * 20, "b": ["x", "y"] * 40})
    model = tiny().fit(both, np.arange(80.0))
    assert model.columns_["a"].remark == "40 missing"


ODD = {
    "two names": (X[["size", "open"]].set_axis(["a", "a"], axis=1), "column 'a' twice"),
    "two names of numbers": (pd.DataFrame(np.ones((90, 2)), columns=["a", "a"]), "'a' twice"),
    "no columns": (X[[]], r"0 feature\(s\).*give at least one column"),
    "infinity everywhere": (X.assign(size=np.inf), "'size' holds infinity"),
    "infinity": (X.assign(size=np.where(np.arange(90) == 4, np.inf, 1.0)), "row 5 has 'inf'"),
    "complex": (X.assign(z=Y + 1j), "'z' holds complex numbers: give their parts"),
    "nothing but gaps": (pd.DataFrame({"a": [None] * 90}), r"a is dropped \(all missing\)"),
}


@pytest.mark.parametrize(("given", "what"), ODD.values(), ids=ODD)
def test_what_no_column_can_be_is_told(given, what):
    with pytest.raises(ValueError, match=what):
        tiny().fit(given, Y)


def test_cells_that_are_none_are_dropped_and_said():
    things = {"lists": [[1]] * 90, "objects": [object()] * 90, "dicts": [{}] * 90}
    model = tiny().fit(X[["size"]].assign(**things), Y)
    for name in things:
        assert model.columns_[name] == Column("dropped", "lists or objects, which are no cells")
