"""Distributions and intervals corrected by rows that were not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._models.checks import check_array, check_number, require, shape_of
from mvenet._models.predictor import Encoded, PredictsDistribution, is_estimator
from mvenet._utils.finite import has_gaps
from mvenet.distributions import (
    Distribution,
    LogNormalMixture,
    Normal,
    NormalMixture,
    WithAtoms,
)
from mvenet.distributions._members import Members
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
        smooth = [part.smooth if isinstance(part, WithAtoms) else part for part in parts]
        kinds = {isinstance(part, LogNormalMixture) for part in smooth}
        if len(kinds) > 1:
            raise ValueError(
                "Some folds chose the log scale and others did not, which makes no one mixture: "
                "give the estimator target='log' or target='identity', or ask for intervals."
            )
        normals = [normals_of(part) for part in parts]
        means = np.concatenate([part.means for part in normals])
        stds = self.factor_ * np.concatenate([part.stds for part in normals])
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
        return _with_atoms_of(parts, mixture)._labelled(X)

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
        ends = [self._ends(parts, float(level)) for level in levels.ravel()]
        intervals = np.stack(ends, axis=1)
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
        if self._group_shares is not None:
            self._check_reached(coverage)
            return _quantile(
                np.concatenate(self._scores), np.concatenate(self._group_shares), coverage
            )
        return float(np.sort(np.concatenate(self._scores))[self._count_inside(coverage) - 1])

    @property
    def _group_shares(self) -> list[Array] | None:
        """None in files that are older than groups."""
        return vars(self).get("_shares")

    def can_cover(self, coverage: float) -> bool:
        """Whether there are rows, or groups, enough for an interval of this coverage."""
        if self._group_shares is not None:
            return coverage <= self._finite_share()
        return coverage * (self.n_calibration_ + 1) <= self.n_calibration_

    def _ends(self, parts: Sequence[Distribution], coverage: float) -> Array:
        if self._group_shares is None:
            return _conformal_ends(parts, self._scores, self._count_inside(coverage))
        self._check_reached(coverage)
        return _ends_of_groups(parts, self._scores, self._group_shares, coverage)

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
        count = math.ceil(coverage * (n + 1) * (1 - 1e-12))  # 0.9 × 10 is 9, not a hair more
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
        check_number(self.factor_, "factor_")
        require(self.factor_ > 0, "factor_ is not positive")

    def _parts(self, X: Any) -> list[Distribution]:
        """What each member predicts."""
        if vars(self).get("encoder_") is not None and not isinstance(X, Encoded):
            X = Encoded(self._read(X))
        return [predictive_distribution(member, X) for member in self.members_]

    def _read(self, X: Any) -> NDArray[Any]:
        """Rows as the numbers that the members take."""
        if self._takes_frames():
            return self.encoder_.transform(X)  # type: ignore[no-any-return]
        table = np.asarray(X, dtype=np.float64)
        return self.encoder_.transform(table, has_gaps(table))  # type: ignore[no-any-return]


def _of_one_shape(weights: Sequence[Array], n: int) -> list[Array]:
    """Weights of several mixtures, by row if those of one of them are."""
    if all(some.ndim == 1 for some in weights):
        return list(weights)
    wide = (some[:, None] if some.ndim == 1 else some for some in weights)
    return [np.broadcast_to(some, (len(some), n)) for some in wide]


def _with_atoms_of(parts: Sequence[Distribution], mixture: Members) -> Distribution:
    """The mixture with the atoms that all members have in common; if they differ, without."""
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


def normals_of(dist: Distribution) -> Normal | NormalMixture:
    """The distribution of y, or of its logarithm if that is what is normal, without atoms."""
    if isinstance(dist, WithAtoms):
        dist = dist.smooth
    if isinstance(dist, LogNormalMixture):
        return dist.logs
    if not isinstance(dist, Normal | NormalMixture):
        raise TypeError(
            f"The estimator predicts a {type(dist).__name__}, which cannot be calibrated: use one "
            "that predicts normals or log-normals."
        )
    return dist


def _not_noise(part: Normal | NormalMixture) -> Array:
    """How much of the mean variance of a mixture's members is ``disagreement``."""
    if part.disagreement is None:
        return np.zeros(len(part))
    with np.errstate(over="ignore"):  # an infinite bound is none
        within: Array = (part.weights.reshape(len(part.weights), -1) * part.stds**2).sum(axis=0)
    return np.minimum(part.disagreement, within)


