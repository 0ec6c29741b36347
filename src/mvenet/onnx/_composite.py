"""The model of an automatic search as nodes: :mod:`mvenet._composite`, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mvenet._composite import OURS, Array, Composite, Linear, MeanOfNoise, NetworkMean, Noise
from mvenet._process import LogColumns, Process
from mvenet._stack import MULTIPLES
from mvenet._steps import BOUND, Steps
from mvenet._trees import Forest
from mvenet.fleet import Networks
from mvenet.onnx._graph import (
    SMALLEST_STD,
    Graph,
    bent,
    network_means,
    network_variances,
    standardised,
)

FAR = 1e100  # whose square is a number, too


def check_composite(composite: Composite) -> None:
    """Refuse a blend of what has no nodes."""
    for mean in composite.means:
        if not isinstance(mean, OURS):
            raise TypeError(
                f"means gave the model a {type(mean).__name__}, which has no place in the file: "
                'fit with means="networks", or "auto", to export it.'
            )


def composite_moments(graph: Graph, composite: Composite) -> None:
    """From X of shape (n, d) to mean and std of shape (n,)."""
    x, seen = graph.double("X"), composite.range
    within = graph("Max", graph("Min", x, seen.x_high), seen.x_low)
    inputs = _inputs(graph, composite, x)
    standard = {
        number: standardised(graph, noise.networks, inputs[noise.encoded])
        for number, noise in enumerate(composite.noises)
        if noise.joint
    }
    said = {
        number: _average_mean(graph, composite.noises[number].networks, z)
        for number, z in standard.items()
    }
    blended = _blend(graph, composite, inputs, within, said)
    ignorance = _ignorance(graph, composite, x, within)
    used = [(number, noise) for number, noise in enumerate(composite.noises) if noise.weights.any()]
    means, variances = [], []
    for number, noise in used:
        if noise.joint:
            mean, z = graph("Clip", said[number], *composite.limits), standard[number]
        else:
            column = graph("Unsqueeze", blended, np.array([1]))
            columns = graph("Concat", inputs[noise.encoded], column, axis=1)
            mean, z = blended, standardised(graph, noise.networks, columns)
        means.append(mean)
        variances.append(_noise_variance(graph, noise, z))
    noises = [noise for _, noise in used]
    mixture = _log_mixture if composite.log else _mixture
    mixture(graph, noises, means, variances, ignorance)


def _mixture(
    graph: Graph,
    noises: Sequence[Noise],
    means: Sequence[str],
    variances: Sequence[str],
    ignorance: str,
) -> None:
    """Mean and std of the mixture, from what each noise brings and a variance that all have."""
    shares = [noise.weights.sum() for noise in noises]
    heavy = [noise.weights @ MULTIPLES**2 for noise in noises]
    centre = _weighted(graph, means, shares)
    distances = [graph("Sub", mean, centre) for mean in means]
    squares = [graph("Mul", distance, distance) for distance in distances]
    total = _weighted(graph, [*variances, *squares, ignorance], [*heavy, *shares, 1.0])
    graph("Identity", centre, output="mean")
    graph("Max", graph("Sqrt", total), SMALLEST_STD, output="std")


def _log_mixture(
    graph: Graph,
    noises: Sequence[Noise],
    means: Sequence[str],
    variances: Sequence[str],
    ignorance: str,
) -> None:
    """The same where mean and variance are of log y: moments of y, of a mixture of log-normals.

    As in :func:`mvenet._stack.moments`, counted from a common median.
    """
    centre = _weighted(graph, means, [noise.weights.sum() for noise in noises])
    members, weights = [], []
    for noise, mean, variance in zip(noises, means, variances, strict=True):
        for number in np.flatnonzero(noise.weights):
            scaled = graph("Mul", variance, float(MULTIPLES[number] ** 2))
            var = graph("Add", scaled, ignorance)
            half = graph("Mul", var, 0.5)
            members.append((graph("Exp", graph("Add", graph("Sub", mean, centre), half)), var))
            weights.append(float(noise.weights[number]))
    average = _weighted(graph, [own for own, _ in members], weights)
    squares = []
    for own, var in members:
        within = graph("Mul", graph("Mul", own, own), _expm1(graph, var))
        distance = graph("Sub", own, average)
        squares.append(graph("Add", within, graph("Mul", distance, distance)))
    scale = graph("Exp", centre)
    graph("Mul", scale, average, output="mean")
    std = graph("Mul", scale, graph("Sqrt", _weighted(graph, squares, weights)))
    graph("Max", std, SMALLEST_STD, output="std")


def _expm1(graph: Graph, value: str) -> str:
    """``exp(v) - 1 = 2t / (1 - t)`` with ``t = tanh(v/2)``, exact for small v."""
    t = graph("Tanh", graph("Mul", value, 0.5))
    return graph("Div", graph("Mul", t, 2.0), graph("Sub", 1.0, t))


def _inputs(graph: Graph, composite: Composite, x: str) -> dict[bool, str]:
    """The columns as they are and, if any network reads them, encoded."""
    readers = (part for part in (*composite.means, *composite.noises) if hasattr(part, "encoded"))
    if not any(part.encoded for part in readers):
        return {False: x}
    return {False: x, True: _encoded(graph, composite.steps, x)}


def _encoded(graph: Graph, steps: Steps, x: str) -> str:
    """Bounded columns, then the steps, of shape (n, d + s)."""
    z = graph.within(graph("Div", graph("Sub", x, steps.center), steps.scale), FAR)
    bounded = bent(graph, z, BOUND)
    if not len(steps.column):
        return bounded
    above = graph("Sub", graph("Gather", x, steps.column, axis=1), steps.low)
    part = graph("Clip", graph("Div", above, steps.width), 0.0, 1.0)
    return graph("Concat", bounded, part, axis=1)


def _blend(
    graph: Graph, composite: Composite, inputs: dict[bool, str], within: str, said: dict[int, str]
) -> str:
    """The blended mean, of shape (n,)."""
    parts = []
    for mean in composite.means:
        match mean:
            case MeanOfNoise():
                parts.append(said[mean.number])
            case NetworkMean():
                z = standardised(graph, mean.networks, inputs[mean.encoded])
                parts.append(_average_mean(graph, mean.networks, z))
            case Linear():
                product = _row_sum(graph, graph("Mul", within, mean.coefficients))
                parts.append(graph("Add", product, mean.intercept))
            case Forest():
                parts.append(_forest(graph, mean, within))
            case Process():
                parts.append(_process(graph, mean, within))
    return graph("Clip", _weighted(graph, parts, composite.shares), *composite.limits)


def _average_mean(graph: Graph, networks: Networks, z: str) -> str:
    """Mean over the networks of their means, in units of y."""
    scaled = graph("Mul", network_means(graph, networks, z), networks.y_scale[:, None])
    return graph.average(graph("Add", scaled, networks.y_mean[:, None]))


def _noise_variance(graph: Graph, noise: Noise, z: str) -> str:
    """Variance by the networks together, after their shape."""
    log_variance = graph("Log", network_variances(graph, noise.networks, z))
    log_scale = np.log(noise.networks.y_scale)[:, None]
    log_std = graph.average(graph("Add", graph("Mul", log_variance, 0.5), log_scale))
    shape = noise.shape
    line = graph("Add", graph("Mul", log_std, shape.exponent), shape.offset)
    return graph("Exp", graph("Mul", graph("Clip", line, shape.low, shape.high), 2.0))


def _forest(graph: Graph, forest: Forest, within: str) -> str:
    """Mean over the trees, in units of y; trees compare and add up in float32."""
    import onnx

    sizes, leaf = np.diff(forest.starts), forest.feature < 0
    tree = np.repeat(np.arange(len(sizes)), sizes)
    node = np.arange(len(tree)) - np.repeat(forest.starts[:-1], sizes)
    said = graph(
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
    standard = graph("Squeeze", graph.double(said), np.array([1]))
    mean = graph("Add", graph("Mul", standard, forest.scale), forest.center)
    # A tree has an answer to NaN; all else in the graph says NaN.
    return graph("Add", mean, _row_sum(graph, graph("Mul", within, 0.0)))


def _process(graph: Graph, process: Process, within: str) -> str:
    """A linear function, and a sum over the points of what falls with the distance from them."""
    columns = within if process.logs is None else _with_logs(graph, process.logs, within)
    z = graph("Div", graph("Sub", columns, process.center), process.scale)
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


def _ignorance(graph: Graph, composite: Composite, x: str, within: str) -> str:
    """Variance that is added outside the range of the training rows."""
    length = composite.range.x_high - composite.range.x_low
    distance = graph("Abs", graph("Sub", x, within))
    beyond = graph("Min", graph("Div", distance, np.where(length > 0, length, 1.0)), FAR)
    far = graph("Min", _row_sum(graph, graph("Mul", beyond, beyond)), FAR)
    return graph("Mul", graph("Div", far, graph("Add", far, 1.0)), composite.unknown_std**2)


def _row_sum(graph: Graph, value: str) -> str:
    """Sum of each row: from (n, d) to (n,)."""
    return graph("ReduceSum", value, np.array([1]), keepdims=0)


def _weighted(graph: Graph, values: Sequence[str], weights: Sequence[float] | Array) -> str:
    """Weighted sum of values of one shape."""
    return graph("Sum", *(graph("Mul", v, float(w)) for v, w in zip(values, weights, strict=True)))
