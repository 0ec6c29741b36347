"""plan_comparison: what a comparison would cost."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from mvenet._estimators.dependence import Belonging
from mvenet._training import plan
from mvenet._utils.machine import effective_threads
from mvenet._utils.wording import duration
from mvenet.comparison._experiment import Arms, make_experiment
from mvenet.comparison._store import Store


@dataclass(frozen=True)
class Plan:
    """What a comparison would do; ``print`` it.

    Attributes
    ----------
    folds, folds_done : int
        Outer folds, and those that the store has already.
    workload : mvenet._training.plan.Workload
        Networks, gradient steps and seconds of the folds to do. The networks trained once the
        penalties are chosen are counted as if no two arms chose the same.
    """

    folds: int
    folds_done: int
    workload: plan.Workload

    def as_dict(self) -> dict[str, float]:
        """The numbers by name."""
        done = {"folds": self.folds, "folds_done": self.folds_done}
        return done | dataclasses.asdict(self.workload)

    def __str__(self) -> str:
        work = self.workload
        done = f", {self.folds_done} of them done" if self.folds_done else ""
        saved = 1 - work.steps / work.unshared_steps if work.unshared_steps else 0.0
        return (
            f"{self.folds} outer folds{done}. To do: {work.networks:,} trainings, {work.steps:,} "
            f"gradient steps (sharing what arms and penalties have in common saves {saved:.0%}), "
            f"about {duration(work.seconds)}."
        )


def plan_comparison(
    X: ArrayLike,
    y: ArrayLike,
    arms: Arms | None = None,
    outer_cv: Any = 10,
    inner_cv: Any = 10,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    encoder: Any = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    horizon: Any = None,
) -> Plan:
    """Dry run of :func:`compare_strategies`: trainings, gradient steps and expected time.

    Takes the same arguments. It trains a few networks for a moment to see how long a step takes on
    this machine, and keeps nothing of it.
    """
    present = store is not None and Store(store).path.exists()
    with Store(store) if store is not None and present else contextlib.nullcontext() as kept:
        belonging = Belonging(groups, time, horizon)
        experiment = make_experiment(
            X, y, arms, outer_cv, inner_cv, random_state, encoder, kept, belonging
        )
        done = {} if kept is None else kept.results()
    threads = effective_threads(n_jobs)
    work = plan.Workload()
    for i in range(len(experiment.folds)):
        if i not in done:
            work += plan.estimate(experiment.plans(i), threads=threads)
    return Plan(len(experiment.folds), len(done), work)
