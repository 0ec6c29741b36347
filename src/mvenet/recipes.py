"""How a network is built and trained: architectures, stages and the two named recipes.

A recipe is a read-only mapping of :class:`mvenet.MVERegressor` parameters, so that
``MVERegressor(**recipes.PAPER)`` is the paper to the letter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

__all__ = ["DEFAULT", "PAPER", "STRATEGIES", "Architecture", "Stage", "Training", "stages"]

Mode = Literal["warmup", "joint", "variance"]

STRATEGIES: Mapping[str, tuple[Mode, ...]] = MappingProxyType(
    {
        "no-warmup": ("joint",),
        "warmup": ("warmup", "joint"),
        "warmup-fixed-mean": ("warmup", "variance"),
    }
)
"""The paper's three strategies: what is trained, stage by stage."""

PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "hidden_mean": (40, 20),
        "hidden_var": (40, 20),
        "activation": "elu",
        "strategy": "warmup",
        "objective": "nll",
        "epochs": 1000,
        "warmup_epochs": 1000,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "schedule": "constant",
        "clip_value": 5.0,
    }
)
"""The paper's own settings, as its authors' code has them; the penalties are left to the user."""

DEFAULT: Mapping[str, Any] = MappingProxyType(
    {
        **PAPER,
        "epochs": "auto",
        "warmup_epochs": "auto",
        "learning_rate": 1e-2,
        "schedule": "ramp-cosine",
    }
)
"""What :class:`mvenet.MVERegressor` does: the shortest recipe that measured as good as PAPER."""


@dataclass(frozen=True)
class Architecture:
    """The two networks: hidden units of the mean, of the log-variance, and the activation.

    ``hidden_var=()`` is a log-variance linear in the inputs, ``hidden_var=None`` a constant; the
    same for the mean. A standardised input z enters as z / sqrt(1 + (z / ``input_bound``)²), which
    never leaves ±``input_bound``; infinity leaves it as it is.
    """

    hidden_mean: tuple[int, ...] | None = PAPER["hidden_mean"]
    hidden_var: tuple[int, ...] | None = PAPER["hidden_var"]
    activation: str = PAPER["activation"]
    input_bound: float = math.inf

    def sizes(self, n_inputs: int) -> tuple[list[int], list[int]]:
        """Layer sizes of both networks, inputs first, the single output last."""
        mean, variance = (
            [0, 1] if hidden is None else [n_inputs, *hidden, 1]
            for hidden in (self.hidden_mean, self.hidden_var)
        )
        return mean, variance


@dataclass(frozen=True)
class Training:
    """What all networks of a fleet have in common besides their architecture.

    ``beta`` belongs to the objective "beta-nll"; ``beta2`` is the decay of Adam's second moment.
    """

    objective: str = PAPER["objective"]
    beta: float = 0.5
    batch_size: int = PAPER["batch_size"]
    clip_value: float | None = PAPER["clip_value"]
    beta2: float = 0.999


@dataclass(frozen=True)
class Stage:
    """One stretch of training.

    ``mode`` is ``"warmup"`` (the mean alone, variance exactly constant), ``"joint"`` or
    ``"variance"`` (the mean stays as it is). ``init_var_bias`` starts the variance at the mean
    squared residual. ``patience`` > 0 stops early on the validation rows. ``schedule`` is
    "constant"; "cosine": the learning rate falls to zero along half a cosine; or "ramp-cosine": it
    first rises from zero over a twentieth of the stage's steps.
    """

    mode: Mode
    epochs: int
    learning_rate: float
    schedule: str = "constant"
    reg_mean: float = 0.0
    reg_var: float = 0.0
    init_var_bias: bool = False
    patience: int = 0


def stages(
    strategy: str,
    *,
    n_rows: int,
    batch_size: int,
    epochs: int | str,
    warmup_epochs: int | str,
    **settings: Any,
) -> tuple[Stage, ...]:
    """Stages of one of the strategies, for a training set of ``n_rows``."""
    if epochs == "auto":
        epochs = epochs_within(n_rows, batch_size, *AUTO)
    if warmup_epochs == "auto":
        warmup_epochs = epochs_within(n_rows, batch_size, *AUTO_WARMUP)
    modes = STRATEGIES[strategy]
    return tuple(
        Stage(
            mode,
            int(warmup_epochs if mode == "warmup" else epochs),
            init_var_bias=i > 0,
            **settings,
        )
        for i, mode in enumerate(modes)
    )


# "auto": so many passes over the rows, within so many gradient steps (benchmarks/README.md)
AUTO_WARMUP = (10, 1_000, 100_000)
AUTO = (240, 4_000, 300_000)


def epochs_within(n_rows: int, batch_size: int, epochs: int, least: int, most: int) -> int:
    """Epochs that make at least ``least`` and at most ``most`` gradient steps, and at least one."""
    batches = math.ceil(n_rows / batch_size)
    return max(1, min(max(epochs, math.ceil(least / batches)), most // batches))


def hidden_units(name: str, value: Any) -> tuple[int, ...] | None:
    """Check a parameter such as ``hidden_mean`` and return it as a tuple of int, or None."""
    if value is None:
        return None
    units = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (None,)
    whole = (isinstance(u, int | np.integer) and not isinstance(u, bool) for u in units)
    if not all(whole) or not all(1 <= u <= 65536 for u in units):
        raise ValueError(
            f"The {name!r} parameter must hold whole numbers of hidden units from 1 to 65536, such "
            f"as (40, 20). Got {value!r} instead."
        )
    return tuple(int(u) for u in units)
