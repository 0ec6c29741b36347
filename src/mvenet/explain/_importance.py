"""Which columns matter: for where a prediction lies, and for how wide it is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from mvenet._estimators.dependence import Belonging
from mvenet._estimators.folds import folds_of
from mvenet._estimators.validation import fingerprint
from mvenet._utils.sklearn import rows_of
from mvenet._utils.wording import readable
from mvenet.distributions import Distribution
from mvenet.distributions._frame import frame
from mvenet.explain._asking import Array, distribution, outcomes, some, source_of, whole
from mvenet.explain._source import Rows, Source
from mvenet.explain._text import aligned
from mvenet.predictive import last_step

LEVELS = (np.arange(32) + 0.5) / 32  # of quantiles: their mean pinball loss, twice, is the CRPS
PARTS = ("crps", "mean", "std")


@dataclass(frozen=True, eq=False)
class Importance:
    """How much worse predictions get if a column tells nothing any more.

    Attributes
    ----------
    columns : list of str
        The most important first. Columns that were shuffled together are joined by " + ".
    crps : ndarray of shape (d,)
        Rise of the CRPS, in units of y, if the column is shuffled among the rows. Below zero by
        chance only.
    mean, std : ndarray of shape (d,)
        Rise if the shuffled column decides on the mean alone, the distribution around it being as
        it was; and if it decides on that distribution alone, the mean being as it was. They need
        not add up to ``crps``.
    crps_error, mean_error, std_error : ndarray of shape (d,)
        Standard errors of these, from rows to rows.
    score : float
        The CRPS as it is, in units of y.
    n_rows, n_repeats : int
        Rows that were predicted, and how often each column was shuffled.

    Examples
    --------
    See :func:`importance`.
    """

    columns: list[str]
    crps: Array
    mean: Array
    std: Array
    crps_error: Array
    mean_error: Array
    std_error: Array
    score: float
    n_rows: int
    n_repeats: int

    def __repr__(self) -> str:
        head = (
            f"Importance: rise of the CRPS, {readable(self.score)} on {self.n_rows:,} rows, "
            "if a column is shuffled (± standard error)"
        )
        lines = [["", "in all", "for the mean", "for the std"]]
        for i, name in enumerate(self.columns):
            lines.append([name, *(self._of(part, i) for part in PARTS)])
        return f"{head}\n{aligned(lines)}"

    def _of(self, part: str, i: int) -> str:
        rise, error = (float(getattr(self, name)[i]) for name in (part, f"{part}_error"))
        if not (np.isfinite(error) and error > 0):
            return f"{rise:.2g}"
        digits = max(0, -int(np.floor(np.log10(error))))  # no more than the error leaves to tell
        return f"{rise:.{digits}f} ± {error:.{digits}f}"

    def to_frame(self) -> Any:
        """As a DataFrame of pandas (or polars), a line for each column.

        Returns
        -------
        DataFrame
            With ``column`` and the attributes that have a value for each of them.
        """
        names = [name for part in PARTS for name in (part, f"{part}_error")]
        values = {name: getattr(self, name) for name in names}
        return frame({"column": np.array(self.columns, dtype=object), **values}, None, 0)


def importance(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    columns: Sequence[Any] | None = None,
    n_repeats: int = 5,
    max_rows: int = 1_000,
    cv: Any = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
) -> Importance:
    """Permutation importance of each column, for the mean and for the standard deviation.

    A column is shuffled among the rows, as it stands in the table: a date as a whole, a category as
    a category. How much worse the CRPS gets is its importance. The prediction of a shuffled row
    differs in its mean and in the distribution around the mean; each of the two is also put into
    the old prediction alone, which tells what the column matters for.

    Parameters
    ----------
    estimator : fitted estimator
        With ``predict_dist(X)`` or ``predict(X, return_std=True)``; a pipeline or a search that
        ends in one.
    X : array-like or DataFrame of shape (n, n_features)
        Rows that the model was not trained on: on its training rows, columns that it has merely
        memorised look important. Or, with ``cv``, all rows.
    y : array-like of shape (n,)
    columns : list of (str, int or list of them) or None, default=None
        Columns by name or number, None is all of them. Those of a list within the list are shuffled
        together: of two columns that say the same, each alone may seem to matter little.
    n_repeats : int, default=5
        How often each column is shuffled.
    max_rows : int, default=1000
        Of more rows than these, so many are drawn at random.
    cv : int, splitter, iterable or None, default=None
        Folds: a clone of the estimator is fitted without each and asked about the rows that were
        left out. None asks the estimator as it is.
    groups : array-like of shape (n,) or None
        Which rows belong together: with ``cv`` they are left out together, and standard errors
        count groups instead of rows.
    random_state : int, default=0
        Seed of the shuffles, of the rows drawn, and of the folds.

    Returns
    -------
    Importance

    Notes
    -----
    The CRPS is computed as twice the mean pinball loss of 32 quantiles. Of a distribution with
    probabilities at some values, the parts ``mean`` and ``std`` move these values, too.

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> from mvenet.explain import importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = 2 * X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=400)
    >>> model = MVERegressor(random_state=0).fit(X[:300], y[:300])
    >>> found = importance(model, X[300:], y[300:])
    >>> found.columns[0], found.columns[int(found.std.argmax())]
    ('x0', 'x1')
    """
    repeats, most = whole("n_repeats", n_repeats, 5), whole("max_rows", max_rows, 1_000)
    rng = np.random.default_rng(random_state)
    tied = Belonging(groups)
    if cv is None:
        source = source_of(estimator, X)
        target = outcomes(source, y)
        _warn_if_trained_on(estimator, X, target)
        parts = [(estimator, some(len(source), most, rng))]
    else:
        source = Source(X, getattr(estimator, "feature_names_in_", ()))
        target = outcomes(source, y)
        parts = _fitted_to_folds(estimator, source, target, cv, tied, (most, random_state))
    sets = _sets(source, columns)
    rises, plain = [], []
    for model, rows in parts:
        before = _Asked(distribution(model, source.rows(rows)), target[rows])
        plain.append(before.score())
        rises.append(_rises(model, source, sets, rows, before, repeats, rng))
    dependence = tied.checked(len(source))
    together = None
    if dependence is not None and dependence.groups is not None:
        together = dependence.groups[np.concatenate([rows for _, rows in parts])]
    whole_rises, scores = np.concatenate(rises, axis=2), np.concatenate(plain)
    return _told(source, sets, whole_rises, scores, together, repeats)


class _Asked:
    """Predictions for some rows: quantiles, counted from the mean, and the outcomes."""

    def __init__(self, dist: Distribution, y: Array) -> None:
        self.mean, self.y = dist.mean, y
        self.around = dist.ppf(LEVELS) - self.mean[:, None]

    def score(self, mean: Array | None = None, around: Array | None = None) -> Array:
        """CRPS of each row, also of another mean, or of another distribution around it."""
        centre = self.mean if mean is None else mean
        error = (self.y - centre)[:, None] - (self.around if around is None else around)
        losses = np.maximum(LEVELS * error, (LEVELS - 1.0) * error)
        return np.asarray(2.0 * losses.mean(axis=1))


def _rises(
    model: Any,
    source: Source,
    sets: Sequence[Sequence[int]],
    rows: Rows,
    before: _Asked,
    repeats: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Rises of the CRPS of shape (sets, parts, rows), averaged over the repeats."""
    plain = before.score()
    rises = np.zeros((len(sets), len(PARTS), len(rows)))
    for _ in range(repeats):
        others = rows[rng.permutation(len(rows))]
        for i, columns in enumerate(sets):
            table = source.with_cells(rows, columns, others)
            after = _Asked(distribution(model, table), before.y)
            rises[i] += [
                after.score() - plain,
                before.score(mean=after.mean) - plain,
                before.score(around=after.around) - plain,
            ]
    return rises / repeats


