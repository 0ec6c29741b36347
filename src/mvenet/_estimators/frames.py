"""Frames as people have them: which of them need an encoder, and what it makes of their rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_X_y, validate_data

from mvenet._utils.sklearn import rows_of

if TYPE_CHECKING:
    from mvenet._columns.encoder import TableEncoder
    from mvenet._columns.settled import Settled

Array = NDArray[np.float64]
COMPACT_DATES = 19e6, 21e6  # where numbers may be dates such as 20200131


class UnseenWarning(UserWarning):
    """Rows to predict have levels of a category that no row had when the model was fitted.

    They are predicted as rows of which that cell is not known. To refuse them, make an error of it:
    ``warnings.simplefilter("error", UnseenWarning)``.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from mvenet import MVERegressor, UnseenWarning
    >>> frame = pd.DataFrame({"size": range(40), "town": ["A", "B"] * 20})
    >>> model = MVERegressor(epochs=5, random_state=0).fit(frame, frame["size"])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     mean = model.predict(pd.DataFrame({"size": [3], "town": ["C"]}))
    >>> caught[0].category is UnseenWarning
    True
    """


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas, polars or Arrow, or rows of one that was looked at."""
    kind = f"{type(X).__module__}.{type(X).__name__}"
    known = hasattr(X, "columns") and hasattr(X, "dtypes")
    known |= hasattr(X, "column_names") and hasattr(X, "schema")
    return known or kind.startswith("polars.") or is_settled(X)


def is_settled(X: Any) -> bool:
    """Whether X is a :class:`~mvenet._columns.settled.Settled`, told without importing polars."""
    return type(X).__name__ == "Settled" and hasattr(X, "found")


def check_names(estimator: BaseEstimator, X: Any) -> None:
    """Refuse a frame without columns, and one of which two have the same name."""
    if is_settled(X):
        return
    arrow = hasattr(X, "column_names")  # whose columns are the cells
    names = [str(name) for name in (X.column_names if arrow else X.columns)]
    if not names:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required by "
            f"{type(estimator).__name__}: give at least one column."
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has the column {twice!r} twice: rename one of them.")


def needs_encoder(X: Any) -> bool:
    """Whether a frame holds more than numbers, or columns that an encoder would not keep.

    One that does not is the same array of numbers with an encoder and without.
    """
    if not is_frame(X):
        return False
    if is_settled(X) or not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return True
    numeric = all(_is_numeric(kind) for kind in X.dtypes)
    return not numeric or any(_is_odd(X[name]) for name in _names_once(X))


def _names_once(X: Any) -> list[Any]:
    """Names of the columns, if each stands once: scikit-learn takes others, and has its words."""
    names = list(X.columns)
    return names if len(set(names)) == len(names) else []


def _is_numeric(kind: Any) -> bool:
    """Whether cells of this type are numbers for scikit-learn, too."""
    if hasattr(kind, "is_numeric"):  # of polars
        return kind.is_numeric() and str(kind) != "Decimal" and not str(kind).startswith("Decimal(")
    return getattr(kind, "kind", "O") in "iufbc" and "Decimal" not in str(kind)


def _is_odd(column: Any) -> bool:
    """Whether a column of numbers is all missing, one value, or dates such as 20200131."""
    values = np.asarray(column.to_numpy())
    if values.dtype.kind not in "iufb" or not len(values):
        return False
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    constant = not low < high and not (low == high and bool(np.isnan(values).any()))
    return constant or COMPACT_DATES[0] < low <= high < COMPACT_DATES[1]


def settled(X: Any) -> Settled:
    """A frame, of which all rows tell what each column is."""
    try:
        from mvenet._columns.settled import Settled
    except ImportError as error:
        raise ImportError(
            "A frame with more than numbers needs polars, which reads it: pip install "
            '"mvenet[frames]".',
            name=error.name,
        ) from error
    return Settled.of(X)


def checked(estimator: BaseEstimator, X: Any, y: Any, **options: Any) -> tuple[Settled, Array]:
    """A frame, and y as scikit-learn checks it; sets number and names of the columns."""
    frame = settled(X)
    named = frame.table if is_settled(X) or not hasattr(X, "dtypes") else X
    validate_data(estimator, named, skip_check_array=True, reset=True)
    _, target = check_X_y(np.zeros((len(frame), 1)), y, estimator=estimator, **options)
    return frame, target


def fitted(
    frame: Settled, y: Array, rows: NDArray[np.int64], groups: NDArray[Any] | None
) -> tuple[TableEncoder, Array]:
    """An encoder that has learned from some rows, and the numbers of all to train on."""
    from mvenet._columns.encoder import TableEncoder

    encoder = TableEncoder()
    if len(rows) == len(frame):
        return encoder, encoder.fit_settled(frame, y, groups)
    tied = None if groups is None else groups[rows]
    made = encoder.fit_settled(frame[rows], y[rows], tied)
    table = encoder.transform(frame.table)
    table[rows] = made
    return encoder, table


def learns(encoder: TableEncoder) -> bool:
    """Whether some of the numbers that an encoder makes come from y."""
    return any(levels.values.size for levels in encoder.levels_.values())


def within_folds(
    encoder: TableEncoder,
    table: Any,
    numbers: Array,
    y: Array,
    groups: NDArray[Any] | None,
    folds: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    rows: NDArray[np.int64],
) -> Array:
    """Numbers of all rows; what comes from y is learned from the rows that each fold trains on."""
    from mvenet._columns import levels
    from mvenet._columns.cells import texts

    left_out = np.concatenate([test for _, test in folds])
    rest, places, made = np.setdiff1d(rows, left_out), encoder.places(), numbers.copy()
    for name, kept in encoder.levels_.items():
        if kept.values.size:
            found = levels.within_folds(texts(table[name]), y, folds, rest, groups)
            known = np.flatnonzero(np.isfinite(found).all(axis=1))
            made[known[:, None], np.array(places[name])] = found[known]
    return made


def encoded(estimator: Any, X: Any) -> Array:
    """What a fitted encoder makes of rows: of a frame by names, of an array by places."""
    if is_settled(X):  # rows of the table that it was fitted to
        return estimator.encoder_.transform(X.table, X.rows)  # type: ignore[no-any-return]
    frame = X if is_frame(X) else _named(estimator, X)
    numbers: Array
    numbers, unseen = estimator.encoder_.with_unseen(frame, mark=estimator._knows_unknown())
    if not len(numbers):
        raise ValueError(
            f"Found array with 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required "
            f"by {type(estimator).__name__}."
        )
    for sentence in unseen:
        warnings.warn(sentence, UnseenWarning, stacklevel=4)
    return numbers


def _named(estimator: Any, X: Any) -> Any:
    """An array with the names of the frame that was fitted to, column by column."""
    from mvenet._columns.cells import from_array

    cells = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    names = [str(name) for name in estimator.encoder_.feature_names_in_]
    if cells.ndim != 2 or cells.shape[1] != len(names):
        has = f"{cells.shape[1]} features" if cells.ndim == 2 else f"shape {cells.shape}"
        raise ValueError(
            f"X has {has}, but {type(estimator).__name__} is expecting {len(names)} features as "
            "input."
        )
    warnings.warn(
        f"X does not have valid feature names, but {type(estimator).__name__} was fitted with "
        "feature names",
        stacklevel=5,
    )
    return from_array(cells, names)


def some_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of whatever X is."""
    return X[rows] if is_settled(X) else rows_of(X, rows)
