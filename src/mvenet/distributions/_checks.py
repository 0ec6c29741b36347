"""What the parameters of a distribution must be, said in words where they are not."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._utils.sums import total

FloatArray: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None


def check(name: str, array: FloatArray, valid: NDArray[np.bool_], rule: str, remedy: str) -> None:
    if not valid.all():
        raise ValueError(f"{name} must {rule}, got {array[~valid].ravel()[0]}; {remedy}")


def check_shape(name: str, array: FloatArray, shape: tuple[int, ...], remedy: str) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}; {remedy}")


def real(name: str, value: ArrayLike) -> FloatArray:
    """Convert to float64, refusing what NumPy would convert with loss, such as complex."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"it has dtype {array.dtype}")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers, but {error}; convert it") from error


def parameters(name: str, mean: ArrayLike, std: ArrayLike, shape: str) -> list[FloatArray]:
    """Validate means and standard deviations, called mean and std, or means and stds."""
    names = (name, name.replace("mean", "std"))
    arrays = [real(key, value) for key, value in zip(names, (mean, std), strict=True)]
    for key, array in zip(names, arrays, strict=True):
        if array.ndim != len(shape.split()) or (array.ndim > 1 and not len(array)):
            raise ValueError(f"{key} must have shape {shape}, got {array.shape}; reshape it")
        check(key, array, np.isfinite(array), "be finite", "drop such rows or members")
    check_shape(names[1], arrays[1], arrays[0].shape, f"pass one value for each of {name}")
    check(names[1], arrays[1], arrays[1] > 0.0, "be positive", "pass standard deviations above 0")
    return arrays


def normalised(weights: ArrayLike | None, n_members: int, n_rows: int) -> FloatArray:
    """Weights of the members that sum to one: (n_members,), or (n_members, n_rows)."""
    array = np.ones(n_members) if weights is None else real("weights", weights)
    if array.ndim == 2:
        check_shape("weights", array, (n_members, n_rows), "pass a weight per member and row")
    else:
        check_shape("weights", array, (n_members,), "pass one weight per member")
    valid = np.isfinite(array) & (array >= 0.0)
    check("weights", array, valid, "be finite and non-negative", "use 0 to leave a member out")
    if not array.any(axis=0).all():
        raise ValueError("weights must not all be 0.0; give at least one member a positive weight")
    shares: FloatArray = array / array.max(axis=0)  # before the sum, which could overflow
    if shares.ndim == 1:
        shares /= shares.sum()
        return shares
    shares /= total(shares)
    return shares


def levels_within(name: str, value: ArrayLike, remedy: str) -> FloatArray:
    levels = real(name, value)
    if levels.ndim > 1:
        raise ValueError(f"{name} must be a scalar or 1-D, got shape {levels.shape}; flatten it")
    valid = (levels > 0.0) & (levels < 1.0)
    check(name, levels, valid, "lie strictly between 0 and 1", remedy)
    return levels


def frozen(array: FloatArray) -> FloatArray:
    """Copy and make read-only: neither the caller's array nor ours changes unnoticed."""
    copy = np.array(array, order="C")
    copy.setflags(write=False)
    return copy


def sealed(array: FloatArray) -> FloatArray:
    """Make read-only what nobody else holds, without a copy: members times rows may be many."""
    own = np.ascontiguousarray(array)
    own.setflags(write=False)
    return own


def generator(random_state: Seed) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        # Advances the caller's stream, as in scikit-learn: the next call draws anew.
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        rule = "random_state must be a non-negative int, a Generator, a RandomState or None"
        raise ValueError(f"{rule}, got {random_state!r}; pass an int such as 0") from error
