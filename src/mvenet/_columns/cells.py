"""Columns as people have them: what a column is taken for, and its cells as numbers or text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.selectors import by_name

from mvenet._columns import dates as _dates
from mvenet._columns.marks import DECIMAL_COMMA, MISSING
from mvenet._models.columns import Column

Array = NDArray[np.float64]
# What 1 and 0 are called, in any case; a letter is one only beside the other of its pair.
TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0, "y": 1.0, "n": 0.0}
_LETTERS = {"t": "tf", "f": "tf", "y": "yn", "n": "yn"}
_MOST_SPELLINGS = 50  # of truth values, such as YES, Yes and yes
_DRESSED = re.compile(r"\W{0,3}\d[\d.,' ]*\W{0,2}[^\W\d]{0,3}")  # 1,234 or $ 5 or 12 % or 3 kg


def as_polars(frame: Any) -> pl.DataFrame:
    """A table of polars, of pandas or of Arrow as one of polars whose cells have a plain type."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if hasattr(frame, "column_names") and hasattr(frame, "schema"):  # of Arrow
        _refuse_twice(list(frame.column_names))
        made = pl.from_arrow(frame)
        return made if isinstance(made, pl.DataFrame) else made.to_frame()
    if not hasattr(frame, "columns") or not hasattr(frame, "items"):
        raise TypeError(
            f"The table must be a DataFrame of polars or pandas, got {type(frame).__name__}."
        )
    _refuse_twice([str(name) for name in frame.columns])
    return pl.DataFrame({str(name): _from_pandas(series) for name, series in frame.items()})


def _refuse_twice(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"The table has the column {twice!r} twice: rename one of them.")


def _from_pandas(series: Any) -> pl.Series:
    kind = series.dtype.kind if hasattr(series.dtype, "kind") else "O"
    if kind == "c":
        raise ValueError(
            f"The column {series.name!r} holds complex numbers: give their parts as two columns."
        )
    if kind in "iuf":
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return pl.Series(numbers, nan_to_null=True)
    if kind == "b":
        return pl.Series([None if v is None or v != v else bool(v) for v in _cells(series)])
    if kind in "mM":
        if getattr(series.dtype, "tz", None) is not None:
            moments = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
            return pl.Series(moments.astype("M8[us]")).dt.replace_time_zone("UTC")
        return pl.Series(series.to_numpy().astype(f"{kind}8[us]"))
    if hasattr(series, "cat"):
        names = [None if v is None else _shown(v) for v in _cells(series.cat.categories)]
        codes = pl.Series(series.cat.codes.to_numpy().astype(np.int64))
        levels = pl.Series(names, dtype=pl.String)
        return levels.gather(codes.set(codes < 0, None)).cast(pl.Categorical)
    return from_objects(_cells(series))


def from_array(cells: NDArray[Any], names: Iterable[str]) -> pl.DataFrame:
    """An array of shape (n, d), of numbers or of objects, as a table with these names."""
    columns = zip(names, cells.T, strict=True)
    if cells.dtype != object:
        return pl.DataFrame({name: np.ascontiguousarray(column) for name, column in columns})
    return pl.DataFrame({name: from_objects(column.tolist()) for name, column in columns})


def from_objects(cells: list[Any]) -> pl.Series:
    """Cells of any type as text, None being null; as they are if one of them is no cell."""
    if any(isinstance(v, _NESTED) or _has_no_text(v) for v in cells):
        return pl.Series(cells, dtype=pl.Object)
    if any(v is not None for v in cells) and all(isinstance(v, timedelta | None) for v in cells):
        return pl.Series(cells, dtype=pl.Duration("us"))
    return pl.Series([None if v is None else str(v) for v in cells], dtype=pl.String)


def _cells(series: Any) -> list[Any]:
    missing = series.isna().tolist()
    return [None if gone else v for v, gone in zip(series.tolist(), missing, strict=True)]


