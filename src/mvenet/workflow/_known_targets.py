"""A model of several targets that knows its table: of each its own model, and what ties them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models.joint import JointModel
from mvenet._models.predictor import Encoded
from mvenet.distributions import Joint
from mvenet.workflow._known import TableModel, known

Array = NDArray[np.float64]


def joint_of(model: Any) -> JointModel | None:
    """What ties the targets of a model; None if it has one target."""
    found = getattr(model, "__dict__", {}).get("model_")
    return found if isinstance(found, JointModel) and len(found.names) > 1 else None


def check_known(model: Any, simultaneous: bool = False) -> None:
    """Raise an error if a model does not know its table, or has one target and needs several."""
    several = TableModels.of(model)
    if several is None:
        known(model)
        if simultaneous:
            raise ValueError("simultaneous=True is for several targets, and the model has one.")


@dataclass(frozen=True)
class TableModels:
    """A model of several targets of a table: one for each, and what ties them.

    Attributes
    ----------
    each : tuple of k TableModel
    joint : JointModel
    """

    each: tuple[TableModel, ...]
    joint: JointModel

    @staticmethod
    def of(model: Any) -> TableModels | None:
        """None if the model has one target."""
        joint = joint_of(model)
        if joint is None:
            return None
        return TableModels(tuple(known(part) for part in joint.estimators), joint)

    def together(self, each: list[Any], first: Array) -> Joint:
        """Distributions of each target tied together; ``first`` is what the first one reads."""
        return self.joint.together(each, Encoded(first))
