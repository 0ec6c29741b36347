"""TableEncoder: columns as people have them turned into numbers, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_is_fitted

from mvenet.table import _columns as columns
from mvenet.table._columns import Column
from mvenet.table._dates import Dates
from mvenet.table._levels import Levels, by_target, frequent
from mvenet.table._profile import profile

Array = NDArray[np.float64]
NUMERIC = ("number", "truth", "date")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn the columns of a DataFrame into numbers, and say what each was taken for.

    Numbers stay; a missing one becomes the median, and a further column says where. Dates become
    the days since the first one, and the sine and cosine of year, week and day where the column
    spans them. A category becomes a column of zeros and ones for each level; one with many levels
    becomes the mean of the target at its level, and how far the target lies from it on average.
    Both come from other rows than the one that they stand for: :meth:`fit_transform` leaves out a
    fifth at a time. Levels never seen are zero in all columns of zeros and ones, or the overall
    mean. Free text, and columns that hold one value, are dropped.

    Parameters
    ----------
    max_categories : int, default=30
        From how many levels on a category stands for the target's mean. Without a target its most
        frequent levels are kept apart.
    target : str or None
        Name of the column that is predicted, for whoever loads the model; it is not looked at.

    Attributes
    ----------
    columns_ : dict of Column
        What each column was taken for, and why.
    imputer_ : SimpleImputer or None
        Of the numbers, the truth values and the days elapsed; None if there are none.
    levels_ : dict
        Of the categories, by name: their levels, and the numbers that each becomes.
    dates_ : dict
        Of the dates, by name: how they are written, the origin, the cycles.
    seen_ : ndarray of shape (21, n)
        Quantiles of the numbers, truth values and days that were seen, from least to most.
    missing_ : ndarray
        Share of the cells that were missing, of those columns and then of the categories.
    kinds_, remarks_ : ndarray of str
        What ``columns_`` is made of, for small files.
    feature_names_in_ : ndarray of str
    n_features_in_ : int

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"size": [1.0, 2.0, None], "town": ["A", "B", "A"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.transform(frame)
    array([[1. , 0. , 1. , 0. ],
           [2. , 0. , 0. , 1. ],
           [1.5, 1. , 1. , 0. ]])
    >>> {name: column.kind for name, column in encoder.columns_.items()}
    {'size': 'number', 'town': 'category'}
    """

    def __init__(self, max_categories: int = 30, target: str | None = None) -> None:
        self.max_categories = max_categories
        self.target = target

    @property
    def columns_(self) -> dict[str, Column]:
        """What each column was taken for, and why."""
        check_is_fitted(self)
        told = zip(self.feature_names_in_, self.kinds_, self.remarks_, strict=True)
        return {str(name): Column(str(kind), str(remark)) for name, kind, remark in told}

    @property
    def levels_(self) -> Mapping[str, Levels]:
        """Of the categories: their levels, and the numbers that each becomes."""
        return Levels.unpacked(vars(self), self.named("category"))

    @property
    def dates_(self) -> Mapping[str, Dates]:
        """Of the dates: how they are written, the origin, the cycles."""
        names = self.named("date")
        if not names:
            return {}
        told = zip(self.date_forms_, self.date_origins_, self.date_cycles_, strict=True)
        return {
            n: Dates(str(f), float(o), str(c)) for n, (f, o, c) in zip(names, told, strict=True)
        }

    def named(self, *kinds: str) -> list[str]:
        """Names of the columns that were taken for one of these."""
        check_is_fitted(self)
        return [str(n) for n in self.feature_names_in_[np.isin(self.kinds_, kinds)]]

    def fit(self, X: Any, y: ArrayLike | None = None, rows: NDArray[Any] | None = None) -> Self:
        """Find out what each column is.

        Parameters
        ----------
        X : DataFrame of shape (n, n_features)
            Of polars or pandas.
        y : array-like of shape (n,) or None
            The target, for categories of many levels.
        rows : ndarray of shape (n,) or None
            Numbers of the rows in their file, from 0, for remarks.

        Returns
        -------
        self
        """
        self.fit_transform(X, y, rows)
        return self

    def fit_transform(
        self, X: Any, y: ArrayLike | None = None, rows: NDArray[Any] | None = None
    ) -> Array:
        """Find out what each column is, and turn these rows into numbers to train on.

        A category of many levels becomes, in each row, what other rows say about its level: no row
        can tell its own target. Elsewhere this is ``fit(X, y).transform(X)``.

        Parameters
        ----------
        X, y, rows
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n, n_features_out)
        """
        table = columns.as_polars(X)
        counted = np.arange(len(table)) if rows is None else rows
        table = columns.plain(table)
        found = [columns.taken_for(cells, counted) for cells in table]
        _refuse_nothing(table.columns, [column for column, _ in found])
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        self.n_features_in_ = table.width
        self.kinds_ = np.array([column.kind for column, _ in found])
        dates = [d for _, d in found if d is not None]
        self.date_forms_ = np.array([d.form for d in dates])
        self.date_origins_ = np.array([d.origin for d in dates], dtype=np.float64)
        self.date_cycles_ = np.array([d.cycles for d in dates])
        numbers = self._numbers(table, counted)
        self.imputer_ = None
        if numbers.shape[1]:
            self.imputer_ = SimpleImputer(strategy="median", add_indicator=True).fit(numbers)
        self.seen_, self.missing_ = profile(numbers, table, self.named("category"))
        target = None if y is None else np.asarray(y, dtype=np.float64)
        levels, trained = self._fit_levels(table, target)
        for name, kept in Levels.packed(list(levels.values())).items():
            setattr(self, name, kept)
        remarks = {name: level.remark for name, level in levels.items()}
        self.remarks_ = np.array(
            [
                ", ".join(filter(None, [column.remark, remarks.get(name)]))
                for name, (column, _) in zip(table.columns, found, strict=True)
            ]
        )
        return self._together(numbers, [*self._cycles(numbers), *trained])

    def transform(self, X: Any, rows: NDArray[Any] | None = None) -> Array:
        """Turn a table into numbers; its columns may come in any order, and further ones too.

        Parameters
        ----------
        X : DataFrame of shape (n, n_features)
        rows : ndarray of shape (n,) or None
            Numbers of the rows in their file, from 0, for error messages.

        Returns
        -------
        ndarray of shape (n, n_features_out)
        """
        table = columns.as_polars(X)
        present = set(table.columns)
        missing = [n for n in self.named(*NUMERIC, "category") if n not in present]
        if missing:
            named = ", ".join(map(repr, missing[:5])) + (" and more" if len(missing) > 5 else "")
            raise ValueError(f"The table lacks the column(s) {named}: add them, empty if unknown.")
        numbers = self._numbers(table, np.arange(len(table)) if rows is None else rows)
        coded = [level.encode(columns.texts(table[n])) for n, level in self.levels_.items()]
        return self._together(numbers, [*self._cycles(numbers), *coded])

    def tidy(self, X: Any) -> pl.DataFrame:
        """The columns that are used, each as what it was taken for.

        Numbers and truth values (1 and 0) are floats, dates are moments, categories text; missing
        cells are null. What :meth:`transform` makes of it is what it makes of ``X``.

        Parameters
        ----------
        X : DataFrame of shape (n, n_features)

        Returns
        -------
        polars.DataFrame
        """
        table = columns.as_polars(X)
        rows = np.arange(len(table))
        numbers = dict(zip(self.named(*NUMERIC), self._numbers(table, rows).T, strict=True))
        made = []
        dates = self.dates_
        for name in self.named(*NUMERIC, "category"):
            if name not in numbers:
                made.append(columns.texts(table[name]).alias(name))
                continue
            values = pl.Series(name, numbers[name], nan_to_null=True)
            if name in dates:
                moments = ((values + dates[name].origin) * 86_400e6).round().cast(pl.Int64)
                values = moments.cast(pl.Datetime("us"))
            made.append(values)
        return pl.DataFrame(made)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` returns."""
        names: list[str] = []
        if self.imputer_ is not None:
            names += list(self.imputer_.get_feature_names_out(self.named(*NUMERIC)))
        for name, dates in self.dates_.items():
            names += dates.names(name)
        for name, levels in self.levels_.items():
            names += levels.feature_names(name)
        return np.array(names, dtype=object)

    def places(self) -> dict[str, list[int]]:
        """Which of the columns that ``transform`` returns each column becomes."""
        numeric = self.named(*NUMERIC)
        made = {name: [i] for i, name in enumerate(numeric)}
        end = len(numeric)
        if self.imputer_ is not None:
            for i in self.imputer_.indicator_.features_:
                made[numeric[i]].append(end)
                end += 1
        blocks = {name: len(dates.names(name)) for name, dates in self.dates_.items()}
        blocks |= {name: len(levels.feature_names(name)) for name, levels in self.levels_.items()}
        for name, width in blocks.items():
            made.setdefault(name, []).extend(range(end, end + width))
            end += width
        return made

    def _numbers(self, table: pl.DataFrame, rows: NDArray[Any]) -> Array:
        """The columns of numbers, truths and days, NaN where missing."""
        dates, truths = self.dates_, set(self.named("truth"))
        names = self.named(*NUMERIC)
        made = np.empty((len(table), len(names)), order="F")
        parsed = columns.parsed(table, self.named("number"))  # all at once, on all threads
        for i, name in enumerate(names):
            if name in dates:
                made[:, i] = columns.days(table[name], dates[name], rows)
            elif name in truths:
                made[:, i] = columns.truths(table[name])
            else:
                made[:, i] = columns.numbers(table[name], rows, parsed.get(name))
        return made

    def _cycles(self, numbers: Array) -> list[Array]:
        """Sines and cosines of the dates."""
        place = {name: i for i, name in enumerate(self.named(*NUMERIC))}
        return [d.cycle_numbers(numbers[:, place[n]] + d.origin) for n, d in self.dates_.items()]

    def _fit_levels(
        self, table: pl.DataFrame, y: Array | None
    ) -> tuple[dict[str, Levels], list[Array]]:
        """The levels of each category, and what these rows become to train on."""
        levels, trained = {}, []
        for name in self.named("category"):
            texts = columns.texts(table[name])
            if y is not None and texts.drop_nulls().n_unique() > self.max_categories:
                levels[name], made = by_target(texts, y)
            else:
                levels[name] = frequent(texts, self.max_categories)
                made = levels[name].encode(texts)
            trained.append(made)
        return levels, trained

    def _together(self, numbers: Array, blocks: list[Array]) -> Array:
        """All blocks side by side, the numbers without gaps first."""
        if self.imputer_ is not None:
            blocks = [self.imputer_.transform(numbers), *blocks]
        return np.ascontiguousarray(np.hstack(blocks), dtype=np.float64)


def _refuse_nothing(names: list[str], found: list[Column]) -> None:
    if all(column.kind == "dropped" for column in found):
        dropped = zip(names[:5], found, strict=False)
        reasons = "; ".join(f"{name} is dropped ({column.remark})" for name, column in dropped)
        raise ValueError(f"No column can be used to predict: {reasons or 'there is none'}.")