def _of_logs(dist: Distribution) -> bool:
    """Whether it is the logarithm that is normal."""
    return isinstance(dist.smooth if isinstance(dist, WithAtoms) else dist, LogNormalMixture)


def _conformal_ends(parts: Sequence[Distribution], scores: Sequence[Array], count: int) -> Array:
    """Ends of the interval that ``count`` of the calibration rows reach to.

    Up to half of the rows, the two ends of CV+ may pass each other where members disagree: there
    the interval of half the rows shrinks about its middle, as the scores do.
    """
    every = np.sort(np.concatenate(scores))
    half = len(every) // 2 + 1  # from here on some row reaches to both ends
    if count >= half or len(parts) == 1:
        return _jackknife_plus(parts, scores, count)
    ends = _jackknife_plus(parts, scores, half)
    share = every[count - 1] / every[half - 1] if every[half - 1] > 0 else 1.0
    middle: Array = ends.mean(axis=1, keepdims=True)
    return middle + float(share) * (ends - middle)


def _ends_of_groups(
    parts: Sequence[Distribution], scores: Sequence[Array], shares: Sequence[Array], coverage: float
) -> Array:
    """The same where scores count by their shares: all groups alike, however many rows they have.

    A row of a new group is covered, as its group is as likely as any other to be among the farthest
    (Lee, Barber and Willett 2023, hierarchical conformal prediction).
    """
    half = 0.5 + 0.5 * float(min(share.min(initial=1.0) for share in shares))
    level = max(coverage, half)
    if len(parts) == 1:
        level = coverage
    weight = np.concatenate(shares)

    def end(proposed: Array) -> Array:
        order = np.argsort(proposed, axis=1)
        reached = np.cumsum(weight[order], axis=1) >= level * (1 - 1e-12)
        at = np.where(reached.any(axis=1), np.argmax(reached, axis=1), proposed.shape[1] - 1)
        return np.asarray(np.take_along_axis(proposed, order, axis=1)[np.arange(len(at)), at])

    ends = _proposed_ends(parts, scores, end)
    if level == coverage:
        return ends
    every = np.concatenate(scores)
    widest = _quantile(every, weight, level)
    share = _quantile(every, weight, coverage) / widest if widest > 0 else 1.0
    middle: Array = ends.mean(axis=1, keepdims=True)
    return middle + share * (ends - middle)


def _quantile(scores: Array, shares: Array, level: float) -> float:
    """The smallest score up to which the shares add up to the level."""
    order = np.argsort(scores)
    at = int(np.searchsorted(np.cumsum(shares[order]), level * (1 - 1e-12)))
    return float(scores[order][min(at, len(scores) - 1)])


def _jackknife_plus(parts: Sequence[Distribution], scores: Sequence[Array], count: int) -> Array:
    """Ends of the interval that at least ``count`` of the calibration rows reach to.

    Each calibration row proposes the ends mean ∓ score · std by the member that has not seen it,
    on the scale on which that is normal; the upper end is the count-th smallest of the upper ones,
    the lower the count-th largest.
    """
    return _proposed_ends(
        parts, scores, lambda proposed: np.partition(proposed, count - 1, axis=1)[:, count - 1]
    )


def _proposed_ends(
    parts: Sequence[Distribution], scores: Sequence[Array], end: Callable[[Array], Array]
) -> Array:
    """Both ends from what calibration rows propose, (rows, scores), by a rule for the upper."""
    members = [(normals.mean, normals.std) for normals in map(normals_of, parts)]
    back = [np.exp if _of_logs(part) else np.positive for part in parts]
    n_rows = len(parts[0])
    ends = np.empty((n_rows, 2))
    step = max(1, 4_000_000 // sum(len(s) for s in scores))  # rows at a time: bounded memory
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        for column, sign in ((0, -1.0), (1, 1.0)):
            proposed = np.concatenate(
                [
                    sign * units(m[rows, None] + sign * s[rows, None] * score)
                    for (m, s), units, score in zip(members, back, scores, strict=True)
                ],
                axis=1,
            )
            ends[rows, column] = sign * end(proposed)
    return ends
