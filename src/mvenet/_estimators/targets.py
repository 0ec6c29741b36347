"""Several targets at once: an estimator for each, and what ties their errors.

Each target is fitted as if it were the only one, on the same folds; what they predict for the rows
left out then tells how their errors depend on each other (:mod:`mvenet._automatic.copula_fit`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mvenet._automatic import copula_fit
from mvenet._automatic.copula_fit import Tied
from mvenet._estimators import frames
from mvenet._models.joint import JointModel, without_unknown
from mvenet._training import fleet
from mvenet._utils.one_order import one_order
from mvenet._utils.sklearn import n_rows_of

if TYPE_CHECKING:
    from mvenet._estimators.base import TrainedRegressor
    from mvenet._estimators.dependence import Belonging

Array = NDArray[np.float64]
MOST_NAMED = 6  # pairs of targets in a summary


@dataclass(frozen=True)
class Targets:
    """Outcomes of k targets, (n, k), checked, and their names."""

    values: Array
    names: tuple[str, ...]


def columns_of(y: Any) -> int | None:
    """How many columns a y of two dimensions has; None if it is no table."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple):
        shape = (len(y), len(y[0]))
    return int(shape[1]) if shape is not None and len(shape) == 2 else None


def checked(y: Any, X: Any) -> Targets:
    """What ``fit`` was given as several targets."""
    n, k = n_rows_of(X), columns_of(y)
    if not k:
        raise ValueError("Y has no columns: give at least one target.")
    if n_rows_of(y) != n:
        raise ValueError(f"Y has {n_rows_of(y)} rows, and X has {n}: give the targets of each row.")
    if hasattr(y, "columns"):
        names = tuple(str(name) for name in y.columns)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"Y has two columns called {twice[0]!r}: give each its own name.")
        columns = [y[name] for name in y.columns]
    else:
        table = y if hasattr(y, "dtype") else np.asarray(y, dtype=object)
        if getattr(table, "ndim", 2) != 2 or not isinstance(table, np.ndarray):
            raise ValueError(f"Y is a {type(y).__name__}: give a table of numbers, (n, {k}).")
        names = tuple(f"y{j}" for j in range(k))
        columns = list(table.T)
    found = [_numbers(column, name) for column, name in zip(columns, names, strict=True)]
    return Targets(np.column_stack(found), names)


def _numbers(column: Any, name: str) -> Array:
    """A target as finite numbers."""
    try:
        if getattr(column.dtype, "kind", None) in (
            "m",
            "M",
            "c",
        ):  # which would become numbers of some kind
            raise TypeError(f"it is of type {column.dtype}")
        if hasattr(column, "isna"):  # of pandas, whose own missing values are no floats
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            given = np.asarray(column)
            if given.dtype.kind not in "biufO":
                raise TypeError(f"it is of type {given.dtype}")
            values = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Y must hold numbers, and column {name!r} does not: {error}.") from error
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"Y is missing in column {name!r} in {int(missing.sum()):,} of {len(values):,} rows, "
            f"the first of them row {int(missing.argmax())} (counted from 0): leave such rows out, "
            "or fit that target by itself."
        )
    endless = ~np.isfinite(values)
    if endless.any():
        raise ValueError(
            f"Y is infinite in column {name!r}, row {int(endless.argmax())} (counted from 0): "
            "replace it by a number first."
        )
    return np.asarray(values, dtype=np.float64)


def fit(
    estimator: TrainedRegressor, X: Any, y: Any, weight: Any, belonging: Belonging
) -> list[Warning]:
    """Fit an estimator to several targets; returns warnings for the caller to show."""
    from mvenet._estimators.base import fit_together

    for name in [n for n in vars(estimator) if n.endswith("_") and not n.startswith("_")]:
        delattr(estimator, name)  # nothing of an earlier fit, to one target perhaps, may remain
    estimator._validate_params()
    targets = checked(y, X)
    k = len(targets.names)
    if k > 1 and not estimator._leaves_rows_out():
        raise ValueError(_NO_ROWS.format(type(estimator).__name__))
    seed = estimator.random_state
    if not isinstance(seed, int | np.integer):  # the same folds for all targets
        seed = fleet.derived_seed(fleet.seed_entropy(seed), 3, 0, 0) % 2**32
    if frames.needs_encoder(X):
        X = frames.settled(X)  # what each column is, once for all targets
    parts, warned = [], dict[str, Warning]()
    for name, values in zip(targets.names, targets.values.T, strict=True):
        part = clone(estimator).set_params(random_state=seed)
        part._targets = k
        try:
            (found,) = fit_together(
                [part], X, np.ascontiguousarray(values), weight, belonging,
                n_jobs=estimator.n_jobs, verbose=estimator.verbose,
            )  # fmt: skip
        except Exception as error:
            error.add_note(f"While target {name!r} was fitted.")
            raise
        for warning in found:
            warned.setdefault(str(warning), type(warning)(f"{name}: {warning}"))
        del part._targets
        part.target_name_ = name
        parts.append(part)
    _keep(estimator, parts, targets, _tied(parts, targets, X, weight, belonging, seed))
    return list(warned.values())


