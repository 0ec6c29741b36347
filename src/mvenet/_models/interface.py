"""What a fitted model can do, and what a part of one must.

An estimator keeps one :class:`FittedModel`: an :class:`~mvenet._models.ensemble.Ensemble` of
networks, or the :class:`~mvenet._models.composite.Composite` of a search or of a cross-fit.
A composite consists of parts. A further kind of part is one class with its evaluation and its
``check``; files, ONNX and the page each register a function for it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mvenet._models.networks import Networks
from mvenet._models.piecewise import Piecewise
from mvenet.distributions import Distribution

Array = NDArray[np.float64]


class FittedModel(Protocol):
    """A model of a table of numbers."""

    @property
    def log(self) -> bool:
        """Whether what is normal is the logarithm of y."""

    def __len__(self) -> int:
        """Components of the mixture that is predicted."""

    def moments(
        self, X: NDArray[Any], *, std: bool = True, threads: int = 1
    ) -> tuple[Array, Array | None]:
        """Mean and, if wanted, standard deviation of each row, of shape (n,), in units of y."""

    def distribution(self, X: NDArray[Any], threads: int = 1) -> Distribution:
        """Predictive distribution of each row."""

    def check(self, n_columns: int) -> None:
        """Raise an error if it cannot be a model of so many columns that a fit has made."""


class Inputs(Protocol):
    """The columns of some rows, as the parts of a composite read them; each is made once."""

    @property
    def plain(self) -> NDArray[Any]:
        """As they are."""

    @property
    def piecewise(self) -> Piecewise:
        """How encoded columns are made: the engine makes them while it reads."""

    @property
    def threads(self) -> int:
        """That may be used."""

    @property
    def clipped(self) -> Array:
        """Each column cut to the range of the training rows."""

    def of_joint(self, number: int) -> tuple[Array, Array]:
        """Means and standard deviations by the networks of a noise that has a mean of its own."""


class Mean(Protocol):
    """A part that may have a share in the blended mean."""

    def evaluate(self, inputs: Inputs) -> Array:
        """Means of each row, of shape (k, n): a line for each of k networks, or one."""

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""


class Sampler(Protocol):
    """A part that gives values which a row may have, all equally probable.

    Its method is not called ``evaluate``, so that no file can put one in the place of a
    :class:`Mean`.
    """

    def __len__(self) -> int:
        """How many values it gives."""

    def draws(self, inputs: Inputs) -> Array:
        """The values for each row, of shape (k, n)."""

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""


class Columns(Protocol):
    """What a part is checked against: how many columns there are, and which noises."""

    @property
    def plain(self) -> int:
        """How many there are."""

    @property
    def encoded(self) -> int:
        """How many there are once they are encoded."""

    def joint(self, number: int) -> Networks:
        """The networks of a noise with a mean of its own; an error if there is none."""
