"""Whether a new table is like the one of the fit: what is found, and what chance makes of it."""

from __future__ import annotations

import numpy as np
import pytest

pl = pytest.importorskip("polars")

from mvenet._columns.profile import drifts, outside  # noqa: E402
from mvenet.table import TableEncoder  # noqa: E402
from mvenet.workflow import _evaluation  # noqa: E402


def test_rows_outside_what_was_seen_are_the_same_whoever_asks():
    rng = np.random.default_rng(0)
    days = [f"2020-{m:02}-{d:02}" for m in range(1, 11) for d in range(1, 21)]
    fitted = {"x": rng.normal(size=200).round(3), "town": rng.choice(["A", "B"], 200), "day": days}
    encoder = TableEncoder().fit(pl.DataFrame(fitted), rng.normal(size=200))
    new = pl.DataFrame(
        {
            "x": [0.0, 99.0, None, 0.1, -99.0],
            "town": ["A", "B", None, "C", "A"],
            "day": ["2020-05-05", "2020-05-05", "2020-05-05", "2020-05-05", "2031-01-01"],
        }
    )
    told = outside(encoder, new, encoder.transform(new))
    assert told.tolist() == [False, True, False, True, True]
    assert told.tolist() == drifts(encoder, new)[1].tolist()
    near = pl.DataFrame(fitted)[:1].with_columns(x=pl.lit(max(fitted["x"]) + 0.1))
    assert outside(encoder, near, encoder.transform(near)).all()
    assert not outside(encoder, near, encoder.transform(near), margin=0.1).any()
    del encoder.seen_
    assert outside(encoder, new, encoder.transform(new)) is None


def rows_like_others(rng, n):
    numbers = {f"x{i}": rng.lognormal(size=n) for i in range(12)}
    return pl.DataFrame({**numbers, "town": rng.choice([*"abcdefgh"], n)})


@pytest.mark.parametrize(("seen", "new"), [(80, 80), (200, 2000), (2000, 200)])
def test_rows_like_those_of_the_fit_are_seldom_taken_for_changed(seen, new):
    """In one table of a hundred, all columns together; before, in most tables of 200 rows."""
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        encoder = TableEncoder(target="y").fit(rows_like_others(rng, seen), rng.normal(size=seen))
        alarms += bool(_evaluation.check((encoder, None), rows_like_others(rng, new)).findings)
    assert alarms <= 2


def test_one_column_that_changed_is_found():
    rng = np.random.default_rng(0)
    encoder = TableEncoder(target="y").fit(rows_like_others(rng, 200), rng.normal(size=200))
    wider, higher, renamed = (rows_like_others(rng, 200) for _ in range(3))
    changes = {
        "x3": wider.with_columns(pl.col("x3") ** 3),
        "x7": higher.with_columns(pl.col("x7") + 1),
        "town": renamed.with_columns(pl.col("town").replace({"a": "new"})),
    }
    for name, new in changes.items():
        assert [drift.column for drift in drifts(encoder, new)[0] if drift.changed] == [name]


@pytest.mark.parametrize("rows", [0, -3, float("nan")])
def test_a_file_that_lies_about_its_rows_is_no_crash(rows):
    rng = np.random.default_rng(0)
    encoder = TableEncoder(target="y").fit(rows_like_others(rng, 50), rng.normal(size=50))
    encoder.n_rows_ = rows
    assert _evaluation.check((encoder, None), rows_like_others(rng, 50)).findings == []
