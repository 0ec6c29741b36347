"""How the two networks are built: their hidden units and their activation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvenet import _engine
from mvenet._models.checks import check_fields, require

ACTIVATIONS = tuple(_engine.activations())  # what the engine knows, by name
MOST_UNITS = 65_536  # of a layer


@dataclass(frozen=True)
class Architecture:
    """The two networks: hidden units of the mean, of the log-variance, and the activation.

    ``hidden_var=()`` is a log-variance linear in the inputs, ``hidden_var=None`` a constant; the
    same for the mean. A standardised input z enters as z / sqrt(1 + (z / ``input_bound``)²), which
    never leaves ±``input_bound``; infinity leaves it as it is. ``natural`` says that the first
    network's output is the mean divided by the variance, a natural parameter of a normal.
    """

    hidden_mean: tuple[int, ...] | None = (40, 20)
    hidden_var: tuple[int, ...] | None = (40, 20)
    activation: str = "elu"
    input_bound: float = math.inf
    natural: bool = False

    def check(self) -> None:
        """Raise an error if it describes no networks that the engine knows."""
        check_fields(self, Architecture)
        for name in ("hidden_mean", "hidden_var"):
            units = getattr(self, name)
            require(units is None or type(units) is tuple, f"{name} is no tuple")
            whole = all(type(u) is int and 1 <= u <= MOST_UNITS for u in units or ())
            require(whole, f"{name} holds no numbers of units")
        known = isinstance(self.activation, str) and self.activation in ACTIVATIONS
        require(known, "the activation is none that mvenet knows")
        bound = self.input_bound
        require(isinstance(bound, float) and bound > 0, "input_bound is not positive")
        require(type(self.natural) is bool, "natural is neither true nor false")

    def sizes(self, n_inputs: int) -> tuple[list[int], list[int]]:
        """Layer sizes of both networks, inputs first, the single output last."""
        mean, variance = (
            [0, 1] if hidden is None else [n_inputs, *hidden, 1]
            for hidden in (self.hidden_mean, self.hidden_var)
        )
        return mean, variance


def hidden_units(name: str, value: Any) -> tuple[int, ...] | None:
    """Check a parameter such as ``hidden_mean`` and return it as a tuple of int, or None."""
    if value is None:
        return None
    units = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (None,)
    whole = (isinstance(u, int | np.integer) and not isinstance(u, bool) for u in units)
    if not all(whole) or not all(1 <= u <= MOST_UNITS for u in units):
        raise ValueError(
            f"The {name!r} parameter must hold whole numbers of hidden units from 1 to "
            f"{MOST_UNITS}, such as (40, 20). Got {value!r} instead."
        )
    return tuple(int(u) for u in units)
