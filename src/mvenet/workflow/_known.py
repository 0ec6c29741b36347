"""A model that knows its table: its encoder, what predicts from numbers, and what it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns.encoding import Encoding
from mvenet._columns.profile import outside
from mvenet._models.composite import Composite
from mvenet._models.conformal import Conformal
from mvenet._models.numbers import Numbers
from mvenet._models.predictor import Encoded, Predictor
from mvenet.distributions import Distribution
from mvenet.predictive import predictive_distribution

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TableModel:
    """A model of a table, whoever fitted it.

    Attributes
    ----------
    encoder : Encoding
        Makes numbers of rows.
    estimator : estimator
        Predicts from these numbers, given as ``inputs``.
    target : str
        Name of what is predicted; empty if nobody said it.
    promise : str
        For which rows the intervals hold; empty if for any like those of the fit.
    """

    encoder: Encoding
    estimator: Any
    target: str = ""
    promise: str = ""

    def inputs(self, numbers: Array) -> Any:
        """What the estimator takes instead of rows that are encoded."""
        ours = isinstance(self.estimator, Predictor | Conformal)
        return Encoded(numbers) if ours else numbers

    def encoded(self, frame: Any, rows: NDArray[Any] | None = None) -> Array:
        """Rows of a frame as numbers; ``rows`` are their numbers in a file, for errors."""
        knows = getattr(self.estimator, "_knows_unknown", None)
        read = self.encoder.marked if knows is not None and knows() else self.encoder.transform
        return read(frame, rows)

    def distribution(self, numbers: Array) -> Distribution:
        """What is predicted for rows that are encoded."""
        return predictive_distribution(self.estimator, self.inputs(numbers))

    def outside(self, frame: Any, numbers: Array, margin: float) -> NDArray[np.bool_] | None:
        """Which rows are outside what was seen: in a column, or far from all training rows.

        ``margin`` is a share of a column's range that does not count. None if nothing is known.
        """
        beyond = outside(self.encoder, frame, numbers, margin)
        inner = (getattr(self.estimator, "__dict__", {}).get("members_") or [self.estimator])[0]
        model = getattr(inner, "__dict__", {}).get("model_")
        if beyond is None or not isinstance(model, Composite):
            return beyond
        return np.asarray(beyond | model.outside(numbers))

    def of_frame(self, frame: pl.DataFrame) -> Distribution:
        """What is predicted for the rows of a frame."""
        return self.distribution(self.encoded(frame))


def known(model: Any) -> TableModel:
    """The table of a model: of ours, or of a pipeline that begins with a ``TableEncoder``.

    Files of earlier formats hold such pipelines, or are read as tuples of their two steps.
    """
    if isinstance(model, TableModel):
        return model
    if isinstance(model, tuple) or hasattr(model, "named_steps"):
        encoder = model[0]
        if isinstance(encoder, Encoding):
            after = model[1] if len(model) == 2 else model[1:]
            told = vars(encoder)
            return TableModel(encoder, after, told.get("target") or "", told.get("promise_", ""))
    elif isinstance(model, Predictor | Conformal) and vars(model).get("encoder_") is not None:
        told = vars(model)
        encoder = _encoding(model)
        return TableModel(encoder, model, told.get("target_name_", ""), told.get("promise_", ""))
    raise ValueError(
        "The model does not know its table: it was fitted to numbers by an earlier version, or "
        "stands behind other steps. Use it from Python."
    )


def target_of(model: Any) -> str:
    """Name of the column that a model predicts."""
    target = known(model).target
    if not target:
        raise ValueError(
            "The model does not know the name of its target: fit it by `mvenet fit`, or in Python "
            "to a y that has a name, such as frame['price']."
        )
    return target


def _encoding(model: Any) -> Encoding:
    """The encoder of an estimator of ours; of one that was fitted to numbers, one made of them."""
    kept = model.encoder_
    if not isinstance(kept, Numbers):
        encoding: Encoding = kept
        return encoding
    names = getattr(model, "feature_names_in_", None)
    shown = [f"x{i}" for i in range(len(kept.median))] if names is None else map(str, names)
    return Encoding.of_numbers(kept, list(shown))
