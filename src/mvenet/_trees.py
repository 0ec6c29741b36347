"""Trees of scikit-learn as plain arrays, which a model file can hold and the engine can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine


@dataclass(frozen=True)
class Forest:
    """Regression trees one after the other, each depth first; see ``engine/trees.hpp``.

    Attributes
    ----------
    feature : ndarray of shape (nodes,), int16
        The column that a node asks for, -1 in a leaf.
    threshold : ndarray of shape (nodes,), float32
        A row goes left if its value is at most this; in a leaf the prediction, in standard
        deviations of y from its mean.
    right : ndarray of shape (nodes,), int32
        Right child, counted from the root of its tree; the left child is the next node.
    starts : ndarray of shape (trees + 1,), int64
    center, scale : float
        Mean and standard deviation of y.
    """

    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    right: NDArray[np.int32]
    starts: NDArray[np.int64]
    center: float
    scale: float

    @staticmethod
    def of(trees: Sequence[Any], center: float, scale: float) -> Forest:
        """From trees fitted to y in standard deviations from its mean."""
        features, thresholds, rights = [], [], []
        for tree in (estimator.tree_ for estimator in trees):
            order, place = _depth_first(tree.children_left, tree.children_right)
            leaf = tree.children_left[order] < 0
            features.append(np.where(leaf, -1, tree.feature[order]).astype(np.int16))
            value = tree.value[order, 0, 0]
            thresholds.append(np.where(leaf, value, _below(tree.threshold[order])))
            rights.append(np.where(leaf, 0, place[tree.children_right[order]]).astype(np.int32))
        sizes = [len(feature) for feature in features]
        return Forest(
            np.concatenate(features),
            np.concatenate(thresholds).astype(np.float32),
            np.concatenate(rights),
            np.cumsum([0, *sizes]),
            float(center),
            float(scale),
        )

    def predict(self, X: NDArray[Any], threads: int = 1) -> NDArray[np.float64]:
        """Mean over the trees, of shape (n,), in units of y."""
        mean = _engine.predict_trees(
            x=X,
            feature=self.feature,
            threshold=self.threshold,
            right=self.right,
            starts=self.starts,
            threads=threads,
        )
        return self.center + self.scale * mean


def _depth_first(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Nodes in depth-first order, and the place of each in it."""
    order = np.arange(len(left))
    inner = left >= 0
    if not (left[inner] == order[inner] + 1).all():  # scikit-learn's usual trees are that already
        order, waiting, at = np.empty_like(order), [0], 0
        while waiting:
            node = waiting.pop()
            order[at] = node
            at += 1
            if left[node] >= 0:
                waiting += [right[node], left[node]]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return order, place


def _below(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above: a float32 compares with it as with the threshold."""
    rounded = threshold.astype(np.float32)
    above = rounded.astype(np.float64) > threshold
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded)
