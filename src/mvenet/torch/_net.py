"""MeanVarianceNet: any two modules, or a trunk with two heads, as a mean-variance network."""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor, nn

STAGES = ("warmup", "joint", "mean", "variance")
HALF = (torch.float16, torch.bfloat16)
LEAST_DF, MOST_DF = 3.0, 100.0  # of tails that are learned: with more it is all but a normal
MIDDLE_DF = math.sqrt(LEAST_DF * MOST_DF)


class MeanVarianceNet(nn.Module):
    """A network for the mean and one for the log-variance, of the same inputs.

    ``MeanVarianceNet(mean, variance)`` has two separate modules, the original architecture, which
    can be penalised separately. ``MeanVarianceNet(mean_head, variance_head, trunk=trunk)`` is the
    modern one: both heads see what the trunk returns.

    ``net(x)`` returns ``(mean, log_variance)``, each of shape (n,). The variance is
    ``exp(s) + floor`` of the variance module's output s; in the stage ``"warmup"`` it is exactly e
    for every row and the variance module is not run.

    With ``tails`` it returns ``(mean, log_variance, df)``: location, logarithm of the squared scale
    and degrees of freedom of Student's t for each row (Takahashi et al. 2018,
    https://arxiv.org/abs/1802.10530). They are ``3 (100/3)^sigmoid(t)`` of the module's output t,
    between 3 and 100, so that a variance exists and nothing overflows; near 17 at the start, and
    exactly √300 in the warm-up. :class:`~mvenet.torch.StudentTNLL` trains them.

    Parameters
    ----------
    mean : Module
        Returns one number a row, (n,) or (n, 1).
    variance : Module or None
        The same; None is a variance that is the same for all rows.
    trunk : Module or None, default=None
        Run first, if given; the heads get what it returns.
    tails : Module or None, default=None
        Degrees of freedom of Student's t: one number a row, of what the variance module gets, too.
    natural : bool, default=False
        Whether the mean module returns mean / variance, the first natural parameter of a normal
        distribution (Immer et al. 2023). Not with a warm-up: the mean would follow the variance.
    detach_trunk : bool, default=False
        Whether the variance head sends no gradient into the trunk, as faithful regression has it
        (Stirn et al. 2023).
    start : float or None, default=1.0
        What the bias of the variance's output is set to now; None leaves it.
    floor : float, default=1e-6
        Least variance, in units of standardised y.

    Attributes
    ----------
    stage : {"joint", "warmup", "mean", "variance"}
        What is trained; :class:`~mvenet.torch.Schedule` sets it. In ``"variance"`` the mean and the
        trunk get no gradient and are in evaluation mode, in ``"mean"`` the variance and the tails.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from mvenet.torch import MeanVarianceNet
    >>> def perceptron():
    ...     return nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 1))
    >>> mean, log_variance = MeanVarianceNet(perceptron(), perceptron())(torch.zeros(5, 3))
    >>> mean.shape, log_variance.shape
    (torch.Size([5]), torch.Size([5]))
    """

    def __init__(
        self,
        mean: nn.Module,
        variance: nn.Module | None,
        trunk: nn.Module | None = None,
        *,
        tails: nn.Module | None = None,
        natural: bool = False,
        detach_trunk: bool = False,
        start: float | None = 1.0,
        floor: float = 1e-6,
    ) -> None:
        super().__init__()
        for name, part, needed in (("mean", mean, True), ("variance", variance, False),
                                   ("trunk", trunk, False), ("tails", tails, False)):  # fmt: skip
            if not (isinstance(part, nn.Module) or (part is None and not needed)):
                raise TypeError(f"{name} must be a torch.nn.Module, got {part!r}: pass a module.")
        if not 0 < floor < 1:
            raise ValueError(f"floor={floor} must lie between 0 and 1: use, say, 1e-6.")
        if tails is not None and natural:
            raise ValueError("tails are Student's, natural=True is a normal's: leave one out.")
        self.mean, self.variance, self.trunk, self.tails = mean, variance, trunk, tails
        self.natural, self.detach_trunk, self.stage = natural, detach_trunk, "joint"
        self.register_buffer("log_floor", torch.tensor(math.log(floor)), persistent=False)
        self._bias_name = _output_bias(variance)
        if self._bias_name is None:  # a variance without an output bias gets one
            like = next(mean.parameters(), torch.zeros(()))
            self.bias = nn.Parameter(torch.zeros((), dtype=like.dtype, device=like.device))
        if start is not None:
            self.set_output_bias(start)

    def forward(self, *inputs: Any, **named: Any) -> tuple[Tensor, ...]:
        """Mean and log-variance of each row; the inputs go to the trunk or to both modules."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.stage != "variance"):
            if self.trunk is not None:
                inputs, named = (self.trunk(*inputs, **named),), {}
            mean = _one_a_row(self.mean(*inputs, **named), "mean")
        if self.stage == "warmup":
            tails = () if self.tails is None else (torch.full_like(mean, MIDDLE_DF),)
            return mean, torch.ones_like(mean), *tails
        if self.trunk is not None and self.detach_trunk:
            inputs = (inputs[0].detach(),)
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.stage != "mean"):
            log_variance = torch.logaddexp(self._raw(mean, inputs, named), self.log_floor)
            tails = () if self.tails is None else (_degrees(self.tails(*inputs, **named)),)
        return (mean * log_variance.exp() if self.natural else mean), log_variance, *tails

    def _raw(self, mean: Tensor, inputs: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        """The log-variance before the floor."""
        if self.variance is None:
            return self.bias.expand_as(mean)
        s = _one_a_row(self.variance(*inputs, **named), "variance")
        if s.shape != mean.shape:
            raise ValueError(
                f"The variance module returned {len(s)} rows and the mean module {len(mean)}: both "
                "must return one number for each row of the batch."
            )
        return s if self._bias_name is not None else s + self.bias

    @property
    def output_bias(self) -> Tensor:
        """The bias that is added to the log-variance last, a parameter of one element."""
        return self.bias if self._bias_name is None else self.get_parameter(self._bias_name)

    def set_output_bias(self, value: float) -> None:
        """Set the bias of the variance's output, as at the end of the warm-up."""
        with torch.no_grad():
            self.output_bias.fill_(value)

    def enter(self, stage: str) -> None:
        """Begin a stage of training: ``"warmup"``, ``"joint"``, ``"mean"`` or ``"variance"``."""
        if stage not in STAGES:
            raise ValueError(f"stage={stage!r} is unknown: use one of {', '.join(STAGES)}.")
        if self.natural and stage != "joint":
            raise ValueError(
                f"stage={stage!r} holds the mean or the variance, which in the natural "
                "parametrisation are one: use strategy='no-warmup', or natural=False."
            )
        self.stage = stage
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """Set training mode; what the stage does not train stays in evaluation mode."""
        super().train(mode)
        held = {"variance": (self.mean, self.trunk), "mean": (self.variance, self.tails)}
        for part in held.get(self.stage, ()):
            if part is not None:
                part.eval()
        return self


