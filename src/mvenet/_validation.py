"""What an estimator is given, checked: tables, weights and hidden units."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from mvenet._plan import Table
from mvenet._sklearn import check_sample_weight

LARGEST = 1e302  # sums and ranges of larger numbers overflow


def hidden_units(name: str, value: Any) -> tuple[int, ...] | None:
    """Check a parameter such as ``hidden_mean`` and return it as a tuple of int, or None."""
    if value is None:
        return None
    units = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (None,)
    whole = (isinstance(u, int | np.integer) and not isinstance(u, bool) for u in units)
    if not all(whole) or not all(1 <= u <= 65536 for u in units):
        raise ValueError(
            f"The {name!r} parameter must hold whole numbers of hidden units from 1 to 65536, such "
            f"as (40, 20). Got {value!r} instead."
        )
    return tuple(int(u) for u in units)


def precision(X: Any) -> Any:
    """The type to read a table as: scikit-learn reads Arrow's single precision as double."""
    types = {str(column).lower() for column in getattr(X, "dtypes", ())}
    single = types and types <= {"float32", "float[pyarrow]"}
    return np.float32 if single else [np.float64, np.float32]


def check_table(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> Table:
    """Validate what ``fit`` was given."""
    table, target = validate_data(
        estimator,
        X,
        y,
        dtype=precision(X),
        y_numeric=True,
        ensure_min_samples=2,
    )
    target = np.ascontiguousarray(target, dtype=np.float64)
    for name, values in (("X", table), ("y", target)):
        largest = max(float(values.max()), -float(values.min()))
        if largest > LARGEST:
            raise ValueError(
                f"{name} holds {largest:g}, too large to standardise: divide by a constant first, "
                f"so that nothing exceeds {LARGEST:g}."
            )
    rows = np.arange(len(target))
    if sample_weight is None:
        return Table(table, target, None, rows)
    weight = check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    weight = weight / (weight.max() or 1.0)
    rows = np.flatnonzero(weight)
    if len(rows) < 2:
        raise ValueError(
            f"sample_weight is positive for {len(rows)} row(s): at least 2 rows must count."
        )
    return Table(table, target, weight, rows)


def fingerprint(*arrays: NDArray[Any]) -> str:
    """SHA-256 of arrays: shapes, types and contents, whatever their memory order."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        step = max(1, 2**20 // max(1, array[:1].size))  # no copy of a whole table in column order
        for start in range(0, len(array), step):
            digest.update(np.ascontiguousarray(array[start : start + step]).data)
    return digest.hexdigest()
