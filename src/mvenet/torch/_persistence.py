"""Fitted models as safetensors files.

A file has the weights and a description in JSON: the settings, the units of y, names, shapes and
types of the weights. It has no code: whoever loads it brings the module, which is checked against
the description and, where rows are plain arrays, by what it computes for one made-up row.
"""

from __future__ import annotations

import copy
import inspect
import json
import os
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

import mvenet
from mvenet.torch import _files
from mvenet.torch._identity import shapes
from mvenet.torch._regressor import TorchMVERegressor

KIND = "model"
KEPT: dict[str, Any] = {
    "row_shape_": tuple,
    "n_features_in_": int,
    "feature_names_in_": lambda names: np.array(names, dtype=object),
}


# Of the one who loads: a file decides neither where something is written nor what is run.
APART = ("module", "device", "checkpoint", "random_state")


def save(model: TorchMVERegressor, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; :func:`load` reads it.

    Parameters
    ----------
    model : TorchMVERegressor
        Fitted.
    path : str or path
        Customarily ending in ``.safetensors``. Replaced whole or not at all.
    """
    check_is_fitted(model)
    tensors = {
        f"member.{k}.{name}": value
        for k, net in enumerate(model.networks_)
        for name, value in net.state_dict().items()
    }
    _files.write(path, KIND, _description(model), tensors)


def load(path: str | os.PathLike[str], module: Any, *, device: str = "auto") -> TorchMVERegressor:
    """Read a fitted model. No code in the file is run: there is none.

    Parameters
    ----------
    path : str or path
    module : MeanVarianceNet, or a function that makes one
        The same architecture as the model that was saved; its weights do not matter.
    device : str, default="auto"

    Returns
    -------
    TorchMVERegressor

    Raises
    ------
    ValueError
        If the file is damaged or foreign, or the module is not the one that was saved.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from torch import nn
    >>> from mvenet.torch import MeanVarianceNet, TorchMVERegressor, load
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> def net():
    ...     return MeanVarianceNet(nn.Linear(1, 1), nn.Linear(1, 1))
    >>> model = TorchMVERegressor(net, epochs=2, warmup_epochs=2, random_state=0).fit(X, X[:, 0])
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.safetensors")
    ...     again = load(f"{folder}/model.safetensors", net)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    about, tensors = _files.read(path, KIND)
    start = copy.deepcopy(module) if isinstance(module, nn.Module) else module()
    _check_module(start, about, os.fspath(path))
    model = TorchMVERegressor(module, **_settings(about, os.fspath(path)), device=device)
    model.networks_ = []
    for k in range(about["members"]):
        net = copy.deepcopy(start)
        net.load_state_dict(_files.state_of(tensors, f"member.{k}."))
        model.networks_.append(net.eval())
    model.y_mean_, model.y_scale_ = (np.array(about[name]) for name in ("y_mean", "y_scale"))
    model.reg_mean_, model.reg_var_ = about["penalties"]
    model.scale_ = about["scale"]
    for name, kind in KEPT.items():
        if about[name] is not None:
            setattr(model, name, kind(about[name]))
    _check_outputs(model, about, os.fspath(path))
    return model


def _description(model: TorchMVERegressor) -> dict[str, Any]:
    parameters = {k: v for k, v in model.get_params(deep=False).items() if k not in APART}
    return {
        "versions": {"mvenet": mvenet.__version__, "torch": torch.__version__},
        "parameters": json.loads(json.dumps(parameters, default=float)),
        "members": len(model.networks_),
        "state": shapes(model.networks_[0]),
        "module": repr(model.networks_[0]),
        "y_mean": model.y_mean_.tolist(),
        "y_scale": model.y_scale_.tolist(),
        "scale": float(getattr(model, "scale_", 1.0)),
        "penalties": [model.reg_mean_, model.reg_var_],
        "row_shape_": getattr(model, "row_shape_", None),
        "n_features_in_": getattr(model, "n_features_in_", None),
        "feature_names_in_": _names(model),
        "probe": _probe(model),
    }


def _settings(about: dict[str, Any], path: str) -> dict[str, Any]:
    """The parameters that a file may set."""
    settings: dict[str, Any] = about["parameters"]
    known = set(inspect.signature(TorchMVERegressor).parameters) - set(APART)
    for name in settings.keys() - known:
        raise ValueError(
            f"{path!r} sets {name}={settings[name]!r}, which no model file of ours does: use a "
            "copy that was not tampered with, or the version that wrote it."
        )
    return settings


def _names(model: TorchMVERegressor) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _check_module(net: nn.Module, about: dict[str, Any], path: str) -> None:
    given, saved = shapes(net), about["state"]
    for name in sorted(given.keys() | saved.keys()):
        if given.get(name) != saved.get(name):
            raise ValueError(
                f"module is not the one of {path!r}: {name!r} is {given.get(name)} here and "
                f"{saved.get(name)} there. The saved module was\n{about['module']}"
            )


def _probe(model: TorchMVERegressor) -> list[float] | None:
    """Mean and standard deviation of a made-up row, the first member's without dropout.

    A module whose weights fit but whose activation is another shows itself here. Not for rows of
    whole numbers, which may stand for anything.
    """
    shape = getattr(model, "row_shape_", None)
    if shape is None:
        return None
    net = copy.deepcopy(model.networks_[0]).eval().double()
    x = torch.linspace(-1, 1, int(np.prod(shape)) or 1, dtype=torch.float64)
    try:
        with torch.no_grad():
            computed = net(x[: int(np.prod(shape))].reshape(1, *shape))
    except (RuntimeError, TypeError, IndexError):  # token numbers, or made for single precision
        return None
    return [part.item() for part in computed]


def _check_outputs(model: TorchMVERegressor, about: dict[str, Any], path: str) -> None:
    saved, given = about["probe"], _probe(model)
    if saved is None or given is None:
        return
    if not np.allclose(given, saved, rtol=1e-6, atol=1e-6, equal_nan=True):
        raise ValueError(
            f"module has the weights of {path!r} but computes something else (another activation, "
            f"or order?): pass the same architecture. The saved module was\n{about['module']}"
        )
