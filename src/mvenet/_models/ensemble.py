"""Networks as a model: one, or several whose mixture is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models import student
from mvenet._models.checks import check_fields, check_number, check_part, require
from mvenet._models.networks import Networks
from mvenet._models.piecewise import Piecewise
from mvenet.distributions import Normal, NormalMixture
from mvenet.distributions._normal import normal_or_mixture

Array = NDArray[np.float64]
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Ensemble:
    """Mean-variance networks that were trained by one of the paper's strategies.

    Attributes
    ----------
    networks : Networks
    scale : float
        Factor on all standard deviations.
    piecewise : Piecewise or None
        How they read the columns; None as they are.
    df : float or None
        Degrees of freedom of networks that were trained on the likelihood of Student's t, whose
        scale they predict; None of all others, which predict a normal.
    """

    networks: Networks
    scale: float = 1.0
    piecewise: Piecewise | None = None
    df: float | None = None

    @property
    def log(self) -> bool:
        """Never: on the log scale only rows left out keep networks in bounds."""
        return False

    def __len__(self) -> int:
        """Components of the mixture."""
        return len(self.networks) * (1 if self.df is None else len(student.widths(self.df)[0]))

    def moments(
        self, X: NDArray[Any], *, std: bool = True, threads: int = 1
    ) -> tuple[Array, Array | None]:
        """Mean and, if wanted, standard deviation of each row, of shape (n,), in units of y."""
        factor = self.scale * (1.0 if self.df is None else student.relative_std(self.df))
        return self.networks.moments(
            X, std=std, factor=factor, threads=threads, piecewise=self.piecewise
        )

    def distribution(self, X: NDArray[Any], threads: int = 1) -> Normal | NormalMixture:
        """Predictive distribution of each row: a component for each network.

        Of Student's t several of different widths, :mod:`mvenet._models.student`.
        """
        means, stds = self.networks.predict(X, threads, piecewise=self.piecewise)
        if self.df is None:
            return normal_or_mixture(means, np.maximum(self.scale * stds, _TINY))
        means, stds, weights = student.spread(means, self.scale * stds, self.df)
        return NormalMixture(means, np.maximum(stds, _TINY), weights)

    def check(self, n_columns: int) -> None:
        """Raise an error if it cannot be a model of so many columns that training has made."""
        check_fields(self, Ensemble)
        check_part(self.networks, Networks)
        read = n_columns
        if self.piecewise is not None:
            check_part(self.piecewise, Piecewise, n_columns)
            read += len(self.piecewise.column)
        same = self.networks.x_mean.shape[1] == read
        require(same, "the networks are of another number of columns")
        check_number(self.scale, "scale")
        require(self.scale > 0, "the scale is not positive")
        if self.df is not None:
            check_number(self.df, "df", student.LEAST)
            require(self.df <= student.MOST, "there are too many degrees of freedom")
