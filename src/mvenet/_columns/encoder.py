"""TableEncoder: columns as people have them turned into numbers, one by one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mvenet._columns import cells as columns
from mvenet._columns.encoding import Array, Encoding
from mvenet._columns.levels import Levels, by_target, frequent
from mvenet._columns.profile import profile
from mvenet._columns.settled import Settled
from mvenet._models.columns import Column
from mvenet._models.numbers import telling


class TableEncoder(Encoding, TransformerMixin, BaseEstimator):
    """Turn the columns of a DataFrame into numbers, and say what each was taken for.

    Numbers stay; a missing one becomes the median, and a further column says where, unless gaps are
    rarer than one row in a hundred or the same as another column's. Truth values
    (yes and no, true and false, Y and N, T and F, in any case) are 1 and 0. Dates become the days
    since the first one, and the sine and cosine of year, week and day where the column spans them.
    A category becomes a column of zeros and ones for each level; one with many levels becomes the
    mean of the target at its level, and how far the target lies from it on average. Both come from
    other rows than the one that they stand for: :meth:`fit_transform` leaves out a fifth at a time.
    Levels never seen are zero in all columns of zeros and ones, or the overall mean. Free text, and
    columns that hold one value, are dropped.

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
    medians_ : ndarray
        In the place of gaps of the numbers, the truth values and the days elapsed.
    told_ : ndarray of int
        Those of them whose gaps have a further column of zeros and ones.
    levels_ : dict
        Of the categories, by name: their levels, and the numbers that each becomes.
    dates_ : dict
        Of the dates, by name: how they are written, the origin, the cycles.
    n_rows_ : int
        Rows that it was fitted to.
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
        return self.fit_settled(Settled.of(X, rows), y)

    def fit_settled(
        self, given: Settled, y: ArrayLike | None, groups: NDArray[Any] | None = None
    ) -> Array:
        """The same for rows of a table which as a whole has told what each column is.

        With ``groups``, what the target says of a level comes from other groups than the row's.
        """
        table, counted = given.table, given.rows
        found = given.found
        _refuse_nothing(table.columns, [column for column, _ in found])
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        self.n_features_in_ = table.width
        self.n_rows_ = len(table)
        self.kinds_ = np.array([column.kind for column, _ in found])
        dates = [d for _, d in found if d is not None]
        self.date_forms_ = np.array([d.form for d in dates])
        self.date_origins_ = np.array([d.origin for d in dates], dtype=np.float64)
        self.date_cycles_ = np.array([d.cycles for d in dates])
        numbers = self._numbers(table, counted)
        self.__dict__.pop("imputer_", None)  # of an old file
        gaps = np.isnan(numbers)
        holes = zip(numbers.T, gaps.T, strict=True)
        self.medians_ = np.array([np.median(c[~hole]) for c, hole in holes], dtype=np.float64)
        self.told_ = telling(gaps)
        self.seen_, self.missing_ = profile(numbers, table, self.named("category"))
        target = None if y is None else np.asarray(y, dtype=np.float64)
        levels, trained = self._fit_levels(table, target, groups)
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

    transform = Encoding.transform  # named here for scikit-learn to wrap it (set_output)

    def _require_fitted(self) -> None:
        check_is_fitted(self)

    def _fit_levels(
        self, table: pl.DataFrame, y: Array | None, groups: NDArray[Any] | None
    ) -> tuple[dict[str, Levels], list[Array]]:
        """The levels of each category, and what these rows become to train on."""
        levels, trained = {}, []
        for name in self.named("category"):
            texts = columns.texts(table[name])
            if y is not None and texts.drop_nulls().n_unique() > self.max_categories:
                levels[name], made = by_target(texts, y, groups)
            else:
                levels[name] = frequent(texts, self.max_categories)
                made = levels[name].encode(texts)
            trained.append(made)
        return levels, trained


def _refuse_nothing(names: list[str], found: list[Column]) -> None:
    if all(column.kind == "dropped" for column in found):
        dropped = zip(names[:5], found, strict=False)
        reasons = "; ".join(f"{name} is dropped ({column.remark})" for name, column in dropped)
        raise ValueError(f"No column can be used to predict: {reasons or 'there is none'}.")
