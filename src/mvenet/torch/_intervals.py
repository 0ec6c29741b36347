"""QualityDrivenRegressor: prediction intervals without a density, for networks of one's own."""

from __future__ import annotations

import dataclasses
import math
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from mvenet._estimators.parameters import (
    PENALTY,
    POSITIVE,
    at_least,
    choice,
    setting,
    with_settings,
)
from mvenet._training.fleet import DivergedError, derived_seed, seed_entropy
from mvenet._utils.sklearn import Interval
from mvenet.recipes import DEFAULT
from mvenet.torch import _data
from mvenet.torch._losses import GaussianNLL, QualityDrivenLoss
from mvenet.torch._net import MeanVarianceNet
from mvenet.torch._optim import Adam, param_groups
from mvenet.torch._schedule import SCHEDULES, Schedule, stages
from mvenet.torch._training import own_randomness, random_starts

Array = NDArray[np.float64]
AT_ONCE = 1000  # rows predicted
# What a density would be needed for: asked for, it is refused by its name.
REFUSED = ("predict_dist", "logpdf", "predict_quantiles")
NO_DENSITY = (
    "quality-driven intervals have two ends and no density. Use predict_interval, or "
    "TorchMVERegressor."
)


@with_settings
class QualityDrivenRegressor(RegressorMixin, BaseEstimator):
    """Narrow intervals that hold a given share of the rows (Pearce et al. 2018).

    A network of your own is first trained on squared errors, then by :class:`QualityDrivenLoss`
    (https://arxiv.org/abs/1802.07167); its interval is mean ± exp(log-variance / 2).

    **There is no density**: ``predict_dist``, ``logpdf``, ``predict_quantiles`` and ``return_std``
    are refused, and intervals have the coverage that was trained for and no other. Judge it by
    coverage, width and interval score. The share of rows within is one of all rows together: where
    the noise is small, intervals hold more than that, since it costs little width there.

    Sample weights are refused, as the loss counts rows; ensembles are not offered.

    Parameters
    ----------
    module : MeanVarianceNet, or a function without arguments that makes one
    coverage : float, default=0.9
    softness : float, default=15.0
        Weight of the coverage, λ in the paper.
    sharpness : float, default=160.0
        Of the sigmoid that stands for "row within", s in the paper.
    reg_mean, reg_var : float, default=1e-4, 1e-3
        Penalties on the squared weights of the middle and of the width. The loss is in units of a
        width, not of a likelihood: they do not weigh the same as elsewhere.
    epochs, warmup_epochs : int or "auto", default="auto"
    batch_size : int, default=100
        The share of rows within is that of a batch: a hundred rows or more.
    learning_rate : float, default=1e-2
    schedule : {"ramp-cosine", "cosine", "constant"}, default="ramp-cosine"
    clip_value : float or None, default=5.0
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    network_ : MeanVarianceNet
        Of X to the interval of standardised y.
    y_mean_, y_scale_ : float
        Those units.

    Notes
    -----
    It runs on the CPU. y is standardised, X is not; see :class:`TorchMVERegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from mvenet.torch import MeanVarianceNet, QualityDrivenRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 1))
    >>> y = X[:, 0] + 0.2 * rng.standard_normal(300)
    >>> model = QualityDrivenRegressor(
    ...     lambda: MeanVarianceNet(nn.Linear(1, 1), nn.Linear(1, 1)), random_state=0,
    ...     epochs=200, warmup_epochs=50,
    ... )
    >>> low, high = model.fit(X, y).predict_interval(X).T
    >>> bool(0.8 < np.mean((low < y) & (y < high)) < 1)
    True
    """

    module: Any = setting(nn.Module, callable, default=dataclasses.MISSING, kw_only=False)
    coverage: float = setting(Interval(Real, 0, 1, closed="neither"), default=0.9)
    softness: float = setting(POSITIVE, default=15.0)
    sharpness: float = setting(POSITIVE, default=160.0)
    reg_mean: float = setting(PENALTY, default=1e-4)
    reg_var: float = setting(PENALTY, default=1e-3)
    epochs: int | str = setting(at_least(1, 10**8), choice("auto"), default="auto")
    warmup_epochs: int | str = setting(at_least(1, 10**8), choice("auto"), default="auto")
    batch_size: int = setting(at_least(1, 2**31 - 1), default=100)
    learning_rate: float = setting(POSITIVE, default=DEFAULT["learning_rate"])
    schedule: str = setting(choice(*SCHEDULES), default=DEFAULT["schedule"])
    clip_value: float | None = setting(POSITIVE, None, default=5.0)
    random_state: Any = setting("random_state", np.random.Generator, default=None)

    def __getattr__(self, name: str) -> Any:
        """Say why there is no density; whoever asks by ``hasattr`` hears that there is none."""
        if name in REFUSED:
            raise AttributeError(f"{type(self).__name__} has no {name}: {NO_DENSITY}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "network_" in vars(self)

    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or tensor of shape (n, ...), or torch Dataset
        y : array-like of shape (n,), or None with a Dataset of pairs
        sample_weight : None
            Refused: the loss counts rows.

        Returns
        -------
        self
        """
        if sample_weight is not None:
            raise ValueError(
                "QualityDrivenRegressor counts rows, and takes no sample_weight: leave it out, or "
                "use TorchMVERegressor."
            )
        self._validate_params()
        self.__dict__.pop("network_", None)
        rows = _data.training_rows(self, X, y, None)
        entropy = seed_entropy(self.random_state)
        with own_randomness("cpu"):
            (net,) = random_starts(self.module, 1, entropy)
            if net.tails is not None or net.natural:
                raise ValueError(
                    "module has tails or natural=True, and an interval has neither: leave them out."
                )
            self.y_mean_, self.y_scale_ = rows.units()
            self._train(net, rows.standardised(self.y_mean_, self.y_scale_, net), entropy)
        self.network_ = net.eval()
        return self

    def _train(self, net: MeanVarianceNet, rows: _data.Rows, entropy: Any) -> None:
        """Squared errors in the warm-up, in which the width is fixed; then the intervals."""
        planned = stages(
            "warmup", n_rows=len(rows), batch_size=self.batch_size, epochs=self.epochs,
            warmup_epochs=self.warmup_epochs, learning_rate=self.learning_rate,
        )  # fmt: skip
        batches = _data.loader(rows, self.batch_size, shuffle=True)
        optimizer = Adam(param_groups(net, self.reg_mean, self.reg_var), lr=self.learning_rate)
        schedule = Schedule(
            net, optimizer, epochs=planned[1].epochs, warmup_epochs=planned[0].epochs,
            clip_value=self.clip_value, schedule=self.schedule, steps_per_epoch=len(batches),
        )  # fmt: skip
        intervals = QualityDrivenLoss(self.coverage, self.softness, self.sharpness)
        torch.manual_seed(derived_seed(entropy, 1))
        net.train()
        while not schedule.finished:
            schedule.begin_epoch(batches)
            loss = GaussianNLL() if schedule.stage == "warmup" else intervals
            _epoch(net, loss, batches, optimizer, schedule)
            schedule.end_epoch()

    def _outputs(self, X: Any) -> Array:
        """Middle and half width in units of y, (2, n)."""
        check_is_fitted(self)
        rows = _data.unlabelled_rows(self, X).standardised(0.0, 1.0, self.network_)
        parts = []
        with own_randomness("cpu"), torch.no_grad():
            for inputs, _ in _data.loader(rows, AT_ONCE, shuffle=False):
                middle, log_square = (part.double() for part in _run(self.network_, inputs))
                parts.append(torch.stack([middle, (0.5 * log_square).exp()]))
        middle, half = torch.cat(parts, dim=1).numpy()
        made = np.stack([self.y_mean_ + self.y_scale_ * middle, self.y_scale_ * half])
        if not np.isfinite(made).all():
            raise ValueError("X has rows so far from the training rows that intervals overflow.")
        return made

    def predict(self, X: Any, return_std: bool = False) -> Array:
        """Middle of each interval.

        Parameters
        ----------
        X : array-like or tensor of shape (n, ...), or torch Dataset
        return_std : False
            Refused: there is no density.

        Returns
        -------
        ndarray of shape (n,)
        """
        if return_std:
            raise ValueError(f"return_std=True is not possible: {NO_DENSITY}")
        middle: Array = self._outputs(X)[0]
        return middle

    def predict_interval(self, X: Any, coverage: float | None = None) -> Array:
        """Both ends of each interval.

        Parameters
        ----------
        X : array-like or tensor of shape (n, ...), or torch Dataset
        coverage : float or None
            None, or the one that it was trained for.

        Returns
        -------
        ndarray of shape (n, 2), in units of y
        """
        if coverage is not None and coverage != self.coverage:
            raise ValueError(
                f"coverage={coverage} was not trained for, {self.coverage} was: fit another "
                "QualityDrivenRegressor with it."
            )
        middle, half = self._outputs(X)
        return np.column_stack([middle - half, middle + half])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Minus the mean interval score (Winkler), so that higher is better, in units of y."""
        low, high = self.predict_interval(X).T
        outcome = np.asarray(y, dtype=np.float64)
        outside = np.maximum(low - outcome, 0) + np.maximum(outcome - high, 0)
        scores = high - low + 2 / (1 - self.coverage) * outside
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -float(np.average(scores, weights=weight))


def _run(net: MeanVarianceNet, inputs: Any) -> Any:
    return net(**inputs) if isinstance(inputs, dict) else net(inputs)


def _epoch(
    net: MeanVarianceNet, loss: nn.Module, batches: Any, optimizer: Adam, schedule: Schedule
) -> None:
    """One pass; an error if the loss is no number."""
    total = torch.zeros(())
    for inputs, (target, _) in batches:
        optimizer.zero_grad()
        value = loss(_run(net, inputs), target)
        value.backward()
        schedule.step()
        total = total + value.detach()
    if not math.isfinite(total.item()):
        raise DivergedError(
            "Training diverged, the loss became NaN or infinite: lower learning_rate or softness."
        )