def _has_no_text(cell: Any) -> bool:
    """Whether a cell shows nothing but where it stands in memory."""
    kind: Any = type(cell)
    return kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__


_NESTED = (list, tuple, dict, set, frozenset, np.ndarray)


def plain(table: pl.DataFrame) -> pl.DataFrame:
    """The cells as numbers, truth values, dates or text, and null for all that means missing."""
    odd = [s.name for s in table if isinstance(s.dtype, _ODD)]  # lists and the like
    texts = [[None if v is None else str(v) for v in table[name].to_list()] for name in odd]
    told = (pl.Series(n, t, dtype=pl.String) for n, t in zip(odd, texts, strict=True))
    table = table.with_columns(*told)
    return table.select(_plain(name, kind) for name, kind in table.schema.items())


_ODD = (pl.List, pl.Array, pl.Struct, pl.Binary, pl.Object)


def _plain(name: str, kind: pl.DataType) -> pl.Expr:
    column = by_name(name).as_expr()  # pl.col takes * for all, and ^a$ for a pattern
    if kind.is_numeric():
        return column.cast(pl.Float64).fill_nan(None)
    if kind == pl.Duration:
        return column.cast(pl.Duration("us")).cast(pl.Int64).cast(pl.Float64) / 86_400e6
    if kind == pl.Boolean or kind.is_temporal():
        return column
    texts = column.cast(pl.String).str.strip_chars()
    return pl.when(texts.is_in(MISSING)).then(None).otherwise(texts).alias(name)


def plain_series(series: pl.Series) -> pl.Series:
    """The same for one column, without its name."""
    return plain(series.to_frame("")).to_series()


def given_cells(column: pl.Series) -> pl.Series:
    """The cells that are not missing, nameless: methods take a name such as ^a$ for a pattern."""
    cells = column.alias("")
    return cells.drop_nulls() if cells.null_count() else cells


def says_nothing(cells: pl.Series) -> Column | None:
    """A column without a cell, or with the same one in every row, is dropped."""
    given = given_cells(cells)
    if not len(given):
        return Column("dropped", "all missing")
    if given.dtype.is_float() and given.is_infinite().any():
        return None  # which is refused, and not overlooked
    if len(given) == len(cells) and given.n_unique() == 1:
        return Column("dropped", f"always {_shown(given[0])[:30]}")
    return None


def taken_for(
    cells: pl.Series, rows: NDArray[Any], given_as: pl.DataType | None = None
) -> tuple[Column, _dates.Dates | None]:
    """What a column of plain cells is; ``rows`` are their rows' numbers, from 0.

    ``given_as`` is the type that they had: who says that they are categories knows.
    """
    cells = cells.alias("")
    if isinstance(given_as, _ODD):
        return Column("dropped", "lists or objects, which are no cells"), None
    constant = says_nothing(cells)
    if constant is not None:
        return constant, None
    given = given_cells(cells)
    gaps = len(cells) - len(given)
    remark = f"{gaps} missing" if gaps else ""
    if cells.dtype == pl.Boolean:
        return Column("truth", remark), None
    if isinstance(given_as, pl.Categorical | pl.Enum):
        return _levels_or_truths(given, remark), None
    values = given.cast(pl.Float64, strict=False) if _numeric(cells) else None
    compact = values is not None and not values.null_count() and _dates.compact(values)
    if values is not None and not values.null_count() and not compact:
        return Column("number", remark), None
    try:
        dates = _dates.found(texts(cells) if compact else cells, rows)
    except ValueError as error:
        return Column("dropped", str(error)), None
    if dates is not None:
        return Column("date", ", ".join(filter(None, [dates.remark, remark]))), dates
    return _text(cells, given, remark, rows), None


