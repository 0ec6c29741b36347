"""AutoRegressor: the automatic search, behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvenet._automatic import baselines, plan, summary
from mvenet._automatic.kinds import EFFORTS, effort_of
from mvenet._automatic.plan import SearchPlan
from mvenet._automatic.search import search
from mvenet._estimators import copies
from mvenet._estimators.base import TrainedRegressor
from mvenet._estimators.folds import fold_numbers, folds_of_table, usual_number
from mvenet._estimators.parameters import CommonSettings, choice, setting, with_settings
from mvenet._training import fleet
from mvenet._training.plan import Fitting, Table
from mvenet._utils.machine import effective_threads
from mvenet._utils.one_order import one_order


@with_settings
class AutoRegressor(CommonSettings, TrainedRegressor):
    """Regression that finds its model: networks, trees and others, combined by cross-validation.

    It trains networks of several kinds on folds of the rows, with a linear model, trees and a
    Gaussian process beside them. What they predict for the rows that each fold leaves out decides
    how the means are blended, how wide the noise of each row is, how heavy its tails are, and
    whether its shape is free: several modes, skew, or values with a probability of their own. What
    was chosen is then trained once more, on all rows.

    Parameters
    ----------
    effort : {"low", "medium", "high"}, default="medium"
        How much is tried: "low" no long trainings, "high" all of them, each from three random
        starts. What is chosen is trained on all rows from at least 2, 4 or 10 starts.
    candidates : {"auto", "networks"} or list, default="auto"
        What the mean may be blended from: a list of regressors with ``fit`` and ``predict``, and of
        the names "networks", "linear", "trees" and "gaussian process". "auto" is these four, the
        last only up to 2,000 rows and 100 columns; "networks" networks alone. The variance is
        always a network's.
    target : {"auto", "identity", "log"}, default="auto"
        What is modelled: y, or its logarithm, for which y must be positive; no prediction is then
        below zero, and noise grows with the value. "auto" tries both if y is positive and skewed,
        and takes the logarithm if the rows left out are likelier by two standard errors.
    bounds : tuple of two numbers, each a float or None, default=None
        Ends that y cannot leave, such as ``(0, 100)`` or ``(0, None)``: no quantile, interval, draw
        or mean does. What would lie beyond is expected at the end itself if rows lie there, and
        just before it if hardly any does. An end that many rows share is found without being told.
    scoring : {"log", "crps"}, default="log"
        What the weights of a free shape are fitted by: log-likelihood, as far as it does not cost
        CRPS, or the CRPS itself.
    cv : int, splitter, iterable or None, default=None
        Folds. A number means that many shuffled ones, with ``groups`` of whole groups; None is 8, 5
        from 2,000 rows or if rows belong together, and 3 from 100,000.
    copies : {"auto", "together", "apart"}, default="auto"
        What exact copies of rows are: "together" the same row once more, as in a table that was
        joined to itself (each is taken once, and weighs what its copies weigh on average), "apart"
        observations of their own, as rows to come will have twins, too. "auto" takes them together
        if more than a third of the rows stand more than once. ``summary_`` counts them.
    n_jobs : int or None, default=None
        Threads; None takes all that are free. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of folds, starts and batches.
    verbose : int, default=0
        1 shows a progress bar (needs rich).

    Attributes
    ----------
    model_ : mvenet._models.composite.Composite
        The model: means with their shares, noise with its weights.
    summary_ : str
        The model in words.
    encoder_ : object
        What makes numbers of the columns: ``encoder_.transform(frame)``, if it was fitted to one.
    cv_results_ : dict of ndarray
        A row for each candidate: ``name``, ``reg_mean``, ``reg_var``, ``rmse`` of the rows left
        out, ``share`` in the blended mean, ``weight`` in the mixture; NaN where one does not apply.
        Loads into a DataFrame. Networks that diverged are not there.
    best_score_ : float
        Mean log-likelihood of the rows left out.
    oof_mean_, oof_std_ : ndarray of shape (n,)
        Prediction for each row by networks that were not trained on it; NaN for rows of weight
        zero and rows that no fold leaves out.
    oof_pit_ : ndarray of shape (n, 2)
        Out of fold, too: the probability that was expected below each outcome, and up to it. They
        differ at values with a probability of their own only.
    oof_fold_ : ndarray of shape (n,), int
        The fold that left each row out (of several the last), -1 for none.
    n_splits_ : int
    n_steps_ : int
        Gradient steps done, shared ones counted once.
    fingerprint_ : str
        SHA-256 of the table that it was trained on.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, only if X had names

    See Also
    --------
    MVERegressor : One kind of mean-variance network, trained the way you describe.

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import AutoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> y = X[:, 0] ** 2 + (0.1 + 0.2 * X[:, 0] ** 2) * rng.standard_normal(200)
    >>> model = AutoRegressor(effort="low", random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.0], [1.0]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    effort: str = setting(choice(*EFFORTS), default="medium", kw_only=False)
    candidates: Any = setting(
        choice("auto", "networks"), "array-like", default="auto", kw_only=False
    )
    target: str = setting(choice(*plan.TARGETS), default="auto", kw_only=False)
    cv: Any = setting("cv_object", default=None, kw_only=False)
    bounds: Any = setting("array-like", None, default=None)
    scoring: str = setting(choice("log", "crps"), default="log")
    copies: str = setting(choice("auto", "together", "apart"), default="auto")

    def _plan(self, table: Table) -> SearchPlan:
        n, entropy = len(table.rows), fleet.seed_entropy(self.random_state)
        cv = self.cv
        if cv is None:
            cv = usual_number(plan.usual_folds(n, self._targets), table.dependence, table.rows)
        folds = folds_of_table("cv", cv, table, fleet.derived_seed(entropy, 0, 0, 0))
        return plan.describe(
            table.within(folds),
            folds,
            baselines.chosen(self.candidates, n, table.source.shape[1]),
            entropy,
            target=self.target,
            effort=effort_of(self.effort, n, self._targets),
            scoring=self.scoring,
            bounds=self.bounds,
        )

    def _fitting(self, table: Table, plan: SearchPlan) -> Fitting[list[Warning]]:
        with one_order():
            found = yield from search(plan, effective_threads(self.n_jobs))
            predicted = found.predicted
            self.oof_fold_ = fold_numbers(plan.folds, len(table.y))
            self.n_splits_ = len(plan.folds)
            self.oof_mean_, self.oof_std_ = predicted.mean, predicted.std
            self.oof_pit_ = predicted.pit
            self.best_score_ = float(np.nanmean(predicted.log_density))
            self.cv_results_ = summary.columns(found.candidates, plan.unit)
            self.n_steps_ = found.steps
            self.summary_ = summary.sentences(
                found.candidates,
                predicted,
                table.y,
                factor=found.factor,
                log=found.model.log,
                gain=found.gain,
                stopped=found.stopped is not None,
                free=found.free,
            )
            self.summary_ += copies.counted(table)
            self.model_ = found.model
            if found.stopped is not None:
                raise found.stopped
            return self._noticed(table, refit=True)

    def _leaves_rows_out(self) -> bool:
        return True
