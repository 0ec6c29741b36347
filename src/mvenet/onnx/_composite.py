"""The model of an automatic search as nodes: :mod:`mvenet._models.composite`, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np

from mvenet._models.composite import Array, Composite
from mvenet._models.forest import Forest
from mvenet._models.gaussian_process import LogColumns, Process
from mvenet._models.means import GivenRegressor, Linear, MeanOfNoise, NetworkMean
from mvenet._models.mixture import MULTIPLES
from mvenet._models.networks import Networks
from mvenet._models.noise import Noise
from mvenet._models.piecewise import BOUND, Piecewise
from mvenet._models.seen import SOON
from mvenet.onnx._graph import (
    SMALLEST_STD,
    Graph,
    bent,
    each,
    network_means,
    network_variances,
    standardised,
)

FAR = 1e100  # whose square is a number, too


@dataclass
class Columns:
    """The columns of a table as nodes, as the parts of a composite read them."""

    graph: Graph
    model: Composite
    plain: str
    clipped: str
    _encoded: str | None = None
    _joint: dict[int, tuple[str, str]] = field(default_factory=dict)

    def read_by(self, part: NetworkMean | Noise) -> str:
        """Plain or encoded columns, whichever the part reads; encoded ones are made once."""
        if not part.encoded:
            return self.plain
        if self._encoded is None:
            self._encoded = encoded_columns(self.graph, self.model.piecewise, self.plain)
        return self._encoded

    def of_joint(self, number: int) -> tuple[str, str]:
        """Mean by the networks of a noise that has one of its own, and their standardised input."""
        if number not in self._joint:
            noise = self.model.noises[number]
            z = standardised(self.graph, noise.networks, self.read_by(noise))
            self._joint[number] = _average_mean(self.graph, noise.networks, z), z
        return self._joint[number]


@singledispatch
def mean_nodes(mean: object, columns: Columns) -> str:
    """Nodes of a part of the blended mean, of shape (n,), in units of y."""
    raise TypeError(
        f"The model holds a {type(mean).__name__}, which has no place in the file: leave it out of "
        "candidates to export the model."
    )


@mean_nodes.register
def _(mean: GivenRegressor, columns: Columns) -> str:
    raise TypeError(
        f"candidates gave the model a {type(mean.regressor).__name__}, which has no place in the "
        'file: fit with candidates="networks", or "auto", to export it.'
    )


@mean_nodes.register
def _(mean: MeanOfNoise, columns: Columns) -> str:
    return columns.of_joint(mean.number)[0]


@mean_nodes.register
def _(mean: NetworkMean, columns: Columns) -> str:
    z = standardised(columns.graph, mean.networks, columns.read_by(mean))
    return _average_mean(columns.graph, mean.networks, z)


@mean_nodes.register
def _(mean: Linear, columns: Columns) -> str:
    graph = columns.graph
    product = _row_sum(graph, graph("Mul", columns.clipped, mean.coefficients))
    return graph("Add", product, mean.intercept)


def composite_moments(graph: Graph, model: Composite) -> None:
    """From X of shape (n, d) to mean and std of shape (n,)."""
    x, seen = graph.double("X"), model.range
    clipped = graph("Max", graph("Min", x, seen.x_high), seen.x_low)
    columns = Columns(graph, model, x, clipped)
    parts = [mean_nodes(mean, columns) for mean in model.means]
    blended = graph("Clip", _weighted(graph, parts, model.shares), *model.limits)
    added = _added_variance(graph, model, x, clipped)
    means, variances = [], []
    for number, noise in enumerate(model.noises):
        if noise.joint:
            mean, z = columns.of_joint(number)
            mean = graph("Clip", mean, *model.limits)
        else:
            column = graph("Unsqueeze", blended, np.array([1]))
            read = graph("Concat", columns.read_by(noise), column, axis=1)
            mean, z = blended, standardised(graph, noise.networks, read)
        variance = _noise_variance(graph, noise, z)
        for multiple in MULTIPLES[noise.weights > 0]:
            means.append(mean)
            own = graph("Add", graph("Mul", variance, float(multiple**2)), added)
            wide = np.isinf(model.widest)
            variances.append(own if wide else graph("Min", own, float(model.widest**2)))
    (_log_mixture if model.log else _mixture)(graph, model, means, variances)


def _mixture(
    graph: Graph, model: Composite, means: Sequence[str], variances: Sequence[str]
) -> None:
    """Mean and std of the mixture, from those of its components."""
    centre = _weighted(graph, means, model.weights)
    squares = []
    for mean, variance in zip(means, variances, strict=True):
        distance = graph("Sub", mean, centre)
        squares.append(graph("Add", variance, graph("Mul", distance, distance)))
    total = graph("Sqrt", _weighted(graph, squares, model.weights))
    graph("Mul", centre, model.unit, output="mean")
    graph("Max", graph("Mul", total, model.unit), SMALLEST_STD, output="std")


def _log_mixture(
    graph: Graph, model: Composite, means: Sequence[str], variances: Sequence[str]
) -> None:
    """The same where mean and variance are of log y: moments of y, of a mixture of log-normals.

    As in :func:`mvenet._models.mixture.moments`, counted from a common median.
    """
    centre = _weighted(graph, means, model.weights)
    members = [
        graph("Exp", graph("Add", graph("Sub", mean, centre), graph("Mul", variance, 0.5)))
        for mean, variance in zip(means, variances, strict=True)
    ]
    average = _weighted(graph, members, model.weights)
    squares = []
    for own, variance in zip(members, variances, strict=True):
        within = graph("Mul", graph("Mul", own, own), _expm1(graph, variance))
        distance = graph("Sub", own, average)
        squares.append(graph("Add", within, graph("Mul", distance, distance)))
    scale = graph("Mul", graph("Exp", centre), model.unit)
    graph("Mul", scale, average, output="mean")
    std = graph("Mul", scale, graph("Sqrt", _weighted(graph, squares, model.weights)))
    graph("Max", std, SMALLEST_STD, output="std")


def _expm1(graph: Graph, value: str) -> str:
    """``exp(v) - 1 = 2t / (1 - t)`` with ``t = tanh(v/2)``, exact for small v."""
    t = graph("Tanh", graph("Mul", value, 0.5))
    return graph("Div", graph("Mul", t, 2.0), graph("Sub", 1.0, t))


def encoded_columns(graph: Graph, piecewise: Piecewise, x: str) -> str:
    """Bounded columns, then the pieces, of shape (n, d + s)."""
    z = graph.within(graph("Div", graph("Sub", x, piecewise.center), piecewise.scale), FAR)
    bounded = bent(graph, z, BOUND)
    if not len(piecewise.column):
        return bounded
    above = graph("Sub", graph("Gather", x, piecewise.column, axis=1), piecewise.low)
    part = graph("Clip", graph("Div", above, piecewise.width), 0.0, 1.0)
    return graph("Concat", bounded, part, axis=1)


def _average_mean(graph: Graph, networks: Networks, z: str) -> str:
    """Mean over the networks of their means, in units of y."""
    scaled = graph("Mul", network_means(graph, networks, z), each(networks.y_scale[:, None]))
    return graph.average(graph("Add", scaled, each(networks.y_mean[:, None])))


def _noise_variance(graph: Graph, noise: Noise, z: str) -> str:
    """Variance by the networks together, after their shape."""
    log_variance = graph("Log", network_variances(graph, noise.networks, z))
    log_scale = each(np.log(noise.networks.y_scale)[:, None])
    log_std = graph.average(graph("Add", graph("Mul", log_variance, 0.5), log_scale))
    shape = noise.shape
    line = graph("Add", graph("Mul", log_std, shape.exponent), shape.offset)
    return graph("Exp", graph("Mul", graph("Clip", line, shape.low, shape.high), 2.0))


@mean_nodes.register
def _(forest: Forest, columns: Columns) -> str:
    """Mean over the trees; they compare and add up in float32."""
    import onnx

    graph, within = columns.graph, columns.clipped
    sizes, leaf = np.diff(forest.starts), forest.feature < 0
    tree = np.repeat(np.arange(len(sizes)), sizes)
    node = np.arange(len(tree)) - np.repeat(forest.starts[:-1], sizes)
    predicted = graph(
        "TreeEnsembleRegressor",
        graph("Cast", within, to=onnx.TensorProto.FLOAT),
        domain="ai.onnx.ml",
        aggregate_function="AVERAGE",
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=np.maximum(forest.feature, 0).tolist(),
        nodes_modes=np.where(leaf, b"LEAF", b"BRANCH_LEQ").tolist(),
        nodes_values=np.where(leaf, np.float32(0), forest.threshold).tolist(),
        nodes_truenodeids=np.where(leaf, 0, node + 1).tolist(),
        nodes_falsenodeids=np.where(leaf, 0, forest.right).tolist(),
        target_treeids=tree[leaf].tolist(),
        target_nodeids=node[leaf].tolist(),
        target_ids=[0] * int(leaf.sum()),
        target_weights=forest.threshold[leaf].tolist(),
    )
    standard = graph("Squeeze", graph.double(predicted), np.array([1]))
    mean = graph("Add", graph("Mul", standard, forest.scale), forest.center)
    # A tree has an answer to NaN; all else in the graph says NaN.
    return graph("Add", mean, _row_sum(graph, graph("Mul", within, 0.0)))


@mean_nodes.register
def _(process: Process, columns: Columns) -> str:
    """A linear function, and a sum over the points of what falls with the distance from them."""
    graph, within = columns.graph, columns.clipped
    given = within if process.logs is None else _with_logs(graph, process.logs, within)
    z = graph("Div", graph("Sub", given, process.center), process.scale)
    own = graph("ReduceSum", graph("Mul", z, z), np.array([1]), keepdims=1)
    theirs = graph(
        "Sub", np.square(process.points).sum(axis=0), graph("MatMul", z, 2 * process.points)
    )
    r = graph("Sqrt", graph("Max", graph("Add", own, theirs), 0.0))
    a, b, c = process.polynomial
    factor = graph(
        "Add", graph("Mul", r, graph("Add", graph("Mul", r, float(c)), float(b))), float(a)
    )
    kernel = graph("Mul", factor, graph("Exp", graph("Neg", r)))
    line = graph("Add", _row_sum(graph, graph("Mul", z, process.slope)), process.intercept)
    total = graph("MatMul", kernel, process.weights[:, None])  # two dimensions: there may be no row
    return graph("Add", line, graph("Squeeze", total, np.array([1])))


def _with_logs(graph: Graph, logs: LogColumns, within: str) -> str:
    """The columns, and some of them again on a logarithmic scale."""
    some = graph("Gather", within, logs.column, axis=1)
    u = graph("Div", graph("Sub", some, logs.origin), logs.length)
    inside = graph("Max", graph("Min", u, 1.0), 0.0)
    again = graph("Log", graph("Add", graph("Mul", inside, logs.rate), 1.0))
    return graph("Concat", within, again, axis=1)


def _added_variance(graph: Graph, model: Composite, x: str, clipped: str) -> str:
    """Variance that every component has besides, outside the range of the training rows."""
    length = model.range.x_high - model.range.x_low
    distance = graph("Abs", graph("Sub", x, clipped))
    beyond = graph("Min", graph("Div", distance, np.where(length > 0, length, 1.0)), FAR)
    far = graph("Min", _row_sum(graph, graph("Mul", beyond, beyond)), FAR)
    unknown = graph("Mul", graph("Div", far, graph("Add", far, 1.0)), model.unknown_std**2)
    near = graph("Min", graph("Div", far, SOON**2), 1.0)
    return graph("Add", unknown, graph("Mul", near, model.range.typical_std**2))


def _row_sum(graph: Graph, value: str) -> str:
    """Sum of each row: from (n, d) to (n,)."""
    return graph("ReduceSum", value, np.array([1]), keepdims=0)


def _weighted(graph: Graph, values: Sequence[str], weights: Sequence[float] | Array) -> str:
    """Weighted sum of values of one shape."""
    return graph("Sum", *(graph("Mul", v, float(w)) for v, w in zip(values, weights, strict=True)))
