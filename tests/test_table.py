"""Tables as people really have them: other encodings, decimal commas, digits that are names."""

from __future__ import annotations

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

pd = pytest.importorskip("pandas")

from mvenet import table  # noqa: E402
from mvenet.table import TableEncoder, _files, chunks, read, split_target  # noqa: E402

PLAIN = "a,b,c\n1,2.5,x\n3,4.5,y\n"


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
    assert list(frame) == ["größe", "town"]
    assert frame["town"].tolist() == ["Köln", "Jülich"]
    (shown, values), *rest = chunks(file)
    assert not rest
    assert shown["town"].tolist() == values["town"].tolist() == ["Köln", "Jülich"]


def test_the_euro_of_windows(file):
    assert list(read(write(file, "price (€),b\n1,2\n", "cp1252"))) == ["price (€)", "b"]


def test_other_letters_far_into_the_file(file, monkeypatch):
    monkeypatch.setattr(_files, "_SAMPLE", 100)
    write(file, b"town,y\n" + b"Bonn,1\n" * 5000 + "Köln,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"begins as utf-8.* save it as UTF-8\."):
        read(file)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators(file, separator):
    frame = read(write(file, PLAIN.replace(",", separator)))
    assert frame.to_dict("list") == {"a": [1, 3], "b": [2.5, 4.5], "c": ["x", "y"]}


def test_the_separator_is_the_one_that_fits_the_rows(file):
    frame = read(write(file, "name, first;age\nAda;36\nAlan;41\n"))
    assert frame["age"].tolist() == [36, 41]
    frame = read(write(file, '"a;b;c;d",e\n1,2\n3,4\n'))
    assert list(frame) == ["a;b;c;d", "e"]
    frame = read(write(file, 'a\n"x, y"\nz\n'))
    assert frame["a"].tolist() == ["x, y", "z"]


def test_decimal_commas(file):
    text = 'a;b;c\n1,5;"-2,25";x\n3;,5;y\n'
    assert read(write(file, text))[["a", "b"]].to_numpy().tolist() == [[1.5, -2.25], [3, 0.5]]
    ((shown, values),) = chunks(file, numbers=["a", "b"])
    # What is written later has commas between the cells, so none within numbers.
    assert shown.to_numpy().tolist() == [["1.5", "-2.25", "x"], ["3", ".5", "y"]]
    assert values["a"].tolist() == ["1.5", "3"]


def test_one_remark_with_a_comma_does_not_make_the_points_text(file):
    frame = read(write(file, "a;b;note\n1.5;2.5;x\n2.5;3.5;3,4\n"))
    assert frame["a"].tolist() == [1.5, 2.5]
    assert frame["note"].tolist() == ["x", "3,4"]


def test_a_level_with_a_decimal_comma_stays_as_it_was(file):
    write(file, "size;code\n1,5;1,5\n2,5;A\n3,5;A\n")
    assert read(file)["code"].tolist() == ["1,5", "A", "A"]
    ((_, values),) = chunks(file, numbers=["size"])
    assert values["code"].tolist() == ["1,5", "A", "A"]


def test_names_with_quotes_commas_line_breaks_and_tags(file):
    names = ["a,b", 'say "x"', "<script>alert(1)</script>", "two\nlines", "[red]x[/red]"]
    pd.DataFrame([range(5), range(5)], columns=names).to_csv(file, index=False)
    assert list(read(file)) == names
    assert list(next(chunks(file))[0]) == names


def test_spaces_around_names_and_cells_do_not_count(file):
    frame = read(write(file, " a , b\n 1, x\n2 , y\n"))
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_blank_lines_old_line_ends_and_a_last_line_without_one(file):
    for text in ("\n\n" + PLAIN, PLAIN.replace("\n", "\r"), PLAIN.replace("\n", "\r\n"),
                 PLAIN.rstrip("\n"), PLAIN.replace("\n", "\n\n")):  # fmt: skip
        pd.testing.assert_frame_equal(read(write(file, text)), read(write(file, PLAIN)))


def test_trailing_separators_shift_nothing(file):
    assert read(write(file, "a,b\n1,2,\n3,4,\n")).to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    assert next(chunks(file))[0].to_dict("list") == {"a": ["1", "3"], "b": ["2", "4"]}
    frame = read(write(file, "a,b,\n1,2,\n3,4,\n"))  # a third column without a name
    assert frame["a"].tolist() == [1, 3] and frame.iloc[:, 2].isna().all()


def test_all_that_means_missing(file):
    write(file, "a,b\n1,NA\n,x\nNaN,null\n2,y\n")
    assert read(file).isna().to_numpy().tolist() == [[0, 1], [1, 0], [1, 1], [0, 0]]
    ((shown, values),) = chunks(file)
    assert values.isna().to_numpy().tolist() == [[0, 1], [1, 0], [1, 1], [0, 0]]
    assert shown["b"].tolist() == ["NA", "x", "null", "y"]  # nobody's cells are changed


def test_standard_input(monkeypatch):
    def stdin(text):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(text)))

    stdin(PLAIN.encode())
    assert read("-")["b"].tolist() == [2.5, 4.5]
    stdin(PLAIN.encode())
    assert next(chunks("-"))[0]["b"].tolist() == ["2.5", "4.5"]


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
    assert frame["a"].tolist() == [1.5, 4.5]


