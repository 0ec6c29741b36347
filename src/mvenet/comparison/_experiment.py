"""All that decides the result of a comparison: the table, the arms, the folds and the seeds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from mvenet._estimators.base import TrainedRegressor, described
from mvenet._estimators.dependence import NOTHING, Belonging
from mvenet._estimators.folds import Folds, check_folds, folds_of
from mvenet._estimators.regressor_cv import MVERegressorCV
from mvenet._estimators.validation import check_table, fingerprint
from mvenet._training import fleet
from mvenet._training.dependence import Dependence
from mvenet._training.plan import Plan
from mvenet._utils.sklearn import rows_of
from mvenet.comparison._canonical import canonical
from mvenet.comparison._store import Store
from mvenet.recipes import STRATEGIES

Arms = Mapping[str, TrainedRegressor]
SELECTIONS = ("equal", "separate")


def strategy_arms(**settings: Any) -> dict[str, MVERegressorCV]:
    """The paper's six arms: three strategies, each with equal and with separate penalties.

    Parameters
    ----------
    **settings
        Further parameters of :class:`mvenet.MVERegressorCV`, the same for all arms, such as
        ``**recipes.PAPER`` (which has a ``strategy``; it is not used).

    Returns
    -------
    dict of MVERegressorCV
        Each chooses its penalties as the paper does and trains one network on all rows.
    """
    settings = {"final": "refit", "scale": False, "n_members": 1, **settings}
    return {
        f"{strategy}, {selection}": MVERegressorCV(
            **{**settings, "strategy": strategy, "selection": selection}
        )
        for strategy, selection in itertools.product(STRATEGIES, SELECTIONS)
    }


@dataclass(frozen=True)
class Experiment:
    """All that decides the result: the table, the arms, the outer folds and a seed for each."""

    X: Any
    y: NDArray[np.float64]
    arms: dict[str, TrainedRegressor]
    folds: Folds
    seeds: list[int]
    encoder: Any = None
    belonging: Belonging = NOTHING

    def estimators(self, fold: int) -> list[TrainedRegressor]:
        return [clone(arm).set_params(random_state=self.seeds[fold]) for arm in self.arms.values()]

    def plans(self, fold: int) -> list[Plan]:
        """What fitting all arms on this fold takes."""
        train, _ = self.folds[fold]
        inputs, belonging = self.inputs(fold)[0], self.belonging.of(train)
        return described(self.estimators(fold), inputs, self.y[train], belonging=belonging)[1]

    def inputs(self, fold: int) -> tuple[Any, Any]:
        """Rows to train on and rows left out; the encoder is fitted to the former alone."""
        train, test = (rows_of(self.X, rows) for rows in self.folds[fold])
        if self.encoder is None:
            return train, test
        encoder = clone(self.encoder)
        # Not fit and transform: an encoder may have to hide a row's own target from it.
        encoded = encoder.fit_transform(train, self.y[self.folds[fold][0]])
        return encoded, encoder.transform(test)


def make_experiment(
    X: ArrayLike,
    y: ArrayLike,
    arms: Arms | None,
    outer_cv: Any,
    inner_cv: Any,
    random_state: Any,
    encoder: Any,
    kept: Store | None,
    belonging: Belonging = NOTHING,
) -> Experiment:
    """Check what was given, and that the store, if any, belongs to it."""
    chosen = _checked_arms(strategy_arms() if arms is None else arms, inner_cv)
    whole = X if encoder is None else clone(encoder).fit(X, y).transform(X)
    checked = check_table(clone(next(iter(chosen.values()))), whole, y, None, belonging)
    table, target = checked.X, checked.y
    known = None if kept is None else kept.settings()
    if random_state is None and known is not None:
        entropy = known["random_state"]
    else:
        entropy = fleet.seed_entropy(random_state)
    seed = fleet.derived_seed(entropy, 0, 0)
    tied = checked.dependence
    folds = folds_of("outer_cv", outer_cv, table, target, seed, tied)
    folds = check_folds("outer_cv", outer_cv, folds)
    if kept is not None:
        kept.begin(
            {
                "data": f"{table.shape[0]} rows × {table.shape[1]} columns "
                f"({fingerprint(table, target)[:12]})",
                "outer folds": f"{len(folds)} ({fingerprint(*(i for f in folds for i in f))[:12]})",
                "arms": {name: _described(arm) for name, arm in chosen.items()},
                "random_state": entropy,
                "mvenet": version("mvenet"),
            }
            | ({} if encoder is None else {"encoder": canonical(encoder)})
            | ({} if tied is None else {"belonging": _told(tied)})
        )
    seeds = [fleet.derived_seed(entropy, fold) % 2**32 for fold in range(len(folds))]
    given = table if encoder is None else X
    return Experiment(given, target, chosen, folds, seeds, encoder, belonging)


def _told(tied: Dependence) -> str:
    """Which rows belong together, as a store remembers it."""
    parts = [part for part in (tied.groups, tied.time) if part is not None]
    return f"{fingerprint(*parts)[:12]}, horizon {tied.horizon}"


def _checked_arms(arms: Arms, inner_cv: Any) -> dict[str, TrainedRegressor]:
    if not isinstance(arms, Mapping) or not arms:
        raise ValueError(f"arms must be a dict of at least one estimator by name. Got {arms!r}.")
    if not (inner_cv is None or isinstance(inner_cv, Integral) or hasattr(inner_cv, "split")):
        raise ValueError(
            "inner_cv must be a number of folds, a scikit-learn splitter or None: a list of rows "
            f"cannot serve every outer fold. Got {inner_cv!r}."
        )
    chosen = {}
    for name, arm in arms.items():
        if not isinstance(arm, TrainedRegressor):
            raise TypeError(
                "arms must be AutoRegressor, MVERegressor or MVERegressorCV: "
                f"{name!r} is a {type(arm).__name__}."
            )
        chosen[str(name)] = clone(arm)
        if hasattr(arm, "cv") and inner_cv is not None:
            chosen[str(name)].set_params(cv=inner_cv)
    return chosen


def _described(arm: TrainedRegressor) -> dict[str, str]:
    """The parameters that decide an arm's result, as text."""
    idle = ("n_jobs", "random_state", "verbose")
    params = {k: v for k, v in arm.get_params().items() if k not in idle}
    return {"estimator": type(arm).__name__} | {k: canonical(v) for k, v in params.items()}
