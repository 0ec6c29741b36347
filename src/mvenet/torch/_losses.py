"""Losses on (mean, log-variance), in the scale of the engine: log σ² + r²/σ².

That is twice ``torch.nn.GaussianNLLLoss`` and, but for a constant, twice the negative
log-likelihood: the scale in which the paper's penalties are meant.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

Output = tuple[Tensor, ...]  # mean and log-variance; of Student's t perhaps degrees of freedom


class _RowLoss(nn.Module):
    """A loss for each row, weighted and reduced as PyTorch's losses are."""

    learns_tails = False  # whether a network returns degrees of freedom, too

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
        mean, log_variance, *tails = output
        if bool(tails) != self.learns_tails:
            raise ValueError(
                f"The network returned {len(output)} numbers a row: degrees of freedom, of "
                "MeanVarianceNet(..., tails=...), go with StudentTNLL(df=None) and with nothing "
                "else."
            )
        if not mean.shape == log_variance.shape == target.shape:
            raise ValueError(
                f"mean {tuple(mean.shape)}, log-variance {tuple(log_variance.shape)} and target "
                f"{tuple(target.shape)} must have one shape: use target.flatten() for a column."
            )
        losses = self.rows(mean, log_variance, target, *tails)
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

    ``[σ^2β] (log σ² + r²/σ²)``; what is in brackets has no gradient
    (https://arxiv.org/abs/2203.09168). The mean's gradient is then ``-2r σ^(2β - 2)``: rows that
    are called noisy pull harder than by the likelihood.

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

    ``r² + log σ² + [r]²/σ²``; what is in brackets has no gradient
    (https://arxiv.org/abs/2212.09184).

    With a shared trunk, use ``MeanVarianceNet(..., detach_trunk=True)`` too.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default="mean"
    """

    def rows(self, mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
        """Loss of each row."""
        return (target - mean).square() + super().rows(mean.detach(), log_variance, target)


class CRPSLoss(_RowLoss):
    """Continuous ranked probability score of a normal, times 2√π (Gneiting et al. 2005).

    ``σ (z (2Φ(z) - 1) + 2φ(z) - 1/√π)`` with ``z = r/σ`` (https://doi.org/10.1175/MWR2904.1,
    equation 5). A row far away costs in proportion to its distance, not to its square. The factor
    gives the mean the curvature that it has under the likelihood where σ is 1, so that penalties
    mean the same.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default="mean"

    Examples
    --------
    >>> import torch
    >>> from mvenet.torch import CRPSLoss
    >>> output = torch.zeros(2), torch.zeros(2)
    >>> CRPSLoss("none")(output, torch.tensor([0.0, 3.0]))
    tensor([0.8284, 8.6374])
    """

    def rows(self, mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
        """Loss of each row."""
        std = (0.5 * log_variance).exp()
        z = (target - mean) / std
        bell = (-0.5 * z.square()).exp()
        sign = torch.erf(z / math.sqrt(2.0))
        return std * (2 * math.sqrt(math.pi) * z * sign + 2 * math.sqrt(2.0) * bell - 2)


class StudentTNLL(_RowLoss):
    """Likelihood of Student's t, ``log σ² + (ν + 1) log(1 + r²/(νσ²))`` (Takahashi et al. 2018).

    See https://arxiv.org/abs/1802.10530. σ is its scale, not its standard deviation, which is
    ``σ √(ν/(ν - 2))``.

    Parameters
    ----------
    df : float or None, default=5.0
        Degrees of freedom ν, the same for all rows; the more, the closer to a normal. None are
        those that the network says of each row, ``MeanVarianceNet(..., tails=...)``; then the loss
        has ``2 log Γ(ν/2) - 2 log Γ((ν + 1)/2) + log(ν/2)`` besides. In either case it is twice the
        negative log-likelihood but for a constant. With None that is log 2π, as of
        :class:`GaussianNLL`, which it becomes with many degrees of freedom.
    reduction : {"mean", "sum", "none"}, default="mean"

    Examples
    --------
    >>> import torch
    >>> from mvenet.torch import StudentTNLL
    >>> output = torch.zeros(2), torch.zeros(2)
    >>> StudentTNLL(df=3.0, reduction="none")(output, torch.tensor([0.0, 3.0]))
    tensor([0.0000, 5.5452])

    Degrees of freedom of each row, as a third output:

    >>> output = torch.zeros(2), torch.zeros(2), torch.tensor([3.0, 100.0])
    >>> StudentTNLL(df=None, reduction="none")(output, torch.tensor([3.0, 3.0]))
    tensor([5.7091, 8.7090])

    Notes
    -----
    Student's t is what is predicted of a normal whose precision p is not known for certain. Let p
    have a Gamma distribution of shape α and rate β, its posterior after some residuals; the
    variance 1/p then has an inverse Gamma distribution. So ``∫ N(y; μ, 1/p) Gamma(p; α, β) dp`` is
    Student's t with location μ, scale ``σ² = β/α`` and ``ν = 2α`` degrees of freedom: a network
    that learns σ² and ν of each row learns α = ν/2 and β = νσ²/2, how large the noise is and how
    well that is known (Takahashi et al., section 3; Skafte et al. 2019,
    https://arxiv.org/abs/1906.03260, section 3.3).
    """

    def __init__(self, df: float | None = 5.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if df is not None and not 0 < df < math.inf:
            raise ValueError(f"df={df} must be positive and finite: use 5.0, or None to learn it.")
        self.df, self.learns_tails = df, df is None

    def rows(
        self, mean: Tensor, log_variance: Tensor, target: Tensor, df: Tensor | None = None
    ) -> Tensor:
        """Loss of each row; ``log_variance`` is the logarithm of the squared scale."""
        square = (target - mean).square() * (-log_variance).exp()
        if df is None:
            assert self.df is not None
            return log_variance + (self.df + 1) * torch.log1p(square / self.df)
        constant = 2 * (torch.lgamma(df / 2) - torch.lgamma((df + 1) / 2)) + (df / 2).log()
        return log_variance + constant + (df + 1) * torch.log1p(square / df)


class QualityDrivenLoss(nn.Module):
    """Narrow intervals that hold enough rows of the batch (Pearce et al. 2018, equation 15).

    The interval of a row is ``mean ± σ``. With ``c`` the share of the n rows within theirs, the
    loss is ``Σ 2σ [row within] / Σ [row within] + softness · n / (α (1 - α)) · max(0, 1 - α - c)²``
    for ``α = 1 - coverage`` (https://arxiv.org/abs/1802.07167). In the second term a sigmoid of
    ``sharpness`` times the distance to either end stands for [row within], which has no gradient.

    It gives two ends and no density: use them as an interval, not as a standard deviation. Batches
    should have a hundred rows or more, as ``c`` is that of the batch.

    Parameters
    ----------
    coverage : float, default=0.9
    softness : float, default=15.0
        The weight of the coverage, λ in the paper.
    sharpness : float, default=160.0
        Of the sigmoid, s in the paper.

    Examples
    --------
    >>> import torch
    >>> from mvenet.torch import QualityDrivenLoss
    >>> output = torch.zeros(4), torch.zeros(4)  # from -1 to 1
    >>> target = torch.tensor([0.0, 0.5, -0.5, 3.0])
    >>> QualityDrivenLoss(coverage=0.75)(output, target)  # wide enough: the width alone
    tensor(2.)
    """

    def __init__(
        self, coverage: float = 0.9, softness: float = 15.0, sharpness: float = 160.0
    ) -> None:
        super().__init__()
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage} must lie between 0 and 1: write 0.9 for 90 %.")
        self.coverage, self.softness, self.sharpness = coverage, softness, sharpness

    def forward(self, output: Output, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Loss of a batch; weights are refused, as a share of rows has none."""
        if weight is not None and not bool((weight == weight[0]).all()):
            raise ValueError("QualityDrivenLoss counts rows, and takes no weights: leave them out.")
        if len(output) != 2:
            raise ValueError("QualityDrivenLoss knows no tails: leave them out of MeanVarianceNet.")
        mean, log_variance = output
        half = (0.5 * log_variance).exp()
        inside = half - (target - mean).abs()
        held = (inside >= 0).to(half.dtype)
        width = (2 * half * held).sum() / held.sum().clamp(min=1)
        below = self.sharpness * (target - mean + half)
        above = self.sharpness * (mean + half - target)
        share = (torch.sigmoid(below) * torch.sigmoid(above)).mean()
        missing = (self.coverage - share).clamp(min=0)
        factor = self.softness * len(target) / (self.coverage * (1 - self.coverage))
        return width + factor * missing.square()


class NaturalNLL(_RowLoss):
    """Gaussian likelihood of natural parameters, for a module that returns (η, log σ²).

    η = mean / σ² and −1/(2σ²) are the natural parameters of a normal distribution (Immer et al.
    2023, https://arxiv.org/abs/2304.07658): ``log σ² + y²/σ² - 2ηy + η²σ²``. The value is that of
    :class:`GaussianNLL` at ``natural_to_mean(η, log σ²)``; written in η it is convex in each of the
    two natural parameters.

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