# --- what is no table ----------------------------------------------------------------------------

NO_TABLES = {
    "empty": (b"", "is empty: it needs a line of column names"),
    "blank": (b" \n\n", "is empty"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20), "is no text: give a CSV file"),
    "zip": (b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(20), "is no text"),
    "parquet by another name": (b"PAR1\x15\x04\x15\0" + bytes(20), "or Parquet by its name"),
    "header only": (b"a,b\n", "has no rows"),
    "twice": (b"a,b,a\n1,2,3\n", "has the column 'a' twice: rename one"),
    "twice but for a space": (b"a,b, a\n1,2,3\n", "has the column 'a' twice"),
    "no names": (b"1.5,2,-3e4\n1,2,3\n", r"first line .* holds numbers .* add a line of column"),
    "long row": (b"a,b\n1,2\n3,4,5\n", r"cannot be read as a table .* line 3"),
    "long rows": (b"a,b\n1,2,3\n3,4,5\n", r"cannot be read as a table .* as many cells"),
    "open quote": (b'a,b\n1,"2\n3,4\n', r"cannot be read as a table .* inside string"),
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


def test_ten_thousand_columns(file):
    rng = np.random.default_rng(0)
    names = [f"column {i}" for i in range(10_000)]
    wide = pd.DataFrame(rng.normal(size=(30, 10_000)).round(3), columns=names)
    wide["town"] = rng.choice(["A", "B"], 30)
    wide.to_csv(file, index=False)
    start = time.process_time()
    frame = read(file)
    encoder = TableEncoder().fit(frame)
    whole = encoder.transform(frame)
    assert whole.shape == (30, 10_002)
    ((_, values),) = chunks(file, encoder.named("number"))
    assert_array_equal(encoder.transform(values), whole)
    assert time.process_time() - start < 30


# --- part by part --------------------------------------------------------------------------------

DIGITS = "code,n,flag,id\n007,1,yes,9\nA1,,no,8\n7,3,yes,7\n1e3,4.5,,0006\n,5,no,5\n"