def _text(cells: pl.Series, given: pl.Series, remark: str, rows: NDArray[Any]) -> Column:
    """What a column of text is: truth values, categories, or nothing of use."""
    parsed = cells.cast(pl.Float64, strict=False)
    wrong = (parsed.is_null() & cells.is_not_null()).to_numpy()
    if parsed.n_unique() > 20 and cells.filter(pl.Series(wrong)).n_unique() <= 3:
        # marks such as ?, no codes
        told = f"{wrong.sum()} row(s) do not hold a number ({first(cells, wrong, rows)})"
        return Column("dropped", f"{told}: correct them, or leave them empty")
    return _levels_or_truths(given, remark)


def _levels_or_truths(given: pl.Series, remark: str) -> Column:
    """What levels are: truth values, categories, or too many to be of use."""
    levels = given.n_unique()
    if levels <= _MOST_SPELLINGS and _tell_truths(given.unique()):
        return Column("truth", remark)
    if levels > max(20, 0.5 * len(given)):
        told = f"text, {levels} different values"
        if np.mean([bool(_DRESSED.fullmatch(text)) for text in given.head(1000)]) > 0.9:
            advice = "if they are numbers, write them plainly, as 1234.5"
            return Column("dropped", f"{told}, such as {given[0]!s:.20}: {advice}")
        return Column("dropped", f"{told}: an identifier or free text")
    told = f"{levels} level{'s' * (levels != 1)}"
    return Column("category", f"{told}, {remark}" if remark else told)


def _tell_truths(levels: pl.Series) -> bool:
    """Whether all levels are truth values; F beside M, or N beside F, are letters of a code."""
    values = _truth_values(levels)
    pairs = {_LETTERS[level] for level in levels.str.to_lowercase() if level in _LETTERS}
    both = values.n_unique() == 2
    return not values.null_count() and (not pairs or (len(pairs) == 1 and both))


def _truth_values(cells: pl.Series) -> pl.Series:
    """1 and 0 for texts that say so, in words or as numbers; null for all others."""
    words = cells.str.to_lowercase().replace_strict(TRUTHS, default=None, return_dtype=pl.Float64)
    numbers = cells.cast(pl.Float64, strict=False)
    return words.fill_null(numbers.set(~numbers.is_in([0.0, 1.0]), None))


def _numeric(cells: pl.Series) -> bool:
    return cells.dtype in (pl.Float64, pl.String)


def parsed(table: pl.DataFrame, names: Collection[str]) -> dict[str, pl.Series]:
    """Those of these columns that are text, as numbers; null where a cell is none."""
    schema = table.schema
    texts = [name for name in names if schema.get(name) == pl.String]
    made = table.select(by_name(name).cast(pl.Float64, strict=False) for name in texts)
    return {series.name: series for series in made}


def numbers(series: pl.Series, rows: NDArray[Any], parsed: pl.Series | None = None) -> Array:
    """Numbers, also those that are still text; NaN where missing.

    ``parsed`` are the text's numbers, if somebody has made them already.
    """
    if series.dtype == pl.String:
        if parsed is None:
            parsed = series.cast(pl.Float64, strict=False)
        if parsed.null_count() > series.null_count():  # a mark for missing, a space, or a word
            texts = plain_series(series)
            parsed = texts.cast(pl.Float64, strict=False)
            _refuse_words(series, texts, parsed, rows)
    elif series.dtype in (pl.Boolean, pl.Float64):
        parsed = series.cast(pl.Float64)
    else:
        parsed = plain_series(series)
        if parsed.dtype == pl.String:
            return numbers(parsed, rows)
        if parsed.dtype != pl.Float64:
            raise ValueError(
                f"The column {series.name!r} held numbers when the model was fitted, and now dates "
                f"({first(series, parsed.is_not_null().to_numpy(), rows)}): correct it."
            )
    made: Array = parsed.to_numpy()  # NaN where it is null
    infinite = np.isinf(made)
    if infinite.any():
        raise ValueError(
            f"The column {series.name!r} holds infinity ({first(series, infinite, rows)}): correct "
            "it, or leave it empty."
        )
    return made


