"""The method for networks of one's own, in PyTorch: pieces for any loop, and an estimator.

Needs ``pip install "mvenet[torch]"``. ``ScheduleCallback`` has the stages for Lightning, and needs
that too. Never run here: CUDA and MPS devices.
"""

from typing import Any

try:
    import safetensors  # noqa: F401
    import skorch  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'mvenet.torch needs torch, skorch and safetensors ({error}): pip install "mvenet[torch]".',
        name=error.name,
    ) from error

from mvenet.torch._convert import from_engine, to_engine
from mvenet.torch._dropout import ConcreteDropout, MCDropout, regularisation, sampling
from mvenet.torch._intervals import QualityDrivenRegressor
from mvenet.torch._losses import (
    BetaNLL,
    CRPSLoss,
    FaithfulNLL,
    GaussianNLL,
    NaturalNLL,
    QualityDrivenLoss,
    StudentTNLL,
    natural_to_mean,
)
from mvenet.torch._net import MeanVarianceNet
from mvenet.torch._optim import Adam, param_groups
from mvenet.torch._persistence import load
from mvenet.torch._regressor import TorchMVERegressor
from mvenet.torch._reliable import SkafteRegressor
from mvenet.torch._schedule import Schedule, mean_squared_residual
from mvenet.torch._skafte import FarVarianceNet, LocalityBatches

__all__ = [
    "Adam",
    "BetaNLL",
    "CRPSLoss",
    "ConcreteDropout",
    "FaithfulNLL",
    "FarVarianceNet",
    "GaussianNLL",
    "LocalityBatches",
    "MCDropout",
    "MeanVarianceNet",
    "NaturalNLL",
    "QualityDrivenLoss",
    "QualityDrivenRegressor",
    "Schedule",
    "SkafteRegressor",
    "StudentTNLL",
    "TorchMVERegressor",
    "from_engine",
    "load",
    "mean_squared_residual",
    "natural_to_mean",
    "param_groups",
    "regularisation",
    "sampling",
    "to_engine",
]


def __getattr__(name: str) -> Any:
    """Lightning is needed by one piece only, and imported when that is asked for."""
    if name == "ScheduleCallback":
        from mvenet.torch._lightning import ScheduleCallback

        return ScheduleCallback
    raise AttributeError(f"module 'mvenet.torch' has no attribute {name!r}")
