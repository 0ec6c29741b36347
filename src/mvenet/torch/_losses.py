"""Losses on (mean, log-variance), in the scale of the engine: log σ² + r²/σ².

That is twice ``torch.nn.GaussianNLLLoss`` and, but for a constant, twice the negative
log-likelihood: the scale in which the paper's penalties are meant.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

Output = tuple[Tensor, Tensor]


class _RowLoss(nn.Module):
    """A loss for each row, weighted and reduced as PyTorch's losses are."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction={reduction!r} is unknown: use 'mean', 'sum' or 'none'.")
        self.reduction = reduction

    @abstractmethod
    def rows(self, mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
        """Loss of each row."""

    def forward(self, output: Output, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Loss of what a network returned; weights multiply, and "mean" divides by the rows."""
        mean, log_variance = output
        if not mean.shape == log_variance.shape == target.shape:
            raise ValueError(
                f"mean {tuple(mean.shape)}, log-variance {tuple(log_variance.shape)} and target "
                f"{tuple(target.shape)} must have one shape: use target.flatten() for a column."
            )
        losses = self.rows(mean, log_variance, target)
        if weight is not None:
            losses = weight * losses
        if self.reduction == "mean":
            return losses.mean()
        return losses.sum() if self.reduction == "sum" else losses


class GaussianNLL(_RowLoss):
    """Gaussian negative log-likelihood, ``log σ² + r²/σ²``.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default="mean"

    Examples
    --------
    >>> import torch
    >>> from mvenet.torch import GaussianNLL
    >>> output = torch.zeros(2), torch.zeros(2)
    >>> GaussianNLL()(output, torch.tensor([1.0, 3.0]))
    tensor(5.)
    """

    def rows(self, mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
        """Loss of each row."""
        return log_variance + (target - mean).square() * (-log_variance).exp()


class BetaNLL(GaussianNLL):
    """β-NLL: each row's likelihood times σ^2β, a weight without gradient (Seitzer et al. 2022).

    Parameters
    ----------
    beta : float, default=0.5
        0 is the likelihood; with 1 the mean's gradient is that of squared errors.
    reduction : {"mean", "sum", "none"}, default="mean"
    """

    def __init__(self, beta: float = 0.5, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.beta = beta

    def rows(self, mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
        """Loss of each row."""
        factor = (self.beta * log_variance.detach()).exp()
        return factor * super().rows(mean, log_variance, target)


class FaithfulNLL(GaussianNLL):
    """Squared errors for the mean, the likelihood for the variance alone (Stirn et al. 2023).

    With a shared trunk, use ``MeanVarianceNet(..., detach_trunk=True)`` too.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default="mean"
    """

    def rows(self, mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
        """Loss of each row."""
        return (target - mean).square() + super().rows(mean.detach(), log_variance, target)


class NaturalNLL(_RowLoss):
    """Gaussian likelihood of natural parameters, for a module that returns (η, log σ²).

    η = mean / σ² and −1/(2σ²) are the natural parameters of a normal distribution (Immer et al.
    2023). The value is that of :class:`GaussianNLL` at ``natural_to_mean(η, log σ²)``; written in
    η it is convex in each of the two natural parameters.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default="mean"
    """

    def rows(self, mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
        """Loss of each row; ``mean`` is η here."""
        precision, eta = (-log_variance).exp(), mean
        squares = precision * target.square() - 2 * eta * target + eta.square() / precision
        return log_variance + squares


def natural_to_mean(eta: Tensor, log_variance: Tensor) -> Output:
    """(mean, log-variance) from the first natural parameter, mean / variance, and log-variance."""
    return eta * torch.exp(log_variance), log_variance