def with_numbers(frame: pl.DataFrame, names: Collection[str], rows: NDArray[Any]) -> pl.DataFrame:
    """The table with these of its columns as numbers, null where missing, if they were text."""
    schema = frame.schema
    texts = [name for name in names if schema.get(name) == pl.String]
    made = (pl.Series(name, numbers(frame[name], rows), nan_to_null=True) for name in texts)
    return frame.with_columns(made)


def _refuse_words(
    series: pl.Series, texts: pl.Series, parsed: pl.Series, rows: NDArray[Any]
) -> None:
    wrong = (parsed.is_null() & texts.is_not_null()).to_numpy()
    if wrong.any():
        raise ValueError(
            f"The column {series.name!r} held numbers when the model was fitted: "
            f"{first(series, wrong, rows)}. "
            f"{_comma(series, wrong) or 'Correct it, or leave it empty.'}"
        )


def _comma(series: pl.Series, wrong: NDArray[np.bool_]) -> str:
    """What to do if it is a comma that is wrong."""
    if not DECIMAL_COMMA.fullmatch(str(series.filter(pl.Series(wrong))[0])):
        return ""
    return "Is it a decimal comma? Write points, or part the columns by semicolons."


def _plainly(series: pl.Series, wrong: NDArray[np.bool_]) -> str:
    """What to do if it is a number with a currency, a unit, or thousands apart."""
    dressed = _DRESSED.fullmatch(str(series.filter(pl.Series(wrong))[0]))
    return "Write numbers plainly, as 1234.5." if dressed else ""


def truths(series: pl.Series, rows: NDArray[Any]) -> Array:
    """1 and 0, NaN where missing."""
    cells = plain_series(series)
    if cells.dtype == pl.Boolean:
        values = cells.cast(pl.Float64)
    elif cells.dtype in (pl.Float64, pl.String):
        values = _truth_values(cells.cast(pl.String))
    else:
        values = pl.Series([None] * len(cells), dtype=pl.Float64)
    wrong = (values.is_null() & cells.is_not_null()).to_numpy()
    if wrong.any():
        raise ValueError(
            f"The column {series.name!r} held truth values when the model was fitted: "
            f"{first(series, wrong, rows)}. Write yes or no, true or false, 1 or 0, or leave it "
            "empty."
        )
    made: Array = values.to_numpy()
    return made


def days(series: pl.Series, dates: _dates.Dates, rows: NDArray[Any]) -> Array:
    """Days since the column's origin, NaN where missing."""
    cells = plain_series(series)
    if cells.dtype == pl.Float64 and dates.form == _dates.COMPACT:
        cells = texts(cells)
    _refuse_another_zone(series.name, cells, dates)
    made = _dates.days_later(cells, dates.form) if _temporal(cells) else np.full(len(cells), np.nan)
    wrong = np.isnan(made) & cells.is_not_null().to_numpy()
    if wrong.any():
        form = f", as {_dates.example(dates.form)}," if dates.form else ""
        raise ValueError(
            f"The column {series.name!r} held dates{form} when the model was fitted: "
            f"{first(series, wrong, rows)}. Correct it, or leave it empty."
        )
    return made - dates.origin


def _refuse_another_zone(name: str, cells: pl.Series, dates: _dates.Dates) -> None:
    """Typed dates have a zone if those of the fit had one, and only then; old files do not know."""
    if not isinstance(cells.dtype, pl.Datetime | pl.Date) or not dates.form:
        return
    then, now = "%z" in dates.form, _dates.has_zone(cells.dtype)
    if then != now and cells.null_count() < len(cells):
        had, has = ("with a zone", "without one") if then else ("without a zone", "with one")
        remedy = "say which zone they are of" if then else "make them local times, as at the fit"
        raise ValueError(
            f"The column {name!r} held dates {had} when the model was fitted, and now {has} "
            f"({cells.dtype}): {remedy}."
        )


def _temporal(cells: pl.Series) -> bool:
    return cells.dtype == pl.String or cells.dtype.is_temporal()


