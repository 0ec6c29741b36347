"""Excel files as people have them, and Parquet with typed dates and time zones."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pl = pytest.importorskip("polars")
pytest.importorskip("fastexcel")
openpyxl = pytest.importorskip("openpyxl")

from mvenet.table import TableEncoder, read  # noqa: E402

ROWS = [
    [i + 0.5, "A" if i % 2 else None, datetime.datetime(2020, 1, 1 + i), bool(i % 3)]
    for i in range(9)
]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Three sheets: a table, one with two rows of names and a blank row, and nothing."""
    made = openpyxl.Workbook()
    houses = made.active
    houses.title = "houses"
    for row in (["size", "town", "sold", "garden"], *ROWS):
        houses.append(row)
    units = made.create_sheet("units")
    for row in (["size", "price"], ["m²", "€"], [1, 2], [], [3.5, "?"]):
        units.append(row)
    made.create_sheet("empty")
    twice = made.create_sheet("twice")
    twice.append(["a", "a"])
    twice.append([1, 2])
    made.create_sheet("names only").append(["a", "b"])
    place = tmp_path_factory.mktemp("book") / "book.xlsx"
    made.save(place)
    return place


def test_cells_keep_their_types(book):
    frame = read(book, sheet="houses")
    assert frame.columns == ["size", "town", "sold", "garden"] and len(frame) == 9
    assert frame["size"].to_list() == [row[0] for row in ROWS]
    assert frame["garden"].dtype == pl.Boolean and frame["sold"].dtype.is_temporal()
    kinds = {name: column.kind for name, column in TableEncoder().fit(frame).columns_.items()}
    assert kinds == {"size": "number", "town": "category", "sold": "date", "garden": "truth"}


def test_rows_of_names_blank_rows_and_mixed_columns(book):
    frame = read(book, sheet="units", header_rows=2)
    assert frame.columns == ["size m²", "price €"]
    assert frame.rows() == [(1.0, "2"), (3.5, "?")]


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({}, "has 5 sheets, 'houses', 'units', .*name one, such as sheet='houses'"),
        ({"sheet": "hauses"}, "has no sheet='hauses': it has 'houses'"),
        ({"sheet": "empty"}, "has nothing in the sheet 'empty'"),
        ({"sheet": "twice"}, "the column 'a' twice"),
        ({"sheet": "names only"}, "has no rows"),
    ],
    ids=str,
)
def test_what_is_no_table_is_told(book, more, what):
    with pytest.raises(ValueError, match=what):
        read(book, **more)


def test_other_files(book, tmp_path):
    broken = tmp_path / "broken.xlsx"
    broken.write_text("size,town\n1,2\n")
    with pytest.raises(ValueError, match="cannot be read as Excel"):
        read(broken)
    with pytest.raises(FileNotFoundError, match=r"Did you mean broken\.xlsx"):
        read(tmp_path / "brokn.xlsx")
    plain = broken.rename(tmp_path / "plain.csv")
    with pytest.raises(ValueError, match="sheet='a' is for Excel files"):
        read(plain, sheet="a")


def test_without_the_reader(book, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ImportError, match=r"pip install 'mvenet\[excel\]'"):
        read(book, sheet="houses")


def test_a_moment_of_a_parquet_file_is_the_same_in_any_zone(tmp_path):
    utc = pl.datetime_range(
        datetime.datetime(2021, 3, 27), datetime.datetime(2021, 3, 30), "1h", eager=True
    ).dt.replace_time_zone("UTC")
    frame = pl.DataFrame({"when": utc.dt.convert_time_zone("Europe/Berlin"), "day": utc.dt.date()})
    frame.write_parquet(tmp_path / "zones.parquet")
    again = read(tmp_path / "zones.parquet")
    assert again["when"].dtype == frame["when"].dtype
    encoder = TableEncoder().fit(again)
    assert {name: column.kind for name, column in encoder.columns_.items()} == {
        "when": "date", "day": "date",
    }  # fmt: skip
    # A moment is the same whatever zone a file writes it in: the clock is that of UTC.
    there = again.with_columns(again["when"].dt.convert_time_zone("America/New_York"))
    assert_array_equal(encoder.transform(there), encoder.transform(again))
    days = encoder.transform(again)[:, 0]
    assert_allclose(days, np.arange(73) / 24, atol=1e-9)  # no jump where clocks are changed
    plain = again.with_columns(utc.dt.replace_time_zone(None).alias("when"))
    with pytest.raises(ValueError, match="held dates with a zone when the model was fitted"):
        encoder.transform(plain)
