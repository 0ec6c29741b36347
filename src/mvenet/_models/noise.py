"""Noise: networks that give a standard deviation to each row, and the widths it enters with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import check_array, check_fields, check_number, require
from mvenet._models.interface import Columns, Inputs
from mvenet._models.means import check_reading
from mvenet._models.mixture import MULTIPLES, Shape
from mvenet._models.networks import Networks
from mvenet._models.remembering import Remembers
from mvenet._utils.sums import average, between

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Noise(Remembers):
    """Networks that give a standard deviation to each row.

    Attributes
    ----------
    networks : Networks
    encoded : bool
        Whether they read the encoded columns.
    joint : bool
        Whether they learned a mean too, which then is used; otherwise the blended mean is, and is
        a further column of theirs.
    shape : Shape
        How the networks' standard deviation is corrected.
    weights : ndarray of shape (multiples,)
        Weight in the mixture of each of ``MULTIPLES`` of the standard deviation.
    """

    networks: Networks
    encoded: bool
    joint: bool
    shape: Shape
    weights: Array

    @property
    def kept(self) -> Array:
        """Weights of its components, those that are not zero."""
        return self.weights[self.weights > 0]

    def predict(self, inputs: Inputs, blended: Array | None = None) -> tuple[Array, Array]:
        """Means and standard deviations by each network, (k, n)."""
        piecewise = inputs.piecewise if self.encoded else None
        if self.joint:
            return self.networks.predict(inputs.plain, inputs.threads, piecewise=piecewise)
        assert blended is not None
        if self.encoded:  # the engine encodes, and takes the last column beside
            return self.networks.predict(
                inputs.plain, inputs.threads, piecewise=piecewise, last=blended
            )
        further = np.concatenate([inputs.plain, blended[:, None]], axis=1)
        return self.networks.predict(further, inputs.threads)

    def components(
        self, inputs: Inputs, number: int, blended: Array, limits: tuple[float, float]
    ) -> tuple[Array, Array]:
        """Mean (n,) and standard deviations (c, n) of its components, for each row."""
        if self.joint:
            means, stds = inputs.of_joint(number)
            mean = between(average(means), *limits)
        else:
            mean, stds = blended, self.predict(inputs, blended)[1]
        multiples = self.remembered()
        if multiples is None:
            multiples = self.remember(MULTIPLES[self.weights > 0, None])
        std = np.exp(self.shape.applied(average(np.log(stds))))
        return mean, std * multiples

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Noise)
        require(type(self.joint) is bool, "noise is of no known kind")
        check_reading(self.networks, self.encoded, columns, further=not self.joint)
        check_fields(self.shape, Shape)
        for name, value in vars(self.shape).items():
            check_number(value, f"{name} of a shape")
        require(self.shape.low <= self.shape.high, "a shape ends before it begins")
        check_array(self.weights, MULTIPLES.shape, "weights of noise", least=0.0)