def in_parts(monkeypatch, path, rows, **options):
    monkeypatch.setattr(_files, "CHUNK_ROWS", rows)
    return list(chunks(path, **options))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_parts_are_what_the_whole_is(file, monkeypatch, rows):
    write(file, DIGITS)
    encoder = TableEncoder().fit(read(file))
    ((shown, values),) = in_parts(monkeypatch, file, 100)
    parts = in_parts(monkeypatch, file, rows)
    assert len(parts) == -(-5 // rows)
    pd.testing.assert_frame_equal(pd.concat([s for s, _ in parts]), shown)
    whole = encoder.transform(values)
    assert_array_equal(np.vstack([encoder.transform(v) for _, v in parts]), whole)
    assert_array_equal(whole, encoder.transform(read(file)))  # and what the fit saw
    assert shown["id"].tolist() == ["9", "8", "7", "0006", "5"]


def test_digits_alone_are_still_the_level_that_they_were(file):
    encoder = TableEncoder().fit(read(write(file, DIGITS)))
    expected = encoder.transform(read(file))[:1]
    write(file, "code,n,flag,id\n007,1,yes,9\n")
    ((_, values),) = chunks(file, encoder.named("number"))
    assert_array_equal(encoder.transform(values), expected)
    assert_array_equal(encoder.transform(read(file, texts=encoder.named("category"))), expected)
    # without being told, 007 is 7
    assert (encoder.transform(read(file)) != expected).any()


def test_long_numbers_do_not_depend_on_their_neighbours(file, monkeypatch):
    long = [f"{10**17 + i * 7919}" for i in range(20)]
    write(file, "x\n" + "\n".join([*long, "0.1"]) + "\n")
    encoder = TableEncoder().fit(read(file))
    whole = encoder.transform(next(chunks(file))[1])
    parts = in_parts(monkeypatch, file, 4)
    assert_array_equal(np.vstack([encoder.transform(v) for _, v in parts]), whole)
    assert whole[:, 0].tolist() == [*map(float, long), 0.1]


def test_wide_files_are_read_fewer_rows_at_a_time(file, monkeypatch):
    pd.DataFrame(np.ones((10, 50)), columns=[f"c{i}" for i in range(50)]).to_csv(file, index=False)
    monkeypatch.setattr(_files, "CHUNK_CELLS", 150)
    assert [len(shown) for shown, _ in chunks(file)] == [3, 3, 3, 1]
    monkeypatch.setattr(_files, "CHUNK_CELLS", 10)
    assert len(list(chunks(file))) == 10


def test_progress_is_told(file, monkeypatch):
    monkeypatch.setattr(_files, "_SAMPLE", 1000)
    write(file, "a,b\n" + f"1,{'x' * 500}\n" * 5000)  # pandas reads a quarter of a MB at a time
    for told, go in (
        (whole := [], lambda: read(file, progress=whole.append)),
        (parts := [], lambda: in_parts(monkeypatch, file, 1000, progress=parts.append)),
    ):
        go()
        assert len(told) > 5 and told == sorted(told) and 0 < told[0] < 0.2 and told[-1] == 1


def test_errors_name_the_row_of_the_file(file, monkeypatch):
    encoder = TableEncoder().fit(read(write(file, "a,b\n1,2\n2,3\n3,5\n")))
    write(file, "a,b\n1,2\n2,3\n3,4\n4,five\n")
    parts = in_parts(monkeypatch, file, 3)
    with pytest.raises(ValueError, match=r"The column 'b' held numbers .* row 4 has 'five'"):
        encoder.transform(parts[1][1])
    write(file, "a,b\n1,2\n2,inf\n")
    with pytest.raises(ValueError, match=r"The column 'b' holds infinity \(row 2 has 'inf'\)"):
        encoder.transform(next(chunks(file))[1])


# --- writing -------------------------------------------------------------------------------------

WEIRD = [
    "a",
    "",
    "1,5",
    'quo"te',
    "two\nlines",
    "two\r\nlines",
    "\r",
    " ",
    "ü",
    "'",
    ";",
    '""',
    ",\n",
]


@pytest.mark.parametrize("other", ["plain", *WEIRD])
def test_written_as_pandas_writes(other):
    texts = pd.DataFrame({"a,b": ["x", other, "y"], "c": ["1", "2.50", other]}, dtype=object)
    added = pd.DataFrame({"mean": [0.1 + 0.2, -1e-300, 1e22], "std": [1.0, np.inf, 5e-324]})
    frames = [
        pd.concat([texts, added], axis=1),
        texts[["c"]],
        texts.assign(missing=["x", None, np.nan]),
        texts.assign(number=[1.0, np.nan, 3.0]),
        texts.assign(whole=pd.array([1, None, 3], dtype="Int64"), truth=[True, False, True]),
        texts.assign(day=pd.to_datetime(["2020-01-01", "2021-02-03", None])),
    ]
    for frame in frames:
        for header in (True, False):
            ours, theirs = io.StringIO(), io.StringIO()
            table.write(frame, ours, header=header)
            frame.to_csv(theirs, index=False, header=header, lineterminator="\n")
            assert ours.getvalue() == theirs.getvalue()


# --- Parquet -------------------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    pytest.importorskip("pyarrow")
    return tmp_path / "t.parquet"


def test_parquet(parquet, monkeypatch):
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None, 3, 4], dtype="Int64"),
            "x": [0.5, np.nan, 1.5, 2.5],
            "price": [Decimal("1.25"), None, Decimal("3.75"), Decimal("1.00")],
            "flag": pd.array([True, False, None, True], dtype="boolean"),
            "town": pd.Categorical(["A", "B", None, "A"]),
            "day": pd.to_datetime(["2020-01-01"] * 4),
            "tags": [["a"], ["b"], ["a"], None],
        }
    )
    frame.to_parquet(parquet)
    got = read(parquet)
    encoder = TableEncoder().fit(got)
    assert kinds(encoder) == {"n": "number", "x": "number", "price": "number", "flag": "truth",
                              "town": "category", "day": "dropped", "tags": "category"}  # fmt: skip
    told = []
    parts = in_parts(monkeypatch, parquet, 1, progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]
    shown = "".join(s.to_csv(index=False, header=False) for s, _ in parts)
    assert shown == got.to_csv(index=False, header=False)  # no 1.0 in one part and 1 in another
    numbers = np.vstack([encoder.transform(values) for _, values in parts])
    assert_array_equal(numbers, encoder.transform(got))
    with pytest.raises(ValueError, match="The target 'day' holds dates"):
        split_target(got, "day")
    assert split_target(got, "price")[1].tolist() == [1.25, 3.75, 1.0]


