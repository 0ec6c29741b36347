"""Tables as people really have them: other encodings, decimal commas, digits that are names."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import os
import sys
import threading
import time
import types
from decimal import Decimal

import fuzz_input
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import Pipeline

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

from mvenet import (  # noqa: E402
    MVERegressor,
    _engine,
)
from mvenet._columns.cells import Column, split_target, without  # noqa: E402
from mvenet._columns.profile import drifts  # noqa: E402
from mvenet.persistence import load, save  # noqa: E402
from mvenet.table import TableEncoder, _files, _writing, read  # noqa: E402
from mvenet.table._files import chunks  # noqa: E402

PLAIN = "a,b,c\n1,2.5,x\n3,4.5,y\n"
TEXTS = {"a": ["1", "3"], "b": ["2.5", "4.5"], "c": ["x", "y"]}


def write(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "t.csv"


def kinds(encoder):
    return {name: column.kind for name, column in encoder.columns_.items()}


def kind(*values, **options):
    """What a column of these values is taken for, and the remark."""
    frame = pd.DataFrame({"x": values, "other": np.arange(len(values)) % 7 * 1.5})
    column = TableEncoder(**options).fit(frame).columns_["x"]
    return column.kind, column.remark


# --- how a file is written -----------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
def test_encodings(file, encoding):
    frame = read(write(file, "größe,town\n1.5,Köln\n2.5,Jülich\n", encoding))
    assert frame.columns == ["größe", "town"]
    assert frame["town"].to_list() == ["Köln", "Jülich"]
    part, *rest = chunks(file)
    assert not rest and part.first == 0
    assert part.shown["town"].to_list() == part.values["town"].to_list() == ["Köln", "Jülich"]


def test_the_euro_of_windows(file):
    assert read(write(file, "price (€),b\n1,2\n", "cp1252")).columns == ["price (€)", "b"]


def test_other_letters_far_into_the_file(file):
    write(file, b"town,y\n" + b"Bonn,1\n" * 200_000 + "Köln,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"begins as utf-8.* save it as UTF-8\."):
        read(file)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators(file, separator):
    frame = read(write(file, PLAIN.replace(",", separator)))
    assert frame.to_dict(as_series=False) == TEXTS


def test_the_separator_is_the_one_that_fits_the_rows(file):
    frame = read(write(file, "name, first;age\nAda;36\nAlan;41\n"))
    assert frame["age"].to_list() == ["36", "41"]
    frame = read(write(file, '"a;b;c;d",e\n1,2\n3,4\n'))
    assert frame.columns == ["a;b;c;d", "e"]
    frame = read(write(file, 'a\n"x, y"\nz\n'))
    assert frame["a"].to_list() == ["x, y", "z"]


def test_decimal_commas(file):
    text = 'a;b;c\n1,5;"-2,25";x\n3;,5;y\n'
    expected = [("1.5", "-2.25", "x"), ("3", ".5", "y")]
    assert read(write(file, text)).rows() == expected
    (part,) = chunks(file, numbers=["a", "b"])
    # What is written later has commas between the cells, so none within numbers.
    assert part.shown.rows() == expected
    assert part.values["a"].to_list() == ["1.5", "3"]
    assert kinds(TableEncoder().fit(read(file))) == {"a": "number", "b": "number", "c": "category"}


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_that_come_late(file, monkeypatch, separator):
    rows = ["1;2;x"] * 1200 + [f"{i};12,{i};x" for i in range(300)]
    write(file, "\n".join(["a;b;y", *rows, ""]).replace(";", separator))
    frame = read(file)
    assert frame["b"].to_list()[1199:1202] == ["2", "12.0", "12.1"]
    for lines in (",", "\t"):
        parts = in_parts(monkeypatch, file, 2000, numbers=["a", "b"], lines=lines)
        numbers = pl.concat(part.values["b"].cast(float) for part in parts)
        assert numbers.equals(frame["b"].cast(float))
        assert not any("," in str(cell) for part in parts for cell in part.shown["b"])
    points = [row.replace(",", ".") for row in rows]
    write(file, "\n".join(["a;b;y", *points, "3;4.5;6,7", ""]))
    assert read(file).rows()[-1] == ("3", "4.5", "6,7")


@pytest.mark.parametrize("mark", ["NA", " n/a", "<NA>", "#N/A N/A", "1.#IND", "null"])
def test_marks_for_missing_make_decimal_commas_no_text(file, mark):
    write(file, f"a;b\n1,5;x\n{mark};y\n2,25;x\n")
    frame = read(file)
    assert kinds(TableEncoder().fit(frame)) == {"a": "number", "b": "category"}
    write(file, f"a;b\n{mark};{mark}\n1;2\n2;3\n3;4\n")  # and a row of them no row of names
    assert len(read(file)) == 4


def test_one_remark_with_a_comma_does_not_make_the_points_text(file):
    frame = read(write(file, "a;b;note\n1.5;2.5;x\n2.5;3.5;3,4\n"))
    assert frame["a"].to_list() == ["1.5", "2.5"]
    assert frame["note"].to_list() == ["x", "3,4"]


def test_a_level_with_a_decimal_comma_stays_as_it_was(file):
    write(file, "size;code\n1,5;1,5\n2,5;A\n3,5;A\n")
    assert read(file)["code"].to_list() == ["1,5", "A", "A"]
    (part,) = chunks(file, numbers=["size"])
    assert part.values["code"].to_list() == ["1,5", "A", "A"]


def test_names_with_quotes_commas_line_breaks_and_tags(file):
    names = ["a,b", 'say "x"', "<script>alert(1)</script>", "two\nlines", "[red]x[/red]"]
    pd.DataFrame([range(5), range(5)], columns=names).to_csv(file, index=False)
    assert read(file).columns == names
    assert next(chunks(file)).shown.columns == names


def test_spaces_around_names_and_cells_do_not_count(file):
    frame = TableEncoder().fit(plain := read(write(file, " a , b\n 1, x\n2 , y\n"))).tidy(plain)
    assert frame.to_dict(as_series=False) == {"a": [1, 2], "b": ["x", "y"]}
    assert read(write(file, 'a, b\n1, "x, y"\n2, z\n'))["b"].to_list() == ["x, y", "z"]


def test_blank_lines_old_line_ends_and_a_last_line_without_one(file):
    for text in ("\n\n" + PLAIN, PLAIN.replace("\n", "\r"), PLAIN.replace("\n", "\r\n"),
                 PLAIN.rstrip("\n"), PLAIN.replace("\n", "\n\n")):  # fmt: skip
        assert read(write(file, text)).to_dict(as_series=False) == TEXTS


def test_trailing_separators_shift_nothing(file):
    assert read(write(file, "a,b\n1,2,\n3,4,\n")).rows() == [("1", "2"), ("3", "4")]
    frame = read(write(file, "a,b,\n1,2,\n3,4,\n"))  # a third column without a name
    assert frame["a"].to_list() == ["1", "3"] and frame["unnamed 3"].is_null().all()


def test_all_that_means_missing(file):
    write(file, "a,b\n1,NA\n,x\nNaN,null\n2,y\n")
    tidy = TableEncoder().fit(read(file)).tidy(read(file))
    assert tidy.rows() == [(1, None), (None, "x"), (None, None), (2, "y")]
    (part,) = chunks(file)
    assert part.shown["b"].to_list() == ["NA", "x", "null", "y"]  # nobody's cells are changed


def test_standard_input(monkeypatch):
    def stdin(text):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(text)))

    stdin(PLAIN.encode())
    assert read("-").to_dict(as_series=False) == TEXTS
    stdin(gzip.compress(PLAIN.encode()))
    assert next(chunks("-")).shown.to_dict(as_series=False) == TEXTS


def test_a_pipe_that_gives_its_beginning_in_pieces(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def feed():
        with pipe.open("wb", buffering=0) as stream:
            for piece in (b"a;", b"b;c\n1,", b"5;2;3\n4,5;", b"5;6\n"):
                stream.write(piece)
                time.sleep(0.03)

    thread = threading.Thread(target=feed)
    thread.start()
    frame = read(pipe)
    thread.join()
    assert frame["a"].to_list() == ["1.5", "4.5"]


# --- what is no table ----------------------------------------------------------------------------

NO_TABLES = {
    "empty": (b"", "is empty: it needs a line of column names"),
    "blank": (b" \n\n", "is empty"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20), "is no text: give a CSV file"),
    "zip": (b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(20), "is no text"),
    "excel": (b"PK\x03\x04\x14\0\x06\0xl/workbook.xml" + bytes(20), "is no text: save it as CSV"),
    "parquet by another name": (b"PAR1\x15\x04\x15\0" + bytes(20), "or Parquet by its name"),
    "header only": (b"a,b\n", "has no rows"),
    "twice": (b"a,b,a\n1,2,3\n", "has the column 'a' twice: rename one"),
    "twice but for a space": (b"a,b, a\n1,2,3\n", "has the column 'a' twice"),
    "no names": (b"1.5,2,-3e4\n1,2,3\n", r"first line .* holds numbers .* add a line of column"),
    "long row": (b"a,b\n1,2\n3,4,5\n", r"cannot be read as a table .*line 3"),
    "long rows": (b"a,b\n1,2,3\n3,4,5\n", r"cannot be read as a table .* as many cells"),
    "open quote": (b'a,b\n1,"2\n3,4\n', r"cannot be read as a table .*unexpected end of data"),
    "two headers": (
        b"size;price\nm2;EUR\n1,5;2\n2,5;3\n3,5;4\n",
        r"seems to have 2 rows of column names \(the last: m2, EUR\): use header_rows=2",
    ),
    "half a gzip": (gzip.compress(PLAIN.encode() * 9)[:40], r"is cut short|cannot be unpacked"),
}


@pytest.mark.parametrize("case", NO_TABLES)
def test_what_is_no_table_is_refused_with_the_reason(file, case):
    content, reason = NO_TABLES[case]
    write(file, content)
    with pytest.raises(ValueError, match=reason) as caught:
        read(file)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    write(tmp_path / "houses.csv", PLAIN)
    with pytest.raises(FileNotFoundError, match=r"no file .*house\.csv\. Did you mean houses\.csv"):
        read(tmp_path / "house.csv")
    with pytest.raises(FileNotFoundError, match=r"no file .*x\.parquet"):
        read(tmp_path / "x.parquet")
    with pytest.raises(IsADirectoryError, match="is a folder: name a CSV"):
        read(tmp_path)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_cell_may_be_a_book(file, quote):
    book = 200_000 * "x"  # more than the csv module allows by itself
    write(file, f"town,y\n{quote}{book}{quote},1\nBonn,2\n")
    assert read(file).to_dict(as_series=False) == {"town": [book, "Bonn"], "y": ["1", "2"]}


@pytest.mark.slow
def test_ten_thousand_columns(file):
    rng = np.random.default_rng(0)
    names = [f"column {i}" for i in range(10_000)]
    wide = pd.DataFrame(rng.normal(size=(30, 10_000)).round(3), columns=names)
    wide["town"] = rng.choice(["A", "B"], 30)
    wide.to_csv(file, index=False)
    frame = read(file)
    encoder = TableEncoder().fit(frame)
    whole = encoder.transform(frame)
    assert whole.shape == (30, 10_002)
    (part,) = chunks(file, encoder.named("number"))
    assert_array_equal(encoder.transform(part.values), whole)


# --- part by part --------------------------------------------------------------------------------

DIGITS = "code,n,flag,id\n007,1,yes,9\nA1,,no,8\n7,3,yes,7\n1e3,4.5,,0006\n,5,no,5\n"


def in_parts(monkeypatch, path, size, **options):
    """Read in blocks of so many bytes, or rows if the file knows its types."""
    monkeypatch.setattr(_files, "BLOCK", size)
    monkeypatch.setattr(_files, "CHUNK_ROWS", size)
    return list(chunks(path, **options))


@pytest.mark.parametrize("size", [1, 20, 35])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_parts_are_what_the_whole_is(file, monkeypatch, size, end):
    text = DIGITS + '"two\nlines, ""x""",6,yes,4\n'
    write(file, text.replace("\n", end))
    encoder = TableEncoder().fit(read(file))
    (one,) = in_parts(monkeypatch, file, 1000)
    parts = in_parts(monkeypatch, file, size)
    assert len(parts) > 1 and parts[-1].first == 6 - len(parts[-1].shown)
    assert pl.concat([part.shown for part in parts]).equals(one.shown)
    whole = encoder.transform(one.values)
    assert_array_equal(np.vstack([encoder.transform(part.values) for part in parts]), whole)
    assert_array_equal(whole, encoder.transform(read(file)))  # and what the fit saw
    assert one.shown["id"].to_list()[:5] == ["9", "8", "7", "0006", "5"]
    assert one.shown["code"][5] == f'two{end}lines, "x"'


