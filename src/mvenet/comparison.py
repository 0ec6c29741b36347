"""compare_strategies: nested cross-validation of training strategies (the paper's Algorithm 1)."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv

from mvenet import fleet, metrics, rounds
from mvenet.base import NetworkSettings, check_table, fingerprint, fit_together, seed_entropy
from mvenet.outcome import Comparison
from mvenet.progress import steps_bar
from mvenet.search import MVERegressorCV
from mvenet.store import Store

__all__ = ["Plan", "compare_strategies", "plan_comparison", "strategy_arms"]

Arms = Mapping[str, NetworkSettings]
Fold = tuple[fleet.Rows, fleet.Rows]
STRATEGIES = ("no-warmup", "warmup", "warmup-fixed-mean")
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


def compare_strategies(
    X: ArrayLike,
    y: ArrayLike,
    arms: Arms | None = None,
    outer_cv: Any = 10,
    inner_cv: Any = 10,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Comparison:
    """Compare ways of training on a table by nested cross-validation.

    Each arm is fitted to the same outer folds, with the same inner folds, starts and batches, and
    judged by the rows left out. Arms are fitted together: a network that serves two is trained
    once. Folds run through joblib: within ``joblib.parallel_config(backend="dask")`` they run on
    a Dask cluster.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    y : array-like of shape (n,)
    arms : dict of MVERegressor or MVERegressorCV, or None
        What to compare, by name. None is :func:`strategy_arms`, the paper's six. Their
        ``random_state`` is replaced, so that all see the same.
    outer_cv : int, splitter or iterable, default=10
        Folds that judge. A number means that many shuffled ones.
    inner_cv : int, splitter or None, default=10
        Folds that choose the penalties, instead of the ``cv`` of the arms that search; None leaves
        those as they are.
    store : path or None
        Folder where each finished fold is kept. Called again after it was killed, the comparison
        goes on and ends with the same table.
    n_jobs : int or None, default=None
        Threads for each fold; None takes all that are free.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all. None with a store that has results takes theirs.
    verbose : int, default=0
        1 shows a progress bar with the time left (needs rich).

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor, compare_strategies
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 1))
    >>> y = X[:, 0] + (0.1 + 0.2 * X[:, 0] ** 2) * rng.standard_normal(100)
    >>> arms = {"linear": MVERegressor(hidden_mean=()), "network": MVERegressor()}
    >>> result = compare_strategies(X, y, arms, outer_cv=3, random_state=0)
    >>> result.arms
    ['linear', 'network']
    """
    with contextlib.nullcontext() if store is None else Store(store) as kept:
        experiment = _experiment(X, y, arms, outer_cv, inner_cv, random_state, kept)
        done = {} if kept is None else kept.results()
        todo = [i for i in range(len(experiment.folds)) if i not in done]
        planned = {i: experiment.steps(i) for i in todo} if verbose else {}
        with steps_bar("comparing", sum(planned.values()), verbose) as bar:
            ticks = _Ticks(bar)
            calls = (joblib.delayed(_run_fold)(experiment, i, n_jobs, ticks) for i in todo)
            for fold, result in joblib.Parallel(return_as="generator_unordered")(calls):
                if kept is not None:
                    kept.add(fold, result)
                done[fold] = result
                ticks(fold, planned.get(fold, 0))
    return _comparison(experiment, done)


@dataclass(frozen=True)
class Plan:
    """What a comparison would do; ``print`` it.

    Attributes
    ----------
    folds, folds_done : int
        Outer folds, and those that the store has already.
    workload : mvenet.rounds.Workload
        Networks, gradient steps and seconds of the folds to do. The networks trained once the
        penalties are chosen are counted as if no two arms chose the same.
    """

    folds: int
    folds_done: int
    workload: rounds.Workload

    def told(self) -> dict[str, float]:
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
            f"about {_duration(work.seconds)}."
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
) -> Plan:
    """Dry run of :func:`compare_strategies`: trainings, gradient steps and expected time.

    Takes the same arguments. It trains a few networks for a moment to see how long a step takes on
    this machine, and keeps nothing of it.
    """
    present = store is not None and Store(store).path.exists()
    with Store(store) if store is not None and present else contextlib.nullcontext() as kept:
        experiment = _experiment(X, y, arms, outer_cv, inner_cv, random_state, kept)
        done = {} if kept is None else kept.results()
    threads = fleet.effective_threads(n_jobs)
    work = rounds.Workload()
    for i in range(len(experiment.folds)):
        if i not in done:
            work += experiment.workload(i, threads)
    return Plan(len(experiment.folds), len(done), work)


@dataclass(frozen=True)
class _Experiment:
    """All that decides the result: the table, the arms, the outer folds and a seed for each."""

    X: NDArray[Any]
    y: NDArray[np.float64]
    arms: dict[str, NetworkSettings]
    folds: list[Fold]
    seeds: list[int]

    def estimators(self, fold: int) -> list[NetworkSettings]:
        return [clone(arm).set_params(random_state=self.seeds[fold]) for arm in self.arms.values()]

    def _requests(self, fold: int) -> tuple[list[rounds.Request], list[rounds.Request]]:
        """First requests of all arms, and later ones."""
        train, _ = self.folds[fold]
        X, y = self.X[train], self.y[train]
        asked = [e._requests(X, y, np.arange(len(train))) for e in self.estimators(fold)]
        return [first for first, *_ in asked], [r for _, *later in asked for r in later]

    def workload(self, fold: int, threads: int) -> rounds.Workload:
        train, _ = self.folds[fold]
        X, y = self.X[train], self.y[train]
        first, later = self._requests(fold)
        work = rounds.estimate(X, y, first, threads=threads)
        for request in later:
            work += rounds.estimate(X, y, [request], threads=threads)
        return work

    def steps(self, fold: int) -> int:
        """Gradient steps, at most."""
        first, later = self._requests(fold)
        return sum(rounds.steps(requests) for requests in (first, *([r] for r in later)))


def _experiment(
    X: ArrayLike,
    y: ArrayLike,
    arms: Arms | None,
    outer_cv: Any,
    inner_cv: Any,
    random_state: Any,
    kept: Store | None,
) -> _Experiment:
    """Check what was given, and that the store, if any, belongs to it."""
    chosen = _checked_arms(strategy_arms() if arms is None else arms, inner_cv)
    table, target, _, _ = check_table(clone(next(iter(chosen.values()))), X, y, None)
    known = None if kept is None else kept.settings()
    if random_state is None and known is not None:
        entropy = known["random_state"]
    else:
        entropy = seed_entropy(random_state)
    folds = _outer_folds(table, target, outer_cv, entropy)
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
        )
    seeds = [fleet.derived_seed(entropy, fold) % 2**32 for fold in range(len(folds))]
    return _Experiment(table, target, chosen, folds, seeds)


def _checked_arms(arms: Arms, inner_cv: Any) -> dict[str, NetworkSettings]:
    if not isinstance(arms, Mapping) or not arms:
        raise ValueError(f"arms must be a dict of at least one estimator by name. Got {arms!r}.")
    if not (inner_cv is None or isinstance(inner_cv, Integral) or hasattr(inner_cv, "split")):
        raise ValueError(
            "inner_cv must be a number of folds, a scikit-learn splitter or None: a list of rows "
            f"cannot serve every outer fold. Got {inner_cv!r}."
        )
    chosen = {}
    for name, arm in arms.items():
        if not isinstance(arm, NetworkSettings):
            raise TypeError(
                f"arms must be MVERegressor or MVERegressorCV: {name!r} is a {type(arm).__name__}."
            )
        chosen[str(name)] = clone(arm)
        if isinstance(arm, MVERegressorCV) and inner_cv is not None:
            chosen[str(name)].set_params(cv=inner_cv)
    return chosen


def _outer_folds(X: NDArray[Any], y: NDArray[np.float64], cv: Any, entropy: Any) -> list[Fold]:
    if isinstance(cv, Integral):
        if not 2 <= int(cv) <= len(y):
            raise ValueError(
                f"outer_cv={cv} must be a number of folds from 2 to the number of rows, {len(y)}."
            )
        cv = KFold(int(cv), shuffle=True, random_state=fleet.derived_seed(entropy, 0, 0) % 2**32)
    every = np.arange(len(y))
    folds = [(every[train], every[test]) for train, test in check_cv(cv).split(X, y)]
    for number, (train, test) in enumerate(folds):
        if len(train) < 2 or len(test) < 1:
            raise ValueError(
                f"outer_cv gives fold {number} {len(train)} rows to train on and {len(test)} to "
                "judge by: it needs at least 2 and 1."
            )
    if not folds:
        raise ValueError(f"outer_cv={cv!r} gives no folds: use a splitter that has some.")
    return folds


def _described(arm: NetworkSettings) -> dict[str, str]:
    """The parameters that decide an arm's result, as text that is the same in every process."""
    idle = ("n_jobs", "random_state", "verbose")
    params = {k: v for k, v in arm.get_params().items() if k not in idle}
    return {"estimator": type(arm).__name__} | {k: _text(v) for k, v in params.items()}


