"""A graph under construction, and the networks in it.

The K networks are a leading axis of all arrays, so that the graph has as many nodes for one network
as for forty. It computes in double precision where the engine computes in float32: so it differs
from ``predict`` by the rounding of ``predict`` alone, and gives the same numbers with any runtime
and batch size. The activations are written out because onnxruntime has no ``Elu`` for doubles, and
because some of its versions fuse ``Relu`` with ``Clip``, or ``z * Sigmoid(z)``, into what they have
no code for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._models.networks import Networks
from mvenet._training.fleet import VARIANCE_FLOOR

Layer = tuple[NDArray[Any], NDArray[Any]]

FARTHEST, LARGEST_ACTIVATION = 1e6, 1e15  # the engine's
SMALLEST_STD = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Graph:
    """Nodes and constants in the order of their making; node by node, from X to the outputs."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    prefix: str = ""  # of the names of nodes

    def __call__(
        self, operator: str, *inputs: str | ArrayLike, output: str = "", **attributes: Any
    ) -> str:
        """Add a node and return the name of its output; an input is a name or a constant."""
        import onnx

        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        output = output or f"{self.prefix}{operator}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def repeated(
        self, times: int, step: Callable[[Graph, str, str], tuple[str, str]], *start: str
    ) -> tuple[str, str]:
        """Two values in double precision after so many steps, each of which makes two of two."""
        from onnx import TensorProto, helper

        inside = Graph([], self.constants, "step_")  # what stands outside can be used within
        ends = step(inside, "low", "high")
        going = inside("Identity", "going")

        def value(name: str, kind: int = TensorProto.DOUBLE) -> Any:
            scalar = None if kind == TensorProto.DOUBLE else list[int]()
            return helper.make_tensor_value_info(name, kind, scalar)

        flags = value("count", TensorProto.INT64), value("going", TensorProto.BOOL)
        given = [*flags, value("low"), value("high")]
        made = [value(going, TensorProto.BOOL), *map(value, ends)]
        body = helper.make_graph(inside.nodes, "step", given, made)
        names = [self._constant(np.int64(times)), self._constant(np.bool_(True)), *start]
        low, high = (f"{end}_{len(self.nodes)}" for end in ("low", "high"))
        self.nodes.append(helper.make_node("Loop", names, [low, high], body=body))
        return low, high

    def double(self, value: str | ArrayLike) -> str:
        """The value in double precision; constants are kept in the file as they are."""
        import onnx

        return self("Cast", value, to=onnx.TensorProto.DOUBLE)

    def within(self, value: str, limit: float) -> str:
        """The value, bounded on both sides; NaN stays NaN."""
        return self("Clip", value, -limit, limit)

    def average(self, value: str) -> str:
        """Mean over the networks: from (K, n) to (n,)."""
        return self("ReduceMean", value, axes=[0], keepdims=0)

    def _constant(self, value: ArrayLike) -> str:
        import onnx

        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name


def column(graph: Graph, value: str) -> str:
    """From (n,) to (n, 1)."""
    return graph("Unsqueeze", value, np.array([1]))


def each(values: NDArray[Any]) -> NDArray[Any]:
    """What each network has, (K, ...); if that is the same, one for all, to be broadcast.

    It is less to store, and to compute with.
    """
    return values[:1] if (values == values[:1]).all() else values


def standardised(graph: Graph, networks: Networks, x: str) -> str:
    """Inputs as each network sees them: from (n, d) to (K, n, d)."""
    centred = graph("Sub", x, each(networks.x_mean[:, None]))
    z = graph.within(graph("Div", centred, each(networks.x_scale[:, None])), FARTHEST)
    bound = networks.architecture.input_bound
    if bound == np.inf:
        return z
    return bent(graph, z, bound)


def bent(graph: Graph, z: str, bound: float) -> str:
    """The value bent towards a bound: z / sqrt(1 + (z / bound)²)."""
    part = graph("Div", z, bound)
    return graph("Div", z, graph("Sqrt", graph("Add", graph("Mul", part, part), 1.0)))


def network_means(graph: Graph, networks: Networks, z: str) -> str:
    """Mean by each network of its own inputs z, standardised, of shape (K, n)."""
    layers, _ = _layers(networks)
    return graph.within(_perceptron(graph, z, layers, networks), FARTHEST)


def network_variances(graph: Graph, networks: Networks, z: str) -> str:
    """Variance by each network, in squares of its own unit of y, of shape (K, n)."""
    _, layers = _layers(networks)
    exponential = graph("Exp", _perceptron(graph, z, layers, networks))
    # An infinite exponential is a variance like any other that is too large.
    return graph("Min", graph("Add", exponential, VARIANCE_FLOOR), FARTHEST**2)


def _layers(networks: Networks) -> Iterator[list[Layer]]:
    """Weights (K, in, out) and biases (K, 1, out) of the mean's layers, then the variance's."""
    (k, d), parameters, start = networks.x_mean.shape, networks.parameters, 0
    for sizes in networks.architecture.sizes(d):
        layers = []
        for n_in, n_out in pairwise(sizes):
            middle = start + n_in * n_out
            end = middle + n_out
            weights = parameters[:, start:middle].reshape(k, n_out, n_in).swapaxes(1, 2)
            if n_in == 0:  # a constant: linear, with weights zero
                weights = np.zeros((1, d, n_out), parameters.dtype)
            layers.append((weights, parameters[:, None, middle:end]))
            start = end
        yield layers


def _perceptron(graph: Graph, z: str, layers: list[Layer], networks: Networks) -> str:
    """The outputs (K, n) of the K networks."""
    activated = ACTIVATIONS[networks.architecture.activation]
    value = z
    for number, (weights, biases) in enumerate(layers):
        if number:
            value = graph.within(activated(graph, value), LARGEST_ACTIVATION)
        product = graph("MatMul", value, graph.double(each(weights)))
        value = graph("Add", product, graph.double(each(biases)))
    return graph("Squeeze", value, np.array([-1]))


# One for each of architecture.ACTIVATIONS, which a test compares; what is not here is an error.
ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "elu": lambda graph, z: graph(
        "Add", graph("Max", z, 0.0), graph("Sub", graph("Exp", graph("Min", z, 0.0)), 1.0)
    ),
    "relu": lambda graph, z: graph("Max", z, 0.0),
    "tanh": lambda graph, z: graph("Tanh", z),
    "silu": lambda graph, z: graph("Div", z, graph("Add", graph("Exp", graph("Neg", z)), 1.0)),
}
