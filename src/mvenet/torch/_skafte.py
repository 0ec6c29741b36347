"""What Skafte, Jørgensen and Hauberg train variances by (2019, https://arxiv.org/abs/1906.03260).

Batches of neighbours, and a variance that grows away from the data. The other two of their four
parts are elsewhere: ``Schedule(strategy="alternating")`` trains mean and variance in turn, and the
likelihood of a variance with an inverse Gamma posterior is ``StudentTNLL``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn

from mvenet.torch._net import MeanVarianceNet

NEAR = 6.9077  # sigmoid(-NEAR) is a thousandth: at the centres the network has its say


class LocalityBatches:
    """Batches of neighbours, and the weights that make their loss that of all rows.

    A variance cannot be seen in a row alone. A batch has ``secondary`` of the ``neighbours``
    nearest rows of each of ``primary`` random rows, so that residuals at nearly the same x meet.
    Rows with many neighbours are drawn more often: with the weight ``neighbours / c``, where c rows
    have a row among their nearest, the mean loss of a batch has the mean loss of all rows as its
    expectation (Horvitz and Thompson).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows, in units in which distances mean something: standardised, say.
    primary, secondary, neighbours : int, default=4, 8, 32
        ``secondary`` is at most ``neighbours``, and these at most the number of rows.
    random_state : int, Generator or None, default=None

    Examples
    --------
    Mean and variance in turn, on batches of neighbours:

    >>> import torch
    >>> from torch import nn
    >>> from mvenet.torch import GaussianNLL, LocalityBatches, MeanVarianceNet
    >>> x = torch.linspace(-1, 1, 200)[:, None]
    >>> y = x[:, 0] ** 2
    >>> net, loss = MeanVarianceNet(nn.Linear(1, 1), nn.Linear(1, 1)), GaussianNLL()
    >>> optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    >>> for epoch in range(4):
    ...     _ = net.mean.requires_grad_(epoch % 2 == 0)
    ...     _ = net.variance.requires_grad_(epoch % 2 == 1)
    ...     for rows, weight in LocalityBatches(x, random_state=epoch):
    ...         optimizer.zero_grad()
    ...         loss(net(x[rows]), y[rows], weight).backward()
    ...         optimizer.step()
    """

    def __init__(
        self,
        X: ArrayLike,
        primary: int = 4,
        secondary: int = 8,
        neighbours: int = 32,
        random_state: Any = None,
    ) -> None:
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise ValueError(
                f"X must be a table of finite numbers, got shape {rows.shape}: use X[:, None] for "
                "one column, and fill what is missing."
            )
        limits = {"primary": len(rows), "neighbours": len(rows), "secondary": neighbours}
        given = {"primary": primary, "neighbours": neighbours, "secondary": secondary}
        for name, value in given.items():
            if not isinstance(value, int | np.integer) or not 1 <= value <= limits[name]:
                raise ValueError(
                    f"{name}={value!r} must be a whole number from 1 to {limits[name]}: lower it, "
                    "or give more rows."
                )
        self.primary, self.secondary, self.neighbours = primary, secondary, neighbours
        self.random = np.random.default_rng(random_state)
        search = NearestNeighbors(n_neighbors=neighbours).fit(rows)
        self.nearest = search.kneighbors(rows, return_distance=False)
        own = np.arange(len(rows))
        lost = ~(self.nearest == own[:, None]).any(axis=1)  # among more copies than neighbours
        self.nearest[lost, -1] = own[lost]
        self.weights = neighbours / np.bincount(self.nearest.ravel(), minlength=len(rows))

    def __len__(self) -> int:
        """Batches in a pass: as many as have, together, as many rows as there are."""
        return math.ceil(len(self.nearest) / (self.primary * self.secondary))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Row numbers, a row perhaps twice, and weights, each of shape (primary · secondary,)."""
        for _ in range(len(self)):
            first = self.random.choice(len(self.nearest), self.primary, replace=False)
            places = self.random.random((self.primary, self.neighbours)).argsort(axis=1)
            chosen = np.take_along_axis(self.nearest[first], places[:, : self.secondary], axis=1)
            rows = chosen.ravel()
            weights = torch.as_tensor(self.weights[rows], dtype=torch.get_default_dtype())
            yield torch.as_tensor(rows), weights


class FarVarianceNet(MeanVarianceNet):
    """A mean-variance network whose variance goes to a given one away from the data.

    With δ the distance to the nearest of the ``centres``, the variance is ``(1 - ν) σ² + ν far``,
    ``ν = sigmoid(δ/γ - 6.9)``: at the centres only a thousandth of it is ``far``. The length γ is
    learned. What a network says far from all rows that it was trained on means nothing; this one
    says so.

    Parameters
    ----------
    mean : Module
    variance : Module or None
    centres : array-like of shape (m, d)
        Places where the data are, in the units of the inputs: some training rows, or the centres of
        a k-means clustering of them.
    far : float, default=1.0
        Variance far away, in units of that of y; with ``tails`` the squared scale.
    length : float, default=1.0
        γ at the start.
    **settings
        Further parameters of :class:`MeanVarianceNet`, but no trunk.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from mvenet.torch import FarVarianceNet
    >>> net = FarVarianceNet(nn.Linear(1, 1), None, centres=[[0.0], [1.0]], start=-4.0, length=0.1)
    >>> _, log_variance = net(torch.tensor([[0.5], [100.0]]))
    >>> log_variance.detach().exp()
    tensor([0.1452, 1.0000])
    """

    def __init__(
        self,
        mean: nn.Module,
        variance: nn.Module | None,
        centres: ArrayLike,
        far: float = 1.0,
        length: float = 1.0,
        **settings: Any,
    ) -> None:
        if settings.get("trunk") is not None:
            raise ValueError("FarVarianceNet measures distances of the inputs: use no trunk.")
        super().__init__(mean, variance, **settings)
        for name, value in (("far", far), ("length", length)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name}={value} must be positive and finite: use, say, 1.0.")
        places = torch.as_tensor(np.asarray(centres, dtype=np.float64))
        if places.ndim != 2 or not len(places) or not bool(torch.isfinite(places).all()):
            raise ValueError(
                f"centres must be a table of finite numbers, got shape {tuple(places.shape)}: pass "
                "some training rows."
            )
        like = next(mean.parameters(), torch.zeros(()))
        self.register_buffer("centres", places.to(like.dtype))
        self.log_length = nn.Parameter(torch.tensor(math.log(length), dtype=like.dtype))
        self.log_far = math.log(far)

    def forward(self, *inputs: Any, **named: Any) -> tuple[Tensor, ...]:
        """Mean and log-variance of each row."""
        mean, log_variance, *tails = super().forward(*inputs, **named)
        if self.stage == "warmup":
            return mean, log_variance, *tails
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.stage != "mean"):
            distance = torch.cdist(inputs[0].to(self.centres.dtype), self.centres).amin(dim=1)
            place = distance / self.log_length.exp() - NEAR
            near, away = nn.functional.logsigmoid(-place), nn.functional.logsigmoid(place)
            log_variance = torch.logaddexp(near + log_variance, away + self.log_far)
        return mean, log_variance, *tails
