"""What explanations ask of a model, and how they check what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mvenet._models.joint import JointModel
from mvenet.distributions import Distribution
from mvenet.distributions._checks import check_shape
from mvenet.explain._source import Rows, Source
from mvenet.metrics._inputs import numbers
from mvenet.predictive import last_step, predictive_distribution, unwrapped

Array = NDArray[np.float64]
AT_ONCE = 20_000  # rows that are predicted together


def check_fitted(estimator: Any) -> None:
    """Refuse an estimator that must be fitted first, and one of several targets."""
    if isinstance(estimator, BaseEstimator | type):  # others need not know of fitting
        check_is_fitted(estimator)
    if isinstance(getattr(last_step(estimator), "model_", None), JointModel):
        raise ValueError(
            "This is told of one target, and the estimator has several: pass its estimators_[0] "
            "and so on."
        )


def source_of(estimator: Any, X: Any, what: str = "X") -> Source:
    """The table that a fitted estimator is asked about, with as many columns as it knows."""
    check_fitted(estimator)
    source = Source(X, getattr(estimator, "feature_names_in_", ()), what, _read(estimator, X))
    known = getattr(estimator, "n_features_in_", source.width)
    if source.is_array and source.width != known:  # what a frame lacks, the model says by name
        raise ValueError(
            f"{what} has {source.width} columns, but the model was fitted to {known}: pass the "
            "columns that it was fitted to."
        )
    return source


def _read(estimator: Any, X: Any) -> Source | None:
    """A frame as the model's own encoder reads it, if it has one for frames."""
    steps = getattr(estimator, "steps", None)
    encoder = steps[0][1] if steps else getattr(estimator, "encoder_", None)
    if encoder is None or not hasattr(encoder, "tidy") or isinstance(X, np.ndarray | list):
        return None
    return Source(encoder.tidy(X))


def distribution(estimator: Any, X: Any) -> Distribution:
    """Predictive distribution of each row."""
    return predictive_distribution(estimator, X)


def intervals(estimator: Any, X: Any, coverage: float | Array) -> Array:
    """Central prediction intervals, (n, 2) or of k levels (n, k, 2): its own, if it has any.

    Those of a conformal regressor are not those of its distributions.
    """
    last, table = unwrapped(estimator, X)
    if not hasattr(last, "predict_interval"):
        return predictive_distribution(last, table).interval(coverage)
    return np.asarray(last.predict_interval(table, coverage=coverage), dtype=np.float64)


def outcomes(X: Source, y: ArrayLike) -> Array:
    """Outcomes, finite and one for each row."""
    target = numbers("y", y)
    check_shape("y", target, (len(X),), f"pass one outcome for each row of {X.what}")
    return target


def whole(name: str, value: Any, remedy: int = 10) -> int:
    """Check a positive whole number."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}: use, say, {remedy}.")
    return int(value)


def some(n: int, most: int, rng: np.random.Generator) -> Rows:
    """At most so many of n rows, in order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