def _output_bias(variance: nn.Module | None) -> str | None:
    """Name of the last bias of one element, which is that of the output; None if there is none."""
    found = None
    for name, layer in () if variance is None else variance.named_modules():
        bias = getattr(layer, "bias", None)
        if isinstance(bias, nn.parameter.UninitializedParameter):
            raise ValueError(
                f"The variance's layer {name!r} is lazy and has no shape yet: run a batch through "
                "the module before it becomes part of a MeanVarianceNet."
            )
        if isinstance(bias, nn.Parameter) and bias.numel() == 1:
            found = ".".join(filter(None, ("variance", name, "bias")))
    return found


def _degrees(output: Any) -> Tensor:
    """Degrees of freedom within their bounds."""
    share = torch.sigmoid(_one_a_row(output, "tails"))
    return LEAST_DF * (math.log(MOST_DF / LEAST_DF) * share).exp()


def _one_a_row(output: Any, name: str) -> Tensor:
    """The module's output as (n,), at least in single precision."""
    if isinstance(output, Tensor):
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        if output.ndim == 1:
            return output.float() if output.dtype in HALF else output
    shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    raise ValueError(
        f"The {name} module returned {shape}, but one number a row is needed, (n,) or (n, 1): end "
        "it with a layer such as nn.Linear(units, 1)."
    )