def texts(series: pl.Series) -> pl.Series:
    """Levels as text, null where missing, without the column's name."""
    cells = plain_series(series)
    if cells.dtype == pl.Float64:
        made = [None if v is None else _shown(v) for v in cells]
        return pl.Series(made, dtype=pl.String)
    return cells if cells.dtype == pl.String else cells.cast(pl.String)


def _shown(value: Any) -> str:
    """A number as it would be written: 7, not 7.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def first(series: pl.Series, wrong: NDArray[np.bool_], rows: NDArray[Any]) -> str:
    """The first cell that is wrong, and its row in the file."""
    i = int(np.flatnonzero(wrong)[0])
    return f"row {int(rows[i]) + 1} has {str(series[i])[:50]!r}"


def without(frame: Any, names: Iterable[str], targets: Sequence[str]) -> pl.DataFrame:
    """The table without some of its columns."""
    table = as_polars(frame)
    for name in names:
        if name in targets:
            raise ValueError(f"{name!r} is the target: it cannot be left out.")
        if name not in table.columns:
            raise ValueError(f"There is no column {name!r} to leave out: {_hint(name, table)}")
    return table.drop(by_name(*names))


def _hint(name: str, table: pl.DataFrame) -> str:
    near = difflib.get_close_matches(name, table.columns, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(table.columns[:10])}."


def split_target(frame: Any, target: str) -> tuple[pl.DataFrame, Array, NDArray[np.int64]]:
    """Columns without the target, the target as numbers, and which rows have one, from 0.

    The other rows are left out.
    """
    table = as_polars(frame)
    if target not in table.columns:
        raise ValueError(f"There is no column {target!r}: {_hint(target, table)}")
    if table.width == 1:
        raise ValueError(f"No column can be used to predict: there is none beside {target!r}.")
    column = plain_series(table[target])
    every = np.arange(len(table))
    if column.dtype.is_temporal():
        raise ValueError(f"The target {target!r} holds dates: make numbers of them first.")
    values = column.cast(pl.Float64, strict=False)
    words = (values.is_null() & column.is_not_null()).to_numpy()
    if words.any():
        raise ValueError(
            f"The target {target!r} must hold numbers: {first(column, words, every)}. "
            f"{_comma(column, words) or _plainly(column, words) or 'Correct or remove such rows.'}"
        )
    infinite = values.is_infinite().fill_null(False).to_numpy()
    if infinite.any():
        raise ValueError(
            f"The target {target!r} holds infinity ({first(column, infinite, every)}): correct or "
            "remove such rows."
        )
    rows = every[values.is_not_null().to_numpy()]
    if len(rows) < 2:
        has = "Only one row has" if len(rows) else "No row has"
        raise ValueError(f"{has} a {target!r}: at least 2 are needed.")
    return table.drop(by_name(target))[rows], values.drop_nulls().to_numpy(), rows


def split_targets(
    frame: Any, targets: Sequence[str]
) -> tuple[pl.DataFrame, Array, NDArray[np.int64]]:
    """The same for several targets, (n, k): rows that lack one of them are left out."""
    table = as_polars(frame)
    twice = [name for name in targets if list(targets).count(name) > 1]
    if twice:
        raise ValueError(f"The target {twice[0]!r} is named twice: name each column once.")
    found = {name: split_target(table, name) for name in targets}
    if table.width == len(found):
        raise ValueError("No column can be used to predict: all of them are targets.")
    every = np.full((len(table), len(found)), np.nan)
    for j, (_, values, rows) in enumerate(found.values()):
        every[rows, j] = values
    rows = np.flatnonzero(np.isfinite(every).all(axis=1))
    if len(rows) < 2:
        has = "Only one row has" if len(rows) else "No row has"
        raise ValueError(f"{has} all of {', '.join(targets)}: at least 2 are needed.")
    return table.drop(by_name(*targets))[rows], every[rows], rows
