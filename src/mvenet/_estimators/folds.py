"""Folds of rows: from a number, a splitter or a list, as row numbers, or an error that says why."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    PredefinedSplit,
    StratifiedGroupKFold,
    check_cv,
)

from mvenet._estimators.dependence import DependenceWarning
from mvenet._training.dependence import Dependence, independent
from mvenet._training.plan import Table
from mvenet._utils.sklearn import rows_of

USUAL = 5  # folds of rows that belong together: more cost time, and their CRPS is no better
FIRST = 3  # eighths of the rows that are in no stretch, but before all of them
OF_GROUPS = GroupKFold, GroupShuffleSplit, LeaveOneGroupOut, LeavePGroupsOut
Folds = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def shuffled(n_folds: int, seed: int) -> KFold:
    """So many folds, the rows in a random order that the seed decides."""
    return KFold(n_folds, shuffle=True, random_state=seed % 2**32)


def folds_of(
    name: str, cv: Any, X: Any, y: Any, seed: int, dependence: Dependence | None = None
) -> Folds:
    """Rows to train on and rows left out, of each fold.

    Parameters
    ----------
    name : str
        What the argument is called, for errors.
    cv : int, splitter or iterable
        A number means that many shuffled folds; of rows that belong together, whole groups, or
        stretches of time (:func:`together`).
    X, y : arrays of n rows
    seed : int
        Decides on the order of the rows, if ``cv`` is a number.
    dependence : Dependence or None
        Which of the rows belong together.

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
        if dependence is not None:
            return together(name, int(cv), dependence, seed)
        cv = shuffled(int(cv), seed)
    if isinstance(cv, StratifiedGroupKFold):
        raise ValueError(
            f"{name}={cv!r} spreads classes evenly, and y is a number: use GroupKFold, or a number."
        )
    if isinstance(cv, OF_GROUPS) and (dependence is None or dependence.groups is None):
        raise ValueError(
            f"{name}={cv!r} leaves out groups, and fit knows of none: give fit(..., groups=...), "
            "or use a number."
        )
    groups, order = None, np.arange(len(y))
    if dependence is not None:
        groups = dependence.groups
        if dependence.time is not None and hasattr(cv, "split"):
            order = np.argsort(dependence.time, kind="stable")  # a splitter knows no other
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        if (order[:-1] < order[1:]).all():
            split = check_cv(cv).split(X, y, groups)
        else:
            split = cv.split(rows_of(X, order), y[order], None if groups is None else groups[order])
        folds = [(order[a], order[b]) for a, b in split]  # masks too
    if groups is not None:
        _refuse_torn(name, cv, folds, groups)
    return folds


def together(name: str, n_folds: int, dependence: Dependence, seed: int) -> Folds:
    """So many folds that respect what belongs together.

    Groups are left out whole; of rows in time a stretch is left out, and what was before it is
    trained on; of both a stretch of some groups, and trained on is what was before in the others.
    """
    groups, time = dependence.groups, dependence.time
    if time is None:
        assert groups is not None
        return whole_groups(name, n_folds, groups, seed)
    if groups is None:
        return stretches(name, n_folds, time, dependence.horizon)
    halves = whole_groups(name, 2, groups, seed)
    later = stretches(name, -(-n_folds // 2), time, dependence.horizon)
    return [
        (np.intersect1d(past, others), np.intersect1d(next_ones, new))
        for past, next_ones in later
        for others, new in halves
        if len(np.intersect1d(next_ones, new))
    ]


def stretches(name: str, n_folds: int, time: NDArray[np.float64], horizon: float | None) -> Folds:
    """Folds that leave out a stretch of time each, and train on all that was before it.

    The last stretch ends with the table; the first begins after at least three eighths of its rows.
    Without a horizon all have about as many rows; with a long one there are two of them at least.
    """
    moments = np.sort(time)
    if horizon is None:
        first = -(-FIRST * n_folds // 5)  # three eighths
        at = np.linspace(0, len(moments), first + n_folds + 1).astype(int)[first:-1]
        starts = moments[at]
    else:
        earliest = moments[int(FIRST * len(moments) / 8)]
        starts = moments[-1] - horizon * np.arange(n_folds, 0, -1)
        starts = starts[-max(2, int(np.sum(starts >= earliest))) :]
    starts = np.unique(starts)
    ends = np.append(starts[1:], np.inf)
    parts = [
        (np.flatnonzero(time < start), np.flatnonzero((start <= time) & (time < end)))
        for start, end in zip(starts, ends, strict=True)
    ]
    folds = [(train, test) for train, test in parts if len(train) > 1 and len(test)]
    if not folds:
        raise ValueError(
            f"time has too few different moments to leave the last of them out: {name} needs "
            "earlier rows to train on and later ones to judge by."
        )
    return folds


def whole_groups(name: str, n_folds: int, groups: NDArray[np.int64], seed: int) -> Folds:
    """Folds of whole groups with about as many rows each; the seed decides between equal ones."""
    names, numbers = np.unique(groups, return_inverse=True)
    if len(names) < n_folds:
        message = f"{name}={n_folds} folds are more than the {len(names)} groups: one fold a group."
        warnings.warn(message, DependenceWarning, stacklevel=2)
        n_folds = len(names)
    drawn = np.random.default_rng(seed).permutation(len(names))[numbers]
    return [(train, test) for train, test in GroupKFold(n_folds).split(drawn, groups=drawn)]


def _refuse_torn(name: str, cv: Any, folds: Folds, groups: NDArray[np.int64]) -> None:
    for number, (train, test) in enumerate(folds):
        if len(np.intersect1d(groups[train], groups[test])):
            raise ValueError(
                f"{name}={_short(cv)} has rows of one group on both sides of fold {number}: use a "
                "number of folds, or a splitter of groups such as GroupKFold(5)."
            )


def _short(cv: Any) -> str:
    return repr(cv) if hasattr(cv, "split") else "(a list of folds)"


def usual_number(n_folds: int, dependence: Dependence | None, rows: NDArray[np.int64]) -> int:
    """So many folds; of rows that belong together five at most, and no more than groups."""
    if dependence is None:
        return n_folds
    return min(n_folds, USUAL, independent(dependence, rows))


def folds_of_table(name: str, cv: Any, table: Table, seed: int) -> Folds:
    """Rows to train on and rows left out of each fold, as row numbers of the table.

    A number or a splitter is asked about the rows that count only; a list of folds, or a
    ``PredefinedSplit``, speaks of all rows of the table, and those without weight are dropped.
    """
    X, y, rows, tied = table.source, table.y, table.rows, table.dependence
    asks = isinstance(cv, Integral) or hasattr(cv, "split")
    if asks and not isinstance(cv, PredefinedSplit):
        tied = None if tied is None else tied.of(rows)
        folds = [(rows[a], rows[b]) for a, b in folds_of(name, cv, X[rows], y[rows], seed, tied)]
    else:
        counts = np.isin(np.arange(len(y)), rows)
        given = folds_of(name, cv, X, y, seed, tied)
        folds = [(a[counts[a]], b[counts[b]]) for a, b in given]
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
