"""Distributions and intervals corrected by rows that were not trained on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._models.checks import check_array, check_number, require, shape_of
from mvenet._models.conformal_ends import (
    ends_by_count,
    ends_by_share,
    ends_of,
    normals_of,
    of_logs,
    quantile_by_share,
)
from mvenet._models.predictor import (
    Encoded,
    Predictor,
    PredictsDistribution,
    groups_not_needed,
    is_estimator,
)
from mvenet._models.strata import Strata, labels_of, ratios_of
from mvenet._utils.finite import has_gaps
from mvenet._utils.sums import total
from mvenet.distributions import (
    Bounded,
    Distribution,
    LogNormalMixture,
    Normal,
    NormalMixture,
    WithAtoms,
)
from mvenet.distributions._members import Members, Smooth
from mvenet.distributions._normal import normal_or_mixture
from mvenet.predictive import predictive_distribution

Array = NDArray[np.float64]


class Conformal(PredictsDistribution):
    """What a fitted :class:`mvenet.CalibratedRegressor` does; its attributes are described there.

    It needs no scikit-learn: a model file can be built as this, and predicts the same.
    """

    method: str
    members_: list[Any]
    factor_: float
    n_calibration_: int
    _scores: list[Array]
    _shares: list[Array] | None  # of the scores, if groups count alike and not rows
    _ratios: list[Array] | None  # of the scores, if rows to come are others: ``shift``
    _strata: list[NDArray[np.int64]] | None  # of the scores, by number: ``by``
    n_calibration_by_: dict[str, int]

    @groups_not_needed
    def predict_dist(self, X: Any) -> Distribution:
        """Predictive distribution of each row: the mixture of the members', after the factor.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        Normal or NormalMixture
        """
        parts = self._parts(X)
        kinds = set(map(of_logs, parts))
        if len(kinds) > 1:
            raise ValueError(
                "Some folds chose the log scale and others did not, which makes no one mixture: "
                "give the estimator target='log' or target='identity', or ask for intervals."
            )
        normals = [normals_of(part) for part in parts]
        means = np.concatenate([part.means for part in normals])
        stds = self.factor_ * np.concatenate([part.stds for part in normals])
        stds = np.maximum(stds, np.finfo(np.float64).tiny)  # tiny times small is zero
        weights = np.concatenate(_of_one_shape([part.weights for part in normals], len(means.T)))
        weights /= len(parts)
        disagreement = None
        if any(part.disagreement is not None for part in normals):
            disagreement = self.factor_**2 * np.mean([_not_noise(n) for n in normals], axis=0)
        mixture: Members
        if kinds == {True}:
            mixture = LogNormalMixture(means, stds, weights, disagreement)
        else:
            mixture = normal_or_mixture(means, stds, weights, disagreement)
        return _with_ends_of(parts, mixture)._labelled(X)

    @groups_not_needed
    def predict_interval(
        self, X: Any, coverage: float | ArrayLike = 0.9, *, kind: str = "central"
    ) -> Array:
        """Prediction interval; conformal with ``method="conformal"``.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        coverage : float or list of k floats in (0, 1), default=0.9
        kind : {"central", "shortest"}, default="central"
            "shortest" needs ``method="scale"``.

        Returns
        -------
        ndarray of shape (n, 2), or (n, k, 2) for a list
            Lower and upper end, in units of y.
        """
        if self.method == "scale":
            return super().predict_interval(X, coverage, kind=kind)
        if kind != "central":
            raise ValueError(
                f"kind={kind!r} has no conformal guarantee: use kind='central', or a "
                "CalibratedRegressor with method='scale'."
            )
        levels = np.atleast_1d(np.asarray(coverage, dtype=np.float64))
        parts = self._parts(X)
        ratios = None if self._of("_ratios") is None else ratios_of(X, vars(self)["shift"])
        strata = None if self._of("_strata") is None else self._strata_of(X)
        ends = [self._ends(parts, float(level), strata, ratios) for level in levels.ravel()]
        intervals, known = np.stack(ends, axis=1), ends_of(parts)
        if known is not None:  # no row is beyond
            intervals = np.clip(intervals, *known[0])
        return intervals if np.ndim(coverage) else intervals[:, 0]

    def reach(self, coverage: float) -> float:
        """How far a conformal interval reaches, if there is one member.

        Parameters
        ----------
        coverage : float in (0, 1)

        Returns
        -------
        float
            In standard deviations to each side of the mean, on the scale that is normal.
        """
        if not (self._of("_ratios") is None and self._of("_strata") is None):
            raise ValueError("How far an interval reaches differs from row to row.")
        if self._group_shares is not None:
            self._check_reached(coverage)
            every = np.concatenate(self._scores), np.concatenate(self._group_shares)
            return float(quantile_by_share(*every, coverage))
        return float(np.sort(np.concatenate(self._scores))[self._count_inside(coverage) - 1])

    def _of(self, name: str) -> Any:
        """What was fitted by this name; None in files that are older."""
        return vars(self).get(name)

    @property
    def _group_shares(self) -> list[Array] | None:
        shares: list[Array] | None = self._of("_shares")
        return shares

    def can_cover(self, coverage: float) -> bool:
        """Whether there are rows, or groups, enough for an interval of this coverage."""
        if self._group_shares is not None:
            return coverage <= self._finite_share()
        return coverage * (self.n_calibration_ + 1) <= self.n_calibration_

    def _ends(
        self,
        parts: Sequence[Distribution],
        coverage: float,
        strata: Strata | None = None,
        ratios: Array | None = None,
    ) -> Array:
        """Ends for each row; by the scores of its own group of rows, if there are enough."""
        if strata is None:
            return self._ends_by(parts, coverage, [slice(None)] * len(parts), ratios)
        self._count_inside(coverage)
        ends = np.empty((len(parts[0]), 2))
        for number, rows in strata.parts():
            alone = number >= 0 and _enough(coverage, strata.sizes[number])
            own = [some == number if alone else slice(None) for some in self._of("_strata")]
            of = [part[rows] for part in parts]
            ends[rows] = self._ends_by(of, coverage, own, None if ratios is None else ratios[rows])
        strata.warn(lambda size: _enough(coverage, size), coverage)
        return ends

    def _ends_by(
        self, parts: Sequence[Distribution], coverage: float, own: list[Any], ratios: Array | None
    ) -> Array:
        """Ends for each row by some of each member's scores."""
        scores = [score[some] for score, some in zip(self._scores, own, strict=True)]
        if ratios is not None:
            self._count_inside(coverage)
            known = [ratio[some] for ratio, some in zip(self._of("_ratios"), own, strict=True)]
            total = ratios + sum(float(some.sum()) for some in known)
            ends = ends_by_share(parts, scores, known, total, coverage)
            _warn_of_infinite(ends)
            return ends
        if self._group_shares is not None:
            self._check_reached(coverage)
            total = np.ones(len(parts[0]))
            return ends_by_share(parts, scores, self._group_shares, total, coverage)
        self._count_inside(coverage)
        return ends_by_count(parts, scores, _count(coverage, sum(map(len, scores))))

    def _strata_of(self, X: Any) -> Strata:
        """Which of the known groups of rows each row is of."""
        return Strata.of(labels_of(X, vars(self)["by"]), self.n_calibration_by_)

    def _finite_share(self) -> float:
        """Of the groups, the new one among them, those that have scores: all but one."""
        assert self._group_shares is not None
        return float(sum(share.sum() for share in self._group_shares)) * (1 + 1e-12)

    def _check_reached(self, coverage: float) -> None:
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage}: use, say, 0.9.")
        if coverage > self._finite_share():
            known = round(self._finite_share() / (1 - self._finite_share()))
            needed = math.ceil(coverage / (1 - coverage) * (1 - 1e-12))
            raise ValueError(
                f"coverage={coverage} of new groups needs at least {needed} groups to calibrate "
                f"by, there are {known}: calibrate by more, or ask for less."
            )

    def _count_inside(self, coverage: float) -> int:
        """How many of the calibration rows an interval of this coverage must reach around."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage}: use, say, 0.9.")
        n = self.n_calibration_
        count = _count(coverage, n)
        if count > n:
            needed = math.ceil(coverage / (1 - coverage) * (1 - 1e-12))
            raise ValueError(
                f"coverage={coverage} needs at least {needed} calibration rows, there are {n}: "
                "calibrate by more, or ask for less."
            )
        return count

    def _check_attributes(self) -> None:
        """Raise an error if it is fitted, but no fit can have made what it holds."""
        if "members_" not in vars(self):
            return
        require(self.method in ("conformal", "scale"), "it is calibrated by no known method")
        members, scores = self.members_, self._scores
        lists = type(members) is list and type(scores) is list
        require(
            lists and members and len(members) == len(scores), "it has no members, or no scores"
        )
        require(all(map(is_estimator, members)), "a member is no estimator")
        for score in scores:
            shape_of(score, 1, "the scores of a member are no list")
            sensible = score.dtype.str == "<f8" and (score >= 0).all()
            require(sensible, "there is a score that no row has")
        count = sum(len(score) for score in scores)
        known = type(self.n_calibration_) is int and self.n_calibration_ == count > 0
        require(known, "it is calibrated by another number of rows than there are scores")
        if self._group_shares is not None:
            require(type(self._group_shares) is list, "the shares of its scores are no list")
            require(len(self._group_shares) == len(scores), "there are other shares than scores")
            for score, share in zip(scores, self._group_shares, strict=True):
                check_array(share, score.shape, "shares of scores", least=0.0)
            require(0 < self._finite_share() < 1, "the shares of its scores do not add up")
        self._check_ratios_and_strata()
        check_number(self.factor_, "factor_")
        require(self.factor_ > 0, "factor_ is not positive")

    def _check_ratios_and_strata(self) -> None:
        for name, kind in (("_ratios", "<f8"), ("_strata", "<i8")):
            lists = self._of(name)
            if lists is None:
                continue
            require(type(lists) is list, f"{name} are no list")
            require(len(lists) == len(self._scores), f"{name} are others than scores")
            for score, some in zip(self._scores, lists, strict=True):
                shape_of(some, 1, f"{name} of a member are no list")
                fits = some.dtype.str == kind and some.shape == score.shape and (some >= 0).all()
                require(fits and np.isfinite(some).all(), f"{name} holds what no row has")
        if self._of("_strata") is not None:
            sizes = self._of("n_calibration_by_")
            known = type(sizes) is dict and all(
                type(name) is str and type(size) is int for name, size in sizes.items()
            )
            require(known, "its groups of rows have no names, or no sizes")
            every = np.concatenate(self._strata or [])
            counted = np.bincount(every, minlength=len(sizes)).tolist()
            require(counted == list(sizes.values()), "its groups of rows are of other sizes")

    def _parts(self, X: Any) -> list[Distribution]:
        """What each member predicts."""
        if vars(self).get("encoder_") is not None and not isinstance(X, Encoded):
            X = Encoded(self._read(X))
        return [predictive_distribution(member, X) for member in self.members_]

    def _knows_unknown(self) -> bool:
        """Whether all members know what to do about a cell that is not known."""
        return all(isinstance(m, Predictor) and m._knows_unknown() for m in self.members_)

    def _read(self, X: Any) -> NDArray[Any]:
        """Rows as the numbers that the members take."""
        mark = self._knows_unknown()
        if self._takes_frames():
            read = self.encoder_.marked if mark else self.encoder_.transform
            return read(X)  # type: ignore[no-any-return]
        table = np.asarray(X, dtype=np.float64)
        return self.encoder_.transform(table, has_gaps(table), mark)  # type: ignore[no-any-return]


def _of_one_shape(weights: Sequence[Array], n: int) -> list[Array]:
    """Weights of several mixtures, by row if those of one of them are."""
    if all(some.ndim == 1 for some in weights):
        return list(weights)
    wide = (some[:, None] if some.ndim == 1 else some for some in weights)
    return [np.broadcast_to(some, (len(some), n)) for some in wide]


def _with_ends_of(parts: Sequence[Distribution], whole: Smooth) -> Distribution:
    """The mixture with the members' ends, and the atoms that all of them have in common."""
    known, mixture = ends_of(parts), whole
    if known is not None and isinstance(whole, Normal | NormalMixture):
        mixture = Bounded(whole, *known)
    first = parts[0]
    if not isinstance(first, WithAtoms):
        return mixture
    same = all(
        isinstance(part, WithAtoms)
        and np.array_equal(part.atoms, first.atoms)
        and np.array_equal(part.cells, first.cells)
        for part in parts
    )
    if not same:
        return mixture
    return WithAtoms(mixture, first.atoms, first.cells, first.resolution)


def _not_noise(part: Normal | NormalMixture) -> Array:
    """How much of the mean variance of a mixture's members is ``disagreement``."""
    if part.disagreement is None:
        return np.zeros(len(part))
    with np.errstate(over="ignore"):  # an infinite bound is none
        within: Array = total(part.weights.reshape(len(part.weights), -1) * part.stds**2)
    return np.minimum(part.disagreement, within)


def _count(coverage: float, n: int) -> int:
    """How many of n rows must be inside; more than n if they are too few."""
    return math.ceil(coverage * (n + 1) * (1 - 1e-12))  # 0.9 × 10 is 9, not a hair more


def _enough(coverage: float, n: int) -> bool:
    return _count(coverage, n) <= n


def _warn_of_infinite(ends: Array) -> None:
    lost = int(np.isinf(ends).any(axis=1).sum())
    if lost:
        warnings.warn(
            f"{lost:,} of {len(ends):,} intervals have no end: by shift, such rows are so rare "
            "among those to calibrate by that nothing is known of them. Calibrate by more.",
            stacklevel=5,
        )
