"""Distributions as a DataFrame: of pandas with the index of the rows, or of polars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from numpy.typing import NDArray

from mvenet.distributions._checks import FloatArray, levels_within

POLARS = "polars"


class Rows(Protocol):
    """What is needed of a distribution."""

    @property
    def mean(self) -> FloatArray: ...
    @property
    def std(self) -> FloatArray: ...
    @property
    def median(self) -> FloatArray: ...
    def ppf(self, q: Any) -> FloatArray: ...
    def interval(self, coverage: Any) -> FloatArray: ...


def labels_of(X: Any) -> Any:
    """What a frame of predictions for X needs to know: an index of pandas, ``"polars"``, or None.

    Neither library is imported to find out: if X is a frame, its own is there.
    """
    for library, kinds in (("pandas", ("DataFrame", "Series")), ("polars", ("DataFrame",))):
        module = sys.modules.get(library)
        classes = tuple(c for c in (getattr(module, kind, None) for kind in kinds) if c is not None)
        if classes and isinstance(X, classes):
            return X.index if library == "pandas" else POLARS
    return None


def labels_at(labels: Any, index: NDArray[Any]) -> Any:
    """Those of some rows."""
    return labels if labels is None or labels is POLARS else labels[index]


def columns(dist: Rows, intervals: Any, quantiles: Any) -> dict[str, FloatArray]:
    """The columns by name, as the command names them."""
    inside = _distinct("intervals", intervals)
    levels = _distinct("quantiles", quantiles)
    found = {"mean": dist.mean, "std": dist.std, "median": dist.median}
    for level in inside:
        found[f"low_{100 * level:.10g}"], found[f"high_{100 * level:.10g}"] = dist.interval(level).T
    return found | {f"q_{100 * level:.10g}": dist.ppf(level) for level in levels}


def _distinct(name: str, value: Any) -> list[float]:
    levels = levels_within(name, value, "write 0.95 for 95 %").ravel().tolist()
    if len(set(levels)) < len(levels):
        raise ValueError(f"{name} must be distinct, got {value!r}; name each level once")
    return levels


def frame(values: dict[str, FloatArray], labels: Any, n: int) -> Any:
    """A DataFrame of these columns."""
    if labels is POLARS:
        return import_module("polars").DataFrame(values)
    try:
        pandas = import_module("pandas")
    except ImportError as missing:
        if labels is None and "polars" in sys.modules:
            return sys.modules["polars"].DataFrame(values)
        raise ImportError("to_frame needs pandas or polars: pip install pandas") from missing
    if labels is not None and len(labels) != n:
        raise ValueError(
            f"index must have {n} labels, got {len(labels)}; pass one for each row predicted"
        )
    return pandas.DataFrame(values, index=labels)


def shown(labels: Any, rows: Sequence[int]) -> list[str]:
    """What to call some rows."""
    if labels is None or labels is POLARS:
        return [str(row) for row in rows]
    return [str(labels[row]) for row in rows]
