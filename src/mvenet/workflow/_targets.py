"""A model of several targets on rows that it was not trained on: each target, and all together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import metrics
from mvenet._columns.cells import split_targets
from mvenet._utils.wording import verdict
from mvenet.distributions import Joint
from mvenet.workflow._evaluation import Evaluation, evaluated
from mvenet.workflow._known_targets import TableModels

Array = NDArray[np.float64]
LEVELS = (0.5, 0.9)
DRAWS = 100  # of each row, for the energy score


@dataclass(frozen=True)
class JointEvaluation:
    """Predictions of several targets for rows that were not trained on, and how good they are.

    Attributes
    ----------
    each : dict of Evaluation
        Of each target alone, by its name.
    dist : Joint
        All of them together.
    scores : dict of float
        ``nll`` a row, ``gain`` (by how much rows are likelier than if the targets were
        independent), ``energy`` (in standard deviations of the targets; lower is better).
    coverage : dict of float
        Share of the rows that simultaneous intervals hold in all targets, by what they claim.
    separate : float
        Share of the rows that the 90 % intervals of each target hold in all of them.
    """

    each: Mapping[str, Evaluation]
    dist: Joint
    scores: Mapping[str, float]
    coverage: Mapping[float, float]
    separate: float

    @property
    def y(self) -> Array:
        """What was observed, of shape (n, k)."""
        return np.column_stack([one.y for one in self.each.values()])

    @property
    def without_target(self) -> int:
        """Rows that could not be used, since a target is missing."""
        return next(iter(self.each.values())).without_target

    def verdict(self, level: float) -> tuple[str, float, float]:
        """Whether the coverage of all targets may be chance, and what chance allows."""
        return verdict(level, self.coverage[level], len(self.dist))


def evaluate_targets(model: Any, frame: Any) -> JointEvaluation:
    """Score a model of several targets on a table that has them.

    Parameters
    ----------
    model : estimator
        As made by :func:`mvenet.workflow.fit_targets`, or fitted in Python.
    frame : DataFrame of polars or pandas
        Rows that it was not trained on; those that lack a target are left out.

    Returns
    -------
    JointEvaluation
    """
    models = TableModels.of(model)
    if models is None:
        raise ValueError("The model has one target: use mvenet.workflow.evaluate.")
    X, Y, rows = split_targets(frame, models.joint.names)
    return evaluated_together(models, X, Y, rows, len(frame) - len(Y))


def evaluated_together(
    models: TableModels, X: Any, Y: Array, rows: NDArray[Any], without: int = 0
) -> JointEvaluation:
    """The same for rows and what was observed in them, (n, k)."""
    numbers = [table.encoded(X, rows) for table in models.each]
    each = {
        name: evaluated(table, encoded, y, rows, without)
        for name, table, encoded, y in zip(
            models.joint.names, models.each, numbers, Y.T, strict=True
        )
    }
    dist = models.together([one.dist for one in each.values()], numbers[0])
    nll = float(metrics.joint_nll(Y, dist))
    spread = Y.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    energy = metrics.energy_score(Y, dist, scale=scale, size=DRAWS, random_state=0)
    apart = sum(one.scores["nll"] for one in each.values())
    covered = np.asarray(metrics.joint_coverage(Y, dist, nominal=LEVELS)).tolist()
    return JointEvaluation(
        each,
        dist,
        {"nll": nll, "gain": apart - nll, "energy": float(energy)},
        dict(zip(LEVELS, covered, strict=True)),
        float(metrics.joint_coverage(Y, dist.interval(0.9))),
    )
