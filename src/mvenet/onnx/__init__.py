"""A fitted model as one ONNX file, for programs that have neither mvenet nor Python.

The graph is the engine's ``predict`` (engine/ensemble.cpp) and the moments of the mixture
(distributions.py), node by node: standardise, two perceptrons, back to units of y. The model of an
automatic search is several of these and more, see ``_composite.py``.
"""

from __future__ import annotations

import json
import os
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet import __version__
from mvenet._models import student
from mvenet._models.composite import Composite
from mvenet._models.ensemble import Ensemble
from mvenet._models.joint import JointModel
from mvenet._models.predictor import Predictor
from mvenet._utils.atomic import replacing
from mvenet.distributions._checks import levels_within
from mvenet.onnx._composite import composite_nodes, encoded_columns
from mvenet.onnx._encoding import check_encoder, column_inputs, encoder_nodes
from mvenet.onnx._graph import (
    SMALLEST_STD,
    Graph,
    each,
    network_means,
    network_variances,
    standardised,
)
from mvenet.onnx._shape import Block
from mvenet.onnx._shape import quantiles as mixture_quantiles

__all__ = ["export"]

Array = NDArray[np.float64]

OPSETS, IR_VERSION = {"": 17, "ai.onnx.ml": 3}, 8  # of 2022: old runtimes can read the file
ABOUT = (
    "Mean and standard deviation of y for each row of X, both in units of y; std is that of a new "
    "observation, noise included. X has the columns that the model was trained on, in that order "
    "and in their own units: they are standardised inside."
)


