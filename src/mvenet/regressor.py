"""MVERegressor: a mean and a standard deviation for every row, behind scikit-learn's interface."""

from __future__ import annotations

import numpy as np

from mvenet import _automatic, fleet
from mvenet._estimator import NetworkRegressor
from mvenet._families import WITHOUT_SEARCH
from mvenet._folds import shuffled
from mvenet._plan import Fitting, Plan, Request, Round, Table
from mvenet._settings import PENALTY, choice, setting, with_settings
from mvenet.recipes import STRATEGIES

__all__ = ["MVERegressor"]

FOLDS, FEWEST_ROWS = 5, 8  # of an automatic fit
AUTO_PRIOR = 5.0  # reg_mean="auto" times the number of rows (benchmarks/README.md)


@with_settings
class MVERegressor(NetworkRegressor):
    """Mean-variance network: regression that says how sure it is.

    Two networks share the inputs: one predicts the mean, the other the log-variance of y. They are
    trained on the Gaussian likelihood as Sluijterman, Cator and Heskes show they must be: first the
    mean alone at constant variance, then both, each with a penalty of its own.

    By itself (``strategy="auto"`` and nothing else said of the networks) it trains two such pairs
    for each of five folds, on plain columns and on columns cut into steps, and lets the rows that
    each fold left out decide on their weights, on the scale of the standard deviations and on the
    tails: a small :class:`MVERegressorCV` that takes a second. As soon as a parameter of the
    networks is given it trains just these networks, by the rules of thumb below.

    Parameters
    ----------
    hidden_mean : tuple of int or None, default=(40, 20)
        Hidden units of the mean network, a number a layer; ``()`` is a linear mean, None a
        constant.
    hidden_var : tuple of int or None, default=(40, 20)
        The same for the log-variance; ``()`` is linear in the inputs, None a constant.
    activation : {"elu", "relu", "tanh", "silu"}, default="elu"
        Activation of the hidden units.
    strategy : {"auto", "warmup", "warmup-fixed-mean", "no-warmup"}, default="auto"
        Train the mean, then both networks; the mean, then only the variance; or both at once, which
        is what most libraries do and what fails on some data. "auto" is as above if no other
        parameter of the networks is given, else "warmup".
    objective : {"nll", "beta-nll", "faithful"}, default="nll"
        Gaussian negative log-likelihood; the same weighted by the variance to the power of ``beta``
        (Seitzer et al.); or plain residuals for the mean with the likelihood for the variance.
    beta : float, default=0.5
        Exponent of ``objective="beta-nll"``.
    reg_mean : float or "auto", default="auto"
        Penalty on the squared weights of the mean network, in units of standardised y. "auto" is
        five divided by the number of rows: the weight of a fixed prior, on the careful side because
        too small a penalty costs far more likelihood than too large a one. It may smooth away a
        variance that differs between rows; :class:`MVERegressorCV` finds out.
    reg_var : float or "auto", default="auto"
        The same for the variance network; "auto" is ten times ``reg_mean``, the paper's advice when
        a search is too dear. :class:`MVERegressorCV` chooses both.
    target : {"auto", "identity", "log"}, default="auto"
        What an automatic fit models: y or its logarithm, as in :class:`MVERegressorCV`. Networks
        that are described by other parameters model y.
    epochs, warmup_epochs : int or "auto", default="auto"
        Passes over the rows after and during the warm-up. "auto" thinks in gradient steps, so that
        a hundred rows are trained as thoroughly as a hundred thousand.
    batch_size : int, default=32
        Rows in a gradient step.
    learning_rate : float, default=1e-2
        Of Adam, at the start of each stage.
    schedule : {"ramp-cosine", "cosine", "constant"}, default="ramp-cosine"
        Within each stage, the learning rate rises from zero over the first twentieth of the steps
        and falls to zero along half a cosine; falls from the start; or stays. Without the rise, the
        second stage may undo what the first has learned.
    clip_value : float or None, default=5.0
        Limit on each element of the gradient.
    n_members : int, default=1
        Networks with different random starts; their predictions are averaged as a mixture
        (a deep ensemble).
    early_stopping : bool, default=False
        Hold out rows, stop a stage when their likelihood no longer improves, and keep the best
        weights.
    validation_fraction : float, default=0.1
        Share of the rows held out for early stopping.
    n_iter_no_change : int, default=20
        Epochs without improvement after which early stopping ends a stage.
    n_jobs : int or None, default=None
        Threads; None takes all that are free. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of starts, batches and held-out rows.
    verbose : int, default=0
        1 shows a progress bar (needs rich).

    Attributes
    ----------
    networks_ : mvenet.fleet.Networks
        The trained networks as arrays; not after an automatic fit.
    summary_ : str
        After an automatic fit: what it ends with, in words.
    cv_results_, oof_mean_, oof_std_
        After an automatic fit, as in :class:`MVERegressorCV`.
    history_ : dict of ndarray
        Columns ``member``, ``stage``, ``epoch``, ``nll`` and ``validation_nll`` (mean negative
        log-likelihood a row, in units of y; NaN without validation rows). Loads into a DataFrame.
    reg_mean_, reg_var_ : float
        The penalties used.
    n_steps_ : int
        Gradient steps done.
    fingerprint_ : str
        SHA-256 of the table that it was trained on.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, only if X had names

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 1))
    >>> y = X[:, 0] ** 2 + (0.1 + 0.2 * X[:, 0] ** 2) * rng.standard_normal(500)
    >>> model = MVERegressor(reg_mean=1e-3, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.0], [1.0]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    strategy: str = setting(choice("auto", *STRATEGIES), default="auto")
    reg_mean: float | str = setting(PENALTY, choice("auto"), default="auto")
    reg_var: float | str = setting(PENALTY, choice("auto"), default="auto")
    target: str = setting(choice(*_automatic.TARGETS), default="auto")

    @property
    def penalties_(self) -> tuple[float, float]:
        """Penalties on the mean and on the variance that the networks were trained with.

        NaN if the fit was automatic: its networks have different ones.
        """
        return (np.nan, np.nan) if hasattr(self, "composite_") else (self.reg_mean_, self.reg_var_)

    def _plan(self, table: Table) -> Plan:
        alone = self.strategy == "auto" and not self._given(frozenset({"target"}))
        if alone and len(table.rows) >= FEWEST_ROWS:
            return self._automatic_plan(table)
        self._refuse_log()
        entropy = fleet.seed_entropy(self.random_state)
        subset = self._split(table.rows, entropy)
        prior = AUTO_PRIOR / len(table.rows)
        reg_mean = prior if isinstance(self.reg_mean, str) else float(self.reg_mean)
        reg_var = 10 * reg_mean if isinstance(self.reg_var, str) else float(self.reg_var)
        stages = self._stages(len(subset[0]), reg_mean, reg_var)
        networks = [
            fleet.Network(stages, fleet.derived_seed(entropy, 0, member))
            for member in range(self.n_members)
        ]
        request = Request(table, [subset], networks, self._architecture(), self._training())
        return Plan((Round((request,)),))

    def _automatic_plan(self, table: Table) -> Plan:
        entropy = fleet.seed_entropy(self.random_state)
        count = max(2, min(FOLDS, len(table.rows) // 2))
        folds = shuffled(count, fleet.derived_seed(entropy, 0, 0, 0)).split(table.rows)
        parts = [(table.rows[a], table.rows[b]) for a, b in folds]
        return _automatic.plan(
            table,
            parts,
            ["networks"],
            entropy,
            target=self.target,
            effort=WITHOUT_SEARCH,
        )

    def _fitting(self, table: Table, plan: Plan) -> Fitting[list[Warning]]:
        if isinstance(plan, _automatic.AutomaticPlan):
            found = yield from _automatic.search(plan, threads=1)
            self._set_composite(found, table)
            return []
        (request,) = plan.rounds[0].requests
        (result,) = yield [request]
        trained, warned = self._without_diverged(result)
        stages = request.networks[0].stages
        self.history_ = trained.history_columns(stages)
        self.reg_mean_, self.reg_var_ = stages[-1].reg_mean, stages[-1].reg_var
        self.n_steps_ = result.steps
        self.networks_ = trained.networks
        return warned
