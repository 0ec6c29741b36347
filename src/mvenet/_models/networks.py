"""Trained networks as plain arrays, and what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine
from mvenet._models.architecture import Architecture
from mvenet._models.checks import check_array, check_fields, check_part, require, shape_of
from mvenet._models.piecewise import BOUND, Piecewise
from mvenet._models.remembering import Remembers
from mvenet._utils.machine import require_memory


@dataclass(frozen=True)
class Networks(Remembers):
    """K trained networks as plain arrays, the network always the first axis.

    Attributes
    ----------
    architecture : Architecture
    parameters : ndarray of shape (K, n_parameters), float32 or float64
        The mean network, then the variance network; for each layer the weights
        (out × in, by rows), then the biases.
    x_mean, x_scale : ndarray of shape (K, n_features)
    y_mean, y_scale : ndarray of shape (K,)
        The standardisation of the rows that the network was trained on.
    """

    architecture: Architecture
    parameters: NDArray[Any]
    x_mean: NDArray[np.float64]
    x_scale: NDArray[np.float64]
    y_mean: NDArray[np.float64]
    y_scale: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.parameters)

    def check(self) -> None:
        """Raise an error if training cannot have made them; the engine gets no others."""
        check_fields(self, Networks)
        check_part(self.architecture, Architecture)
        k, d = shape_of(self.x_mean, 2, "x_mean is no table")
        require(k > 0 and d > 0, "there are no networks, or none with inputs")
        layers = (pair for sizes in self.architecture.sizes(d) for pair in pairwise(sizes))
        n_parameters = sum((before + 1) * after for before, after in layers)
        check_array(self.parameters, (k, n_parameters), "parameters", dtypes=("<f8", "<f4"))
        check_array(self.x_mean, (k, d), "x_mean")
        check_array(self.x_scale, (k, d), "x_scale", above=0.0)
        check_array(self.y_mean, (k,), "y_mean")
        check_array(self.y_scale, (k,), "y_scale", above=0.0)

    def __getitem__(self, index: Any) -> Networks:
        """Some of the networks: a slice, a mask or an array of numbers."""
        arrays = (self.parameters, self.x_mean, self.x_scale, self.y_mean, self.y_scale)
        return Networks(self.architecture, *(np.ascontiguousarray(a[index]) for a in arrays))

    def predict(
        self,
        X: NDArray[Any],
        threads: int = 1,
        *,
        piecewise: Piecewise | None = None,
        last: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and standard deviations in units of y, each of shape (K, n_rows).

        With ``piecewise`` the networks read ``piecewise.encode(X)``, which the engine does without
        writing it down, and with it ``last``, one more column of shape (n_rows,).
        """
        if len(X) > 1:  # a single row should not wait
            self._require_memory(len(X))
        native = self._ready(piecewise, last is not None)
        means, stds = native.predict(
            regular(X), last, threads, deviations=True, mixture=False, factor=1.0
        )
        assert stds is not None
        return means, stds

    def _require_memory(self, rows: int) -> None:
        """Refuse more rows than memory has room for the answers of each network."""
        require_memory(
            16 * len(self) * rows,
            f"Means and standard deviations of {len(self)} networks for {rows:,} rows",
            "give fewer rows at once, or use moments, intervals or logpdf, which keep no "
            "network's own.",
        )

    def means(
        self, X: NDArray[Any], threads: int = 1, *, piecewise: Piecewise | None = None
    ) -> NDArray[np.float64]:
        """Only the means, of shape (K, n_rows): the variance networks are not evaluated."""
        native = self._ready(piecewise)
        return native.predict(
            regular(X), None, threads, deviations=False, mixture=False, factor=1.0
        )[0]

    def moments(
        self,
        X: NDArray[Any],
        *,
        std: bool = True,
        factor: float = 1.0,
        threads: int = 1,
        piecewise: Piecewise | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Mean and standard deviation of the mixture of the networks, in units of y.

        Reduced while the rows are predicted: the memory does not grow with the networks.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        std : bool
            Whether the standard deviation is wanted; without it half the work is saved.
        factor : float
            On the standard deviation of each network.
        threads : int
        piecewise : Piecewise or None
            As in :meth:`predict`.

        Returns
        -------
        mean : ndarray of shape (n,)
        std : ndarray of shape (n,), or None
        """
        native = self._ready(piecewise)
        return native.predict(
            regular(X), None, threads, deviations=std, mixture=True, factor=factor
        )

    def _ready(self, piecewise: Piecewise | None, last: bool = False) -> _engine.Networks:
        """The networks as the engine keeps them, for one way to read the columns."""
        kept = self.remembered()
        if kept is None or kept[0] is not piecewise or kept[1] != last:
            kept = self.remember((piecewise, last, self._native(piecewise, last)))
        return kept[2]  # type: ignore[no-any-return]

    def _native(self, piecewise: Piecewise | None, last: bool) -> _engine.Networks:
        mean_sizes, var_sizes = self.architecture.sizes(self.x_mean.shape[1])
        steps = None
        if piecewise is not None:
            s = piecewise
            steps = (s.center, s.scale, s.column, s.low, s.width, BOUND)
        return _engine.networks(
            parameters=self.parameters,
            x_mean=self.x_mean,
            x_scale=self.x_scale,
            y_mean=self.y_mean,
            y_scale=self.y_scale,
            mean_sizes=mean_sizes,
            var_sizes=var_sizes,
            activation=self.architecture.activation,
            input_bound=self.architecture.input_bound,
            natural=self.architecture.natural,
            steps=steps,
            last=last,
        )


def join(parts: Sequence[Networks]) -> Networks:
    """Networks of one architecture, one after the other."""
    names = ("parameters", "x_mean", "x_scale", "y_mean", "y_scale")
    arrays = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return Networks(parts[0].architecture, *arrays)


def regular(X: NDArray[Any]) -> NDArray[Any]:
    """X itself, or a copy if its rows do not lie a whole number of numbers apart."""
    if X.flags.c_contiguous:
        return X
    regular = all(stride % X.itemsize == 0 for stride in X.strides)
    return X if regular else np.ascontiguousarray(X)
