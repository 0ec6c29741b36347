"""The predictive distribution of any estimator with a standard deviation."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from mvenet.distributions import Distribution, LogNormalMixture, Normal

__all__ = ["left_out", "predictive_distribution"]


def predictive_distribution(estimator: Any, X: Any) -> Distribution:
    """Predictive distribution of each row.

    Parameters
    ----------
    estimator : fitted estimator
        With ``predict_dist(X)``, or ``predict(X, return_std=True)`` as of ``BayesianRidge`` and
        ``GaussianProcessRegressor`` (which is then taken as normal); a pipeline or a search that
        ends in one.
    X : array-like of shape (n, n_features)

    Returns
    -------
    Normal or NormalMixture

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> model = BayesianRidge().fit([[0.0], [1.0], [2.0]], [0.1, 0.9, 2.1])
    >>> predictive_distribution(model, [[1.0]]).mean.round(2)
    array([1.03])
    """
    # A pipeline's own predict knows no predict_dist and, with metadata routing, no return_std.
    given = X
    estimator, X = unwrapped(estimator, X)
    if hasattr(estimator, "predict_dist"):
        dist: Distribution = estimator.predict_dist(X)
        return dist._labelled(given) if isinstance(dist, Distribution) else dist
    predict = getattr(estimator, "predict", None)
    if predict is None or "return_std" not in signature(predict).parameters:
        raise TypeError(
            "estimator must have predict_dist(X) or predict(X, return_std=True), got "
            f"{type(estimator).__name__}: use one that predicts a standard deviation, such as "
            "MVERegressor."
        )
    return Normal(*predict(X, return_std=True))._labelled(given)


def left_out(estimator: Any, rows: Any = slice(None)) -> Normal | LogNormalMixture:
    """Out-of-fold predictions of a fitted estimator, for the rows of its table.

    It keeps their means and standard deviations only: this is the normal that has them, or the
    log-normal if the model is on the log scale.
    """
    mean, std = estimator.oof_mean_[rows], estimator.oof_std_[rows]
    if not estimator.model_.log:
        return Normal(mean, std)
    variance = np.log1p((std / mean) ** 2)
    return LogNormalMixture([np.log(mean) - 0.5 * variance], [np.sqrt(variance)])


def last_step(estimator: Any) -> Any:
    """The estimator at the end of a pipeline, however deep, or itself."""
    return last_step(estimator[-1]) if _is_pipeline(estimator) else estimator


def unwrapped(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The estimator within searches and pipelines, and the table that it is given."""
    if hasattr(estimator, "best_estimator_"):
        return unwrapped(estimator.best_estimator_, X)
    if _is_pipeline(estimator):
        table = estimator[:-1].transform(X) if len(estimator) > 1 else X
        return unwrapped(estimator[-1], table)
    return estimator, X


def _is_pipeline(estimator: Any) -> bool:
    """Whether it is scikit-learn's: told by what it has, as importing that takes a second."""
    return hasattr(estimator, "named_steps")
