"""CalibratedRegressor: standard deviations and intervals corrected by rows not trained on."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from mvenet._columns.lazy import is_lazy
from mvenet._estimators import frames
from mvenet._estimators.auto import AutoRegressor
from mvenet._estimators.base import TrainedRegressor, fit_until_stopped
from mvenet._estimators.dependence import Belonging
from mvenet._estimators.folds import folds_of, usual_number
from mvenet._estimators.frames import some_rows
from mvenet._estimators.lazy_frames import in_memory
from mvenet._estimators.penalty_search import best_factor
from mvenet._estimators.regressor_cv import MVERegressorCV
from mvenet._estimators.shown import Shown
from mvenet._estimators.targets import columns_of
from mvenet._estimators.validation import (
    checked,
    checked_frame_or_numbers,
    encoded,
    keep_name,
)
from mvenet._models.composite import Composite
from mvenet._models.conformal import Array, Conformal
from mvenet._models.conformal_ends import normals_of
from mvenet._models.ensemble import Ensemble
from mvenet._models.predictor import Encoded, Predictor
from mvenet._models.strata import labels_of, ratios_of
from mvenet._training.dependence import Dependence
from mvenet._utils.finite import has_gaps, rows_of_whole
from mvenet._utils.sklearn import HasMethods, StrOptions, check_sample_weight
from mvenet.distributions import Distribution, LogNormalMixture, Normal, NormalMixture
from mvenet.predictive import last_step, left_out, predictive_distribution

FOLDS = 10  # of cv=None
FITTED = ("members_", "encoder_", "n_calibration_by_", "n_features_in_", "feature_names_in_")


class _Compared(NamedTuple):
    """Rows that a member was fitted without: what it says, what was seen, and their weights."""

    predicted: Normal | NormalMixture
    observed: Array
    weight: Array

    @property
    def scores(self) -> Array:
        """Distances, in standard deviations."""
        distance = np.abs(self.observed - self.predicted.mean)
        return np.asarray(distance / self.predicted.std)


class CalibratedRegressor(Shown, Conformal, MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Intervals that cover what they say, for any estimator that predicts a standard deviation.

    Rows that a model was not trained on tell how far to trust its standard deviations. Either all
    of them are multiplied by one factor, or intervals are made conformal: as many standard
    deviations wide as the rows left out needed.

    Parameters
    ----------
    estimator : estimator
        With ``predict_dist`` or ``predict(X, return_std=True)``; a pipeline that ends in one. A
        fitted one, wrapped in scikit-learn's ``FrozenEstimator``, stays as it is, and the rows
        given to ``fit`` must then be new to it.
    method : {"conformal", "scale"}, default="conformal"
        What to correct. "conformal" corrects ``predict_interval`` only, with a guarantee that
        needs no assumption but that rows are exchangeable (below). "scale" multiplies all standard
        deviations by the factor that maximises the likelihood of the rows left out, which helps
        all predictions if they are too small or too large by about the same everywhere.
    cv : int, splitter, iterable or None, default=None
        Folds: the estimator is trained without each, which then serves to calibrate. A number
        means that many shuffled ones, None 10 of them; but a :class:`mvenet.MVERegressorCV` that
        keeps its fold networks, or a :class:`mvenet.AutoRegressor`, is then fitted once, and its
        own folds serve.
        ``ShuffleSplit(1, test_size=0.2)`` trains once and calibrates on a fifth.
    by : str, int, list of these, callable or None, default=None
        Groups of rows within each of which conformal intervals hold, not only on average over all:
        a column of X by its name or number, several of them, or a function of X that gives a label
        to each row. 90 % takes at least 9 rows a group; rows of smaller or unknown groups get the
        interval of all rows, with a warning. Not to be confused with ``groups`` of ``fit``, rows
        that belong together.
    shift : callable, classifier or None, default=None
        How many times likelier each row is among those to come than among those to calibrate by,
        up to a factor, where the two differ in their columns: a function of X, or a fitted
        classifier whose second class is the rows to come. Conformal scores are weighed by it.

    Attributes
    ----------
    members_ : list of estimator
        The fitted estimators, one a fold.
    factor_ : float
        The factor on all standard deviations; 1 with ``method="conformal"``.
    n_calibration_ : int
        Rows that served to calibrate.
    n_calibration_by_ : dict
        The same for each group of ``by``.

    Notes
    -----
    Conformity scores are ``|y - mean| / std``, so intervals are wide where the estimator is unsure.
    For a coverage of 1 - a:

    - one fold, or a frozen estimator, is split conformal prediction: the interval covers a new row
      with a probability of at least 1 - a, and at most 1 - a + 1 / (n + 1) if scores have no ties,
      over the drawing of n calibration rows and the new one (Lei et al. 2018,
      https://doi.org/10.1080/01621459.2017.1307116);
    - K folds are CV+ (Barber et al. 2021, https://doi.org/10.1214/20-AOS1965): at least
      1 - 2a - min(2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1)), in practice about 1 - a. The
      networks of an ``MVERegressorCV`` are those of the penalties that these very rows chose,
      which the theorem does not cover;
    - an ``AutoRegressor`` is fitted once. Its intervals are as many standard deviations wide as its
      out-of-fold predictions needed, which come from candidates that are a little worse than the
      model: no theorem, and in practice a little more than 1 - a.

    The guarantee is on average over all rows, not for each region: with standard deviations that
    are wrong in one region and right in another, one is covered too little and the other too much.
    ``by`` makes it hold within each group, over the drawing of the group's rows (Vovk 2012,
    https://proceedings.mlr.press/v25/vovk12.html). ``shift`` makes it hold for rows whose columns
    are drawn otherwise, if the ratios are true and the noise given the columns stays the same
    (Tibshirani et al. 2019, https://arxiv.org/abs/1904.06019); a row of a kind that is too rare
    among those to calibrate by has an interval without ends, and a warning says so.
    With ``groups``, scores are weighed so that each group counts alike, and the new one, too: the
    promise is that of hierarchical conformal prediction, for a row of a new group (Lee, Barber and
    Willett 2023, https://arxiv.org/abs/2306.06342), and takes at least 9 groups for 90 %.
    ``sample_weight`` trains, and weighs in the factor; conformal scores count alike, but rows of
    weight zero not at all.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> y = X[:, 0] + 0.1 * rng.standard_t(3, 200)
    >>> model = CalibratedRegressor(BayesianRidge()).fit(X, y)
    >>> model.predict_interval([[0.0]], coverage=0.9).round(1)
    array([[-0.3,  0.3]])

    Nine of ten on either side of zero, not only on average:

    >>> model = CalibratedRegressor(BayesianRidge(), by=lambda X: np.asarray(X)[:, 0] > 0).fit(X, y)
    >>> sum(model.n_calibration_by_.values())
    200
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own form)
        "estimator": [HasMethods(["fit", "predict"])],
        "method": [StrOptions({"conformal", "scale"})],
        "cv": ["cv_object"],
        "by": [str, Integral, list, tuple, callable, None],
        "shift": [callable, HasMethods(["predict_proba"]), None],
    }

    def __init__(
        self,
        estimator: Any,
        method: str = "conformal",
        cv: Any = None,
        by: Any = None,
        shift: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.by = by
        self.shift = shift

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Files that are older than these parameters.
        super().__setstate__(state | {n: None for n in ("by", "shift") if n not in state})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        horizon: Any = None,
    ) -> Self:
        """Train on a table and calibrate by it; with a frozen estimator only calibrate.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)
            Lazy frames of polars and frames of Dask, too, as in :meth:`AutoRegressor.fit`.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,) or None
        groups : array-like of shape (n,) or None
            Which rows belong together. Whole groups are left out, and each counts alike in the
            conformal scores, however many rows it has: intervals then hold for *new* groups.
        time, horizon
            When each row was, and the length of the stretch to promise for, as in
            :meth:`AutoRegressor.fit`.

        Returns
        -------
        self
        """
        for fitted in FITTED:
            self.__dict__.pop(fitted, None)  # a fit that fails leaves nothing half-fitted
        self._validate_params()
        belonging = Belonging(groups, time, horizon)
        if is_lazy(X):
            seed = getattr(self.estimator, "random_state", 0)
            X, y, sample_weight, belonging = in_memory(X, y, sample_weight, belonging, seed)
        columns = columns_of(y)
        if columns is not None and columns != 1:
            raise ValueError(
                f"y has {columns} columns, and a CalibratedRegressor takes one target: calibrate "
                "each by itself, or use the estimator's own intervals."
            )
        original, ours = X, isinstance(self.estimator, TrainedRegressor)
        keep_name(self, y)
        if ours and y is not None:
            X, y = checked_frame_or_numbers(self, X, y)
        X, y = indexable(X, y)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        target: Array = column_or_1d(y, warn=True, dtype=np.float64)
        check_consistent_length(X, target)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X, ensure_non_negative=True)
        counting = None if weight is None else np.flatnonzero(weight)
        tied = belonging.checked(len(target), counting)
        labels, ratios = self._told_apart(original, target, tied)
        if ours and not self._has_folds():
            rows = np.arange(len(target)) if counting is None else counting
            groups = None if tied is None else tied.groups
            X = encoded(self, X, target, rows, groups)
        members, folds, stopped = self._trained(X, target, weight, belonging, tied)
        compared, ordered = self._compared(members, folds, X, target, weight)
        self.n_calibration_ = sum(len(scores) for scores in self._scores)
        if not self.n_calibration_:
            raise ValueError(
                f"cv={self.cv!r} leaves no rows of positive weight to calibrate by: use another."
            )
        self._shares = None if tied is None else _equal_groups(tied, ordered)
        self._ratios = None if ratios is None else [ratios[some] for some in ordered]
        self._strata = None if labels is None else self._numbered(labels, ordered)
        self.factor_ = 1.0
        if self.method == "scale":
            self.factor_ = best_factor(*zip(*compared, strict=True))
        self.members_ = members
        self.n_rows_, self.fitted_on_ = len(target), date.today().isoformat()
        if not ours:
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(members[0], name):
                    setattr(self, name, getattr(members[0], name))
        if stopped is not None:
            raise stopped
        return self

    def _told_apart(
        self, X: Any, y: Array, tied: Dependence | None
    ) -> tuple[NDArray[Any] | None, Array | None]:
        """Labels and ratios of the rows, as far as they are asked for; before any training."""
        for name in ("by", "shift"):
            if getattr(self, name) is None:
                continue
            if self.method != "conformal":
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is of conformal intervals: use "
                    "method='conformal', or leave it out."
                )
            if tied is not None and tied.groups is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} and groups ask for two promises, of rows and "
                    "of new groups: give one of them."
                )
        labels = None if self.by is None else labels_of(X, self.by)
        if labels is not None and len(labels) != len(y):
            raise ValueError(f"by gives {len(labels)} labels for {len(y)} rows: give one a row.")
        if labels is not None and 2 * len(np.unique(labels)) > len(labels):
            raise ValueError(
                f"by={self.by!r} makes {len(np.unique(labels)):,} groups of {len(labels):,} rows, "
                "too small to calibrate by: use a column of few values, or a function that cuts it "
                "into some."
            )
        return labels, None if self.shift is None else ratios_of(X, self.shift)

    def _numbered(
        self, labels: NDArray[Any], rows: list[NDArray[np.int64]]
    ) -> list[NDArray[np.int64]]:
        """The number of the group of each score; their sizes are counted."""
        names, sizes = np.unique(labels[np.concatenate(rows)], return_counts=True)
        self.n_calibration_by_ = dict(zip(map(str, names), map(int, sizes), strict=True))
        return [np.searchsorted(names, labels[some]).astype(np.int64) for some in rows]

    def _compared(
        self,
        members: Sequence[Any],
        folds: Sequence[NDArray[np.int64]],
        X: Any,
        target: Array,
        weight: Array | None,
    ) -> tuple[list[_Compared], list[NDArray[np.int64]]]:
        """Rows that each member has not seen, beside what it says of them; keeps their scores.

        Besides, the rows in the order of their scores: only the largest of each fold matter for an
        interval.
        """
        self._scores, ordered = [np.empty(0) for _ in members], [np.empty(0, int) for _ in members]
        compared = list[_Compared]()
        for i, (member, rows) in enumerate(zip(members, folds, strict=True)):
            given = np.ones(len(rows)) if weight is None else weight[rows]
            rows, given = rows[given > 0], given[given > 0]
            if not len(rows):
                continue
            dist = self._left_out(member, X, rows)
            one = _Compared(normals_of(dist), _on_scale_of(dist, target[rows]), given)
            compared.append(one)
            order = np.argsort(one.scores, kind="stable")
            self._scores[i], ordered[i] = one.scores[order], rows[order]
        return compared, ordered

    def _trained(
        self,
        X: Any,
        y: Array,
        weight: Array | None,
        belonging: Belonging,
        tied: Dependence | None,
    ) -> tuple[list[Any], list[NDArray[np.int64]], KeyboardInterrupt | None]:
        """Fitted estimators, the rows that each has not seen, and Ctrl-C if it ended a search."""
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            return [self.estimator], [np.arange(len(y))], None
        if self._has_folds():
            if not isinstance(self.estimator.cv, Integral):
                splits = folds_of("cv", self.estimator.cv, X, y, 0, tied)
                _refuse_repeats([test for _, test in splits], self.estimator.cv)
            searched = clone(self.estimator)
            stopped = fit_until_stopped(searched, X, y, sample_weight=weight, **belonging.given())
            self.encoder_ = _moved_from(searched)
            if isinstance(searched.model_, Composite):
                return [searched], [np.flatnonzero(np.isfinite(searched.oof_mean_))], stopped
            folds = range(searched.n_splits_)
            members = [_without_fold(searched, fold) for fold in folds]
            return members, [np.flatnonzero(searched.oof_fold_ == f) for f in folds], stopped
        cv = usual_number(FOLDS, tied, np.arange(len(y))) if self.cv is None else self.cv
        splits = folds_of("cv", cv, X, y, 0, tied)
        if not sum(len(test) for _, test in splits):
            raise ValueError(f"cv={self.cv!r} leaves no rows to calibrate by: use another.")
        _refuse_repeats([test for _, test in splits], self.cv)

        def fitted(train: NDArray[np.int64], **scale: str) -> Any:
            estimator = clone(self.estimator)
            last_step(estimator).set_params(**scale)
            given = {} if weight is None else _named(estimator, sample_weight=weight[train])
            if has_fit_parameter(last_step(estimator), "horizon"):  # one of ours
                given |= _named(estimator, **belonging.of(train).given())
            with rows_of_whole(train):
                return estimator.fit(some_rows(X, train), y[train], **given)

        members = [fitted(train) for train, _ in splits]
        logs = [_on_log(member) for member in members]
        if len(set(logs)) > 1:  # by themselves; a mixture has one scale, that of most
            most = bool(np.mean(logs) > 0.5 and (y > 0).all())
            for i, (train, _) in enumerate(splits):
                if logs[i] != most:
                    members[i] = fitted(train, target="log" if most else "identity")
        return members, [test for _, test in splits], None

    def _left_out(self, member: Any, X: Any, rows: NDArray[np.int64]) -> Distribution:
        """What a member says of rows that it was fitted without."""
        if self._has_folds() and isinstance(member.model_, Composite):
            return left_out(member, rows)
        with rows_of_whole(rows):
            return predictive_distribution(member, _given(member, some_rows(X, rows)))

    def _has_folds(self) -> bool:
        """Whether the estimator leaves rows out by itself, and these are to serve."""
        chosen = isinstance(self.estimator, MVERegressorCV) and self.estimator.final == "folds"
        return self.cv is None and (chosen or isinstance(self.estimator, AutoRegressor))

    def _parts(self, X: Any) -> list[Distribution]:
        check_is_fitted(self)
        return super()._parts(X)

    def _read(self, X: Any) -> NDArray[Any]:
        if self._takes_frames():
            return frames.encoded(self, X)
        table = checked(self, X, reset=False)
        gaps = has_gaps(table, getattr(self, "feature_names_in_", None))
        mark = self._knows_unknown()
        return self.encoder_.transform(table, gaps, mark)  # type: ignore[no-any-return]


def _given(member: Any, X: Any) -> Any:
    """Rows as a member takes them: one without an encoder takes numbers."""
    return X if hasattr(member, "encoder_") or not isinstance(member, Predictor) else Encoded(X)


def _moved_from(member: Any) -> Any:
    """The encoder of an estimator, which takes the numbers that it makes from now on."""
    encoder = vars(member).pop("encoder_")
    vars(member).pop("feature_names_in_", None)
    member.n_features_in_ = encoder.width
    return encoder


def _on_log(member: Any) -> bool:
    return bool(getattr(getattr(last_step(member), "model_", None), "log", False))


def _on_scale_of(dist: Distribution, y: Array) -> Array:
    """Outcomes on the scale on which a distribution is normal."""
    if not isinstance(dist, LogNormalMixture):
        return y
    if not (y > 0).all():
        raise ValueError(
            f"y holds {y.min():g}, and the estimator predicts on the log scale, where nothing is "
            "below zero: calibrate by positive targets."
        )
    return np.log(y)


def _without_fold(search: MVERegressorCV, fold: int) -> MVERegressorCV:
    """The networks of a search that were trained without this fold, as an estimator."""
    part = copy.copy(search)
    model = search.model_
    assert isinstance(model, Ensemble)
    part.model_ = replace(model, networks=model.networks[fold :: search.n_splits_])
    return part


def _named(estimator: Any, **given: Any) -> dict[str, Any]:
    """What ``fit`` is given besides, by its names there; a pipeline's last step has them."""
    way = []
    while isinstance(estimator, Pipeline) and not get_config()["enable_metadata_routing"]:
        step, estimator = estimator.steps[-1]
        way.append(step)
    return {"__".join([*way, name]): value for name, value in given.items()}


def _equal_groups(tied: Dependence, rows: list[NDArray[np.int64]]) -> list[Array] | None:
    """Shares of rows that give all groups the same, and as much to the new one."""
    if tied.groups is None:
        return None
    sizes = np.bincount(tied.groups[np.concatenate(rows)])
    each = 1.0 / ((np.count_nonzero(sizes) + 1) * np.maximum(sizes, 1))
    return [each[tied.groups[some]] for some in rows]


def _refuse_repeats(left_out: list[NDArray[np.int64]], cv: Any) -> None:
    rows = np.concatenate(left_out)
    if len(np.unique(rows)) < len(rows):
        raise ValueError(
            f"cv={cv!r} leaves some rows out more than once: calibration needs folds that do not "
            "overlap, such as KFold(10)."
        )
