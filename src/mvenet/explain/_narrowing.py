"""What makes the interval of a row as wide as it is, and which columns would narrow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mvenet._utils.wording import percent, readable
from mvenet.distributions._checks import levels_within
from mvenet.distributions._frame import frame
from mvenet.explain._asking import Array, intervals, some, source_of, whole
from mvenet.explain._source import Rows, Source
from mvenet.explain._text import aligned, cell


@dataclass(frozen=True, eq=False)
class Narrowing:
    """How the width of one row's interval depends on each of its cells.

    Attributes
    ----------
    columns : list of str
        Those whose cell widens the interval most come first.
    values : list
        The cells of the row; None for a gap.
    factor : ndarray of shape (d,)
        Width of the interval over what it typically is with the cells that other rows have in this
        column (the geometric mean of these widths). 1.5: this cell makes it half as wide again;
        0.8: it makes it narrower by a fifth. Of a gap it tells what knowing the value is worth.
    narrowest : ndarray of shape (d,)
        Width with the cell that narrows it most, over the width as it is; at most 1.
    best : list
        That cell; the row's own if none is better.
    width : float
        Of the interval as it is, in units of y.
    low, high : float
        Its ends.
    coverage : float

    Examples
    --------
    See :func:`narrowing`.
    """

    columns: list[str]
    values: list[Any]
    factor: Array
    narrowest: Array
    best: list[Any]
    width: float
    low: float
    high: float
    coverage: float

    def __repr__(self) -> str:
        head = (
            f"Narrowing: the {percent(self.coverage)} % interval, {readable(self.low)} to "
            f"{readable(self.high)}, is {readable(self.width)} wide"
        )
        lines = [["", "is", "which widens by", "narrowest with", "namely by"]]
        for i, name in enumerate(self.columns):
            less = round(1.0 - float(self.narrowest[i]), 2)
            lines.append(
                [
                    name,
                    cell(self.values[i]),
                    f"{self.factor[i] - 1.0:+.0%}",
                    cell(self.best[i]) if less > 0 else "",
                    f"{-less:.0%}" if less > 0 else "",
                ]
            )
        return f"{head}\n{aligned(lines)}"

    def to_frame(self) -> Any:
        """As a DataFrame of pandas (or polars), a line for each column.

        Returns
        -------
        DataFrame
            With ``column``, ``value``, ``factor``, ``narrowest`` and ``best``; the cells as text.
        """
        texts = {
            "column": np.array(self.columns, dtype=object),
            "value": np.array([cell(v) for v in self.values], dtype=object),
        }
        numbers = {"factor": self.factor, "narrowest": self.narrowest}
        best = np.array([cell(v) for v in self.best], dtype=object)
        return frame({**texts, **numbers, "best": best}, None, 0)


def narrowing(
    estimator: Any,
    row: Any,
    X: Any,
    *,
    coverage: float = 0.9,
    max_values: int = 50,
    random_state: int = 0,
) -> Narrowing:
    """What widens the interval of a row, and what would narrow it, column by column.

    Each cell of the row is replaced by those that rows of X have, one column at a time.

    Parameters
    ----------
    estimator : fitted estimator
        With ``predict_interval``, ``predict_dist(X)`` or ``predict(X, return_std=True)``; a
        pipeline or a search that ends in one.
    row : table of one row, or int
        A table as the model takes it with one row, such as ``X[[3]]`` or ``frame.iloc[[3]]``; or
        the number of a row of X.
    X : array-like or DataFrame of shape (n, n_features)
        Rows to take cells from, such as the training rows.
    coverage : float in (0, 1), default=0.9
        Of the central interval.
    max_values : int, default=50
        Of more rows than these, so many are drawn at random, the same for all columns.
    random_state : int, default=0
        Seed of that draw.

    Returns
    -------
    Narrowing

    Notes
    -----
    It tells what the *model* would say of another row, not what happens if somebody changes the
    world; and a cell that no row like this one has may be far from all that was seen
    (:func:`outside`). For shares that add up over the columns there is SHAP.

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> from mvenet.explain import narrowing
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> y = X[:, 0] + (0.1 + (X[:, 1] > 0)) * rng.normal(size=300)
    >>> model = MVERegressor(random_state=0).fit(X, y)
    >>> found = narrowing(model, [[0.0, 0.5]], X)
    >>> found.columns[0], bool(found.factor[0] > 1.2), bool(found.best[0] < 0)
    ('x1', True, True)
    """
    source = source_of(estimator, X)
    level = levels_within("coverage", coverage, "write 0.95 for 95 %")
    if level.ndim:
        raise ValueError(f"coverage must be one number, got {coverage!r}: use, say, 0.9.")
    one = _one_row(estimator, source, row)
    rng = np.random.default_rng(random_state)
    others = some(len(source), whole("max_values", max_values, 50), rng)
    low, high = intervals(estimator, one.table, float(level))[0].tolist()
    columns = range(source.width)
    widths = [_widths(estimator, one, source, j, others, float(level)) for j in columns]
    # Widths are compared as ratios: half and twice are as far from one.
    ratios = np.maximum(np.array(widths) / (high - low), 1e-300)
    factor = np.exp(-np.log(ratios).mean(axis=1))
    ratios[np.abs(ratios - 1.0) < 1e-9] = 1.0  # what is only rounding is no better value
    least, place = np.minimum(ratios.min(axis=1), 1.0), others[ratios.argmin(axis=1)]
    own = [one.cells(j).shown[0] for j in columns]
    best = [own[j] if least[j] == 1.0 else source.cells(j).shown[place[j]] for j in columns]
    order = np.argsort(-factor, kind="stable")
    return Narrowing(
        [source.label(j) for j in order],
        [own[j] for j in order],
        factor[order],
        least[order],
        [best[j] for j in order],
        high - low,
        low,
        high,
        float(level),
    )


def _widths(
    estimator: Any, one: Source, source: Source, column: int, others: Rows, coverage: float
) -> Array:
    """Widths of the row's interval with other rows' cells in a column."""
    table = one.with_cells(np.zeros(len(others), dtype=np.int64), [column], others, source)
    return np.diff(intervals(estimator, table, coverage), axis=1)[:, 0]


def _one_row(estimator: Any, source: Source, row: Any) -> Source:
    """The row in question, as a table."""
    if isinstance(row, int | np.integer) and not isinstance(row, bool):
        if not -len(source) <= row < len(source):
            raise ValueError(
                f"row={row} is no row of X: use a number from 0 to {len(source) - 1}, or a table."
            )
        return Source(source.rows(np.array([int(row) % len(source)])), source.names, "row")
    one = source_of(estimator, row, "row")
    if len(one) != 1:
        raise ValueError(f"row has {len(one)} rows: pass one, such as X[[0]] or frame.iloc[[0]].")
    one.check_like(source)
    return one
