"""A model as data for whatif.js: its own parts, or networks that stand in for it.

What is small enough is embedded as it is, if need be with parameters of 16 bits. Any other model
is stood in for by small networks that were trained on its own predictions, and the page says how
far they are from it.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._estimators.calibration import CalibratedRegressor
from mvenet._models.architecture import Architecture
from mvenet._models.composite import Composite
from mvenet._models.ensemble import Ensemble
from mvenet._models.forest import Forest
from mvenet._models.free_shape import (
    NARROWEST_REST,
    Constant,
    FreeShape,
    GivenQuantiles,
    TreeValues,
)
from mvenet._models.gaussian_process import LogColumns, Process
from mvenet._models.interface import Mean, Sampler
from mvenet._models.means import GivenRegressor, Linear, MeanOfNoise, NetworkMean
from mvenet._models.mixture import MULTIPLES
from mvenet._models.networks import Networks, join
from mvenet._models.piecewise import Piecewise
from mvenet._models.predictor import Encoded, PredictsDistribution
from mvenet._models.seen import SOON
from mvenet._training import fleet
from mvenet._utils.machine import effective_threads
from mvenet.distributions import Distribution
from mvenet.predictive import predictive_distribution
from mvenet.recipes import Stage, Training

Array = NDArray[np.float64]
MOST_BYTES = 2_400_000  # of an embedded model and its columns: the page has three megabytes
SCALING = ("x_mean", "x_scale", "y_mean", "y_scale")
BLOCK = 32  # parameters that share the factor of their 16 bits
LARGEST_ROUNDING = 1e-3  # of the spread of the predictions
STEPS = 20_000  # that a stand-in is trained for
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
STOOD_IN_FOR = (GivenRegressor,)  # kinds of means without a formula in whatif.js
SAMPLERS_STOOD_IN_FOR = (GivenQuantiles,)  # and of values of free shapes
GAPS = ((0.25, 0.5), (0.5, 0.75), (0.05, 0.25), (0.75, 0.95))


def embedded(estimator: Any, X: Array, beside: int = 0) -> tuple[dict[str, Any], float] | None:
    """The model itself as data, and how far rounding moves it; None if it cannot be embedded.

    ``beside`` are the bytes that the page needs for the columns, which grow with their number.
    The distance is the largest of means and quantiles on these rows, as a share of the spread of
    the predictions; zero for a model that is small enough without rounding.
    """
    calibrated = isinstance(estimator, CalibratedRegressor)
    inner = estimator.members_[0] if calibrated else estimator
    conformal = _conformal(estimator) if calibrated else None
    if (calibrated and conformal is None) or not _can_be_embedded(inner, calibrated, X.shape[1]):
        return None
    for rounded in (False, True):
        made = model_data(inner.model_, rounded) | {"conformal": conformal}
        if _size(made) + beside <= MOST_BYTES:
            moved = _rounding(inner, X) if rounded else 0.0
            return (made, moved) if moved <= LARGEST_ROUNDING else None
    return None


def _can_be_embedded(estimator: Any, calibrated: bool, n_columns: int) -> bool:
    """Whether the page can do all that the model does."""
    model = getattr(estimator, "model_", None)
    if isinstance(model, Composite):
        countable = n_columns < 2**15  # the page has two bytes for a tree's columns
        samplers = () if model.free is None else model.free.samplers
        known = not any(isinstance(mean, STOOD_IN_FOR) for mean in model.means)
        known &= not any(isinstance(sampler, SAMPLERS_STOOD_IN_FOR) for sampler in samplers)
        return (
            countable
            and known
            and not (calibrated and (model.atoms is not None or model.ends is not None))
        )
    if not isinstance(model, Ensemble) or calibrated:
        return False
    return model.df is None and not model.networks.architecture.natural


@singledispatch
def model_data(model: object, rounded: bool) -> dict[str, Any]:
    """A whole model as data."""
    raise TypeError(f"A {type(model).__name__} has no place on the page.")


@model_data.register
def _(model: Ensemble, rounded: bool) -> dict[str, Any]:
    return {
        "kind": "networks",
        "log": False,
        "factor": float(model.scale),
        "piecewise": None if model.piecewise is None else _piecewise_data(model.piecewise),
        "groups": [network_data(model.networks, rounded)],
    }


def _rounded_model(model: Composite | Ensemble) -> Composite | Ensemble:
    """The model with the parameters that the page has."""
    if isinstance(model, Ensemble):
        return dataclasses.replace(model, networks=_rounded(model.networks))
    return _rounded_composite(model)


def _rounding(estimator: Any, X: Array) -> float:
    """How far parameters of 16 bits move what the model says."""
    model = estimator.model_
    both = model.distribution(X), _rounded_model(model).distribution(X)
    one, other = (np.column_stack([d.mean, *(d.ppf(q) for q in LEVELS)]) for d in both)
    return float(np.abs(one - other).max()) / max(float(np.std(one[:, 0])), 1e-300)


def _conformal(estimator: CalibratedRegressor) -> dict[str, float] | None:
    """How many standard deviations the intervals of half and of nine in ten rows reach."""
    if estimator.method != "conformal" or len(estimator.members_) > 1:
        return None
    try:
        return {str(level): estimator.reach(level) for level in (0.5, 0.9)}
    except ValueError:  # too few rows for it
        return None


# --- packing -------------------------------------------------------------------------------------


def network_data(networks: Networks, rounded: bool = False) -> dict[str, Any]:
    """Networks as text; parameters keep their 32 bits, or 16 and a factor for each block."""
    architecture = networks.architecture
    mean, variance = architecture.sizes(networks.x_mean.shape[1])
    bound = architecture.input_bound
    small, factors = _sixteen_bits(networks.parameters)
    scaling = np.column_stack([getattr(networks, name) for name in SCALING])
    return {
        "count": len(networks),
        "mean": mean,
        "variance": variance,
        "activation": architecture.activation,
        "bound": None if np.isinf(bound) else float(bound),
        "floor": fleet.VARIANCE_FLOOR,
        "size": networks.parameters.shape[1],
        "parameters": _base64(small, "<i2") if rounded else _base64(networks.parameters, "<f4"),
        "factors": _base64(factors, "<f4") if rounded else None,
        "scaling": _base64(scaling, "<f4" if rounded else "<f8"),
    }


def _sixteen_bits(parameters: NDArray[Any]) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """Whole numbers, and what each block of them is to be multiplied by."""
    flat = np.asarray(parameters, dtype=np.float64).ravel()
    blocks = np.pad(flat, (0, -len(flat) % BLOCK)).reshape(-1, BLOCK)
    factors = (np.abs(blocks).max(axis=1) / 32_767).astype(np.float32)
    safe = np.where(factors > 0, factors, 1.0)[:, None]
    whole = np.clip(np.round(blocks / safe), -32_767, 32_767).astype(np.int16)
    return whole.ravel()[: len(flat)], factors


def _from_sixteen_bits(
    whole: NDArray[np.int16], factors: NDArray[np.float32]
) -> NDArray[np.float32]:
    return whole * np.repeat(factors, BLOCK)[: len(whole)]


def _rounded(networks: Networks) -> Networks:
    """Networks with the parameters that the page has."""
    flat = _from_sixteen_bits(*_sixteen_bits(networks.parameters))
    shape, kind = networks.parameters.shape, networks.parameters.dtype
    scaling = {n: getattr(networks, n).astype(np.float32).astype(np.float64) for n in SCALING}
    return dataclasses.replace(networks, parameters=flat.reshape(shape).astype(kind), **scaling)


def _base64(array: NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _size(made: dict[str, Any]) -> int:
    """Letters of what is packed."""
    parts = [*made["groups"], *made.get("forests", []), *made.get("means", [])]
    return sum(len(v) for part in parts for v in part.values() if isinstance(v, str))


# --- what an automatic search found --------------------------------------------------------------


def _rounded_composite(composite: Composite) -> Composite:
    def with_rounded(part: Any) -> Any:
        if isinstance(part, Forest):
            return _rounded_forest(part)
        if not isinstance(getattr(part, "networks", None), Networks):
            return part
        return dataclasses.replace(part, networks=_rounded(part.networks))

    return dataclasses.replace(
        composite,
        means=tuple(map(with_rounded, composite.means)),
        noises=tuple(map(with_rounded, composite.noises)),
        free=None if composite.free is None else _rounded_shape(composite.free, composite.means),
    )


def _rounded_shape(free: FreeShape, means: Sequence[Mean]) -> FreeShape:
    """A free shape with the trees that the page has."""
    samplers = list[Sampler]()
    for sampler in free.samplers:
        if isinstance(sampler, TreeValues):
            whole = next((f for f in means if _holds(f, sampler.forest)), sampler.forest)
            assert isinstance(whole, Forest)
            sampler = TreeValues(_rounded_forest(whole).thinned(len(sampler)))
        samplers.append(sampler)
    return dataclasses.replace(free, samplers=tuple(samplers))


def _holds(mean: Mean, forest: Forest) -> bool:
    """Whether the trees of a forest are those that a mean has when it is thinned."""
    if not isinstance(mean, Forest):
        return False
    own = mean.thinned(len(forest.starts) - 1)
    return all(np.array_equal(vars(own)[name], value) for name, value in vars(forest).items())


class Page:
    """What parts of a composite become on the page; networks and forests are numbered."""

    def __init__(self, rounded: bool) -> None:
        self.rounded = rounded
        self.groups: list[dict[str, Any]] = []
        self.forests: list[dict[str, Any]] = []
        self._known: list[Forest] = []

    def group(self, networks: Networks) -> int:
        """Add networks, and return their number."""
        self.groups.append(network_data(networks, self.rounded))
        return len(self.groups) - 1

    def forest(self, forest: Forest) -> int:
        """Add trees, unless others hold them, and return their number."""
        for number, known in enumerate(self._known):
            if _holds(known, forest):
                return number
        self._known.append(forest)
        self.forests.append(_forest_data(forest, self.rounded))
        return len(self.forests) - 1


@singledispatch
def mean_data(mean: object, page: Page) -> dict[str, Any]:
    """A part of the blended mean as data for whatif.js, whose MEANS has its formula."""
    raise TypeError(f"A {type(mean).__name__} has no place on the page.")


@mean_data.register
def _(mean: MeanOfNoise, page: Page) -> dict[str, Any]:
    return {"noise": mean.number}


@mean_data.register
def _(mean: NetworkMean, page: Page) -> dict[str, Any]:
    return {"group": page.group(mean.networks), "encoded": mean.encoded}


@mean_data.register
def _(mean: Linear, page: Page) -> dict[str, Any]:
    return {"coefficients": mean.coefficients.tolist(), "intercept": mean.intercept}


@mean_data.register
def _(mean: Forest, page: Page) -> dict[str, Any]:
    return {"forest": page.forest(mean)}


@mean_data.register
def _(process: Process, page: Page) -> dict[str, Any]:
    """A Gaussian process; its points one after the other."""
    return {
        "center": process.center.tolist(),
        "scale": process.scale.tolist(),
        "points": _base64(process.points.T, "<f8"),
        "weights": _base64(process.weights, "<f8"),
        "polynomial": process.polynomial.tolist(),
        "slope": process.slope.tolist(),
        "intercept": process.intercept,
        "logs": [] if process.logs is None else _log_columns(process.logs),
    }


@singledispatch
def sampler_data(sampler: object, page: Page) -> dict[str, Any]:
    """Values of a free shape as data for whatif.js, whose SAMPLERS has their formula."""
    raise TypeError(f"A {type(sampler).__name__} has no place on the page.")


@sampler_data.register
def _(sampler: TreeValues, page: Page) -> dict[str, Any]:
    return {"forest": page.forest(sampler.forest), "count": len(sampler)}


@sampler_data.register
def _(sampler: Constant, page: Page) -> dict[str, Any]:
    return {"values": sampler.values.tolist()}


def _residual_data(free: FreeShape) -> dict[str, Any] | None:
    if free.residuals is None:
        return None
    residuals, hurdle = free.residuals, free.residuals.hurdle
    made: dict[str, Any] = {
        "quantiles": residuals.quantiles.tolist(),
        "widths": residuals.widths.tolist(),
    }
    if hurdle is not None:
        made["hurdle"] = {
            "values": hurdle.values.tolist(),
            "cells": _ends_of(hurdle.cells),
            "usual": hurdle.usual.tolist(),
            "trees": hurdle.trees,
            "widths": hurdle.widths.tolist(),
            "narrowest": NARROWEST_REST,
        }
    return made


def _ends_of(cells: Array) -> list[list[float | None]]:
    """Pairs of ends, with nothing in the place of an infinite one."""
    return [[float(v) if np.isfinite(v) else None for v in ends] for ends in cells]


def _shape_data(model: Composite, page: Page) -> dict[str, Any]:
    """Free shape and atoms; nothing where there is none."""
    made: dict[str, Any] = {"narrowest": model.narrowest} if model.narrowest else {}
    if model.free is not None:
        made["free"] = {
            "samplers": [
                {"kind": type(s).__name__} | sampler_data(s, page) for s in model.free.samplers
            ],
            "widths": [some.tolist() for some in model.free.widths],
            "ends": model.free.ends.tolist(),
            "weights": model.free.weights.tolist(),
            "residuals": _residual_data(model.free),
        }
    if model.atoms is not None:
        low, high = _ends_of(model.atoms.cells.T)
        made["atoms"] = {"values": model.atoms.values.tolist(), "low": low, "high": high}
    if model.ends is not None:
        values = _ends_of(model.ends.values[None])[0]
        made["ends"] = {"values": values, "reach": model.ends.reach.tolist()}
    return made


@model_data.register
def _(model: Composite, rounded: bool) -> dict[str, Any]:
    page, seen = Page(rounded), model.range
    means = [
        {"kind": type(mean).__name__, "share": float(share)} | mean_data(mean, page)
        for share, mean in zip(model.shares, model.means, strict=True)
    ]
    noises = [
        {
            "group": page.group(noise.networks),
            "encoded": noise.encoded,
            "joint": noise.joint,
            "shape": [noise.shape.offset, noise.shape.exponent, noise.shape.low, noise.shape.high],
            "weights": noise.weights.tolist(),
        }
        for noise in model.noises
    ]
    return {
        "kind": "composite",
        "log": model.log,
        "unit": model.unit,
        "widest": None if np.isinf(model.widest) else model.widest,
        "multiples": MULTIPLES.tolist(),
        "limits": [float(end) for end in model.limits],
        "unknown": float(model.unknown_std),
        "typical": seen.typical_std,
        "soon": SOON,
        "pace": [] if seen.pace is None else seen.pace.tolist(),
        "drift": seen.drift_std,
        "x_low": seen.x_low.tolist(),
        "x_high": seen.x_high.tolist(),
        "piecewise": _piecewise_data(model.piecewise),
        "means": means,
        "noises": noises,
        **_shape_data(model, page),
        "groups": page.groups,
        "forests": page.forests,
    }


def _piecewise_data(piecewise: Piecewise) -> dict[str, Any]:
    return {f.name: getattr(piecewise, f.name).tolist() for f in dataclasses.fields(piecewise)}


def _log_columns(logs: LogColumns) -> list[list[float]]:
    """Column, origin, length and rate of each."""
    parts = (logs.column, logs.origin, logs.length, logs.rate)
    return [list(each) for each in zip(*(part.tolist() for part in parts), strict=True)]


def _forest_data(forest: Forest, rounded: bool) -> dict[str, Any]:
    """Trees as text: depth first, so that nobody has to tell where a right child is."""
    leaf = forest.feature < 0
    small, factors = _sixteen_bits(forest.threshold[leaf])
    wide = bool(forest.feature.max() >= 2**7)
    return {
        "wide": wide,
        "feature": _base64(forest.feature, "<i2" if wide else "<i1"),
        "thresholds": _base64(forest.threshold[~leaf], "<f4"),
        "leaves": _base64(small, "<i2") if rounded else _base64(forest.threshold[leaf], "<f4"),
        "factors": _base64(factors, "<f4") if rounded else None,
        "starts": forest.starts.tolist(),
        "center": forest.center,
        "scale": forest.scale,
    }


def _rounded_forest(forest: Forest) -> Forest:
    """Trees with the leaves that the page has."""
    leaf, threshold = forest.feature < 0, forest.threshold.copy()
    threshold[leaf] = _from_sixteen_bits(*_sixteen_bits(threshold[leaf]))
    return dataclasses.replace(forest, threshold=threshold)


# --- stand-ins -----------------------------------------------------------------------------------


def stand_in(estimator: Any, X: Array) -> tuple[dict[str, Any], dict[str, float]]:
    """Networks trained on what the model says about these rows, and how far they are from it.

    One for the mean, one for the median, and one for the logarithm of each gap between neighbouring
    quantiles, which so stay in order. The last fifth of the rows only measures that.
    """
    dist = predictive_distribution(estimator, _given(estimator, X))
    quantiles = dict(zip(LEVELS, _quantiles(estimator, dist, X), strict=True))
    least = 1e-6 * max(float(np.ptp(dist.mean)), float(dist.std.max()), 1e-300)
    gaps = [np.log(np.maximum(quantiles[b] - quantiles[a], least)) for a, b in GAPS]
    train = np.arange(0, len(X) - len(X) // 5)
    stage = Stage("warmup", max(1, STEPS * 64 // len(train)), 5e-3, "cosine", reg_mean=1e-6)
    parts = [
        fleet.train(
            X, aim, None, [(train, train[:0])], [fleet.Network((stage,), seed)],
            architecture=Architecture((64, 32), None, "silu"), training=Training(batch_size=64),
            threads=effective_threads(None),
        ).networks
        for seed, aim in enumerate([dist.mean, quantiles[0.5], *gaps])
    ]  # fmt: skip
    networks = join(parts)
    floor = 0.0 if quantiles[0.05].min() >= 0 else None
    fresh = slice(len(train), None)
    given = stand_in_values(networks.predict(X[fresh])[0], floor)
    truth = np.column_stack([dist.mean, *quantiles.values()])[fresh]
    off = np.sqrt(np.mean((given - truth) ** 2, axis=0)) / max(float(truth[:, 0].std()), least)
    distance = {"mean": float(off[0]), "ends": float(max(off[1], off[-1]))}
    return {"kind": "stand-in", "floor": floor, "groups": [network_data(networks)]}, distance


def _quantiles(estimator: Any, dist: Distribution, X: Array) -> list[Array]:
    """Ends of the intervals that the model gives, and its median."""
    ends = {level: dist.interval(level) for level in (0.5, 0.9)}
    if isinstance(estimator, CalibratedRegressor):
        for level in ends:
            if estimator.can_cover(level):
                ends[level] = estimator.predict_interval(_given(estimator, X), level)
    half, nine = ends[0.5], ends[0.9]
    return [nine[:, 0], half[:, 0], dist.ppf(0.5), half[:, 1], nine[:, 1]]


def _given(estimator: Any, X: Array) -> Any:
    """Numbers of the model's encoder, as the estimator takes them."""
    return Encoded(X) if isinstance(estimator, PredictsDistribution) else X


def stand_in_values(outputs: Array, floor: float | None) -> Array:
    """Mean and the five quantiles of each row, from what the six networks say."""
    mean, median, *logs = outputs
    a, b, c, d = (np.exp(log) for log in logs)
    made = np.column_stack([mean, median - a - c, median - a, median, median + b, median + b + d])
    return made if floor is None else np.maximum(made, floor)
