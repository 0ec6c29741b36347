"""What an estimator is given, checked: tables and weights."""

from __future__ import annotations

import hashlib
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_X_y, validate_data

from mvenet._estimators import frames
from mvenet._estimators.dependence import NOTHING, Belonging
from mvenet._models.numbers import Numbers
from mvenet._training.plan import Table
from mvenet._utils.finite import AT_ONCE, has_gaps
from mvenet._utils.sklearn import check_sample_weight, rows_of

LARGEST = 1e302  # sums and ranges of larger numbers overflow


def precision(X: Any) -> Any:
    """The type to read a table as: scikit-learn reads Arrow's single precision as double."""
    types = {str(column).lower() for column in getattr(X, "dtypes", ())}
    single = types and types <= {"float32", "float[pyarrow]"}
    return np.float32 if single else [np.float64, np.float32]


def checked(estimator: BaseEstimator, X: Any, *y: ArrayLike, reset: bool, **options: Any) -> Any:
    """What ``validate_data`` returns, gaps included; of a large frame a table in row order.

    The engine reads rows where they are, but copies those of columns; and scikit-learn would make
    one more table on the way.
    """
    options["ensure_all_finite"] = False
    if not _is_copied(X):
        return validate_data(estimator, X, *y, dtype=precision(X), reset=reset, **options)
    validate_data(estimator, X, skip_check_array=True, reset=reset)  # the columns' names
    table = np.empty(X.shape, np.float32 if precision(X) is np.float32 else np.float64)
    step = max(1, AT_ONCE // X.shape[1])
    for rows in (slice(at, at + step) for at in range(0, len(X), step)):
        some = rows_of(X, rows)
        table[rows] = check_array(
            some, dtype=table.dtype, ensure_all_finite=False, estimator=estimator, input_name="X"
        )
    if y:
        return check_X_y(table, *y, dtype=table.dtype, estimator=estimator, **options)
    return check_array(table, dtype=table.dtype, estimator=estimator, input_name="X", **options)


def _is_copied(X: Any) -> bool:
    """Whether X is a large frame that is not one array already."""
    if not hasattr(X, "dtypes") or math.prod(getattr(X, "shape", ())) <= AT_ONCE:
        return False
    head = rows_of(X, slice(0, 2))
    return not np.may_share_memory(np.asarray(head), np.asarray(head))


def check_table(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    belonging: Belonging = NOTHING,
) -> Table:
    """Validate what ``fit`` was given, and make numbers of it; sets the estimator's encoder."""
    given, target = checked_frame_or_numbers(estimator, X, y)
    _refuse_huge("y", target)
    weight, rows = _weighted(sample_weight, target)
    tied = belonging.checked(len(target), None if weight is None else rows)
    groups = None if tied is None else tied.groups
    table = encoded(estimator, given, target, rows, groups)
    _refuse_huge("X", table)
    by_folds = None
    if frames.is_settled(given) and frames.learns(estimator.encoder_):
        by_folds = partial(
            frames.within_folds, estimator.encoder_, given.table, table, target, groups
        )
    return Table(table, target, weight, rows, dependence=tied, by_folds=by_folds)


def checked_frame_or_numbers(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[np.float64]]:
    """What ``fit`` was given, as a :class:`Settled` frame or as an array; and y."""
    options: dict[str, Any] = {"y_numeric": True, "ensure_min_samples": 2}
    _refuse_no_numbers(y)
    if frames.is_frame(X):
        frames.check_names(estimator, X)
    if frames.needs_encoder(X):
        given, target = frames.checked(estimator, X, y, **options)
    else:
        given, target = checked(estimator, X, y, reset=True, **options)
    return given, np.ascontiguousarray(target, dtype=np.float64)


def encoded(
    estimator: Any,
    given: Any,
    y: NDArray[np.float64],
    rows: NDArray[np.int64],
    groups: NDArray[Any] | None,
) -> NDArray[Any]:
    """Numbers of all rows; the encoder, which some of them have taught, is the estimator's."""
    if frames.is_settled(given):
        estimator.encoder_, table = frames.fitted(given, y, rows, groups)
        return table
    gaps = has_gaps(given, getattr(estimator, "feature_names_in_", None))
    estimator.encoder_ = Numbers.of(given, rows, gaps)
    if not estimator.encoder_.width:
        raise ValueError("No column of X holds a number: there is nothing to learn from.")
    return estimator.encoder_.transform(given, gaps)  # type: ignore[no-any-return]


def _refuse_no_numbers(y: Any) -> None:
    """Say where y holds dates, texts or gaps; scikit-learn takes dates, and names no row."""
    values = np.asarray(y)
    if values.dtype.kind in "mM":
        raise ValueError(
            f"y must hold numbers, and is of type {values.dtype}: give days since a date, or hours."
        )
    for row, cell in enumerate(
        values.ravel() if values.ndim and values.dtype.kind in "OUS" else ()
    ):
        try:
            float(cell)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y must hold numbers, and row {row} (counted from 0) holds {str(cell)[:50]!r}: "
                "correct it, or leave such rows out."
            ) from error
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, bool)
    if missing.any():
        raise ValueError(
            f"Input y contains NaN in {int(missing.sum()):,} of {missing.size:,} rows, the first "
            f"of them row {int(missing.argmax())} (counted from 0): leave such rows out."
        )


def _refuse_huge(name: str, values: NDArray[Any]) -> None:
    largest = max(float(values.max()), -float(values.min()))
    if largest > LARGEST:
        raise ValueError(
            f"{name} holds {largest:g}, too large to standardise: divide by a constant first, "
            f"so that nothing exceeds {LARGEST:g}."
        )


def _weighted(
    sample_weight: ArrayLike | None, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64] | None, NDArray[np.int64]]:
    """Weights of which the largest is one, and the rows that count."""
    if sample_weight is None:
        return None, np.arange(len(y))
    weight = check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    weight = weight / (weight.max() or 1.0)
    rows = np.flatnonzero(weight)
    if len(rows) < 2:
        raise ValueError(
            f"sample_weight is positive for {len(rows)} row(s): at least 2 rows must count."
        )
    return weight, rows


def keep_name(estimator: Any, y: Any) -> None:
    """Remember what y is called, if it has a name: reports and the command say it."""
    vars(estimator).pop("target_name_", None)
    name = getattr(y, "name", None)
    if isinstance(name, str) and name:
        estimator.target_name_ = name


def fingerprint(*arrays: NDArray[Any]) -> str:
    """SHA-256 of arrays: shapes, types and contents, whatever their memory order."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        step = max(1, 2**20 // max(1, array[:1].size))  # no copy of a whole table in column order
        for start in range(0, len(array), step):
            digest.update(np.ascontiguousarray(array[start : start + step]).data)
    return digest.hexdigest()