def _text(value: Any) -> str:
    if " object at 0x" in repr(value):  # no repr of its own
        return f"{type(value).__name__}({_text(sorted(vars(value).items()))})"
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)


def _run_fold(
    experiment: _Experiment, fold: int, n_jobs: int | None, ticks: _Ticks
) -> tuple[int, dict[str, Any]]:
    """Fit all arms on one outer fold and judge them; what comes back goes into the store."""
    start = time.perf_counter()
    train, test = experiment.folds[fold]
    arms = experiment.estimators(fold)
    steps = 0

    def progress(done: int) -> None:
        nonlocal steps
        steps = done
        ticks(fold, done)

    # The warnings are of grids' edges and lost members; the table shows both.
    fit_together(
        arms,
        experiment.X[train],
        experiment.y[train],
        n_jobs=n_jobs,
        progress=progress,
        forgiving=True,
    )
    scores = {
        name: _judged(arm, experiment.X[test], experiment.y[test])
        for name, arm in zip(experiment.arms, arms, strict=True)
    }
    return fold, {"arms": scores, "steps": steps, "seconds": time.perf_counter() - start}


def _judged(arm: NetworkSettings, X: NDArray[Any], y: NDArray[np.float64]) -> dict[str, float]:
    if not arm.__sklearn_is_fitted__():  # all its networks diverged
        return {"loglik": -math.inf, "rmse": math.inf, "reg_mean": math.nan, "reg_var": math.nan}
    dist = arm.predict_dist(X)
    reg_mean, reg_var = arm.penalties_
    return {
        "loglik": -metrics.nll(y, dist),
        "rmse": metrics.rmse(y, dist),
        "reg_mean": reg_mean,
        "reg_var": reg_var,
    }