def _told(
    source: Source,
    sets: Sequence[Sequence[int]],
    rises: NDArray[np.float64],
    plain: Array,
    groups: NDArray[Any] | None,
    repeats: int,
) -> Importance:
    means, errors = rises.mean(axis=2), _standard_error(rises, groups)
    order = np.argsort(-means[:, 0], kind="stable")
    names = [" + ".join(source.label(column) for column in sets[i]) for i in order]
    of = {part: means[order, i] for i, part in enumerate(PARTS)}
    of |= {f"{part}_error": errors[order, i] for i, part in enumerate(PARTS)}
    return Importance(names, **of, score=float(plain.mean()), n_rows=len(plain), n_repeats=repeats)


def _standard_error(values: NDArray[np.float64], groups: NDArray[Any] | None) -> Array:
    """Of means over the last axis: rows, or whole groups of them, are independent."""
    n = values.shape[-1]
    off = values - values.mean(axis=-1, keepdims=True)
    if groups is not None:
        _, index = np.unique(groups, return_inverse=True)
        member = index[:, None] == np.arange(index.max() + 1)
        off = off @ member
    count = off.shape[-1]
    if count < 2:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(np.sqrt(np.square(off).sum(axis=-1) * count / (count - 1)) / n)


def _sets(source: Source, columns: Sequence[Any] | None) -> list[list[int]]:
    """The columns to shuffle, by position; those of a list together."""
    if columns is None:
        return [[j] for j in range(source.width)]
    if (
        isinstance(columns, str)
        or not isinstance(columns, Sequence | np.ndarray)
        or not len(columns)
    ):
        raise ValueError(f"columns must be a list of columns or None, got {columns!r}: use a list.")
    made = []
    for given in columns:
        several = given if isinstance(given, list | tuple) else [given]
        made.append([source.position(column, "columns") for column in several])
        if not made[-1]:
            raise ValueError("columns holds an empty list: name what is shuffled together.")
    return made


def _fitted_to_folds(
    estimator: Any, source: Source, y: Array, cv: Any, tied: Belonging, drawn: tuple[int, int]
) -> list[tuple[Any, Rows]]:
    """A model for each fold, and rows that it was not trained on."""
    most, seed = drawn
    rng = np.random.default_rng(seed)
    found = []
    folds = folds_of("cv", cv, source.table, y, seed, tied.checked(len(y)))
    for train, test in folds:
        given = {}
        if tied.groups is not None and has_fit_parameter(last_step(estimator), "groups"):
            given = tied.of(train).given()
        model = clone(estimator).fit(rows_of(source.table, train), y[train], **given)
        rows = test[some(len(test), max(1, most // len(folds)), rng)]
        if len(rows):
            found.append((model, rows))
    return found


def _warn_if_trained_on(estimator: Any, X: Any, y: Array) -> None:
    known = getattr(last_step(estimator), "fingerprint_", None)
    if known is None or not isinstance(X, np.ndarray) or last_step(estimator) is not estimator:
        return
    if fingerprint(X, y) == known:
        warnings.warn(
            "X and y are the rows that the model was trained on, so that a column which it merely "
            "memorised looks important: pass rows that were held out, or cv=5.",
            stacklevel=3,
        )
