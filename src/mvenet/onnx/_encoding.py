"""The encoder of a model as nodes: from one input a column to the numbers that a model reads.

Numbers and truth values are float32 of shape (n, 1), of which NaN is a gap; categories are text of
that shape, of which the empty one is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mvenet.onnx._graph import Graph

_TAKEN = {"X", "mean", "std", "quantiles"}
_NUMERIC = ("number", "truth")


def check_encoder(encoder: Any) -> None:
    """Refuse what ONNX cannot take."""
    dates = encoder.named("date")
    if dates:
        raise ValueError(
            f"The column {dates[0]!r} holds dates, which no node of ONNX reads: export with "
            "encode=False and give the numbers of encoder_.transform, or fit without it."
        )
    taken = [name for name in encoder.columns_ if name in _TAKEN or not name]
    if taken:
        raise ValueError(f"A column is called {taken[0]!r}, as a part of the file is: rename it.")


def column_inputs(encoder: Any) -> list[Any]:
    """What the file is given: an input for each column that is used."""
    from onnx import TensorProto, helper

    kinds = {name: column.kind for name, column in encoder.columns_.items()}
    types = {"category": TensorProto.STRING} | dict.fromkeys(_NUMERIC, TensorProto.FLOAT)
    return [
        helper.make_tensor_value_info(name, types[kind], ["n", 1])
        for name, kind in kinds.items()
        if kind in types
    ]


def encoder_nodes(graph: Graph, encoder: Any) -> None:
    """From the columns to X, float32 of shape (n, d)."""
    from onnx import TensorProto

    medians, told = encoder._filled()
    doubles, gaps = [], []
    for name, median in zip(encoder.named(*_NUMERIC), medians, strict=True):
        value = graph.double(name)
        gap = graph("IsNaN", value)
        doubles.append(graph("Where", gap, np.float64(median), value))
        gaps.append(gap)
    doubles += [graph("Cast", gaps[i], to=TensorProto.DOUBLE) for i in told]
    parts = [graph("Cast", value, to=TensorProto.FLOAT) for value in doubles]
    for name, levels in encoder.levels_.items():
        parts += _level_nodes(graph, name, levels)
    graph("Concat", *parts, axis=1, output="X")


def _level_nodes(graph: Graph, name: str, levels: Any) -> Iterator[str]:
    """A column of zeros and ones for each level; or what the target says of it."""
    names = [str(level) for level in levels.names]
    if not levels.values.size:
        made = graph("OneHotEncoder", name, domain="ai.onnx.ml", cats_strings=names, zeros=1)
        yield graph("Reshape", made, np.array([-1, len(names)]))
        return
    for values, other in zip(levels.values.T, levels.default, strict=True):
        yield graph(
            "LabelEncoder",
            name,
            domain="ai.onnx.ml",
            keys_strings=names,
            values_floats=[float(value) for value in values],
            default_float=float(other),
        )
