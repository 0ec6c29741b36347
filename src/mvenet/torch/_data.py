"""What ``fit`` and ``predict`` are given, as a data set of (inputs, (target, weight))."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler
from torch.utils.data import Subset as DatasetSubset

from mvenet._utils.finite import check_finite
from mvenet._utils.sklearn import check_sample_weight

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows(Dataset):
    """Inputs in a tensor or in a data set of the user's, with targets and weights.

    ``paired`` says whether the items of the user's data set have a target, which is left out.
    """

    inputs: Any
    target: Tensor
    weight: Tensor
    paired: bool = False

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, index: Any) -> tuple[Any, tuple[Tensor, Tensor]]:
        """A row, or of a tensor all rows of a list."""
        inputs = self.inputs[index]
        if self.paired:
            inputs = inputs[0]
        return inputs, (self.target[index], self.weight[index])

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Some of the rows."""
        index = torch.as_tensor(rows)
        many = isinstance(self.inputs, Tensor)
        inputs = self.inputs[index] if many else DatasetSubset(self.inputs, rows.tolist())
        return Rows(inputs, self.target[index], self.weight[index], self.paired)

    def units(self) -> tuple[float, float]:
        """Mean and population standard deviation of the targets; 1 where they are constant."""
        y, weight = self.target.numpy(), self.weight.double().numpy()
        mean = float(np.average(y, weights=weight))
        scale = math.sqrt(float(np.average((y - mean) ** 2, weights=weight)))
        return mean, scale if y.max() > y.min() and scale > 0 else 1.0

    def standardised(self, mean: float, scale: float, net: nn.Module) -> Rows:
        """The same with targets in other units, weights of mean one, in the network's precision.

        Whole numbers become floating ones, unless the network has embeddings to look them up.
        """
        floats = (p.dtype for p in net.parameters() if p.is_floating_point())
        dtype = next(floats, torch.get_default_dtype())
        tokens = any(isinstance(layer, nn.Embedding | nn.EmbeddingBag) for layer in net.modules())
        inputs, weight = self.inputs, self.weight / self.weight.mean()
        if isinstance(inputs, Tensor) and (inputs.is_floating_point() or not tokens):
            inputs = inputs.to(dtype)
        target = ((self.target - mean) / scale).to(dtype)
        return Rows(inputs, target, weight.to(dtype), self.paired)


def loader(rows: Rows, batch_size: int, *, shuffle: bool, num_workers: int = 0) -> DataLoader:
    """Batches of rows; those of a tensor are cut out at once, not collected one by one."""
    if not isinstance(rows.inputs, Tensor):
        return DataLoader(rows, batch_size, shuffle=shuffle, num_workers=num_workers)
    order = RandomSampler(rows) if shuffle else SequentialSampler(rows)
    return DataLoader(rows, batch_size=None, sampler=BatchSampler(order, batch_size, False))


def training_rows(
    estimator: BaseEstimator, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> Rows:
    """Check what ``fit`` was given; rows of weight zero are left out."""
    if _is_dataset(X):
        rows = _from_dataset(X, y)
    else:
        X, target = _as_array(X), _as_array(y)
        if target is None:
            raise ValueError(
                "This estimator requires y to be passed, but the target y is None: only a Dataset "
                "of (inputs, target) has its own."
            )
        _check_lengths(X, target)
        X, target = validate_data(
            estimator, X, target, dtype="numeric", allow_nd=True, y_numeric=True,
            ensure_min_samples=2, ensure_all_finite=False,
        )  # fmt: skip
        check_finite(X, getattr(estimator, "feature_names_in_", None))
        estimator.row_shape_ = X.shape[1:]
        target = torch.as_tensor(np.array(target, dtype=np.float64))
        rows = Rows(_tensor(X), target, torch.ones(len(target)))
    if len(rows) < 2:
        raise ValueError(f"There are {len(rows)} row(s): at least 2 are needed.")
    if sample_weight is None:
        return rows
    weight = check_sample_weight(
        sample_weight, np.empty((len(rows), 1)), dtype=np.float64, ensure_non_negative=True
    )
    counted = np.flatnonzero(weight)
    if len(counted) < 2:
        raise ValueError(f"sample_weight is positive for {len(counted)} row(s): 2 must count.")
    weighted = Rows(rows.inputs, rows.target, torch.as_tensor(weight), rows.paired)
    return weighted if len(counted) == len(rows) else weighted.take(counted)


def unlabelled_rows(estimator: BaseEstimator, X: Any) -> Rows:
    """Check what ``predict`` was given; targets are zero."""
    if _is_dataset(X):
        paired = len(X) > 0 and isinstance(X[0], tuple | list)
        return Rows(X, torch.zeros(len(X)), torch.ones(len(X)), paired)
    array = validate_data(
        estimator,
        _as_array(X),
        dtype="numeric",
        allow_nd=True,
        reset=False,
        ensure_all_finite=False,
    )
    check_finite(array, getattr(estimator, "feature_names_in_", None))
    shape = getattr(estimator, "row_shape_", array.shape[1:])
    if array.shape[1:] != shape:
        raise ValueError(
            f"X has rows of shape {array.shape[1:]}, the training rows had {tuple(shape)}: pass "
            "the same kind of rows."
        )
    n = len(array)
    return Rows(_tensor(array), torch.zeros(n), torch.ones(n))


def fingerprint(rows: Rows) -> str:
    """SHA-256 of targets, weights and, where they lie in a tensor, inputs."""
    digest = hashlib.sha256()
    parts = (rows.target, rows.weight, rows.inputs)
    for part in (p for p in parts if isinstance(p, Tensor)):
        digest.update(f"{tuple(part.shape)} {part.dtype}".encode())
        digest.update(np.ascontiguousarray(part.numpy()).data)
    return digest.hexdigest()


def _from_dataset(X: Any, y: ArrayLike | None) -> Rows:
    """A user's data set; without y its items must be pairs, and are read once for the targets."""
    if y is None:
        items = [X[i] for i in range(len(X))]
        if not all(isinstance(item, tuple | list) and len(item) == 2 for item in items):
            raise ValueError(
                "A Dataset without y must have items (inputs, target): return both, or pass y."
            )
        target = np.array([float(item[1]) for item in items])
    else:
        _check_lengths(X, y)
        target = column_or_1d(np.asarray(_as_array(y)), dtype=np.float64)
    if not np.isfinite(target).all():
        raise ValueError("y contains NaN or infinity: leave such rows out.")
    return Rows(X, torch.as_tensor(target), torch.ones(len(target)), paired=y is None)


def _is_dataset(X: Any) -> bool:
    if isinstance(X, torch.utils.data.IterableDataset):
        raise TypeError("An IterableDataset has no length: pass a Dataset with __len__.")
    return isinstance(X, Dataset)


def _as_array(X: Any) -> Any:
    return X.detach().cpu().numpy() if isinstance(X, Tensor) else X


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.as_tensor(np.require(array, requirements=["C", "W"]))


def _check_lengths(X: Any, y: Any) -> None:
    if not _is_dataset(X) and not hasattr(X, "shape"):
        return  # scikit-learn will judge it
    sizes = [part.shape[0] if getattr(part, "shape", ()) else len(part) for part in (X, y)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"X has {sizes[0]} rows and y {sizes[1]}, inconsistent numbers of samples: pass one "
            "target for each row."
        )
