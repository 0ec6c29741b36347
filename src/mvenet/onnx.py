"""A fitted model as one ONNX file, for programs that have neither mvenet nor Python.

The graph is the engine's ``predict`` (engine/fleet.cpp) and the moments of the mixture
(distributions.py), node by node: standardise, two perceptrons, back to units of y. The K networks
are a leading axis of all its arrays, so that it has as many nodes for one network as for forty.

It computes in double precision where the engine computes in float32: so it differs from ``predict``
by the rounding of ``predict`` alone, and gives the same numbers with any runtime and batch size.
The activations are written out because onnxruntime has no ``Elu`` for doubles, and because some of
its versions fuse ``Relu`` with ``Clip``, or ``z * Sigmoid(z)``, into what they have no code for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mvenet import __version__
from mvenet._atomic import replacing
from mvenet._estimator import DistributionRegressor
from mvenet.fleet import VARIANCE_FLOOR, Networks

__all__ = ["export"]

Layer = tuple[NDArray[Any], NDArray[Any]]

OPSET, IR_VERSION = 17, 8  # of 2022, so that old runtimes can read the file
FARTHEST, LARGEST_ACTIVATION = 1e6, 1e15  # the engine's
SMALLEST_STD = float(np.finfo(np.float64).tiny)
ABOUT = (
    "Mean and standard deviation of y for each row of X, both in units of y; std is that of a new "
    "observation, noise included. X has the columns that the model was trained on, in that order "
    "and in their own units: they are standardised inside."
)


def export(model: DistributionRegressor, path: str | os.PathLike[str]) -> None:
    """Write a fitted model as an ONNX file (opset 17).

    Its input is ``X``, float32 of shape (n, n_features), for any n and in the units of the training
    table. Its outputs are ``mean`` and ``std``, float64 of shape (n,), in units of y: what
    ``model.predict(X, return_std=True)`` returns, for ensembles and with ``scale_`` too. They are
    float64 because a mean that is large beside its std would lose its digits in float32.

    Parameters
    ----------
    model : MVERegressor or MVERegressorCV
        Fitted. Of a pipeline, export the last step.
    path : str or path
        The file to write, whole or not at all; an older one is replaced.

    Raises
    ------
    TypeError
        If the model is something else, such as a pipeline.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    OSError
        If the file cannot be written.
    ImportError
        If the package onnx is not installed.

    Notes
    -----
    ``predict`` computes in float32, the file in float64 with the same weights. The means differ by
    about 1e-6 of the standard deviation of y, the stds by about 1e-6 of themselves (up to 1e-5 in
    ensembles where std is less than a hundredth of the standard deviation of y).

    float32 holds seven digits: from a column such as a time in seconds since 1970, subtract an
    offset before training. ``predict`` refuses NaN and infinity; the file answers NaN with NaN, and
    infinity with what both say of all rows more than a million standard deviations away.

    The same model gives the same bytes. The names of the columns, if the model has them, are the
    metadata ``feature_names``, as JSON.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import onnxruntime
    >>> import mvenet.onnx
    >>> X = np.linspace(0, 1, 100, dtype=np.float32)[:, None]
    >>> model = mvenet.MVERegressor(strategy="warmup", random_state=0).fit(X, 5 * X[:, 0])
    >>> with TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.onnx"
    ...     mvenet.onnx.export(model, path)
    ...     session = onnxruntime.InferenceSession(path)
    >>> mean, std = session.run(["mean", "std"], {"X": X})
    >>> bool(np.allclose(mean, model.predict(X), rtol=1e-5, atol=1e-5))
    True
    """
    _check_onnx()
    _check(model)
    content = _file(_graph(model), model)
    with replacing(path) as fresh:
        fresh.write_bytes(content)


def _check_onnx() -> None:
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        message = f'The export needs the package onnx ({error}): pip install "mvenet[onnx]".'
        raise ImportError(message, name=error.name) from error


def _check(model: object) -> None:
    if isinstance(model, Pipeline):
        raise TypeError(
            "A Pipeline is not exported whole: export its last step, model[-1], and give the file "
            "the columns that model[:-1].transform returns, as float32."
        )
    if not isinstance(model, DistributionRegressor):
        raise TypeError(
            f"model must be a fitted MVERegressor or MVERegressorCV, got {type(model).__name__}: "
            "pass one of these, such as the best_estimator_ of a GridSearchCV."
        )
    check_is_fitted(model)
    if hasattr(model, "composite_"):
        raise TypeError(
            "A model found by strategy='auto' is not exported: fit one of the paper's, such as "
            "strategy='warmup'."
        )


@dataclass(frozen=True)
class _Graph:
    """A graph under construction: nodes and constants in the order of their making."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def __call__(
        self, operator: str, *inputs: str | ArrayLike, output: str = "", **attributes: Any
    ) -> str:
        """Add a node and return the name of its output; an input is a name or a constant."""
        import onnx

        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, names, [output], **attributes))
        return output

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

        array = np.asarray(value)
        if array.ndim > 1 and (array == array[:1]).all():
            array = array[:1]  # one for all networks: less to store, and to compute with
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name


