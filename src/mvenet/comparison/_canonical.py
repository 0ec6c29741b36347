"""Values as text by which they are told apart: the same in every process, and never cut short."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from mvenet._estimators.validation import fingerprint

SHOWN = 100  # numbers of an array that are written out; of a larger one its SHA-256 is


def canonical(value: Any) -> str:
    """A value as text; two values that differ have different ones.

    ``repr`` does not serve: NumPy's leaves out most of a long array and the last digits of a short
    one, scikit-learn's most of a long estimator, and many a class has none of its own.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{canonical(k)}: {canonical(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{_joined(value)}]"
    if isinstance(value, tuple):
        return f"({_joined(value)},)" if len(value) == 1 else f"({_joined(value)})"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(canonical, value)))}}}"
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return _named(value)
    return _object(value)


def _joined(values: Any) -> str:
    return ", ".join(map(canonical, values))


def _array(value: np.ndarray[Any, Any]) -> str:
    if value.size > SHOWN and value.dtype.kind in "biufc":
        return f"array of shape {value.shape} ({fingerprint(value)[:12]})"
    return canonical(value.tolist())


def _named(value: Any) -> str:
    """Where a class or a function is found; of one that is not found by name, the one at hand."""
    name = f"{value.__module__}.{value.__qualname__}"
    return repr(value) if "<" in name else name


def _object(value: Any) -> str:
    """The class, and all that a copy would be made of."""
    try:
        made = value.__reduce_ex__(4)
    except TypeError:  # not to be copied: then it is itself only
        return repr(value)
    if isinstance(made, str):  # a global, found by that name
        return made
    make, arguments, *state = made
    if make is copyreg.__newobj__:  # type: ignore[attr-defined]  # whose first is the class
        arguments = arguments[1:]
    parts = [*arguments, *(part for part in state if part is not None)]
    return f"{type(value).__name__}({_joined(parts)})"
