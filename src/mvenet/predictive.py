"""The predictive distribution of any estimator that tells a standard deviation."""

from __future__ import annotations

from inspect import signature
from typing import Any

from sklearn.pipeline import Pipeline

from mvenet.distributions import Normal, NormalMixture

__all__ = ["predictive_distribution"]


def predictive_distribution(estimator: Any, X: Any) -> Normal | NormalMixture:
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
    if hasattr(estimator, "predict_dist"):
        dist: Normal | NormalMixture = estimator.predict_dist(X)
        return dist
    if hasattr(estimator, "best_estimator_"):
        return predictive_distribution(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        # Its own predict knows no predict_dist and, with metadata routing, no return_std.
        return predictive_distribution(
            estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
        )
    predict = getattr(estimator, "predict", None)
    if predict is None or "return_std" not in signature(predict).parameters:
        raise TypeError(
            "estimator must have predict_dist(X) or predict(X, return_std=True), got "
            f"{type(estimator).__name__}: use one that predicts a standard deviation, such as "
            "MVERegressor."
        )
    return Normal(*predict(X, return_std=True))