def _comparison(experiment: _Experiment, done: Mapping[int, Any]) -> Comparison:
    columns: dict[str, list[Any]] = {
        name: []
        for name in
        ("fold", "arm", "strategy", "regularization", "loglik", "rmse", "reg_mean", "reg_var")
    }  # fmt: skip
    for fold, (name, arm) in itertools.product(
        range(len(experiment.folds)), experiment.arms.items()
    ):
        told = {
            "fold": fold,
            "arm": name,
            "strategy": arm.strategy,
            "regularization": getattr(arm, "selection", "fixed"),
            **done[fold]["arms"][name],
        }
        for column, values in columns.items():
            values.append(told[column])
    return Comparison(
        {name: np.array(values) for name, values in columns.items()},
        steps=sum(result["steps"] for result in done.values()),
        seconds=sum(result["seconds"] for result in done.values()),
    )


class _Ticks:
    """Steps done by all folds, for a progress bar; counts for nothing in another process."""

    def __init__(self, show: Callable[[int], object] | None = None) -> None:
        self.show = show
        self.steps: dict[int, int] = {}

    def __call__(self, fold: int, steps: int) -> None:
        if self.show is not None:
            self.steps[fold] = max(steps, self.steps.get(fold, 0))
            self.show(sum(self.steps.values()))

    def __reduce__(self) -> tuple[type[_Ticks], tuple[()]]:
        return _Ticks, ()


def _duration(seconds: float) -> str:
    """``12 s``, ``3 min``, ``2 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else "a second"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
