"""The model of several targets: an estimator for each, and how their errors depend on each other.

The estimators know nothing of each other. What ties them is a correlation of normal scores (where
an outcome stands in its distribution, as a value of a standard normal), the same for all rows or
different from region to region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import (
    check_array,
    check_fields,
    check_number,
    check_part,
    require,
    shape_of,
)
from mvenet._models.forest import Forest
from mvenet.distributions import Distribution, Joint

if TYPE_CHECKING:
    from mvenet._models.predictor import Predictor

Array = NDArray[np.float64]
MOST_TARGETS = 1_000
LEAST_EIGENVALUE = 1e-5  # of a correlation matrix: no target is a function of the others


def without_unknown(estimator: Predictor, X: Any) -> NDArray[Any]:
    """What an estimator reads, a cell that is not known being the usual one: trees need numbers."""
    table = estimator._checked(X)
    donors = getattr(estimator.model_, "donors", None)
    if donors is None or not np.isnan(table).any():
        return table
    return np.where(np.isnan(table), np.median(donors, axis=0), table)


@dataclass(frozen=True)
class LocalCorrelation:
    """Trees whose leaves hold what products of scores were on average there.

    Attributes
    ----------
    forest : Forest
        The value of a leaf is its number.
    products : ndarray of shape (leaves, k, k)
    """

    forest: Forest
    products: Array

    def correlations(self, X: NDArray[Any], threads: int = 1) -> Array:
        """Correlation matrices of rows, of shape (n, k, k)."""
        table = np.ascontiguousarray(X, dtype=np.float64)
        leaves = self.forest.values(table, threads).astype(np.int64)
        total = np.zeros((len(table), *self.products.shape[1:]))
        for tree in leaves:
            total += self.products[tree]
        return as_correlation(total)

    def check(self, targets: int, n_columns: int) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, LocalCorrelation)
        check_part(self.forest, Forest, _Plain(n_columns))
        require(self.forest.center == 0.0 and self.forest.scale == 1.0, "leaves have no numbers")
        numbers = self.forest.threshold[self.forest.feature < 0]
        shape = (len(numbers), targets, targets)
        check_array(self.products, shape, "products")
        require((np.sort(numbers) == np.arange(len(numbers))).all(), "leaves have no numbers")
        diagonal = np.diagonal(self.products, axis1=1, axis2=2)
        require((diagonal > 0).all(), "a leaf has scores without a spread")
        require(_definite(as_correlation(self.products)), "a leaf has no correlation")


@dataclass(frozen=True)
class _Plain:
    """What trees are checked against."""

    plain: int


@dataclass(frozen=True)
class JointModel:
    """Estimators of each target, and what ties their scores.

    Attributes
    ----------
    estimators : tuple of k Predictor
    names : tuple of k str
    constant : ndarray of shape (k, k)
        Correlation of the scores, on average.
    independent : float
        Probability that the targets of a row have nothing to do with each other.
    local : LocalCorrelation or None
        How the correlation differs from row to row.
    share : float
        Of that in the correlation; the rest is constant.
    claims : ndarray of shape (m,) or None
        Levels of the copula that held 0, 1/m, 2/m, … of the rows left out in all targets.
    """

    estimators: tuple[Predictor, ...]
    names: tuple[str, ...]
    constant: Array
    independent: float
    local: LocalCorrelation | None = None
    share: float = 0.0
    claims: Array | None = None

    @property
    def log(self) -> bool:
        """Whether of some target the logarithm is modelled."""
        return any(estimator.model_.log for estimator in self.estimators)

    def __len__(self) -> int:
        """Components of all mixtures."""
        return sum(len(estimator.model_) for estimator in self.estimators)

    def moments(self, X: Any, *, std: bool = True) -> tuple[Array, Array | None]:
        """Means and, if asked, standard deviations, of shape (n, k)."""
        found = [estimator.predict(X, return_std=True) for estimator in self.estimators]
        means, stds = (np.column_stack([pair[i] for pair in found]) for i in range(2))
        return means, stds if std else None

    def distribution(self, X: Any) -> Joint:
        """Predictive distribution of all targets together, of each row."""
        each = [estimator.predict_dist(X) for estimator in self.estimators]
        return self.together(each, X)._labelled(X)

    def together(self, each: Sequence[Distribution], X: Any) -> Joint:
        """Distributions of each target, tied together."""
        return Joint(each, self.correlation(X), self.names, self.independent, self.claims)

    def correlation(self, X: Any) -> Array:
        """Of the scores: of shape (k, k), or (n, k, k) if it differs between rows."""
        if self.local is None:
            return self.constant
        first = self.estimators[0]
        table = without_unknown(first, X)
        return self.mixed(self.local.correlations(table, first._threads(table)))

    def mixed(self, local: Array) -> Array:
        """The correlation of rows, from what trees say of it."""
        return as_correlation((1.0 - self.share) * self.constant + self.share * local)

    def check(self, n_columns: int) -> None:
        """Raise an error if it cannot be a model of so many columns that a fit has made.

        The estimators of the targets are checked by whoever reads a file, as all are.
        """
        check_fields(self, JointModel)
        several = type(self.estimators) is tuple and 0 < len(self.estimators) <= MOST_TARGETS
        require(several, "there are no estimators of targets")
        k = len(self.estimators)
        for estimator in self.estimators:
            alone = hasattr(estimator, "predict_dist") and "model_" in vars(estimator)
            require(alone, "something else stands in the place of a target's estimator")
            nested = isinstance(estimator.model_, JointModel)
            require(not nested, "a target consists of targets")
            require(estimator.n_features_in_ == n_columns, "targets have different columns")
        named = type(self.names) is tuple and all(type(name) is str for name in self.names)
        require(named and len(set(self.names)) == len(self.names) == k, "targets have no names")
        check_array(self.constant, (k, k), "correlation")
        require((self.constant == self.constant.T).all(), "the correlation is not symmetric")
        require((np.diagonal(self.constant) == 1.0).all(), "a target is not correlated with itself")
        require(_definite(self.constant), "no scores have such a correlation")
        check_number(self.independent, "independent", least=0.0)
        check_number(self.share, "share", least=0.0)
        require(self.independent < 1.0 and self.share <= 1.0, "a share is larger than all")
        if self.claims is not None:
            check_array(self.claims, shape_of(self.claims, 1, "claims are no list"), "claims")
            require(_rising(self.claims), "claims are no levels that rise from 0")
        if self.local is not None:
            check_part(self.local, LocalCorrelation, k, self.estimators[0]._n_read)


def as_correlation(products: Array) -> Array:
    """Correlation matrices from mean products, with eigenvalues that are not too small."""
    deviation = np.sqrt(np.diagonal(products, axis1=-2, axis2=-1))
    found = products / (deviation[..., :, None] * deviation[..., None, :])
    # Towards the identity where a matrix is all but singular: its smallest eigenvalue rises to it.
    least = np.linalg.eigvalsh(found)[..., :1, None]
    short = np.maximum(2 * LEAST_EIGENVALUE - least, 0.0)
    found = found / (1.0 + short)
    found = 0.5 * (found + np.swapaxes(found, -1, -2))
    k = found.shape[-1]
    found[..., range(k), range(k)] = 1.0
    return np.ascontiguousarray(found)


def _rising(claims: Array) -> bool:
    steps = bool((np.diff(claims) >= 0).all())
    return len(claims) > 1 and claims[0] == 0.0 and steps and bool(claims[-1] < 1.0)


def _definite(correlation: Array) -> bool:
    bounded = bool((np.abs(correlation) <= 1.0 + 1e-12).all())
    return bounded and float(np.linalg.eigvalsh(correlation).min()) >= LEAST_EIGENVALUE
