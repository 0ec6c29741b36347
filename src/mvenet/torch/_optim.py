"""The two penalties as parameter groups, and Adam as the engine has it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from mvenet.torch._dropout import ConcreteDropout
from mvenet.torch._net import MeanVarianceNet


def param_groups(net: MeanVarianceNet, reg_mean: float, reg_var: float) -> list[dict[str, Any]]:
    """Parameter groups that penalise mean and variance separately, for any ``torch.optim``.

    The penalties are ``reg_mean Σ W²`` over the weights of the mean and ``reg_var Σ W²`` over those
    of the variance and of the tails, added to the mean loss of the rows; biases and gains, all that
    has fewer than two dimensions, are free. An optimiser with coupled ``weight_decay`` (SGD, Adam,
    RMSprop, ...) adds ``weight_decay · W`` to the gradient, so the groups have twice the penalty
    there. AdamW's decoupled decay is something else: it shrinks all weights at one pace, however
    large their gradients, and its best value depends on the learning rate.

    The layers within :class:`ConcreteDropout` are free here, having a penalty of their own.

    Parameters
    ----------
    net : MeanVarianceNet
    reg_mean, reg_var : float
        Not negative, in units of standardised y.

    Returns
    -------
    list of dict
        Groups named ``"mean"``, ``"variance"`` and ``"free"``.

    Raises
    ------
    ValueError
        If the penalties differ but the two networks share weights.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from mvenet.torch import MeanVarianceNet, param_groups
    >>> net = MeanVarianceNet(nn.Linear(3, 1), nn.Linear(3, 1))
    >>> optimizer = torch.optim.Adam(param_groups(net, 1e-4, 1e-3), lr=1e-3)
    >>> [(group["name"], group["weight_decay"]) for group in optimizer.param_groups]
    [('mean', 0.0002), ('variance', 0.002), ('free', 0.0)]
    """
    for name, value in (("reg_mean", reg_mean), ("reg_var", reg_var)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name}={value} must be finite and not negative: use, say, 1e-4.")
    mean = _weights(net.trunk, net.mean)
    variance = _weights(net.trunk, net.variance, net.tails)
    shared = [name for p, name in mean.items() if p in variance]
    if shared and reg_mean != reg_var:
        raise ValueError(
            f"reg_mean={reg_mean} and reg_var={reg_var} differ, but mean and variance share weights"
            f" ({shared[0]}, ...): separate penalties need separate networks, MeanVarianceNet(mean,"
            " variance) without a trunk; or use equal ones."
        )
    own = [p for p in variance if p not in mean]
    free = [p for p in net.parameters() if p not in mean and p not in variance]
    groups = {"mean": (list(mean), reg_mean), "variance": (own, reg_var), "free": (free, 0.0)}
    return [
        {"params": params, "weight_decay": 2.0 * penalty, "name": name}
        for name, (params, penalty) in groups.items()
        if params
    ]


def _weights(*parts: nn.Module | None) -> dict[nn.Parameter, str]:
    """What is penalised of these modules: parameters of two dimensions or more, and their names."""
    found: dict[nn.Parameter, str] = {}
    for part in parts:
        if part is not None:
            concrete = [m.layer for m in part.modules() if isinstance(m, ConcreteDropout)]
            own = {p for layer in concrete for p in layer.parameters()}
            for name, p in part.named_parameters():
                if p.ndim >= 2 and p not in own:
                    found[p] = name
    return found


class Adam(torch.optim.Adam):
    """Adam with ε as the engine, Keras and the paper's authors have it.

    They add ε to √v before its correction for having started at zero, PyTorch after; in the first
    steps PyTorch's ε is thus up to thirty times smaller. All else is ``torch.optim.Adam``, fused
    into one call where PyTorch can do that.

    Parameters
    ----------
    params : iterable
        Such as :func:`param_groups` returns.
    lr : float, default=1e-3
    eps : float, default=1e-7
    **settings
        The others of ``torch.optim.Adam``.
    """

    def __init__(self, params: Any, lr: float = 1e-3, eps: float = 1e-7, **settings: Any) -> None:
        groups = list(params)
        if not {"fused", "foreach", "capturable", "differentiable"} & settings.keys():
            settings["fused"] = all(map(_can_be_fused, _parameters(groups)))
        super().__init__(groups, lr=lr, eps=eps, **settings)
        self.epsilon = eps

    def step(self, closure: Any = None) -> Any:
        """One step."""
        for group in self.param_groups:
            started = (self.state[p]["step"] for p in group["params"] if self.state.get(p))
            steps = 1 + float(next(started, 0.0))
            group["eps"] = self.epsilon / math.sqrt(1 - group["betas"][1] ** steps)
        return super().step(closure)


def _parameters(groups: list[Any]) -> list[Any]:
    """The parameters of groups, or of no groups."""
    if groups and isinstance(groups[0], dict):
        return [p for group in groups for p in group["params"]]
    return groups


def _can_be_fused(parameter: Any) -> bool:
    return parameter.is_floating_point() and parameter.device.type in ("cpu", "cuda", "mps")
