"""Training rows that are like a row, and whether a row is like any of them.

A model file does not hold the training rows (only a few, see :mod:`mvenet._models.unknown`): it
would grow with the table. So the rows are given by the caller, who has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.distributions._checks import check_shape
from mvenet.explain._asking import Array, check_fitted, distribution, some, source_of, whole
from mvenet.explain._source import Cells, Rows, Source
from mvenet.metrics._inputs import numbers

CELLS_AT_ONCE = 2**22  # distances that are computed together
ASKED = 300  # rows that tell how much each column moves predictions
COMPARED = 1_000  # training rows whose own distance from the others is the yardstick


@dataclass(frozen=True, eq=False)
class Similar:
    """The k training rows that are nearest to each of n rows.

    Attributes
    ----------
    rows : ndarray of shape (n, k), int
        Their numbers, the nearest first: ``y_train[found.rows]`` is what became of them.
    distance : ndarray of shape (n, k)
        Average over the columns, each weighed by ``weights``: of numbers and dates the difference
        in standard deviations, of levels 1 if they differ, and about 1 if one is a gap.
    columns : list of str
    weights : ndarray of shape (d,)
        How much each column counts, in all one.

    Examples
    --------
    See :func:`similar`.
    """

    rows: NDArray[np.int64]
    distance: Array
    columns: list[str]
    weights: Array

    def __repr__(self) -> str:
        n, k = self.rows.shape
        return f"Similar({k} training rows for each of {n})"


@dataclass(frozen=True, eq=False)
class Outside:
    """How far rows are from all that was seen.

    Attributes
    ----------
    score : ndarray of shape (n,)
        Share of the training rows that are nearer to the others than this row is to them: 0.5 is an
        ordinary row, 0.99 one that is as lonely as one training row in a hundred, and 1 one that is
        lonelier than all. Of rows like the training rows, one in twenty is above 0.95.
    distance : ndarray of shape (n,)
        From the k nearest training rows on average, as in :class:`Similar`, all columns alike.
    typical : ndarray of shape (m,)
        The same of training rows, from the others, in ascending order.
    column : list of str
        The column in which each row is farthest from its nearest training rows.

    Examples
    --------
    See :func:`outside`.
    """

    score: Array
    distance: Array
    typical: Array
    column: list[str]

    def __repr__(self) -> str:
        lonely = int((self.score > 0.99).sum())
        return f"Outside({len(self.score)} rows, {lonely} of them with a score above 0.99)"


def similar(
    estimator: Any,
    X: Any,
    X_train: Any,
    k: int = 5,
    *,
    weights: str | ArrayLike = "model",
    random_state: int = 0,
) -> Similar:
    """The training rows that are most like each row, as the model sees it.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like or DataFrame of shape (n, n_features)
    X_train : array-like or DataFrame of shape (m, n_features)
        Rows to look among, such as those that the model was trained on.
    k : int, default=5
        So many for each row.
    weights : {"model", "equal"} or array-like of shape (n_features,), default="model"
        How much each column counts. "model": as much as mean and standard deviation of training
        rows move if the column is shuffled, so that a column the model makes nothing of does not
        count.
    random_state : int, default=0
        Seed of these shuffles.

    Returns
    -------
    Similar

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> from mvenet.explain import similar
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=300)
    >>> model = MVERegressor(random_state=0).fit(X, y)
    >>> found = similar(model, [[0.5, 0.0]], X)
    >>> bool(found.weights[0] > 0.8), bool(abs(X[found.rows[0], 0] - 0.5).max() < 0.1)
    (True, True)
    """
    known, asked = _both(estimator, X, X_train, k)
    shares = _weights(estimator, known, weights, random_state)
    space = _Space(known, asked, shares)
    nearest, distance = space.nearest(k)
    names = [known.label(j) for j in range(known.width)]
    return Similar(nearest, distance, names, shares)


def outside(estimator: Any, X: Any, X_train: Any, k: int = 5, *, random_state: int = 0) -> Outside:
    """How far each row is from all training rows.

    All columns count alike, also those that the model makes nothing of: it may do so only because
    they never varied.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like or DataFrame of shape (n, n_features)
    X_train : array-like or DataFrame of shape (m, n_features)
        The rows that the model was trained on, or many of them.
    k : int, default=5
        The distance is that from so many nearest rows, on average.
    random_state : int, default=0
        Seed of the choice of training rows whose own distances are the yardstick, if there are more
        than a thousand.

    Returns
    -------
    Outside

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> from mvenet.explain import outside
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> model = MVERegressor(random_state=0).fit(X, X[:, 0] + 0.1 * rng.normal(size=300))
    >>> found = outside(model, [[0.0, 0.0], [0.0, 3.0]], X)
    >>> bool(found.score[0] < 0.9), float(found.score[1]), found.column[1]
    (True, 1.0, 'x1')
    """
    known, asked = _both(estimator, X, X_train, k)
    if len(known) < 2:
        raise ValueError("X_train has 1 row, which has no other to be compared with: pass more.")
    shares = np.full(known.width, 1.0 / known.width)
    space = _Space(known, asked, shares)
    nearest, distance = space.nearest(k)
    few = some(len(known), COMPARED, np.random.default_rng(random_state))
    own = _Space(known, known, shares, few).nearest(min(k, len(known) - 1), without=few)[1]
    typical = np.sort(own.mean(axis=1))
    away = distance.mean(axis=1)
    # A row as far as the k-th of m is not lonelier than it: ties count as half.
    below = np.searchsorted(typical, away, side="left")
    above = np.searchsorted(typical, away, side="right")
    score = 0.5 * (below + above) / len(typical)
    farthest = space.by_column(nearest).argmax(axis=1)
    return Outside(score, away, typical, [known.label(int(j)) for j in farthest])


def _both(estimator: Any, X: Any, X_train: Any, k: int) -> tuple[Source, Source]:
    check_fitted(estimator)
    known, asked = source_of(estimator, X_train, "X_train"), source_of(estimator, X)
    asked.check_like(known)
    if whole("k", k, 5) > len(known):
        raise ValueError(
            f"k={k} is more than the {len(known)} rows of X_train: use at most {len(known)}."
        )
    return known, asked


def _weights(estimator: Any, source: Source, given: str | ArrayLike, seed: int) -> Array:
    """Shares of the columns."""
    if isinstance(given, str):
        if given not in ("model", "equal"):
            raise ValueError(f"weights={given!r} must be 'model', 'equal' or a number a column.")
        moved = np.ones(source.width)
        if given == "model":
            moved = _moved(estimator, source, seed)
        return moved / moved.sum() if moved.any() else np.full(source.width, 1 / source.width)
    shares = numbers("weights", given)
    check_shape("weights", shares, (source.width,), "pass a number for each column")
    if (shares < 0).any() or not shares.any():
        raise ValueError("weights must not be negative, nor all zero: use 0 for some columns only.")
    return np.asarray(shares / shares.sum())


def _moved(estimator: Any, source: Source, seed: int) -> Array:
    """How far mean and standard deviation move, in units of y, if a column is shuffled."""
    rng = np.random.default_rng(seed)
    rows = some(len(source), ASKED, rng)
    plain = distribution(estimator, source.rows(rows))
    others = rows[rng.permutation(len(rows))]
    moved = np.empty(source.width)
    for column in range(source.width):
        dist = distribution(estimator, source.with_cells(rows, [column], others))
        moved[column] = np.abs(dist.mean - plain.mean).mean() + np.abs(dist.std - plain.std).mean()
    return moved


class _Space:
    """Rows and training rows as numbers whose differences are distances, column by column."""

    def __init__(
        self, known: Source, asked: Source, shares: Array, rows: Rows | None = None
    ) -> None:
        self.shares = shares
        used = np.arange(len(asked)) if rows is None else rows
        self.columns = [
            _comparable(known.cells(j), asked.cells(j), used) for j in range(known.width)
        ]
        self.n, self.m = len(used), len(known)

    def nearest(self, k: int, without: Rows | None = None) -> tuple[NDArray[np.int64], Array]:
        """The k nearest training rows, and their distances; ``without`` the row itself."""
        rows, distances = np.empty((self.n, k), dtype=np.int64), np.empty((self.n, k))
        step = max(1, CELLS_AT_ONCE // self.m)
        for at in range(0, self.n, step):
            part = slice(at, min(at + step, self.n))
            away = self._distances(part)
            if without is not None:
                away[np.arange(len(away)), without[part]] = np.inf
            # By distance and then by number: the same rows, however many are asked about.
            few = np.argpartition(away, k - 1, axis=1)[:, :k] if k < self.m else None
            if few is not None:
                edge = np.take_along_axis(away, few, axis=1).max(axis=1)
                away[away > edge[:, None]] = np.inf
            order = np.argsort(away, axis=1, kind="stable")[:, :k]
            rows[part], distances[part] = order, np.take_along_axis(away, order, axis=1)
        return rows, distances

    def _distances(self, part: slice) -> Array:
        total = np.zeros((part.stop - part.start, self.m))
        for share, column in zip(self.shares, self.columns, strict=True):
            if share > 0:
                total += share * column.between(part, slice(None))
        return total

    def by_column(self, nearest: NDArray[np.int64]) -> Array:
        """Mean distance from these training rows in each column, of shape (n, d)."""
        found = np.empty((self.n, len(self.columns)))
        for j, column in enumerate(self.columns):
            found[:, j] = [
                column.between(slice(i, i + 1), near).mean() for i, near in enumerate(nearest)
            ]
        return found


@dataclass(frozen=True)
class _Compared:
    """A column of the rows asked about and of the training rows."""

    asked: Array
    known: Array
    levels: bool

    def between(self, part: slice, rows: Any) -> Array:
        one, other = self.asked[part, None], self.known[None, rows]
        if self.levels:
            return np.asarray(one != other, dtype=np.float64)
        away = np.abs(one - other)
        gaps = np.isnan(one), np.isnan(other)
        return np.where(gaps[0] & gaps[1], 0.0, np.where(gaps[0] | gaps[1], 1.0, away))


def _comparable(known: Cells, asked: Cells, rows: Rows) -> _Compared:
    """Numbers in standard deviations; levels, and numbers of which there are two, by their name."""
    here = known.numbers[known.given]
    if known.kind == asked.kind != "level" and len(np.unique(here)) > 2:
        centre, scale = here.mean(), here.std()
        return _Compared(
            (asked.numbers[rows] - centre) / scale, (known.numbers - centre) / scale, False
        )
    names: dict[str, float] = {}
    codes = [
        np.array([names.setdefault(_name(value), float(len(names))) for value in shown])
        for shown in (asked.shown[rows], known.shown)
    ]
    return _Compared(codes[0], codes[1], True)


def _name(value: Any) -> str:
    """What a level is compared by: one and 1.0 are the same."""
    if isinstance(value, bool | np.bool_ | int | float | np.number):
        return f"number {float(value)!r}"
    return "gap" if value is None else f"level {value!s}"