def test_parquet_loses_no_index_and_no_names(parquet):
    pd.DataFrame({"id": [5, 9, 6], "a": [1, 2, 3]}).set_index("id").to_parquet(parquet)
    assert set(read(parquet)) == {"id", "a"}


def test_parquet_that_is_none_or_empty(parquet):
    import pyarrow as pa
    from pyarrow import parquet as pq

    write(parquet, PLAIN)
    with pytest.raises(ValueError, match=r"cannot be read as Parquet .*: write it again"):
        read(parquet)
    pd.DataFrame({"a": [1.0]}).iloc[:0].to_parquet(parquet)
    with pytest.raises(ValueError, match="has no rows"):
        read(parquet)
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), parquet)
    with pytest.raises(ValueError, match="has the column 'a' twice"):
        read(parquet)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="Parquet files need pyarrow: pip install pyarrow"):
        read(write(tmp_path / "t.parquet", PLAIN))


# --- the target ----------------------------------------------------------------------------------


def test_the_nearest_name_is_suggested():
    frame = pd.DataFrame({"price": [1.0, 2.0], "size": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"There is no column 'prise': did you mean 'price'\?"):
        split_target(frame, "prise")
    with pytest.raises(ValueError, match=r"no column 'zzz': choose from price, size\."):
        split_target(frame, "zzz")


def test_rows_without_a_target_are_left_out_and_counted():
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1.0, None, 3.0, None]})
    X, y, without = split_target(frame, "y")
    assert X["x"].tolist() == [1, 3] and y.tolist() == [1, 3] and without == 2
    assert X.index.tolist() == [0, 2]  # rows of the file
    assert frame.shape == (4, 2)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["1", "2", "about 3"], r"must hold numbers: row 3 has 'about 3'\. Correct"),
        ([1.0, np.inf, 3.0], r"holds infinity \(row 2 has 'inf'\)"),
        ([1.0, np.nan, np.nan], "There are 1 rows with a 'y': at least 2"),
        ([np.nan] * 3, "There are 0 rows"),
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
        "town": "category", "date": "dropped", "text": "dropped", "nothing": "dropped",
        "always": "dropped",
    }  # fmt: skip
    told = {name: column.remark for name, column in encoder.columns_.items()}
    assert told["town"] == "3 levels"
    assert told["date"].startswith("dates: make numbers of them")
    assert told["text"] == "text, 60 different values: an identifier or free text"
    assert told["nothing"] == "all missing" and told["always"] == "always same"
    assert list(encoder.get_feature_names_out()) == [
        "number", "whole", "truth", "yes or no", "town_A", "town_B", "town_C",
    ]  # fmt: skip
    assert encoder.transform(frame).shape == (n, 7)