def test_digits_alone_are_still_the_level_that_they_were(file):
    encoder = TableEncoder().fit(read(write(file, DIGITS)))
    expected = encoder.transform(read(file))[:1]
    write(file, "code,n,flag,id\n007,1,yes,9\n")
    (part,) = chunks(file, encoder.named("number"))
    assert_array_equal(encoder.transform(part.values), expected)
    assert_array_equal(encoder.transform(read(file)), expected)


def test_long_numbers_do_not_depend_on_their_neighbours(file, monkeypatch):
    long = [f"{10**17 + i * 7919}" for i in range(20)]
    write(file, "x\n" + "\n".join([*long, "0.1"]) + "\n")
    encoder = TableEncoder().fit(read(file))
    parts = in_parts(monkeypatch, file, 50)
    made = np.vstack([encoder.transform(part.values) for part in parts])
    assert made[:, 0].tolist() == [*map(float, long), 0.1]


ORDINARY = "a,town,y\n1.5,x,\n-2e3,,7\n,\u00fc,8\n"


def test_plain_rows_are_shown_as_they_stand(file):
    write(file, ORDINARY)
    (part,) = chunks(file, ["a"], lines=",")
    assert part.lines.decode() == ORDINARY.removeprefix("a,town,y\n")
    assert part.values["a"].to_list() == [1.5, -2000.0, None]
    assert part.values["y"].to_list() == [None, "7", "8"]  # not asked for as numbers