def _graph(model: DistributionRegressor) -> _Graph:
    """From X of shape (n, d) to mean and std of shape (n,)."""
    graph, networks = _Graph(), model.networks_
    centred = graph("Sub", graph.double("X"), networks.x_mean[:, None])
    x = graph.within(graph("Div", centred, networks.x_scale[:, None]), FARTHEST)
    x = _bounded(graph, x, networks.architecture.input_bound)
    mean, log_variance = (
        _perceptron(graph, x, layers, networks.architecture.activation)
        for layers in _layers(networks)
    )
    variance = graph("Add", graph("Exp", log_variance), VARIANCE_FLOOR)
    # An infinite exponential is a variance like any other that is too large.
    _moments(graph, graph.within(mean, FARTHEST), graph("Min", variance, FARTHEST**2), model)
    return graph


def _bounded(graph: _Graph, x: str, bound: float) -> str:
    """Inputs as the networks see them: x / sqrt(1 + (x / bound)²)."""
    if bound == np.inf:
        return x
    part = graph("Div", x, bound)
    return graph("Div", x, graph("Sqrt", graph("Add", graph("Mul", part, part), 1.0)))


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


def _perceptron(graph: _Graph, x: str, layers: list[Layer], activation: str) -> str:
    """The outputs (K, n) of the K networks."""
    value = x
    for number, (weights, biases) in enumerate(layers):
        if number:
            value = graph.within(ACTIVATIONS[activation](graph, value), LARGEST_ACTIVATION)
        product = graph("MatMul", value, graph.double(weights))
        value = graph("Add", product, graph.double(biases))
    return graph("Squeeze", value, np.array([-1]))


# One for each of fleet.ACTIVATIONS, which a test compares; what is not here is an error.
ACTIVATIONS: dict[str, Callable[[_Graph, str], str]] = {
    "elu": lambda graph, z: graph(
        "Add", graph("Max", z, 0.0), graph("Sub", graph("Exp", graph("Min", z, 0.0)), 1.0)
    ),
    "relu": lambda graph, z: graph("Max", z, 0.0),
    "tanh": lambda graph, z: graph("Tanh", z),
    "silu": lambda graph, z: graph("Div", z, graph("Add", graph("Exp", graph("Neg", z)), 1.0)),
}


def _moments(graph: _Graph, mean: str, variance: str, model: DistributionRegressor) -> None:
    """Mean and std of the mixture, from those of its members, each in its own units.

    Until the end they are in units of the largest scale, counted from the first member's mean:
    squares then neither overflow nor vanish, whatever the scale of y.
    """
    y_mean, y_scale = model.networks_.y_mean, model.networks_.y_scale
    origin, unit = y_mean[0], y_scale.max()
    scale = (y_scale / unit)[:, None]
    means = graph("Add", graph("Mul", mean, scale), ((y_mean - origin) / unit)[:, None])
    centre = graph.average(means)
    distance = graph("Sub", means, centre)
    aleatoric = graph("Mul", variance, (model.scale_ * scale) ** 2)
    total = graph.average(graph("Add", aleatoric, graph("Mul", distance, distance)))
    graph("Add", graph("Mul", centre, unit), origin, output="mean")
    graph("Max", graph("Mul", graph("Sqrt", total), unit), SMALLEST_STD, output="std")


def _file(graph: _Graph, model: DistributionRegressor) -> bytes:
    from onnx import TensorProto, helper

    columns = model.networks_.x_mean.shape[1]
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", columns])]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n"]) for name in ("mean", "std")
    ]
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "mvenet", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="mvenet",
        producer_version=__version__,
        doc_string=ABOUT,
    )
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        texts = json.dumps([str(name) for name in names], ensure_ascii=False)
        helper.set_model_props(proto, {"feature_names": texts})
    content: bytes = proto.SerializeToString(deterministic=True)
    return content
