"""Folds of rows: from a number, a splitter or a list, as row numbers, or an error that says why."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, PredefinedSplit, check_cv

from mvenet._training.plan import Table

Folds = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def shuffled(n_folds: int, seed: int) -> KFold:
    """So many folds, the rows in a random order that the seed decides."""
    return KFold(n_folds, shuffle=True, random_state=seed % 2**32)


def folds_of(name: str, cv: Any, X: Any, y: Any, seed: int) -> Folds:
    """Rows to train on and rows left out, of each fold.

    Parameters
    ----------
    name : str
        What the argument is called, for errors.
    cv : int, splitter or iterable
        A number means that many shuffled folds.
    X, y : arrays of n rows
    seed : int
        Decides on the order of the rows, if ``cv`` is a number.

    Returns
    -------
    list of (ndarray of int, ndarray of int)
    """
    if isinstance(cv, Integral):
        if not 2 <= int(cv) <= len(y):
            raise ValueError(
                f"{name}={cv} must be a number of folds from 2 to the number of rows, "
                f"n_samples = {len(y)}."
            )
        cv = shuffled(int(cv), seed)
    every = np.arange(len(y))
    return [(every[train], every[test]) for train, test in check_cv(cv).split(X, y)]  # masks too


def folds_of_table(name: str, cv: Any, table: Table, seed: int) -> Folds:
    """Rows to train on and rows left out of each fold, as row numbers of the table.

    A number or a splitter is asked about the rows that count only; a list of folds, or a
    ``PredefinedSplit``, speaks of all rows of the table, and those without weight are dropped.
    """
    X, y, rows = table.source, table.y, table.rows
    asks = isinstance(cv, Integral) or hasattr(cv, "split")
    if asks and not isinstance(cv, PredefinedSplit):
        folds = [(rows[a], rows[b]) for a, b in folds_of(name, cv, X[rows], y[rows], seed)]
    else:
        counts = np.isin(np.arange(len(y)), rows)
        folds = [(a[counts[a]], b[counts[b]]) for a, b in folds_of(name, cv, X, y, seed)]
    return check_folds(name, cv, folds)


def fold_numbers(folds: Folds, n: int) -> NDArray[np.int64]:
    """The fold that left each of n rows out (of several the last), -1 for none."""
    numbers = np.full(n, -1)
    for fold, (_, test) in enumerate(folds):
        numbers[test] = fold
    return numbers


def check_folds(name: str, cv: Any, folds: Folds) -> Folds:
    """Refuse folds with too few rows to train on, or to leave out."""
    for number, (train, test) in enumerate(folds):
        if len(train) < 2 or len(test) < 1:
            raise ValueError(
                f"{name} gives fold {number} {len(train)} rows to train on and {len(test)} to "
                "leave out: it needs at least 2 and 1."
            )
    if not folds:
        raise ValueError(f"{name}={cv!r} gives no folds: use a splitter that has some.")
    return folds