@pytest.mark.parametrize(
    "odd",
    [
        '"3",x,1',
        "3,x,1\r",
        "NA,x,1",
        "nan,x,1",
        "inf,x,1",
        "3 ,x,1",
        "",
        "3,x,1,",
    ],
)
def test_rows_that_are_not_plain_are_looked_at_cell_by_cell(file, monkeypatch, odd):
    write(file, f"{ORDINARY}{odd}\n4,x,1\n")
    (careful,) = in_parts(monkeypatch, file, 10_000, numbers=["a"])
    (part,) = in_parts(monkeypatch, file, 10_000, numbers=["a"], lines=",")
    assert not part.lines and part.shown.equals(careful.shown)
    mixed = in_parts(monkeypatch, file, len(ORDINARY) // 2, numbers=["a"], lines=",")
    assert mixed[0].lines and not all(part.lines for part in mixed)
    assert sum(len(part.shown) for part in mixed) == len(careful.shown)


def test_lines_are_kept_only_if_the_new_file_has_their_separator(file):
    write(file, ORDINARY.replace(",", ";"))
    assert [bool(part.lines) for part in chunks(file, ["a"], lines=",")] == [False]
    assert [bool(part.lines) for part in chunks(file, ["a"], lines=";")] == [True]


QUOTED = (
    *("x", '5" p', '6"', 'a "b" c', '5""', "2.5", "", '"q"', '"q, r"', '"two\nli, nes"', ' "sp"'),
    *('"e ""5"" f\n"', '"""x"""', '"\n"', '"a\n\n\nb"'),
)


@pytest.mark.parametrize("seed", range(20))
def test_quotes_mean_the_same_whatever_is_read_together(file, monkeypatch, seed):
    """Those around a cell, doubled ones, and those that are letters, as in 5" pipe."""
    rng = np.random.default_rng(seed)
    rows = [",".join(rng.choice(QUOTED, 3)) for _ in range(20)]
    text = "\n".join(["a,b,c", "1,2,3", *rows, ""])
    write(file, text)
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    expected = [tuple(cell or None for cell in row) for row in lines][1:]
    assert read(file).rows() == expected
    for size in (3, 30, 70):
        parts = in_parts(monkeypatch, file, size)
        assert [row for part in parts for row in part.shown.rows()] == expected


def test_a_quote_within_a_cell_does_not_make_the_rest_one_block(file, monkeypatch):
    write(file, "a,b\n" + "1,x\n" * 20 + '2,5" pipe\n' + "3,x\n" * 80)
    assert len(in_parts(monkeypatch, file, 40)) > 8


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(file, monkeypatch):
    monkeypatch.setattr(_files, "LONGEST_ROW", 1000)
    write(file, "a,b\n1,2\n" + '3,"x\n' + "5,6\n" * 1000)
    with pytest.raises(ValueError, match=r"row longer than 1,000 bytes, which begins with '3,\"x"):
        in_parts(monkeypatch, file, 100)
    write(file, "a,b\n1," + "x" * 10_000)
    with pytest.raises(ValueError, match=r"is a quote in it that is not closed\?"):
        in_parts(monkeypatch, file, 100)


def test_a_cell_longer_than_a_block_or_a_sample(file, monkeypatch):
    write(file, f"note,y\n{'x' * 300_000},1\nb,2\n")
    assert read(file)["note"].str.len_chars().to_list() == [300_000, 1]
    parts = in_parts(monkeypatch, file, 1000)
    assert [c for part in parts for c in part.shown["note"].str.len_chars()] == [300_000, 1]


def test_several_rows_of_names(file):
    write(file, "size;price\nm2;EUR\n1,5;2\n2,5;3\n3,5;4\n")
    frame = read(file, header_rows=2)
    assert frame.columns == ["size m2", "price EUR"] and frame.rows()[0] == ("1.5", "2")
    with pytest.raises(ValueError, match=r"has 5 row\(s\), fewer than the 7 of its header"):
        read(file, header_rows=7)
    write(file, "size,price\nsize,price\n1,2\n3,4\n")  # two files put together, perhaps
    assert read(file, header_rows=2).columns == ["size", "price"]
    write(file, "Houses of 2020\n\nsize,price\n1,2\n3,4\n")
    assert read(file, header_rows=2).columns == ["size", "price"]
    write(file, "Flat,\nsize,\nm2,price\n1,2\n3,4\n")
    assert read(file, header_rows=2).columns == ["Flat size", "unnamed 2"]
    # words that are levels are no header
    assert len(read(write(file, "a,b\nx,1\ny,2\nx,3\ny,4\n"))) == 4
    assert len(read(write(file, "a,b\n?,1\n1,2\n2,3\n3,4\n"))) == 4


def test_progress_is_told(file, monkeypatch):
    monkeypatch.setattr(_files, "SAMPLE", 1000)
    write(file, "a,b\n" + f"1,{'x' * 500}\n" * 5000)
    monkeypatch.setattr(_files, "BLOCK", 100_000)
    for told, go in (
        (whole := [], lambda: read(file, progress=whole.append)),
        (parts := [], lambda: list(chunks(file, progress=parts.append))),
    ):
        go()
        assert len(told) > 5 and told == sorted(told) and 0 < told[0] < 0.2 and told[-1] == 1


def test_errors_name_the_row_of_the_file(file, monkeypatch):
    encoder = TableEncoder().fit(read(write(file, "a,b\n1,2\n2,3\n3,5\n")))
    write(file, "a,b\n1,2\n2,3\n3,4\n4,five\n")
    part = in_parts(monkeypatch, file, 10)[-1]
    with pytest.raises(ValueError, match=r"The column 'b' held numbers .* row 4 has 'five'"):
        encoder.transform(part.values, np.arange(part.first, part.first + len(part.values)))
    write(file, "a,b\n1,2\n2,inf\n")
    with pytest.raises(ValueError, match=r"The column 'b' holds infinity \(row 2 has 'inf'\)"):
        encoder.transform(read(file))
    write(file, "a,b\n" + "1,2\n" * 20 + "1,2,3\n")
    with pytest.raises(ValueError, match=r"line 22 has 3 cells, not 2"):
        in_parts(monkeypatch, file, 10)


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["plain", "1,5", 'quo"te', "two\nlines", "\r", " ", "ü", ",\n"])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_what_is_written_is_read_back(file, other, separator):
    numbers = {"mean": [0.1 + 0.2, -1e-300, 1e22], "std": [1.0, 2.5, 5e-324]}
    frame = pl.DataFrame({"a,b": ["x", other, "y"], "c": ["1", "2.50", None], **numbers})
    with file.open("wb") as stream:
        for part, header in ((frame[:2], True), (frame[2:], False)):
            added = part.select("mean", "std")
            shown = part.drop("mean", "std")
            _writing.write(shown, added, stream, header=header, separator=separator)
    back = read(file)
    assert back["a,b"].to_list() == ["x", other, "y"]
    assert back["c"].to_list() == ["1", "2.50", None]
    for name in ("mean", "std"):
        assert back[name].cast(float).to_list() == frame[name].to_list()


