"""Dropout that also speaks at prediction: Monte-Carlo and concrete dropout.

In training each row has a mask of its own. Within :func:`sampling` one mask serves all rows: a draw
is then one network, a row's prediction does not depend on its neighbours, and many draws are an
ensemble. Elsewhere, in evaluation mode, both layers do nothing.
"""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class _Stochastic(nn.Module):
    """A layer that draws masks in training and while sampling."""

    sampling = False

    def masked(self, x: Tensor) -> Tensor:
        """Drop features of (n, features), whole channels of (n, channels, ...)."""
        if not (self.training or self.sampling):
            return x
        rows = 1 if self.sampling else len(x)
        shape = (rows, x.shape[1], *(1 for _ in x.shape[2:]))
        return x * self.mask(torch.rand(shape, dtype=x.dtype, device=x.device))

    @abstractmethod
    def mask(self, uniform: Tensor) -> Tensor:
        """Factors from uniform random numbers."""


class MCDropout(_Stochastic):
    """Dropout whose draws are an ensemble (Gal and Ghahramani 2016).

    Parameters
    ----------
    p : float, default=0.1
        Probability of dropping a feature, or a channel of a convolution.
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p={p} must be at least 0 and below 1: use, say, 0.1.")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop at random in training and while sampling."""
        return self.masked(x)

    def mask(self, uniform: Tensor) -> Tensor:
        """0 or 1 / (1 - p)."""
        return (uniform >= self.p).to(uniform.dtype) / (1 - self.p)

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        return f"p={self.p}"


class ConcreteDropout(_Stochastic):
    """Dropout before a layer that learns its own probability (Gal, Hron and Kendall 2017).

    Add :func:`regularisation` of the network to the loss: without it the probability goes to zero.

    Parameters
    ----------
    layer : Module
        ``nn.Linear`` or a convolution, with a ``weight`` of shape (out, in, ...).
    n_rows : int
        Training rows, which decide how much the prior weighs.
    length_scale : float, default=1e-2
        Of the prior: the penalty on the layer's squared weights is ``length_scale² / n_rows``.
    p : float, default=0.1
        Probability at the start.
    temperature : float, default=0.1
        Of the relaxation of a mask of zeros and ones.
    """

    def __init__(
        self,
        layer: nn.Module,
        n_rows: int,
        length_scale: float = 1e-2,
        p: float = 0.1,
        temperature: float = 0.1,
    ) -> None:
        super().__init__()
        weight = getattr(layer, "weight", None)
        if not isinstance(weight, Tensor) or weight.ndim < 2:
            raise TypeError(
                f"layer must be linear or a convolution, with a weight (out, in, ...), got "
                f"{layer!r}: wrap such a layer."
            )
        if not 0 < p < 1 or n_rows < 1:
            raise ValueError(f"p={p} must lie between 0 and 1, and n_rows={n_rows} be positive.")
        self.layer, self.temperature = layer, temperature
        self.n_rows, self.length_scale, self.start = n_rows, length_scale, p
        self.logit = nn.Parameter(weight.new_zeros(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew from the probability given."""
        with torch.no_grad():
            self.logit.fill_(math.log(self.start / (1 - self.start)))

    @property
    def p(self) -> Tensor:
        """The probability of dropping, as it is now."""
        return torch.sigmoid(self.logit)

    def forward(self, x: Tensor) -> Tensor:
        """The layer, of inputs that are dropped in training and while sampling."""
        return self.layer(self.masked(x))

    def mask(self, uniform: Tensor) -> Tensor:
        """A relaxed Bernoulli mask, divided by the probability of keeping."""
        noise = torch.logit(uniform, eps=1e-7)
        return torch.sigmoid(-(self.logit + noise) / self.temperature) / (1 - self.p)

    def regularisation(self) -> Tensor:
        """Divergence from the prior, divided by half the rows, as in the authors' own loss.

        ``length_scale² / n · Σ W² / (1 - p)  -  2 / n · features · entropy(p)``
        """
        weight, p = self.layer.weight, self.p
        entropy = -(p * p.log() + (1 - p) * (1 - p).log())
        weights = self.length_scale**2 * weight.square().sum() / (1 - p)
        return (weights - 2 * weight.shape[1] * entropy) / self.n_rows

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        return f"n_rows={self.n_rows}, length_scale={self.length_scale}"


def regularisation(net: nn.Module) -> Tensor | float:
    """Sum over the :class:`ConcreteDropout` layers of a network, to be added to the mean loss."""
    return sum(layer.regularisation() for layer in net.modules() if _is_concrete(layer))


def _is_concrete(layer: nn.Module) -> bool:
    return isinstance(layer, ConcreteDropout)


def is_stochastic(net: nn.Module) -> bool:
    """Whether a network has layers that :func:`sampling` turns on."""
    return any(isinstance(layer, _Stochastic) for layer in net.modules())


@contextlib.contextmanager
def sampling(net: nn.Module) -> Iterator[None]:
    """Within it, every call draws one mask for all rows.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from mvenet.torch import MCDropout, sampling
    >>> net = nn.Sequential(MCDropout(0.5), nn.Linear(8, 1)).eval()
    >>> with torch.no_grad(), sampling(net):
    ...     draws = torch.stack([net(torch.ones(3, 8))[:, 0] for _ in range(100)])
    >>> bool((draws.std(dim=0) > 0).all()), bool((draws[:, 0] == draws[:, 1]).all())
    (True, True)
    """
    layers = [layer for layer in net.modules() if isinstance(layer, _Stochastic)]
    try:
        for layer in layers:
            layer.sampling = True
        yield
    finally:
        for layer in layers:
            layer.sampling = False
