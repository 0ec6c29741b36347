"""What a part of a model must be like, for whoever builds one and for whoever reads a file.

The engine follows indices without looking twice, and a file may hold anything: every part has a
``check`` made of these, and both its builder and the reader of files call it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MalformedError(ValueError):
    """Why a model cannot be one that a fit has made."""


def require(truth: object, why_not: str) -> None:
    """Refuse a part of a model for this reason if it is not true."""
    if not truth:
        raise MalformedError(why_not)


def check_fields(thing: Any, wanted: type) -> None:
    """Refuse anything but an object of that dataclass, with its fields and no others.

    Those with a default may be missing: the file may be older than they are.
    """
    fields = {field.name for field in dataclasses.fields(wanted)}
    needed = {f.name for f in dataclasses.fields(wanted) if f.default is dataclasses.MISSING}
    same = type(thing) is wanted and needed <= set(vars(thing)) <= fields
    require(same, f"something else stands in the place of {wanted.__name__}")


def check_part(part: Any, wanted: type, *against: Any) -> None:
    """Refuse anything but a part of that kind that is as its own check wants it."""
    require(type(part) is wanted, f"something else stands in the place of {wanted.__name__}")
    part.check(*against)


def shape_of(array: Any, dimensions: int, why_not: str) -> tuple[int, ...]:
    """The shape of an array of so many dimensions, and of nothing else.

    ``np.shape`` would make an array of anything, and iterate over networks without end.
    """
    require(type(array) is np.ndarray and array.ndim == dimensions, why_not)
    shape: tuple[int, ...] = array.shape
    return shape


def check_number(value: Any, name: str, least: float = -math.inf) -> None:
    """Refuse what is no finite float."""
    number = isinstance(value, float) and math.isfinite(value) and value >= least
    require(number, f"{name} is no number that a fit gives")


def check_array(
    array: Any,
    shape: tuple[int, ...],
    name: str,
    *,
    dtypes: tuple[str, ...] = ("<f8",),
    least: float = -math.inf,
    above: float = -math.inf,
) -> None:
    """Refuse what is not a block of finite numbers of this shape, each within its limits."""
    fits = type(array) is np.ndarray and array.dtype.str in dtypes and array.shape == shape
    require(fits and array.flags.c_contiguous, f"{name} is not a block of {shape} numbers")
    values: NDArray[Any] = array
    usual = np.isfinite(values).all() and (values >= least).all() and (values > above).all()
    require(usual or not values.size, f"{name} holds a value that no fit gives")