@pytest.mark.parametrize("end", ["\n", ""])
def test_plain_lines_are_written_as_they_stand_with_more_at_their_ends(file, end):
    write(file, "a,town\n1.50,x\n-2e3,\n,ü" + end)
    parts = list(chunks(file, ["a"], lines=","))
    added = pl.DataFrame({"mean": [1.0, 0.25, -3.0], "std": [0.1 + 0.2, 2.5, 0.125]})
    with file.open("wb") as stream:
        for part in parts:
            more = added.slice(part.first, len(part.shown))
            _writing.write(part.shown, more, stream, header=not part.first, lines=part.lines)
    expected = "a,town,mean,std\n1.50,x,1.0,0.30000000000000004\n-2e3,,0.25,2.5\n,ü,-3.0,0.125\n"
    assert file.read_text("utf-8") == expected


def test_a_blank_line_is_no_row_of_a_table_of_one_column(file):
    write(file, "a\n1\n\n2\n")
    (part,) = chunks(file, ["a"], lines=",")
    assert not part.lines and part.values["a"].to_list() == ["1", "2"]


@pytest.mark.parametrize("text", [b"", b"a", b"a\n", b"a\nb", b"\n", b"\n\n", b"ab\n" * 999 + b"c"])
def test_lines_are_counted_as_python_counts_them(text):
    assert _engine.count_lines(text) == len(text.splitlines())


@pytest.mark.parametrize("right", [b"", b"1\n", b"1\n2", b"1\n2\n3\n"])
def test_lines_side_by_side_must_be_as_many(right):
    assert _engine.side_by_side(b"a\nb\n", b"1\n2\n", ";") == b"a;1\nb;2\n"
    with pytest.raises(ValueError, match="as many lines"):
        _engine.side_by_side(b"a\nb\n", right, ";")


# --- Parquet -------------------------------------------------------------------------------------


@pytest.fixture(params=["parquet", "arrow"])
def typed(tmp_path, request):
    """A file that knows its types, and how to write one."""
    place = tmp_path / f"t.{request.param}"

    def save(frame):
        frame.write_parquet(place) if request.param == "parquet" else frame.write_ipc(place)
        return place

    return place, save


def test_files_that_know_their_types(typed, monkeypatch):
    place, save = typed
    frame = pl.DataFrame(
        {
            "n": [1, None, 3, 4],
            "x": [0.5, None, 1.5, float("nan")],
            "price": [Decimal("1.25"), None, Decimal("3.75"), Decimal("1.00")],
            "flag": [True, False, None, True],
            "town": pl.Series(["A", "B", None, "A"], dtype=pl.Categorical),
            "day": [dt.date(2020, 1, 1), None, dt.date(2021, 6, 1), dt.date(2020, 2, 3)],
            "took": [dt.timedelta(hours=12 * i) for i in range(4)],
            "tags": [["a"], ["b"], ["a"], None],
        }
    )
    got = read(save(frame))
    encoder = TableEncoder().fit(got)
    assert kinds(encoder) == {
        "n": "number", "x": "number", "price": "number", "flag": "truth", "town": "category",
        "day": "date", "took": "number", "tags": "dropped",
    }  # fmt: skip
    assert encoder.tidy(got)["took"].to_list() == [0, 0.5, 1, 1.5]
    told = []
    parts = in_parts(monkeypatch, place, 1, progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0] and [part.first for part in parts] == [0, 1, 2, 3]
    numbers = np.vstack([encoder.transform(part.values) for part in parts])
    assert_array_equal(numbers, encoder.transform(got))
    with pytest.raises(ValueError, match="The target 'day' holds dates"):
        split_target(got, "day")
    assert split_target(got, "price")[1].tolist() == [1.25, 3.75, 1.0]


def test_files_that_are_none_or_empty_or_cut_in_half(typed):
    place, save = typed
    write(place, PLAIN)
    with pytest.raises(ValueError, match=r"cannot be read as (Parquet|Arrow) .*: write it again"):
        read(place)
    save(pl.DataFrame({"a": [1.0, 2.0]}))
    write(place, place.read_bytes()[: place.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"cannot be read as (Parquet|Arrow) .*: write it again"):
        list(chunks(place))
    save(pl.DataFrame({"a": [1.0]})[:0])
    with pytest.raises(ValueError, match="has no rows"):
        read(place)
    with pytest.raises(ValueError, match="has no rows"):
        list(chunks(place))


def test_pandas_and_polars_give_the_same():
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None, 3, 4], dtype="Int64"),
            "x": [0.5, np.nan, 1.5, 2.5],
            "price": [Decimal("1.25"), None, Decimal("3.75"), Decimal("1.00")],
            "flag": pd.array([True, False, None, True], dtype="boolean"),
            "town": pd.Categorical(["A", "B", None, "A"]),
            "day": pd.to_datetime(["2020-01-01", None, "2021-06-01", "2020-02-03"], utc=True),
            "mixed": [1, "A", 1, None],
        }
    )
    plain = pl.DataFrame(
        {
            "n": [1, None, 3, 4],
            "x": [0.5, None, 1.5, 2.5],
            "price": ["1.25", None, "3.75", "1.00"],
            "flag": [True, False, None, True],
            "town": ["A", "B", None, "A"],
            "day": ["2020-01-01", None, "2021-06-01", "2020-02-03"],
            "mixed": ["1", "A", "1", None],
        }
    )
    encoder = TableEncoder().fit(frame)
    assert kinds(encoder) == kinds(TableEncoder().fit(plain))
    assert_array_equal(encoder.transform(frame), TableEncoder().fit_transform(plain))
    with pytest.raises(TypeError, match="must be a DataFrame of polars or pandas, got list"):
        encoder.transform([1, 2])


# --- the target ----------------------------------------------------------------------------------


def test_the_nearest_name_is_suggested():
    frame = pd.DataFrame({"price": [1.0, 2.0], "size": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"There is no column 'prise': did you mean 'price'\?"):
        split_target(frame, "prise")
    with pytest.raises(ValueError, match=r"no column 'zzz': choose from price, size\."):
        split_target(frame, "zzz")


def test_rows_without_a_target_are_left_out_and_counted():
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1.0, None, 3.0, None]})
    X, y, rows = split_target(frame, "y")
    assert X["x"].to_list() == [1, 3] and y.tolist() == [1, 3]
    assert rows.tolist() == [0, 2]  # of the file
    assert frame.shape == (4, 2)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["1", "2", "about 3"], r"must hold numbers: row 3 has 'about 3'\. Correct"),
        (["1", "2", "3,5"], r"row 3 has '3,5'\. Is it a decimal comma\?"),
        ([1.0, np.inf, 3.0], r"holds infinity \(row 2 has 'inf'\)"),
        ([1.0, np.nan, np.nan], "Only one row has a 'y': at least 2"),
        ([np.nan] * 3, "No row has a 'y'"),
    ],
)
def test_bad_targets(values, reason):
    with pytest.raises(ValueError, match=reason):
        split_target(pd.DataFrame({"x": [1, 2, 3], "y": values}), "y")


# --- what a column is taken for ------------------------------------------------------------------


