"""Trained engine networks as torch modules and back."""

from __future__ import annotations

import copy
import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mvenet._models.architecture import Architecture
from mvenet._models.ensemble import Ensemble
from mvenet._models.networks import Networks
from mvenet.torch._net import MeanVarianceNet
from mvenet.torch._regressor import TorchMVERegressor

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU}
FARTHEST = 1e6  # the engine's bound on standardised inputs


class Standardise(nn.Module):
    """The engine's first step: columns less their mean, divided by their scale, and bounded."""

    def __init__(self, mean: Tensor, scale: Tensor, bound: float) -> None:
        super().__init__()
        self.bound = bound
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        """Standardised columns."""
        z = ((x - self.mean) / self.scale).clamp(-FARTHEST, FARTHEST)
        return z / (1 + (z / self.bound).square()).sqrt()

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        return f"bound={self.bound}"


class Constant(nn.Module):
    """The same output for all rows."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """The bias, once for each row."""
        return self.bias.expand(len(x))


def to_module(
    networks: Networks, member: int = 0, dtype: torch.dtype = torch.float64
) -> MeanVarianceNet:
    """One trained network of the engine as a module, of X to standardised y.

    Parameters
    ----------
    networks : mvenet._training.fleet.Networks
        ``model.model_.networks`` of a fitted estimator.
    member : int, default=0
    dtype : torch.dtype, default=torch.float64
        In double precision the outputs differ from the engine's by the engine's rounding alone.

    Returns
    -------
    MeanVarianceNet
    """
    architecture = networks.architecture
    scaling = [torch.as_tensor(a[member], dtype=dtype) for a in (networks.x_mean, networks.x_scale)]
    parameters = torch.tensor(networks.parameters[member], dtype=dtype)
    perceptrons = [
        _perceptron(sizes, architecture, scaling, dtype)
        for sizes in architecture.sizes(networks.x_mean.shape[1])
    ]
    net = MeanVarianceNet(perceptrons[0], perceptrons[1], natural=architecture.natural, start=None)
    with torch.no_grad():
        for target, values in zip(_ordered(net), _cut(net, parameters), strict=True):
            target.copy_(values.view_as(target))
    return net


def to_parameters(net: MeanVarianceNet) -> NDArray[Any]:
    """The parameters of such a module in the engine's order, shape (n_parameters,)."""
    return np.concatenate([p.detach().cpu().numpy().ravel() for p in _ordered(net)])


def _perceptron(
    sizes: list[int], architecture: Architecture, scaling: list[Tensor], dtype: torch.dtype
) -> nn.Sequential:
    mean, scale = (part.clone() for part in scaling)
    layers: list[nn.Module] = [Standardise(mean, scale, architecture.input_bound)]
    if sizes[0] == 0:
        return nn.Sequential(*layers, Constant(dtype))
    activation = ACTIVATIONS[architecture.activation]
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out, dtype=dtype), activation()]
    return nn.Sequential(*layers[:-1])


def _ordered(net: Any) -> list[Tensor]:
    """Parameters in the engine's order: for each layer weights, then biases."""
    layers = [layer for part in (net.mean, net.variance) for layer in part]
    return [p for layer in layers for p in layer.parameters(recurse=False)]


def _cut(net: MeanVarianceNet, parameters: Tensor) -> list[Tensor]:
    return list(torch.split(parameters, [p.numel() for p in _ordered(net)]))


def from_engine(model: Any, **settings: Any) -> TorchMVERegressor:
    """A fitted table model as a fitted torch one, to predict with or to train further.

    Parameters
    ----------
    model : MVERegressor or MVERegressorCV, fitted by one of the paper's strategies
    **settings
        Parameters of :class:`TorchMVERegressor` for further training, such as ``epochs``. The
        objective is by default that of the model if it is "student-t" or "natural".

    Returns
    -------
    TorchMVERegressor
        With ``warm_start=True``: ``fit`` goes on from these weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> from mvenet.torch import from_engine, to_engine
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> model = MVERegressor(strategy="warmup", epochs=20, random_state=0).fit(X, X[:, 0])
    >>> tuned = from_engine(model, strategy="no-warmup", epochs=2, random_state=0)
    >>> bool(np.allclose(tuned.predict(X), model.predict(X), rtol=1e-6, atol=1e-6))
    True
    >>> back = to_engine(tuned.fit(X, X[:, 0]), model)
    >>> bool(np.allclose(back.predict(X), tuned.predict(X), rtol=1e-5, atol=1e-5))
    True
    """
    ensemble = getattr(model, "model_", None)
    if not isinstance(ensemble, Ensemble) or ensemble.piecewise is not None:
        raise TypeError(
            f"model must be networks of y on plain columns, got {type(model).__name__}: pass an "
            "MVERegressor fitted with strategy='warmup', or another of the paper's."
        )
    networks = ensemble.networks
    if ensemble.df is not None:
        settings = {"objective": "student-t", "df": ensemble.df} | settings
    if networks.architecture.natural:
        settings = {"objective": "natural", "strategy": "no-warmup"} | settings
    nets = [to_module(networks, k).eval() for k in range(len(networks))]
    torch_model = TorchMVERegressor(nets[0], warm_start=True, **settings)
    torch_model.networks_ = nets
    torch_model.y_mean_, torch_model.y_scale_ = networks.y_mean.copy(), networks.y_scale.copy()
    torch_model.scale_ = float(ensemble.scale)
    torch_model.n_features_in_ = networks.x_mean.shape[1]
    torch_model.row_shape_ = (torch_model.n_features_in_,)
    torch_model.reg_mean_ = torch_model.reg_var_ = 0.0  # until it is trained further
    if hasattr(model, "feature_names_in_"):
        torch_model.feature_names_in_ = model.feature_names_in_
    return torch_model


def to_engine(torch_model: TorchMVERegressor, model: Any) -> Any:
    """The table model with the weights of a torch model that was made of it.

    Parameters
    ----------
    torch_model : TorchMVERegressor
        Fitted, from :func:`from_engine`.
    model : estimator
        The one it was made of; it is left as it is.

    Returns
    -------
    estimator
        A copy of ``model`` with the other's networks.
    """
    parameters = np.stack([to_parameters(net) for net in torch_model.networks_])
    old = model.model_.networks
    if parameters.shape[1] != old.parameters.shape[1]:
        raise ValueError(
            f"The torch model has {parameters.shape[1]} parameters and model "
            f"{old.parameters.shape[1]}: pass the model that it was made of."
        )
    firsts = [net.mean[0] for net in torch_model.networks_]
    x_mean, x_scale = (
        np.stack([getattr(f, k).double().numpy() for f in firsts]) for k in ("mean", "scale")
    )
    changed = copy.copy(model)
    networks = Networks(
        old.architecture,
        np.ascontiguousarray(parameters, dtype=old.parameters.dtype),
        x_mean,
        x_scale,
        torch_model.y_mean_.copy(),
        torch_model.y_scale_.copy(),
    )
    changed.model_ = dataclasses.replace(model.model_, networks=networks)
    return changed
