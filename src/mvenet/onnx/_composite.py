"""The model of an automatic search as nodes: :mod:`mvenet._models.composite`, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np

from mvenet._models.composite import Array, Composite
from mvenet._models.forest import Forest
from mvenet._models.free_shape import Constant, GivenQuantiles, TreeValues
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
    column,
    each,
    network_means,
    network_variances,
    standardised,
)
from mvenet.onnx._shape import (
    Block,
    bounded,
    collected,
    log_moments,
    moments,
    moments_with_atoms,
    moments_with_ends,
    quantiles,
    sampler_nodes,
    shaped_blocks,
    squeezed,
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


def composite_nodes(graph: Graph, model: Composite, levels: Array) -> None:
    """From X of shape (n, d) to mean and std of shape (n,), and quantiles of each level."""
    x, seen = graph.double("X"), model.range
    clipped = graph("Max", graph("Min", x, seen.x_high), seen.x_low)
    columns = Columns(graph, model, x, clipped)
    added = column(graph, _added_variance(graph, model, x, clipped))
    noises = _noise_block(columns, added)
    blocks = [noises] if model.free is None else shaped_blocks(columns, model, noises, added)
    if len(levels):
        found = quantiles(graph, blocks, levels)
        found = graph("Exp", found) if model.log else found
        found = found if model.ends is None else squeezed(graph, model.ends, found)
        found = found if model.atoms is None else collected(graph, model.atoms, found)
        found = graph("Add", graph("Mul", found, model.unit), _nothing(graph, x))
        graph("Identity", found, output="quantiles")
    mean, std = (log_moments if model.log else moments)(graph, blocks)
    if model.ends is not None:
        mean, std = moments_with_ends(graph, model.ends, blocks, (mean, std))
    if model.atoms is not None:
        mean, std = moments_with_atoms(graph, model, blocks, (mean, std))
    std = graph("Max", graph("Mul", std, model.unit), SMALLEST_STD)
    for name, value in (("mean", graph("Mul", mean, model.unit)), ("std", std)):
        graph("Squeeze", value, np.array([1]), output=name)


def _noise_block(columns: Columns, added: str) -> Block:
    """The components of the noises, with the weights that they have where no shape is free."""
    graph, model = columns.graph, columns.model
    parts = [mean_nodes(mean, columns) for mean in model.means]
    blended = graph("Clip", _weighted(graph, parts, model.shares), *model.limits)
    means, variances = list[str](), list[str]()
    for number, noise in enumerate(model.noises):
        if noise.joint:
            mean, z = columns.of_joint(number)
            mean = graph("Clip", mean, *model.limits)
        else:
            read = graph("Concat", columns.read_by(noise), column(graph, blended), axis=1)
            mean, z = blended, standardised(graph, noise.networks, read)
        variance = column(graph, _noise_variance(graph, noise, z))
        multiples = MULTIPLES[noise.weights > 0]
        means += [column(graph, mean)] * len(multiples)
        variances.append(graph("Mul", variance, np.square(multiples)[None]))
    variance = graph("Add", graph("Concat", *variances, axis=1), added)
    mean = graph("Concat", *means, axis=1)
    return Block(mean, bounded(graph, model, variance), model.weights[None])


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
    graph = columns.graph
    standard = tree_ensemble(graph, forest, columns.clipped, each=False)
    return graph("Squeeze", standard, np.array([1]))


@sampler_nodes.register
def _(sampler: TreeValues, columns: Columns) -> str:
    return tree_ensemble(columns.graph, sampler.forest, columns.clipped, each=True)


@sampler_nodes.register
def _(sampler: Constant, columns: Columns) -> str:
    graph = columns.graph
    return graph("Add", _nothing(graph, columns.plain), sampler.values[None])


@sampler_nodes.register
def _(sampler: GivenQuantiles, columns: Columns) -> str:
    return mean_nodes(sampler.regressor, columns)  # which says why not


def tree_ensemble(graph: Graph, forest: Forest, x: str, *, each: bool) -> str:
    """What each tree says, (n, trees), or their average, (n, 1), in units of y."""
    import onnx

    sizes, leaf = np.diff(forest.starts), forest.feature < 0
    tree = np.repeat(np.arange(len(sizes)), sizes)
    node = np.arange(len(tree)) - np.repeat(forest.starts[:-1], sizes)
    predicted = graph(
        "TreeEnsembleRegressor",
        graph("Cast", x, to=onnx.TensorProto.FLOAT),
        domain="ai.onnx.ml",
        aggregate_function="SUM" if each else "AVERAGE",
        n_targets=len(sizes) if each else 1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=np.maximum(forest.feature, 0).tolist(),
        nodes_modes=np.where(leaf, b"LEAF", b"BRANCH_LEQ").tolist(),
        nodes_values=np.where(leaf, np.float32(0), forest.threshold).tolist(),
        nodes_truenodeids=np.where(leaf, 0, node + 1).tolist(),
        nodes_falsenodeids=np.where(leaf, 0, forest.right).tolist(),
        target_treeids=tree[leaf].tolist(),
        target_nodeids=node[leaf].tolist(),
        target_ids=(tree[leaf] if each else 0 * tree[leaf]).tolist(),
        target_weights=forest.threshold[leaf].tolist(),
    )
    value = graph("Add", graph("Mul", graph.double(predicted), forest.scale), forest.center)
    # A tree has an answer to NaN; all else in the graph says NaN.
    return graph("Add", value, _nothing(graph, x))


def _nothing(graph: Graph, x: str) -> str:
    """Zero for each row, (n, 1), but NaN where a column is."""
    bounded = graph.within(x, FAR)  # zero times infinity is no number either
    return graph("ReduceSum", graph("Mul", bounded, 0.0), np.array([1]), keepdims=1)


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
    added = graph("Add", unknown, graph("Mul", near, model.range.typical_std**2))
    if model.range.pace is None:
        return added
    strides = graph("Min", graph("Mul", graph("Min", distance, FAR), model.range.pace), FAR)
    later = graph("Min", _row_sum(graph, graph("Mul", strides, strides)), FAR)
    share = graph("Div", later, graph("Add", later, 1.0))
    return graph("Add", added, graph("Mul", share, model.range.drift_std**2))


def _row_sum(graph: Graph, value: str) -> str:
    """Sum of each row: from (n, d) to (n,)."""
    return graph("ReduceSum", value, np.array([1]), keepdims=0)


def _weighted(graph: Graph, values: Sequence[str], weights: Sequence[float] | Array) -> str:
    """Weighted sum of values of one shape."""
    return graph("Sum", *(graph("Mul", v, float(w)) for v, w in zip(values, weights, strict=True)))