def test_kinds():
    n = 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "whole": rng.integers(0, 5, n),
            "truth": rng.choice([True, False], n),
            "yes or no": rng.choice(["Yes", "no", "NO"], n),
            "town": rng.choice(["A", "B", "C"], n),
            "date": [f"2020-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(n)],
            "text": [f"a remark, number {i}" for i in range(n)],
            "nothing": [None] * n,
            "always": ["same"] * n,
        }
    )
    encoder = TableEncoder().fit(frame)
    assert kinds(encoder) == {
        "number": "number", "whole": "number", "truth": "truth", "yes or no": "truth",
        "town": "category", "date": "date", "text": "dropped", "nothing": "dropped",
        "always": "dropped",
    }  # fmt: skip
    told = {name: column.remark for name, column in encoder.columns_.items()}
    assert told["town"] == "3 levels"
    assert told["date"] == "2020-01-01 to 2020-12-24, days since the first, time of year, week"
    assert told["text"] == "text, 60 different values: an identifier or free text"
    assert told["nothing"] == "all missing" and told["always"] == "always same"
    assert list(encoder.get_feature_names_out()) == [
        "number", "whole", "truth", "yes or no", "date", "date_year_sin", "date_year_cos",
        "date_week_sin", "date_week_cos", "town_A", "town_B", "town_C",
    ]  # fmt: skip
    assert encoder.transform(frame).shape == (n, 12)


@pytest.mark.parametrize("form", ["{},234", "$ {}.50", "{} %", "{} kg", "€{}", "-{},5", "{}'000"])
def test_dressed_numbers_are_told(form):
    dressed = [form.format(i) for i in range(60)]
    told = f"text, 60 different values, such as {dressed[0]}: if they are numbers, write them"
    assert kind(*dressed) == ("dropped", f"{told} plainly, as 1234.5")
    for text in ("house {}", "A{}B{}", "{} rooms and a garden"):
        assert "identifier or free text" in kind(*[text.format(i, i) for i in range(60)])[1]


def moments(*values):
    """What a column of these values is read as, by its encoder."""
    frame = pl.DataFrame({"x": values})
    return TableEncoder().fit(frame).tidy(frame)["x"].to_list()


@pytest.mark.parametrize(
    ("form", "hours"),
    [("%Y-%m-%d", 0), ("%d.%m.%Y", 0), ("%m/%d/%y", 0), ("%d/%m/%Y", 0), ("%Y-%m-%dT%H:%M:%SZ", 1),
     ("%Y-%m-%d %H:%M:%S+0000", 1), ("%d %b %Y", 0), ("%B %d, %Y", 0), ("%d-%b-%y", 0),
     ("%Y/%m/%d %H:%M", 1), ("%m/%d/%Y %I:%M %p", 1), ("%d %B %Y", 0), ("%Y.%m.%d", 0),
     ("%Y%m%d", 0), ("%Y%m%dT%H%M%S", 1), ("%Y-%m-%d %H:%M:%S UTC", 1)],
)  # fmt: skip
def test_dates_as_people_write_them(form, hours):
    times = [dt.datetime(2019, 11, 3) + dt.timedelta(days=17 * i, hours=5 * hours * i)
             for i in range(30)]  # fmt: skip
    read = moments(*[t.strftime(form) for t in times])
    assert [moment.replace(tzinfo=None) for moment in read] == times
    assert kind(*[t.strftime(form) for t in times])[0] == "date"


def test_zones_are_brought_together():
    same = [dt.datetime(2020, 1, 31, 10), dt.datetime(2020, 6, 30, 10), dt.datetime(2020, 7, 1, 10)]
    texts = "2020-01-31T12:00:00+02:00", "2020-06-30T10:00:00Z", "2020-07-01T05:00:00-0500"
    assert moments(*texts) == [moment.replace(tzinfo=dt.UTC) for moment in same]
    assert "in UTC" in kind(*texts)[1]
    zoned = pl.Series([dt.datetime(2020, 1, 1, 12), dt.datetime(2020, 7, 1, 12)] * 3)
    frame = pl.DataFrame({"x": zoned.dt.replace_time_zone("Europe/Berlin")})
    for typed in (frame, pd.DataFrame({"x": pd.to_datetime(zoned).tz_localize("Europe/Berlin")})):
        encoder = TableEncoder().fit(typed)
        read = encoder.tidy(typed)["x"].to_list()
        hours = (11, 1), (10, 7)
        assert read[:2] == [dt.datetime(2020, m, 1, h, tzinfo=dt.UTC) for h, m in hours]
        assert "in UTC" in encoder.columns_["x"].remark
    texts = frame.select(pl.col("x").dt.strftime("%Y-%m-%dT%H:%M:%S%z"))  # as a CSV has them
    assert encoder.tidy(texts).equals(encoder.tidy(frame))


def test_a_zone_that_the_dates_of_the_fit_had_not_is_refused():
    times = pl.Series("x", [dt.datetime(2020, 1, 1, 12), None, dt.datetime(2020, 7, 1, 12)])
    naive, zoned = times.to_frame(), times.dt.replace_time_zone("Asia/Tokyo").to_frame()
    iso = [naive.select(pl.col("x").dt.strftime("%Y-%m-%d %H:%M")),
           zoned.select(pl.col("x").dt.strftime("%Y-%m-%d %H:%M:%S%z"))]  # fmt: skip
    for fitted, other in ((naive, zoned), (iso[0], zoned), (zoned, naive), (iso[1], naive)):
        encoder = TableEncoder().fit(fitted)
        with pytest.raises(ValueError, match=r"'x' held dates with(out)? a zone when .* and now"):
            encoder.transform(other)
        nothing = other.with_columns(pl.lit(None).cast(other.schema["x"]).alias("x"))
        assert encoder.transform(nothing).shape[0] == 3
    for fitted, same in ((naive, iso[0]), (zoned, iso[1]), *zip(iso, (naive, zoned), strict=True)):
        encoder = TableEncoder().fit(fitted)
        assert_array_equal(encoder.transform(same), encoder.transform(fitted))
        tidy = encoder.tidy(fitted)
        assert_array_equal(encoder.transform(tidy), encoder.transform(fitted))
    for fitted, other in ((naive, iso[1]), (zoned, iso[0])):
        with pytest.raises(ValueError, match=r"held dates, as 2020-01-31 13:00:00.*: row 1 has"):
            TableEncoder().fit(fitted).transform(other)
    day = naive.select(pl.col("x").dt.date())
    assert_array_equal(TableEncoder().fit(day).transform(naive)[:, 0], [0.5, 91, 182.5])
    encoder.date_forms_ = np.array([""])  # as in older files, which do not know
    assert_array_equal(encoder.transform(naive)[:, 1:], encoder.transform(iso[0])[:, 1:])


def test_dates_that_are_whole_numbers():
    days = [dt.date(2019, 12, 20) + dt.timedelta(days=i) for i in range(40)]
    numbers = [int(f"{day:%Y%m%d}") for day in days]
    frame = pl.DataFrame({"x": numbers})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_["x"].remark.startswith("2019-12-20 to 2020-01-28, days since")
    for other in (pl.Series(days), [str(n) for n in numbers], pd.Series(numbers).tolist()):
        assert encoder.tidy(pl.DataFrame({"x": other})).equals(encoder.tidy(frame))
    assert kind(*[*numbers, 20200231])[0] == "number"  # no such day
    assert kind(*numbers[:4])[0] == "number"  # too few to tell
    assert kind(*[n + 0.5 for n in numbers])[0] == "number"


