"""compare_strategies: nested cross-validation of training strategies (the paper's Algorithm 1)."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray

from mvenet import metrics
from mvenet._estimators.base import TrainedRegressor, fit_together
from mvenet._estimators.dependence import Belonging
from mvenet._training.distributed import UNITS_A_WORKER, Workers, active_workers
from mvenet._training.plan import most_units, planned_steps
from mvenet._training.progress import steps_bar
from mvenet.comparison._experiment import Arms, Experiment, make_experiment
from mvenet.comparison._result import Comparison
from mvenet.comparison._store import Store

SCORES = ("loglik", "rmse", "crps", "coverage", "reg_mean", "reg_var", "inner_score")


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
    encoder: Any = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    horizon: Any = None,
) -> Comparison:
    """Compare ways of training on a table by nested cross-validation.

    Each arm is fitted to the same outer folds, with the same inner folds, starts and batches, and
    scored on the rows left out. Arms are fitted together: a network that serves two is trained
    once. Folds run through joblib; within ``joblib.parallel_config(backend="dask")`` the networks
    of each fold are shared by all workers of a Dask cluster, and a few folds run side by side.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    y : array-like of shape (n,)
    arms : dict of AutoRegressor, MVERegressor or MVERegressorCV, or None
        What to compare, by name. None is :func:`strategy_arms`, the paper's six. Their
        ``random_state`` is replaced, so that all see the same.
    outer_cv : int, splitter or iterable, default=10
        Folds whose rows the arms are scored on. A number means that many shuffled ones.
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
    encoder : transformer or None, default=None
        Makes numbers of X, such as :class:`mvenet.table.TableEncoder`: fitted anew on the rows that
        each outer fold trains on, so that it learns nothing from the rows left out. X may then
        be whatever it takes.
    groups, time : array-like of shape (n,) or None
        Which rows belong together, and when each was, as :meth:`mvenet.AutoRegressor.fit` takes
        them: both outer and inner folds then leave out whole groups, or stretches of time.
    horizon : float, timedelta or None, default=None
        Length of the stretches, in units of ``time``.

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
        belonging = Belonging(groups, time, horizon)
        experiment = make_experiment(
            X, y, arms, outer_cv, inner_cv, random_state, encoder, kept, belonging
        )
        done = {} if kept is None else kept.results()
        todo = [i for i in range(len(experiment.folds)) if i not in done]
        planned = {i: planned_steps(experiment.plans(i)) for i in todo} if verbose else {}
        with steps_bar("comparing", sum(planned.values()), verbose) as bar:
            ticks = _Ticks(bar)
            for fold, result in _folds(experiment, todo, n_jobs, ticks):
                if kept is not None:
                    kept.add(fold, result)
                done[fold] = result
                ticks(fold, planned.get(fold, 0))
    return _comparison(experiment, done)


def _folds(
    experiment: Experiment, todo: list[int], n_jobs: int | None, ticks: _Ticks
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run the folds: each on a process of joblib's; on a Dask cluster each on all workers."""
    workers = active_workers()
    if workers is None or workers.client is None:
        calls = (joblib.delayed(_run_fold)(experiment, i, n_jobs, ticks) for i in todo)
        yield from joblib.Parallel(return_as="generator_unordered")(calls)
        return
    backend, _ = get_active_backend()

    def run(fold: int) -> tuple[int, dict[str, Any]]:
        with joblib.parallel_config(backend=backend):  # which a new thread does not know of
            return _run_fold(experiment, fold, n_jobs, ticks)

    # The next folds have units for whoever is done with those of this one.
    at_once = _folds_at_once(experiment, todo, workers)
    side_by_side = joblib.Parallel(at_once, backend="threading", return_as="generator_unordered")
    yield from side_by_side(joblib.delayed(run)(i) for i in todo)


def _folds_at_once(experiment: Experiment, todo: list[int], workers: Workers) -> int:
    """As many as have units for all workers, and one; 1 if this process fits some of it itself."""
    plans = experiment.plans(todo[0]) if todo else []
    if not todo or any(plan.seconds_beside(1) for plan in plans):
        return 1  # what this process fits takes all of its cores
    return min(len(todo), 1 + math.ceil(UNITS_A_WORKER * workers.slots / most_units(plans)))


def _run_fold(
    experiment: Experiment, fold: int, n_jobs: int | None, ticks: _Ticks
) -> tuple[int, dict[str, Any]]:
    """Fit all arms on one outer fold and score them; what comes back goes into the store."""
    start = perf_counter()
    train, test = experiment.folds[fold]
    X_train, X_test = experiment.inputs(fold)
    arms = experiment.estimators(fold)
    steps = 0

    def progress(done: int) -> None:
        nonlocal steps
        steps = done
        ticks(fold, done)

    # The warnings are of grids' edges and lost members; the table shows both.
    fit_together(
        arms,
        X_train,
        experiment.y[train],
        belonging=experiment.belonging.of(train),
        n_jobs=n_jobs,
        progress=progress,
        forgiving=True,
    )
    scores = {
        name: _scores(arm, X_test, experiment.y[test])
        for name, arm in zip(experiment.arms, arms, strict=True)
    }
    return fold, {"arms": scores, "steps": steps, "seconds": perf_counter() - start}


def _scores(arm: TrainedRegressor, X: NDArray[Any], y: NDArray[np.float64]) -> dict[str, float]:
    if not arm.__sklearn_is_fitted__():  # all its networks diverged
        return (
            dict.fromkeys(SCORES, math.nan)
            | {"loglik": -math.inf}
            | dict.fromkeys(("rmse", "crps"), math.inf)
        )
    dist = arm.predict_dist(X)
    scores = {
        "loglik": -metrics.nll(y, dist),
        "rmse": metrics.rmse(y, dist),
        "crps": metrics.crps(y, dist),
        "coverage": float(metrics.coverage(y, dist)),
    }
    for name in ("reg_mean", "reg_var"):  # chosen, given, or different in every candidate
        scores[name] = getattr(arm, f"best_{name}_", getattr(arm, f"{name}_", math.nan))
    scores["inner_score"] = getattr(arm, "best_score_", math.nan)
    return scores


def _comparison(experiment: Experiment, done: Mapping[int, Any]) -> Comparison:
    columns: dict[str, list[Any]] = {
        name: [] for name in ("fold", "arm", "strategy", "regularization", *SCORES)
    }
    for fold, (name, arm) in itertools.product(
        range(len(experiment.folds)), experiment.arms.items()
    ):
        row = {
            "fold": fold,
            "arm": name,
            "strategy": getattr(arm, "strategy", "automatic"),
            "regularization": getattr(arm, "selection", "fixed"),
            **done[fold]["arms"][name],
        }
        for column, values in columns.items():
            values.append(row.get(column, math.nan))  # a store may be older than a score
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
            self.show(sum(list(self.steps.values())))  # folds may run side by side

    def __reduce__(self) -> tuple[type[_Ticks], tuple[()]]:
        return _Ticks, ()
