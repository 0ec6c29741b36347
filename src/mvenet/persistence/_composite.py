"""Whether the parts of an automatic search's model fit together: nothing may be out of bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._composite import Composite, Linear, MeanOfNoise, NetworkMean, Noise, Range
from mvenet._process import LogColumns, Process
from mvenet._stack import MULTIPLES, Shape
from mvenet._steps import Steps
from mvenet._trees import Forest
from mvenet.persistence._archive import require
from mvenet.persistence._networks import check_fields, check_networks


def check_composite(composite: Any, d: int) -> None:
    """Refuse a model of d columns that no search can have made."""
    check_fields(composite, Composite)
    columns = {False: d, True: d + _check_steps(composite.steps, d)}
    _check_range(composite.range, d)
    means, noises = composite.means, composite.noises
    tuples = isinstance(means, tuple) and isinstance(noises, tuple) and means and noises
    require(tuples, "has a model without means or noise")
    require(type(composite.log) is bool, "has a model on no known scale")
    _array(composite.shares, (len(means),), "shares", least=0.0)
    for noise in noises:
        check_fields(noise, Noise)
        flags = type(noise.encoded) is bool and type(noise.joint) is bool
        require(flags, "has noise of no known kind")
        _check_networks(noise, columns[noise.encoded] + (not noise.joint))
        check_fields(noise.shape, Shape)
        numbers = [_number(getattr(noise.shape, name)) for name in vars(noise.shape)]
        require(all(numbers) and noise.shape.low <= noise.shape.high, "has noise of no shape")
        _array(noise.weights, MULTIPLES.shape, "weights", least=0.0)
    total = sum(noise.weights.sum() for noise in noises)
    require(abs(total - 1) < 1e-6, "has weights that are not one in all")
    counts = set()
    for mean in means:
        counts |= _check_mean(mean, d, columns, noises)
    require(len(counts) <= 1, "has means of different numbers of networks")


def _check_mean(mean: Any, d: int, columns: dict[bool, int], noises: tuple[Noise, ...]) -> set[int]:
    """Refuse a mean that is not as it should be; return of how many networks it is."""
    if isinstance(mean, NetworkMean):
        check_fields(mean, NetworkMean)
        require(type(mean.encoded) is bool, "has a mean of no known kind")
        _check_networks(mean, columns[mean.encoded])
        return {len(mean.networks)}
    if isinstance(mean, MeanOfNoise):
        known = type(mean.number) is int and 0 <= mean.number < len(noises)
        require(known and noises[mean.number].joint, "has a mean of noise that is not there")
        return {len(noises[mean.number].networks)}
    if isinstance(mean, Linear):
        check_fields(mean, Linear)
        _array(mean.coefficients, (d,), "coefficients")
        require(_number(mean.intercept), "has a linear mean without intercept")
    elif isinstance(mean, Forest):
        _check_forest(mean, d)
    elif isinstance(mean, Process):
        _check_process(mean, d)
    return set()  # another estimator: its type is on the list of what may be built


def _check_networks(owner: NetworkMean | Noise, inputs: int) -> None:
    networks = owner.networks
    check_networks(networks)
    require(networks.x_mean.shape[1] == inputs, "has networks for another number of features")
    free = math.isinf(networks.architecture.input_bound)
    require(free or not owner.encoded, "has networks of steps with a bound on their inputs")


def _check_steps(steps: Any, d: int) -> int:
    check_fields(steps, Steps)
    _array(steps.center, (d,), "center")
    _array(steps.scale, (d,), "scale", above=0.0)
    shape = np.shape(steps.column)
    require(len(shape) == 1, "has steps that are no list")
    _array(steps.column, shape, "column", dtype="<i8", least=0)
    require(not len(steps.column) or steps.column.max() < d, "has steps of a column too many")
    require((np.diff(steps.column) >= 0).all(), "has steps that do not follow the columns")
    _array(steps.low, shape, "low")
    _array(steps.width, shape, "width", above=0.0)
    return len(steps.column)


def _check_range(seen: Any, d: int) -> None:
    check_fields(seen, Range)
    _array(seen.x_low, (d,), "x_low")
    _array(seen.x_high, (d,), "x_high")
    numbers = all(_number(getattr(seen, name)) for name in ("y_low", "y_high", "y_std"))
    ordered = numbers and (seen.x_low <= seen.x_high).all() and seen.y_low <= seen.y_high
    require(ordered and seen.y_std >= 0, "has a range that ends before it begins")


def _check_forest(forest: Any, d: int) -> None:
    """The engine follows a forest without looking: every step must lead forward in its tree."""
    check_fields(forest, Forest)
    shape = np.shape(forest.feature)
    require(len(shape) == 1 and shape[0] > 0, "has a forest without nodes")
    _array(forest.feature, shape, "feature", dtype="<i2", least=-1)
    _array(forest.threshold, shape, "threshold", dtype="<f4")
    _array(forest.right, shape, "right", dtype="<i4", least=0)
    _array(forest.starts, np.shape(forest.starts), "starts", dtype="<i8", least=0)
    require(forest.feature.max() < d, "has a forest that asks for a column too many")
    starts = forest.starts
    ordered = starts.ndim == 1 and len(starts) > 1 and starts[0] == 0 and starts[-1] == shape[0]
    require(ordered and (np.diff(starts) > 0).all(), "has a forest of no trees")
    sizes = np.diff(starts)
    place = np.arange(shape[0]) - np.repeat(starts[:-1], sizes)
    inner = forest.feature >= 0
    forward = (forest.right > place + 1) & (forest.right < np.repeat(sizes, sizes))
    require(forward[inner].all(), "has a tree with a branch that leads nowhere")
    require(_number(forest.center) and _number(forest.scale), "has a forest without a scale")


def _check_process(process: Any, d: int) -> None:
    check_fields(process, Process)
    count = np.shape(process.weights)
    require(len(count) == 1 and count[0] > 0, "has a Gaussian process without points")
    if process.logs is not None:
        d += _check_logs(process.logs, d)
    _array(process.center, (d,), "center")
    _array(process.scale, (d,), "scale", above=0.0)
    _array(process.points, (d, *count), "points")
    _array(process.weights, count, "weights")
    _array(process.polynomial, (3,), "polynomial", least=0.0)
    _array(process.slope, (d,), "slope")
    require(_number(process.intercept), "has a Gaussian process without intercept")


def _check_logs(logs: Any, d: int) -> int:
    check_fields(logs, LogColumns)
    shape = np.shape(logs.column)
    require(len(shape) == 1, "has logarithms that are no list")
    _array(logs.column, shape, "column", dtype="<i8", least=0)
    require(not len(logs.column) or logs.column.max() < d, "has a logarithm of a column too many")
    _array(logs.origin, shape, "origin")
    _array(logs.length, shape, "length")
    require(np.all(logs.length != 0), "has a logarithm of a column without length")
    _array(logs.rate, shape, "rate", above=0.0)
    return len(logs.column)


def _number(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _array(
    array: Any,
    shape: tuple[int, ...],
    name: str,
    *,
    dtype: str = "<f8",
    least: float = -math.inf,
    above: float = -math.inf,
) -> None:
    fits = type(array) is np.ndarray and array.dtype.str == dtype and array.shape == shape
    require(fits and array.flags.c_contiguous, f"has a {name} that is not a block of {shape}")
    values: NDArray[Any] = array
    usual = np.isfinite(values).all() and (values >= least).all() and (values > above).all()
    require(usual or not values.size, f"has a value in {name} that no search gives")