def export(
    model: Predictor,
    path: str | os.PathLike[str],
    *,
    quantiles: ArrayLike = (),
    encode: bool = False,
) -> None:
    """Write a fitted model as an ONNX file (opset 17; trees are ai.onnx.ml 3).

    Its input is ``X``, float32 of shape (n, n_features), for any n and in the units of the training
    table. Its outputs are ``mean`` and ``std``, float64 of shape (n,), in units of y: what
    ``model.predict(X, return_std=True)`` returns, for ensembles with their factor and for the model
    of an automatic search, too. They are float64 because a mean that is large beside its std would
    lose its digits in float32.

    Parameters
    ----------
    model : AutoRegressor, MVERegressor or MVERegressorCV
        Fitted. Of a pipeline, export the last step; of a model of several targets each of its
        ``estimators_``.
    path : str or path
        The file to write, whole or not at all; an older one is replaced.
    quantiles : list of k floats in (0, 1), default=()
        Levels such as ``(0.05, 0.95)``: the file then has a third output, ``quantiles``, float64 of
        shape (n, k), in units of y and in the order of the levels. They are found by bisection,
        which takes far longer than mean and std.
    encode : bool, default=False
        Of a model that was fitted to a frame: whether the file encodes its columns, too. It then
        has an input for each of them in the place of ``X``, by its name and of shape (n, 1):
        float32 for numbers and truth values, in which NaN is a gap, text for categories, in which
        the empty text is one. Without, ``X`` has the columns that ``model.encoder_.transform``
        returns.

    Raises
    ------
    ValueError
        If a level of `quantiles` is not between 0 and 1; with `encode`, if a column holds dates.
    TypeError
        If the model is something else, such as a pipeline, or holds a candidate of the user's.
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
    ensembles where std is less than a hundredth of the standard deviation of y). Trees are added
    up in float32, to about 1e-6 of the standard deviation of y.

    Free shapes and atoms are in the file. Where y lies on a grid of hundreds of values, a row takes
    some hundred kilobytes of memory while it is computed: ask for a thousand rows at a time.

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
    levels = np.atleast_1d(levels_within("quantiles", quantiles, "write 0.05 for 5 %"))
    encoder = _encoder_of(model) if encode else None
    graph = Graph()
    if encoder is not None:
        check_encoder(encoder)
        encoder_nodes(graph, encoder)
    model_nodes(model.model_, graph, levels)
    content = _file(graph, model, levels, encoder)
    with replacing(path) as fresh:
        fresh.write_bytes(content)


def _check_onnx() -> None:
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        message = f'The export needs the package onnx ({error}): pip install "mvenet[onnx]".'
        raise ImportError(message, name=error.name) from error


def _check(model: object) -> None:
    if hasattr(model, "named_steps"):
        raise TypeError(
            "A Pipeline is not exported whole: export its last step, model[-1], and give the file "
            "the columns that model[:-1].transform returns, as float32."
        )
    if not isinstance(model, Predictor):
        raise TypeError(
            "model must be a fitted AutoRegressor, MVERegressor or MVERegressorCV, got "
            f"{type(model).__name__}: pass one of these, such as the best_estimator_ of a "
            "GridSearchCV."
        )
    if not hasattr(model, "model_"):
        from sklearn.utils.validation import check_is_fitted  # a second, for an error's sake

        check_is_fitted(model)
    if isinstance(model.model_, JointModel):
        raise TypeError(
            "A model of several targets is exported target by target: pass model.estimators_[0] "
            "and so on. How their errors depend on each other is in no file."
        )


def _encoder_of(model: Predictor) -> Any:
    """What makes numbers of the columns of a frame."""
    if model._takes_frames():
        return model.encoder_
    names, kept = getattr(model, "feature_names_in_", None), vars(model).get("encoder_")
    if names is None or kept is None:
        raise ValueError(
            "encode=True needs a model that was fitted to a frame, whose columns have names: this "
            "one takes X as it is."
        )
    from mvenet._columns.encoding import Encoding

    return Encoding.of_numbers(kept, [str(name) for name in names])


@singledispatch
def model_nodes(model: object, graph: Graph, levels: Array) -> None:
    """Nodes of a whole model, from X of shape (n, d) to mean, std and, if asked, quantiles."""
    raise TypeError(f"A {type(model).__name__} has no place in an ONNX file: export another model.")


model_nodes.register(Composite, lambda model, graph, levels: composite_nodes(graph, model, levels))


@model_nodes.register
def _(model: Ensemble, graph: Graph, levels: Array) -> None:
    """Until the end, in units of the largest scale, counted from the first member's mean.

    Squares then neither overflow nor vanish, whatever the scale of y.
    """
    networks, x = model.networks, graph.double("X")
    if model.piecewise is not None:
        x = encoded_columns(graph, model.piecewise, x)
    z = standardised(graph, networks, x)
    mean, variance = network_means(graph, networks, z), network_variances(graph, networks, z)
    if networks.architecture.natural:
        mean = graph("Mul", mean, variance)
    origin, unit = networks.y_mean[0], networks.y_scale.max()
    parts = (networks.y_scale / unit, (networks.y_mean - origin) / unit)
    scale, offset = (each(part[:, None]) for part in parts)
    means = graph("Add", graph("Mul", mean, scale), offset)
    centre = graph.average(means)
    distance = graph("Sub", means, centre)
    widths = [(1.0, 1.0)] if model.df is None else list(zip(*student.widths(model.df), strict=True))
    relative = 1.0 if model.df is None else student.relative_std(model.df)
    aleatoric = graph("Mul", variance, (relative * model.scale * scale) ** 2)
    total = graph.average(graph("Add", aleatoric, graph("Mul", distance, distance)))
    if len(levels):
        rows = graph("Transpose", means, perm=[1, 0])
        blocks = [
            Block(
                rows,
                graph(
                    "Transpose",
                    graph("Mul", variance, (multiple * model.scale * scale) ** 2),
                    perm=[1, 0],
                ),
                np.full((1, 1), weight / len(networks)),
            )
            for multiple, weight in widths
        ]
        found = graph("Mul", mixture_quantiles(graph, blocks, levels), unit)
        graph("Add", found, origin, output="quantiles")
    graph("Add", graph("Mul", centre, unit), origin, output="mean")
    graph("Max", graph("Mul", graph("Sqrt", total), unit), SMALLEST_STD, output="std")


def _file(graph: Graph, model: Predictor, levels: Array, encoder: Any) -> bytes:
    from onnx import TensorProto, helper

    columns: list[str | int] = ["n", model._n_read]
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, columns)]
    if encoder is not None:
        inputs = column_inputs(encoder)
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n"]) for name in ("mean", "std")
    ]
    if len(levels):
        shape: list[str | int] = ["n", len(levels)]
        outputs.append(helper.make_tensor_value_info("quantiles", TensorProto.DOUBLE, shape))
    domains = {node.domain for node in graph.nodes}
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "mvenet", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid(d, v) for d, v in OPSETS.items() if d in domains],
        ir_version=IR_VERSION,
        producer_name="mvenet",
        producer_version=__version__,
        doc_string=ABOUT,
    )
    names = _names_of(model)
    if names is not None and encoder is None:
        texts = json.dumps([str(name) for name in names], ensure_ascii=False)
        helper.set_model_props(proto, {"feature_names": texts})
    content: bytes = proto.SerializeToString(deterministic=True)
    return content


def _names_of(model: Predictor) -> list[str] | None:
    """Names of the columns of X, if there are any."""
    if model._takes_frames():
        return [str(name) for name in model.encoder_.get_feature_names_out()]
    names, kept = getattr(model, "feature_names_in_", None), vars(model).get("encoder_")
    if names is None:
        return None
    return list(map(str, names)) if kept is None else kept.names_out(list(map(str, names)))