@pytest.mark.parametrize("form", ["%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y %H:%M"])
def test_after_the_fit_iso_will_do_as_well(form):
    times = [dt.datetime(2020, 1, 1) + dt.timedelta(days=i, hours=12) for i in range(40)]
    fitted = pl.DataFrame({"x": [t.strftime(form) for t in times]})
    encoder = TableEncoder().fit(fitted)
    for iso in ("%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S") if "%H" in form else ("%Y-%m-%d",):
        later = pl.DataFrame({"x": [t.strftime(iso) for t in times[:-1]] + [None]})
        assert encoder.tidy(later)[:-1].equals(encoder.tidy(fitted)[:-1])
    with pytest.raises(ValueError, match=r"held dates, as .* row 1 has '2020-01-01T00:00:00Z'"):
        encoder.transform(pl.DataFrame({"x": ["2020-01-01T00:00:00Z"]}))  # which zone was it?


def test_months_and_times_of_day():
    assert moments("2020-01", "2020-03", "2021-02")[2] == dt.datetime(2021, 2, 1)
    frame = pl.DataFrame({"x": ["12:30", "00:00", "18:00"]})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_["x"] == Column("date", "time of day")
    assert list(encoder.get_feature_names_out()) == ["x", "x_day_sin", "x_day_cos"]
    made = encoder.transform(frame)
    assert made[2] == pytest.approx([0.75, -1, 0], abs=1e-12)


@pytest.mark.parametrize("mark", ["PM", " pm", " p.m."])
def test_times_of_day_before_and_after_noon(mark):
    frame = pl.DataFrame({"x": ["12:30" + mark, "1:05 am", "6:00" + mark, None]})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_["x"] == Column("date", "time of day, 1 missing")
    expected = [12.5 / 24, 65 / 1440, 0.75]
    assert encoder.transform(frame)[:3, 0] == pytest.approx(expected, abs=1e-12)
    assert kind("1:05:07 PM", "12:30:00 am", "6:00:59" + mark) == ("date", "time of day")


def test_days_before_1970_are_told_as_they_are():
    hours = pl.datetime_range(
        dt.datetime(1969, 12, 30, 12), dt.datetime(1969, 12, 31, 23), "1h", eager=True
    )
    encoder = TableEncoder().fit(pl.DataFrame({"x": hours}))
    assert encoder.columns_["x"].remark.startswith("1969-12-30 to 1969-12-31, ")
    earlier = pl.DataFrame({"x": hours.dt.offset_by("-30h")})
    (drift,) = drifts(encoder, earlier)[0]
    assert drift.remark == "earlier: the middle is 1969-12-29, was 1969-12-31"


def test_which_number_is_the_day():
    late = [f"{1 + i % 12}/{1 + i}/2020" for i in range(28)]
    assert moments(*late)[20] == dt.datetime(2020, 9, 21)
    assert kind(*late)[1].startswith("2020-01-01 to")
    both = ["03/04/2020", "05/01/2020", "04/02/2021"]
    assert "read as month/day/year" in kind(*both)[1]
    # ascending if the day comes first, and only then
    assert "read as day/month/year" in kind("01/02/2020", "03/02/2020", "01/03/2020")[1]


def test_dates_that_are_not_written_alike_are_told():
    told = kind(*["2020-01-31"] * 5, *[f"2020-02-{i:02}" for i in range(1, 20)], "28.2.2020")
    assert told == ("dropped", "dates, but 1 row(s) are not written as '2020-01-31' (row 25 has "
                    "'28.2.2020'): write all in one way, or leave them empty")  # fmt: skip
    gaps = ["2020-01-31", None, *[f"2020-02-{i:02}" for i in range(1, 20)], "sometime"]
    frame = pl.DataFrame({"x": gaps, "n": range(22)})
    told = TableEncoder().fit(frame, rows=np.arange(100, 122)).columns_["x"].remark
    assert "(row 122 has 'sometime')" in told  # of the file, whose other rows were left out
    assert "write all in one way" in kind("2020-01-31", "31.1.2020", "1/31/20", "2020-02-01")[1]


def test_numbers_made_of_dates():
    days = [dt.date(2019, 1, 1) + dt.timedelta(days=i) for i in range(0, 800, 3)]
    frame = pl.DataFrame({"day": days})
    encoder = TableEncoder().fit(frame)
    made = dict(zip(encoder.get_feature_names_out(), encoder.transform(frame).T, strict=True))
    assert_array_equal(made["day"], np.arange(0, 800, 3))
    assert_array_equal(np.hypot(made["day_year_sin"], made["day_year_cos"]).round(12), 1)
    later = pl.DataFrame({"day": ["2031-05-06", None, "1999-05-06"]})  # from a text file
    one, gone, other = encoder.transform(later)
    assert_array_equal(encoder.transform(later.with_columns(pl.col("day").str.to_date())),
                       [one, gone, other])  # fmt: skip
    assert one[0] == (dt.date(2031, 5, 6) - days[0]).days and other[0] < 0
    assert abs(one[1:3] - other[1:3]).max() < 0.02  # the same time of year
    assert gone.tolist() == [399.0, 0, 0, 0, 0]  # the median, and no time of year
    monthly = [f"{2000 + i // 12}-{1 + i % 12:02}" for i in range(40)]
    assert "week" not in kind(*monthly)[1] and "time of year" in kind(*monthly)[1]
    assert kind("2020-01-01 10:00", "2020-01-01 11:00", "2020-01-01 13:30") == (
        "date", "2020-01-01 to 2020-01-01, days since the first")  # fmt: skip
    hourly = [(dt.datetime(2020, 1, 1) + dt.timedelta(hours=i)).isoformat() for i in range(300)]
    assert kind(*hourly)[1].endswith("time of week, day")


def test_a_column_that_changed_its_type_since_the_fit():
    frame = pl.DataFrame({"n": [1.0, 2.0, 4.0], "d": ["2020-01-01", "2020-01-02", "2020-02-01"]})
    encoder = TableEncoder().fit(frame)
    with pytest.raises(ValueError, match=r"'d' held dates, as 2020-01-31, when .*: row 2 has 'x'"):
        encoder.transform(frame.with_columns(d=pl.Series(["2020-01-01", "x", None])))
    with pytest.raises(
        ValueError, match=r"'d' held dates, as 2020-01-31, when .*: row 1 has '5.0'"
    ):
        encoder.transform(frame.with_columns(d=pl.Series([5.0, 6.0, 7.0])))
    with pytest.raises(ValueError, match=r"'n' held numbers .* and now dates \(row 1 has '2020"):
        encoder.transform(frame.with_columns(n=pl.Series([dt.date(2020, 1, 1)] * 3)))


@pytest.mark.parametrize("text", ["1.2.3", "A-1-20", "20%", "may", "3-4", "1.5 kg"])
def test_what_only_looks_like_a_date(text):
    assert kind(*[text, f"{text} b"] * 10)[0] == "category"


def test_marks_for_missing_among_numbers_are_told():
    numbers = [str(i / 7) for i in range(60)]
    expected = ("dropped", "2 row(s) do not hold a number (row 4 has '?'): correct them, or "
                "leave them empty")  # fmt: skip
    assert kind(*numbers[:3], "?", *numbers[3:], "?") == expected
    # codes, of which some are digits, are another matter
    codes = [f"{i % 30}" for i in range(90)] + ["V1", "V2", "V3", "V4"] * 5
    assert kind(*codes)[0] == "category"


