"""Scorers for scikit-learn's model selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mvenet.metrics._inputs import Given
from mvenet.predictive import predictive_distribution

if TYPE_CHECKING:
    from sklearn.utils.metadata_routing import MetadataRequest


@dataclass(frozen=True)
class Scorer:
    """Scorer for ``scoring=``, of any estimator that predicts a distribution; higher is better.

    `neg_nll_scorer` is minus `nll`, the mean log-likelihood, and `neg_crps_scorer` minus `crps`.
    They take the distribution from ``predict_dist(X)`` (of an ensemble the true mixture) or from
    ``predict(X, return_std=True)`` as of ``BayesianRidge`` and ``GaussianProcessRegressor``, also
    of the last step of a pipeline and of the best estimator of a search. The std of the latter
    must include the noise, for a Gaussian process by a ``WhiteKernel``.

    Pass the object, not its name: scikit-learn keeps the names that ``scoring="..."`` knows to
    itself, and has no way to add one.

    With metadata routing, ``neg_nll_scorer.set_score_request(sample_weight=True)`` is a scorer that
    asks for the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet.metrics import neg_nll_scorer
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> print(cross_val_score(BayesianRidge(), X, y, scoring=neg_nll_scorer, cv=3).round(2))
    [-1.43 -1.43 -1.49]
    """

    name: str
    loss: Callable[..., float]
    request: bool | str | None = None

    def __call__(
        self, estimator: Any, X: Any, y_true: ArrayLike, sample_weight: Given = None
    ) -> float:
        return -self.loss(
            y_true, predictive_distribution(estimator, X), sample_weight=sample_weight
        )

    def __repr__(self) -> str:
        return self.name

    def set_score_request(self, *, sample_weight: bool | str | None) -> Scorer:
        """Return a scorer that asks for sample weights, as metadata routing calls it."""
        return replace(self, request=sample_weight)  # the scorer of the module stays as it is

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn's metadata routing wants to know."""
        from sklearn.utils.metadata_routing import MetadataRequest  # scores alone need no second

        routing = MetadataRequest(owner=self.name)
        routing.score.add_request(param="sample_weight", alias=self.request)
        return routing

    def _accept_sample_weight(self) -> bool:
        return True  # what searches ask, after scikit-learn 1.6, where metadata routing is off
