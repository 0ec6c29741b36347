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

__all__ = ["DEFAULT", "PAPER"]

Mode = Literal["warmup", "joint", "variance"]
Length = tuple[int, int, int]  # epochs, least and most gradient steps: see epochs_within

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
class Training:
    """What all networks of a fleet have in common besides their architecture.

    ``beta`` belongs to the objective "beta-nll", ``df`` to "student-t".
    """

    objective: str = PAPER["objective"]
    beta: float = 0.5
    batch_size: int = PAPER["batch_size"]
    clip_value: float | None = PAPER["clip_value"]
    df: float = 5.0


@dataclass(frozen=True)
class Stage:
    """One stretch of training.

    ``mode`` is ``"warmup"`` (the mean alone, variance exactly constant), ``"joint"`` or
    ``"variance"`` (the mean stays as it is). ``init_var_bias`` starts the variance at the mean
    squared residual. ``patience`` > 0 stops early on the validation rows. ``window`` > 0 ends a
    warm-up when so many epochs lower the loss by less than one per cent. ``schedule`` is
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
    window: int = 0


def stages(
    strategy: str,
    *,
    n_rows: int,
    batch_size: int,
    epochs: int | str,
    warmup_epochs: int | str,
    auto: tuple[Length, Length] | None = None,
    **settings: Any,
) -> tuple[Stage, ...]:
    """Stages of one of the strategies, for a training set of ``n_rows``.

    ``auto`` says what "auto" is for the warm-up and after it. A warm-up that is to end when it has
    "converged" has as many epochs as what follows, at most.
    """
    during, after = (AUTO_WARMUP, AUTO) if auto is None else auto
    if epochs == "auto":
        epochs = epochs_within(n_rows, batch_size, *after)
    window = WINDOW if warmup_epochs == CONVERGED else 0
    if warmup_epochs == "auto":
        warmup_epochs = epochs_within(n_rows, batch_size, *during)
    elif warmup_epochs == CONVERGED:
        warmup_epochs = epochs
    modes = STRATEGIES[strategy]
    return tuple(
        Stage(
            mode,
            int(warmup_epochs if mode == "warmup" else epochs),
            init_var_bias=i > 0,
            window=window if mode == "warmup" else 0,
            **settings,
        )
        for i, mode in enumerate(modes)
    )


CONVERGED = "converged"
WINDOW = 10  # epochs by which the convergence of a warm-up is judged

# "auto": so many passes over the rows, within so many gradient steps (benchmarks/README.md)
AUTO_WARMUP = (10, 1_000, 100_000)
AUTO = (240, 4_000, 300_000)


# Rows of a gradient step below so many rows; untested
BATCH_SIZES = ((32, 4_000), (64, 12_000), (128, 40_000))
LARGEST_BATCH = 256


def batch_size_for(n_rows: int) -> int:
    """Rows in a gradient step for a table of ``n_rows``: the larger, the more."""
    return next((size for size, most in BATCH_SIZES if n_rows < most), LARGEST_BATCH)


def epochs_within(n_rows: int, batch_size: int, epochs: int, least: int, most: int) -> int:
    """Epochs that make at least ``least`` and at most ``most`` gradient steps, and at least one."""
    batches = math.ceil(n_rows / batch_size)
    return max(1, min(max(epochs, math.ceil(least / batches)), most // batches))
