"""What a module is, apart from its weights: by this a training knows its module again."""

from __future__ import annotations

import copy
import math
import re
from typing import Any

import numpy as np
import torch
from torch import nn

from mvenet.torch._data import Rows
from mvenet.torch._loop import Loop, outputs
from mvenet.torch._net import MeanVarianceNet

PROBED = 2  # rows


def shapes(net: nn.Module) -> dict[str, Any]:
    """Name, type and shape of all weights."""
    return {k: [str(v.dtype), list(v.shape)] for k, v in net.state_dict().items()}


def identity(net: MeanVarianceNet, rows: Rows) -> dict[str, Any]:
    """A module as JSON can hold it: its text, its shapes, and what it computes for some rows.

    It computes with weights that are always the same: how the module was started does not matter.
    Neither text nor shapes know what ``forward`` does.
    """
    loop = Loop(copy.deepcopy(net), device="cpu", batch_size=PROBED)
    loop.initialize()
    some = rows.take(np.arange(min(PROBED, len(rows)))).standardised(0.0, 1.0, net)
    _computed(loop, some)  # lazy layers have their shapes from now on
    _fill(loop.module_)
    once, again = (_computed(loop, some) for _ in range(2))
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(loop.module_))  # another in every process
    # A data set that draws its rows anew whenever they are read tells nothing.
    probe = once if once == again else None
    return {"text": text, "shapes": shapes(loop.module_), "probe": probe}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two are of one module; what it computes may differ as it does between machines."""
    if one["text"] != other["text"] or one["shapes"] != other["shapes"]:
        return False
    if one["probe"] is None or other["probe"] is None:
        return True
    return np.allclose(one["probe"], other["probe"], rtol=1e-3, atol=1e-4)


def _computed(loop: Loop, rows: Rows) -> list[float]:
    moments = next(outputs(loop, rows, n_samples=1, seed=0))
    return [float(value) for value in moments.ravel()]


def _fill(net: nn.Module) -> None:
    """Set every weight to a number that depends on its place alone, of a usual size for it."""
    with torch.no_grad():
        for parameter in net.parameters():
            if not parameter.is_floating_point():
                continue
            places = torch.arange(1, parameter.numel() + 1, dtype=torch.float64)
            inputs = math.prod(parameter.shape[1:])
            # The sines of squares scatter as if drawn, on every machine alike.
            values = math.sqrt(2 / inputs) * torch.sin(places**2)
            parameter.copy_(values.reshape(parameter.shape))
