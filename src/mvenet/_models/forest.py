"""Trees as plain arrays, which a model file can hold; the engine grows and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine
from mvenet._models.checks import check_array, check_fields, check_number, require, shape_of
from mvenet._models.interface import Columns, Inputs

GROWN_AT_ONCE = 200_000  # rows times trees: a tenth of a second


@dataclass(frozen=True)
class Forest:
    """Regression trees one after the other, each depth first; see ``engine/trees.hpp``.

    Attributes
    ----------
    feature : ndarray of shape (nodes,), int16 or int32
        The column that a node compares, -1 in a leaf.
    threshold : ndarray of shape (nodes,), float32
        A row goes left if its value is at most this; in a leaf the prediction, in standard
        deviations of y from its mean.
    right : ndarray of shape (nodes,), int32
        Right child, counted from the root of its tree; the left child is the next node.
    starts : ndarray of shape (trees + 1,), int64
    center, scale : float
        Mean and standard deviation of y.
    """

    feature: NDArray[np.int16] | NDArray[np.int32]
    threshold: NDArray[np.float32]
    right: NDArray[np.int32]
    starts: NDArray[np.int64]
    center: float
    scale: float

    @staticmethod
    def of(trees: Sequence[Any], center: float, scale: float) -> Forest:
        """From scikit-learn's trees, fitted to y in standard deviations from its mean."""
        features, thresholds, rights = [], [], []
        for tree in (estimator.tree_ for estimator in trees):
            order, place = _depth_first(tree.children_left, tree.children_right)
            leaf = tree.children_left[order] < 0
            features.append(np.where(leaf, -1, tree.feature[order]).astype(np.int32))
            value = tree.value[order, 0, 0]
            thresholds.append(np.where(leaf, value, _below(tree.threshold[order])))
            rights.append(np.where(leaf, 0, place[tree.children_right[order]]).astype(np.int32))
        sizes = [len(feature) for feature in features]
        feature = np.concatenate(features)
        few = feature.max() <= np.iinfo(np.int16).max
        return Forest(
            feature.astype(np.int16) if few else feature,
            np.concatenate(thresholds).astype(np.float32),
            np.concatenate(rights),
            np.cumsum([0, *sizes]),
            float(center),
            float(scale),
        )

    @staticmethod
    def grown(
        X: NDArray[Any],
        y: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        seeds: NDArray[np.uint64],
        drawn: int,
        center: float,
        scale: float,
    ) -> Forest:
        """Extremely randomised trees, one for each seed.

        ``y`` is in standard deviations from its mean. A tree learns from all rows or, unless
        ``drawn`` is zero, from so many that it draws with replacement.
        """
        some = max(1, GROWN_AT_ONCE // (drawn or len(y)))  # Ctrl-C is heard between calls
        parts = [
            _engine.grow_trees(x=X, y=y, weight=weight, seeds=seeds[at : at + some], drawn=drawn)
            for at in range(0, len(seeds), some)
        ]
        feature, threshold, right = (np.concatenate([p[i] for p in parts]) for i in range(3))
        sizes = np.concatenate([np.diff(p[3]) for p in parts])
        few = feature.max() <= np.iinfo(np.int16).max
        return Forest(
            feature.astype(np.int16) if few else feature,
            threshold,
            right,
            np.cumsum([0, *sizes]),
            float(center),
            float(scale),
        )

    def predict(self, X: NDArray[Any], threads: int = 1) -> NDArray[np.float64]:
        """Mean over the trees, of shape (n,), in units of y."""
        return self._evaluated(X, threads, each=False)

    def values(self, X: NDArray[Any], threads: int = 1) -> NDArray[np.float64]:
        """The prediction of each tree, of shape (trees, n), in units of y."""
        return self._evaluated(X, threads, each=True)

    def thinned(self, count: int) -> Forest:
        """So many of its trees, evenly chosen, or all if there are fewer."""
        trees = len(self.starts) - 1
        chosen = np.arange(min(count, trees)) * trees // min(count, trees)
        parts = [slice(self.starts[tree], self.starts[tree + 1]) for tree in chosen]
        arrays = (self.feature, self.threshold, self.right)
        feature, threshold, right = (np.concatenate([a[part] for part in parts]) for a in arrays)
        starts = np.cumsum([0, *(part.stop - part.start for part in parts)])
        return Forest(feature, threshold, right, starts, self.center, self.scale)

    def _evaluated(self, X: NDArray[Any], threads: int, each: bool) -> NDArray[np.float64]:
        standardised = _engine.predict_trees(
            x=X,
            feature=self.feature,
            threshold=self.threshold,
            right=self.right,
            starts=self.starts,
            threads=threads,
            each=each,
        )
        return self.center + self.scale * standardised

    def evaluate(self, inputs: Inputs) -> NDArray[np.float64]:
        """Mean of each row, of shape (1, n)."""
        return self.predict(inputs.clipped, inputs.threads)[None]

    def check(self, columns: Columns) -> None:
        """Raise an error unless every step leads forward in its tree, to a column that is there."""
        check_fields(self, Forest)
        shape = shape_of(self.feature, 1, "the nodes of a forest are no list")
        require(shape[0] > 0, "a forest has no nodes")
        check_array(self.feature, shape, "feature", dtypes=("<i2", "<i4"), least=-1)
        check_array(self.threshold, shape, "threshold", dtypes=("<f4",))
        check_array(self.right, shape, "right", dtypes=("<i4",), least=0)
        starts, count = self.starts, shape_of(self.starts, 1, "the trees of a forest are no list")
        check_array(starts, count, "starts", dtypes=("<i8",), least=0)
        require(self.feature.max() < columns.plain, "a forest compares a column too many")
        whole = len(starts) > 1 and starts[0] == 0 and starts[-1] == shape[0]
        require(whole and (np.diff(starts) > 0).all(), "a forest has no trees")
        sizes = np.diff(starts)
        place = np.arange(shape[0]) - np.repeat(starts[:-1], sizes)
        forward = (self.right > place + 1) & (self.right < np.repeat(sizes, sizes))
        require(forward[self.feature >= 0].all(), "a tree has a branch that leads nowhere")
        check_number(self.center, "center of a forest")
        check_number(self.scale, "scale of a forest")


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