@pytest.mark.parametrize("form", ["{},234", "$ {}.50", "{} %", "{} kg", "€{}", "-{},5", "{}'000"])
def test_dressed_numbers_are_told(form):
    dressed = [form.format(i) for i in range(60)]
    told = f"text, 60 different values, such as {dressed[0]}: if they are numbers, write them"
    assert kind(*dressed) == ("dropped", f"{told} plainly, as 1234.5")
    for text in ("house {}", "A{}B{}", "{} rooms and a garden"):
        assert "identifier or free text" in kind(*[text.format(i, i) for i in range(60)])[1]


@pytest.mark.parametrize(
    "text",
    ["2020-01-31", "31.1.2020", "1/31/20", "2020-01-31T12:00:00Z", "2020-01", "31 Jan 2020",
     "January 31, 2020", "31-Jan-20", "12:30", "12:30:15", "2020/01/31 12:30"],
)  # fmt: skip
def test_dates(text):
    assert kind(*[text, text.replace("2", "1", 1)] * 10)[0] == "dropped"
    assert "dates" in kind(*[text, text.replace("2", "1", 1)] * 10)[1]


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


def test_many_levels():
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
    assert len(encoder.one_hot_.categories_[0]) == 4  # no list of the rare ones in the file
    assert kind(*[f"id {i}" for i in range(100)])[0] == "dropped"
    assert kind(*[f"L{i}" for i in range(15)])[0] == "category"


def test_missing_values():
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, 3.0, 8.0], "t": ["A", "B", None, "A"], "f": ["yes", None, "no", "yes"]}
    )
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_["x"].remark == "1 missing"
    assert encoder.columns_["t"].remark == "2 levels, 1 missing"
    names = list(encoder.get_feature_names_out())
    assert names == ["x", "f", "missingindicator_x", "missingindicator_f",
                     "t_(missing)", "t_A", "t_B"]  # fmt: skip
    assert encoder.transform(frame).tolist() == [
        [1, 1, 0, 0, 0, 1, 0],
        [3, 1, 1, 1, 0, 0, 1],
        [3, 0, 0, 0, 1, 0, 0],
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


def test_a_truth_that_is_neither_is_missing():
    encoder = TableEncoder().fit(pd.DataFrame({"f": ["yes", "no", "yes"]}))
    assert encoder.transform(pd.DataFrame({"f": ["NO", "perhaps", "1"]})).tolist() == [
        [0],
        [1],  # the more frequent one
        [1],
    ]


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
        "a_b", "missingindicator_a", "a_b", "a_c",
    ]  # fmt: skip


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