def test_many_levels_without_a_target():
    rng = np.random.default_rng(0)
    levels = [f"L{i:03}" for i in range(100)]
    column = rng.permutation(np.repeat(levels, np.arange(1, 101)))
    told, remark = kind(*column)
    assert told == "category" and remark == "100 levels, the 30 most frequent kept apart"
    frame = pd.DataFrame({"x": column})
    encoder = TableEncoder(max_categories=4).fit(frame)
    assert encoder.transform(frame).shape == (len(column), 4)
    frequent = pd.Series(column).value_counts().index[:4]
    assert list(encoder.get_feature_names_out()) == sorted(f"x_{level}" for level in frequent)
    assert len(encoder.levels_["x"].names) == 4  # no list of the rare ones in the file
    assert kind(*[f"id {i}" for i in range(100)])[0] == "dropped"
    assert kind(*[f"L{i}" for i in range(15)])[0] == "category"


def many_levels(n=3000, k=200, seed=0):
    rng = np.random.default_rng(seed)
    effect, spread = rng.normal(size=k), np.exp(rng.normal(size=k))
    level = rng.integers(0, k, n)
    y = effect[level] + 0.3 * spread[level] * rng.normal(size=n)
    return pl.DataFrame({"town": [f"T{i}" for i in level]}), y, effect[level], spread[level]


def test_many_levels_stand_for_the_targets_mean_and_spread():
    frame, y, effect, spread = many_levels()
    encoder = TableEncoder().fit(frame, y)
    assert encoder.columns_["town"].remark == (
        "200 levels, each as the target's mean and spread in other rows")  # fmt: skip
    assert list(encoder.get_feature_names_out()) == ["town_mean", "town_spread"]
    made = encoder.transform(frame)
    assert np.corrcoef(made[:, 0], effect)[0, 1] > 0.95
    assert np.corrcoef(np.log(made[:, 1]), np.log(spread))[0, 1] > 0.8
    unseen = encoder.transform(pl.DataFrame({"town": ["new", None]}))
    assert_array_equal(unseen[0], unseen[1])
    assert unseen[0, 0] == pytest.approx(y.mean()) and unseen[0, 1] > 0


def test_a_long_level_costs_no_more_than_itself(tmp_path):
    pytest.importorskip("skops")
    frame, y, *_ = many_levels(n=3000, k=1000)
    frame[7, "town"] = book = 100_000 * "x"
    encoder = TableEncoder(target="y")
    model = MVERegressor(hidden_mean=(2,), epochs=1).fit(encoder.fit_transform(frame, y), y)
    pipeline = Pipeline([("table", encoder), ("model", model)])
    save(pipeline, tmp_path / "m.mve")
    assert (tmp_path / "m.mve").stat().st_size < 400_000  # and not 1000 times the book
    again = load(tmp_path / "m.mve")
    assert book in again[0].levels_["town"].names
    assert_array_equal(again.predict(frame), pipeline.predict(frame))


@pytest.mark.parametrize("many", [True, False])
def test_levels_that_files_of_old_keep_as_text_of_numpy(many):
    frame, y, *_ = many_levels(k=200 if many else 9)
    encoder = TableEncoder().fit(frame, y)
    expected, names = encoder.transform(frame), encoder.levels_["town"].names
    encoder.level_names_ = [np.array(names)]
    del encoder.level_ends_
    assert_array_equal(encoder.transform(frame), expected)


def test_no_row_can_tell_its_own_target():
    frame, *_ = many_levels(n=1000)
    y = np.random.default_rng(1).normal(size=1000)  # of which no level knows
    encoder = TableEncoder()
    trained = encoder.fit_transform(frame, y)
    limit = 3.5 / np.sqrt(1000)
    assert abs(np.corrcoef(trained[:, 0], y)[0, 1]) < limit
    assert np.corrcoef(encoder.transform(frame)[:, 0], y)[0, 1] > 3 * limit  # the trap


def test_missing_values():
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, 3.0, 8.0], "t": ["A", "B", None, "A"], "f": ["yes", "no", None, "yes"]}
    )
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_["x"].remark == "1 missing"
    assert encoder.columns_["t"].remark == "2 levels, 1 missing"
    names = list(encoder.get_feature_names_out())
    assert names == ["x", "f", "missingindicator_x", "missingindicator_f",
                     "t_(missing)", "t_A", "t_B"]  # fmt: skip
    assert encoder.transform(frame).tolist() == [
        [1, 1, 0, 0, 0, 1, 0],
        [3, 0, 1, 0, 0, 0, 1],
        [3, 1, 0, 1, 1, 0, 0],
        [8, 1, 0, 0, 0, 1, 0],
    ]
    gone = pd.DataFrame({"t": [None], "f": [None], "x": [None]})
    assert encoder.transform(gone).tolist() == [[3, 1, 1, 1, 1, 0, 0]]


def test_a_single_value_and_gaps_is_no_constant():
    assert kind(1.0, None, 1.0, None) == ("number", "2 missing")
    assert kind("x", None, "x", None) == ("category", "1 level, 2 missing")


def test_unseen_levels_are_none_of_the_known_ones():
    frame = pd.DataFrame({"t": ["A", "B"] * 3})
    encoder = TableEncoder().fit(frame)
    assert encoder.transform(pd.DataFrame({"t": ["C", "A", None]})).tolist() == [
        [0, 0],
        [1, 0],
        [0, 0],
    ]


YES, NO = (
    ("yes", "Y", "TRUE", "t", "1", "1.0", " 1.00", True, 1),
    ("NO", "n", "False", "f", "0", "0.0"),
)


def test_truth_values_are_read_however_they_are_written():
    encoder = TableEncoder().fit(pd.DataFrame({"f": ["yes", "no", "yes", None]}))
    for cells, value in ((YES, 1), (NO, 0), ((None, "", "NA"), None)):
        for cell in cells:
            assert encoder.tidy(pl.DataFrame({"f": [cell]})).item() == value
    for typed in (pd.Series([1.0, None, 0.0]), pd.Series([True, None, False], dtype="boolean")):
        assert encoder.tidy(pd.DataFrame({"f": typed}))["f"].to_list() == [1, None, 0]


@pytest.mark.parametrize("cell", ["perhaps", "ja", "ye", "2", "-1", 2, -1.0, dt.date(2020, 1, 1)])
def test_what_is_no_truth_value_is_refused(cell):
    encoder = TableEncoder().fit(pl.DataFrame({"f": ["yes", "no", "yes"]}))
    told = rf"'f' held truth values when .*: row 7 has '{cell}.*'\. Write yes or no, .* or leave it"
    with pytest.raises(ValueError, match=told):
        encoder.transform(pl.DataFrame({"f": [None, cell]}), rows=np.array([5, 6]))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["yes", "NO", "y"], "truth"),
        (["Y", "N"], "truth"),
        (["t", "F", None], "truth"),
        (["1.0", "no"], "truth"),
        (["1.0", "0.0", None], "number"),
        (["ja", "nein"], "category"),
        (["yes", "no", "perhaps"], "category"),
        (["F", "M"], "category"),
        (["F", "N"], "category"),  # both would be 0
        (["T", "N"], "category"),
        (["Y", "N", "T", "F"], "category"),
        (["F", None], "category"),  # of F and M, perhaps
        (["2", "no"], "category"),
    ],
)
def test_which_words_and_letters_are_truth_values(cells, expected):
    assert kind(*cells * 5)[0] == expected