_NO_ROWS = (
    "Several targets need rows left out, from which the dependence of their errors is learned, and "
    "this {} leaves none out: use strategy='cross-fit' and at least 8 rows, or fit each target by "
    "itself."
)


def _tied(
    parts: list[Any], targets: Targets, X: Any, weight: Any, belonging: Belonging, seed: int
) -> Tied:
    """How the errors of targets depend on each other."""
    if len(parts) == 1:
        return Tied(np.eye(1), 0.0)
    if not all(hasattr(part, "oof_pit_") for part in parts):
        raise ValueError(_NO_ROWS.format(type(parts[0]).__name__))
    pit = np.stack([part.oof_pit_ for part in parts], axis=1)
    constant = np.ptp(targets.values, axis=0) == 0
    pit[:, constant] = np.where(np.isnan(pit[:, constant]), np.nan, 0.5)  # goes with no other
    each = None if weight is None else np.asarray(weight, dtype=np.float64)
    if each is not None:
        each = np.broadcast_to(each / (each.max() or 1.0), (len(pit),))
    dependence = belonging.checked(len(pit), None if each is None else np.flatnonzero(each))
    with one_order():
        return copula_fit.fit(without_unknown(parts[0], X), pit, each, dependence, int(seed))


_SHARED = "n_features_in_", "feature_names_in_", "n_rows_", "fitted_on_"


def _keep(estimator: Any, parts: list[Any], targets: Targets, tied: Tied) -> None:
    """Set the fitted attributes; the model comes last, without which nothing is fitted."""
    first = parts[0]
    for name in (*_SHARED, "oof_fold_", "n_splits_"):
        if hasattr(first, name):
            setattr(estimator, name, getattr(first, name))
    for name in ("oof_mean_", "oof_std_", "oof_pit_"):
        if hasattr(first, name):
            setattr(estimator, name, np.stack([getattr(part, name) for part in parts], axis=1))
    if hasattr(first, "best_score_"):
        estimator.best_score_ = sum(part.best_score_ for part in parts) + tied.gain
    digest = hashlib.sha256("".join(part.fingerprint_ for part in parts).encode())
    estimator.fingerprint_ = first.fingerprint_ if len(parts) == 1 else digest.hexdigest()
    estimator.n_steps_ = sum(part.n_steps_ for part in parts)
    estimator.target_names_ = np.array(targets.names, dtype=object)
    estimator.summary_ = _summary(parts, targets, tied)
    estimator.model_ = JointModel(
        tuple(parts), targets.names, tied.constant, tied.independent, tied.local, tied.share,
        tied.claims,
    )  # fmt: skip


def _summary(parts: list[Any], targets: Targets, tied: Tied) -> str:
    """What came out for each target, and how their errors depend on each other."""
    if len(parts) == 1:
        return str(parts[0].summary_)
    told = [f"{name}:\n{part.summary_}" for name, part in zip(targets.names, parts, strict=True)]
    first, second = np.triu_indices(len(parts), 1)
    order = np.argsort(-np.abs(tied.constant[first, second]), kind="stable")[:MOST_NAMED]
    pairs = ", ".join(
        f"{tied.constant[first[i], second[i]]:.2f} of {targets.names[first[i]]} and "
        f"{targets.names[second[i]]}"
        for i in order
    )
    largest = "" if len(order) == len(first) else "the largest of them "
    lines = [f"Together:\nCorrelation of the errors, by rows left out: {largest}{pairs}."]
    if tied.local is not None:
        lines.append(
            "It differs from row to row: rows left out are likelier by "
            f"{tied.local_gain:.2f} for that."
        )
    lines.append(
        f"Knowing it, the rows left out are likelier by {tied.gain:.2f} a row (log-likelihood)."
    )
    return "\n".join([*told, "\n".join(lines)])