def test_order_further_columns_and_missing_ones():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=9), "b": ["x", "y", "z"] * 3, "c": [1] * 9})
    encoder = TableEncoder().fit(frame)
    shuffled = frame[["b", "a"]].assign(more=1)
    assert_array_equal(encoder.transform(shuffled), encoder.transform(frame))
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'a', 'b': add them, empty if"):
        encoder.transform(frame[["c"]])


def test_names_that_collide_once_encoded():
    frame = pd.DataFrame({"a": ["b", "c"] * 3, "a_b": np.arange(6.0), "missingindicator_a": 1.5})
    frame.loc[0, "missingindicator_a"] = 2
    assert list(TableEncoder().fit(frame).get_feature_names_out()) == [
        "a_b", "missingindicator_a", "a_b_2", "a_c",
    ]  # fmt: skip
    more = frame.assign(a_b=["2", "(missing)", None] * 2, a=["b_2", "b_(missing)", "b_2_2"] * 2)
    for output in ("polars", "pandas"):
        encoder = TableEncoder().fit(more).set_output(transform=output)
        assert list(encoder.transform(more).columns) == [
            "missingindicator_a", "a_b_(missing)", "a_b_2", "a_b_2_2",
            "a_b_(missing)_2", "a_b_(missing)_3", "a_b_2_3",
        ]  # fmt: skip


@pytest.mark.parametrize("repeats", [1, 20])
def test_levels_that_differ_by_a_nul_are_two(repeats):
    levels = [f"{i}{end}" for i in range(repeats) for end in ("a", "a\0")]
    frame = pl.DataFrame({"x": levels * 4})
    y = np.arange(len(frame)) % 2.0
    encoder = TableEncoder().fit(frame, y)
    assert set(encoder.levels_["x"].names) == set(levels)
    made = encoder.transform(frame)
    assert (made[y == 0, 0] != made[y == 1, 0]).all()


def test_nothing_to_predict_from():
    with pytest.raises(ValueError, match=r"No column can be used .*: n is dropped \(all missing\)"):
        TableEncoder().fit(pd.DataFrame({"n": [None, None]}))
    with pytest.raises(ValueError, match="No column can be used to predict: there is none"):
        TableEncoder().fit(pd.DataFrame(index=range(3)))


def test_the_encoder_is_an_estimator_and_changes_no_frame():
    frame = pd.DataFrame({"x": [1.0, None, 3.0], "t": ["A", " A", "B"]})
    before = frame.copy()
    encoder = clone(TableEncoder(max_categories=5, target="y")).fit(frame)
    encoder.transform(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert encoder.get_params() == {"max_categories": 5, "target": "y"}
    assert encoder.n_features_in_ == 2 and encoder.columns_["t"].remark == "2 levels"
    with pytest.raises(Exception, match="not fitted"):
        _ = TableEncoder().columns_


def test_fuzz(tmp_path):
    results = fuzz_input.run(tmp_path, 40)
    assert {kind for kind, _ in results} == {"table", "store"} and results.total() == 80


@pytest.mark.parametrize("name", ["*", "^a$", "^.*$", "^($", "", "a  b", "größe 🌊"])
def test_a_column_may_be_called_anything(name, file):
    """polars takes the first of these names for patterns, which may match another column."""
    days = [f"2020-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(60)]
    every = {
        "number": [None, *range(59)],
        "truth": ["yes", "no", None] * 20,
        "date": [None, *days[1:]],
        "level": ["x", None, "y"] * 20,
        "levels": [f"level {i % 25}" for i in range(60)],
    }
    y = np.arange(60.0)
    for cells in every.values():
        plain = pl.DataFrame({"b": cells, "a": y})
        named = plain.rename({"b": name})
        expected, encoder = TableEncoder().fit(plain, y), TableEncoder().fit(named, y)
        assert_array_equal(encoder.transform(named), expected.transform(plain))
        assert encoder.columns_[name] == expected.columns_["b"]
        assert drifts(encoder, named)[0][0].moved == drifts(expected, plain)[0][0].moved
        assert set(encoder.tidy(named).columns) == {name, "a"}
    small = pl.DataFrame({name: [1, 2], "a": [3, 4]})
    rest, target, _ = split_target(small, name)
    assert rest.columns == ["a"] and target.tolist() == [1, 2]
    assert without(small, [name], ["a"]).columns == ["a"]
    assert TableEncoder().fit(small.to_pandas()).columns_[name].kind == "number"
    if name:  # a file's column without a name gets one
        write(file, f"{name};a\n1,5;2\n2,5;3\n")
        assert read(file)[name].to_list() == ["1.5", "2.5"]


def test_a_column_that_is_there_twice():
    twice = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "b"])
    with pytest.raises(ValueError, match="has the column 'b' twice: rename one"):
        TableEncoder().fit(twice)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,3\n4,5",
        'a,b,y\n1,"2",3\n4',
        "a;b;y\n1,5;2;3\n4;5",
        "a,b,y\n1,2,\n4,5",  # also if other rows have no last cell
        "a,b,y\n1,2",
        'a,b,y\n1,"2, 3",\n4,"5, 6"',
    ],
)
def test_a_file_cut_off_within_a_line_is_refused(file, text):
    file.write_text(text)
    with pytest.raises(ValueError, match=r"ends in the middle of a line, which has \d cells inst"):
        read(file)
    with pytest.raises(ValueError, match="get the whole file, or delete that line"):
        list(chunks(file, ["a", "b"], lines=","))


@pytest.mark.parametrize(
    "text",
    [
        'a,b,y\n1,2,3\n4,"two\nlines",',
        f"a,b,y\n1,2,3\n4,{'x' * 200_000},",
        'a,b,y\n1,"x, ""y""",\n4,5,',
        "a,b,y\n1,2,3\n   \n4,5,\n",
        "a,b,y,,\n1,2,3\n4,5,\n",  # names that are none, of columns that are not there
    ],
)
def test_an_empty_last_cell_is_no_sign_of_it(file, text):
    file.write_text(text)
    for frame in (read(file), pl.concat(part.shown for part in chunks(file, lines=","))):
        assert frame.columns == ["a", "b", "y"] and len(frame) == 2
        assert frame["y"].to_list()[-1] is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b,y\n1,2,3\n4,5\n6,7,8\n", 3),
        ("a,b,y\n1,2,3\n4,5\n", 3),
        ("a,b,y\n1,2,\n4\n6,7,8\n", 3),
        ('a,b,y\n1,"x\n2",\n4,"5, 6"\n6,7,8\n', 4),
        ("a;b;y\r\n1;2,5;3\r\n\r\n4;5\r\n6;7;8\r\n", 4),
    ],
)
def test_a_row_that_is_too_short_is_refused_as_one_too_long_is(file, text, line):
    file.write_text(text, newline="")
    for go in (read, lambda path: list(chunks(path, ["a"], lines=","))):
        with pytest.raises(ValueError, match=rf"line {line} has \d cells, not 3.*empty ones too"):
            go(file)
