"""MVERegressor: a mean and a standard deviation for every row, behind scikit-learn's interface."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvenet._automatic import plan as plans
from mvenet._automatic import summary
from mvenet._automatic.out_of_fold import Candidate, OutOfFold
from mvenet._automatic.refit import Refit
from mvenet._automatic.search import better_scale, composed
from mvenet._estimators.base import NetworkRegressor
from mvenet._estimators.folds import Folds, fold_numbers, folds_of_table, usual_number
from mvenet._estimators.parameters import PENALTY, at_least, choice, setting, with_settings
from mvenet._models.architecture import ACTIVATIONS
from mvenet._models.ensemble import Ensemble
from mvenet._models.piecewise import BOUND, Piecewise
from mvenet._training import fleet
from mvenet._training.plan import Fitting, Plan, Request, Round, Table
from mvenet.recipes import DEFAULT, STRATEGIES, Stage, batch_size_for

CROSS_FIT = "cross-fit"
FOLDS, FEWEST_ROWS = 5, 8  # of a cross-fit
AUTO_PRIOR = 5.0  # reg_mean="auto" times the number of rows (benchmarks/README.md)
# Of a cross-fit, whose rows left out mend a variance that is too small: on plain columns, and on
# pieces, which are many more inputs.
AUTO_PENALTIES = {False: 1e-4, True: 1e-3}
AUTO_VARIANCE_PENALTY = 1e-2
CROSS_FIT_DEFAULT = {"activation": "silu", "schedule": "cosine"}
AUTO_LENGTHS = ((10, 1_000, 10_000), (60, 4_000, 40_000))


@dataclass(frozen=True)
class _MemberPlan(Plan):
    """Networks of the same kind, trained on all rows or, if there are folds, by each of them.

    There is a request for each scale (whether of log y) and each encoding (whether there is one).
    """

    scales: tuple[bool, ...]
    encodings: tuple[bool, ...]
    piecewise: Piecewise | None
    folds: Folds
    unit: float
    entropy: Any


@with_settings
class MVERegressor(NetworkRegressor):
    """Mean-variance network: regression that says how sure it is.

    Two networks share the inputs: one predicts the mean, the other the log-variance of y. They are
    trained on the Gaussian likelihood as Sluijterman, Cator and Heskes show they must be: first the
    mean alone at constant variance, then both, each with a penalty of its own.

    Its parameters describe the networks, and its ``strategy`` how they are trained. The paper's
    three strategies train them on all rows. ``"cross-fit"``, the default, trains them by the
    paper's warm-up on five folds, and lets the rows that each fold left out correct them all: the
    factor and the exponent of the standard deviations, and how heavy the tails are.
    :class:`AutoRegressor` finds a better model in more time; :class:`MVERegressorCV` chooses the
    penalties as the paper does.

    Parameters
    ----------
    hidden_mean : tuple of int or None, default=(40, 20)
        Hidden units of the mean network, a number a layer; ``()`` is a linear mean, None a
        constant.
    hidden_var : tuple of int or None, default=(40, 20)
        The same for the log-variance; ``()`` is linear in the inputs, None a constant.
    activation : {"auto", "elu", "relu", "tanh", "silu"}, default="auto"
        Activation of the hidden units. "auto" is "silu" with ``strategy="cross-fit"`` and "elu"
        with the paper's.
    encoding : {"auto", "piecewise", "both"} or None, default="auto"
        How the networks read the columns: as they are (None); "piecewise", with each column cut at
        quantiles into pieces, of which each is a further input that rises from 0 to 1 within it; or
        "both", networks of either kind, which are mixed by rows left out and therefore need
        ``strategy="cross-fit"``. "auto" is "both" with that strategy and None with the paper's.
    strategy : {"cross-fit", "warmup", "warmup-fixed-mean", "no-warmup"}, default="cross-fit"
        Train the mean, then both networks, on folds whose rows left out have the last word; the
        mean, then both on all rows; the mean, then only the variance; or both at once, which is
        what most libraries do and what fails on some data. Below 8 rows there are no folds, and
        "cross-fit" is "warmup".
    objective : {"nll", "beta-nll", "faithful", "crps", "student-t", "natural"}, default="nll"
        What is minimised besides the penalties; the formulas are below. The Gaussian negative
        log-likelihood; the same weighted by the variance to the power of ``beta`` (Seitzer et al.
        2022); squared residuals for the mean, and the likelihood for the variance alone (Stirn et
        al. 2023); the continuous ranked probability score (Gneiting et al. 2005); the likelihood of
        Student's t with ``df`` degrees of freedom (Takahashi et al. 2018); or the Gaussian one in
        natural parameters (Immer et al. 2023), which needs ``strategy="no-warmup"``.
    beta : float, default=0.5
        Exponent of ``objective="beta-nll"``.
    df : float, default=5.0
        Degrees of freedom of ``objective="student-t"``, from 3 to 1000: the fewer, the heavier the
        tails. Fixed, not learned.
    reg_mean : float or "auto", default="auto"
        Penalty on the squared weights of the mean network, in units of standardised y. "auto" is
        0.0001 with ``strategy="cross-fit"``, of networks on pieces 0.001. With the paper's it is
        five divided by the number of rows: the weight of a fixed prior, on the careful side because
        too small a penalty costs far more likelihood than too large a one. It may smooth away a
        variance that differs between rows; :class:`MVERegressorCV` finds out.
    reg_var : float or "auto", default="auto"
        The same for the variance network; "auto" is ten times ``reg_mean``, the paper's advice when
        a search is too dear, or 0.01 if ``strategy="cross-fit"`` has chosen ``reg_mean``, too.
        :class:`MVERegressorCV` chooses both.
    target : {"auto", "identity", "log"}, default="auto"
        What is modelled: y, or its logarithm, for which y must be positive; no prediction is then
        below zero. It needs ``strategy="cross-fit"``, whose rows left out bound it; there, "auto"
        tries both if y is positive and skewed. The paper's strategies model y.
    epochs, warmup_epochs : int or "auto", default="auto"
        Passes over the rows after and during the warm-up. "auto" thinks in gradient steps, so that
        a hundred rows are trained as thoroughly as a hundred thousand; it is shorter with
        ``strategy="cross-fit"``, which trains five times as many networks. A warm-up may also end
        when it has "converged": when ten passes lower its loss on the training rows by less than
        one per cent of what the ten before them left; at the latest after ``epochs``.
    batch_size : int or "auto", default="auto"
        Rows in a gradient step. "auto" is 32, but with ``strategy="cross-fit"`` 64 from 4,000 rows,
        128 from 12,000 and 256 from 40,000.
    learning_rate : float, default=1e-2
        Of Adam, at the start of each stage.
    schedule : {"auto", "ramp-cosine", "cosine", "constant"}, default="auto"
        Within each stage, the learning rate rises from zero over the first twentieth of the steps
        and falls to zero along half a cosine; falls from the start; or stays. Without the rise, the
        second stage may undo what the first has learned, which rows left out can mend: "auto" is
        "cosine" with ``strategy="cross-fit"`` and "ramp-cosine" with the paper's.
    clip_value : float or None, default=5.0
        Limit on each element of the gradient.
    n_members : int, default=1
        Networks with different random starts; their predictions are averaged as a mixture
        (a deep ensemble). With ``strategy="cross-fit"`` so many for each fold.
    bootstrap : bool, default=False
        Whether each member is trained on as many rows drawn with replacement (Heskes 1997,
        https://arxiv.org/abs/cs/9701102), so that members differ by their rows and not by their
        start only. Needs ``n_members`` of at least 2, and rows that do not belong together.
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
    model_ : mvenet._models.ensemble.Ensemble or mvenet._models.composite.Composite
        The networks as arrays, ``model_.networks``; with ``strategy="cross-fit"`` what the rows
        left out made of them.
    history_ : dict of ndarray
        Columns ``member``, ``stage``, ``epoch``, ``nll`` and ``validation_nll`` (mean negative
        log-likelihood a row, in units of y, or of log y if that is what is modelled; NaN without
        validation rows). Loads into a DataFrame.
    reg_mean_, reg_var_ : float
        The penalties used; if there are two encodings, those of the networks on plain columns.
    n_steps_ : int
        Gradient steps done.
    summary_ : str
        What came out, in words.
    oof_mean_, oof_std_ : ndarray of shape (n,)
        With ``strategy="cross-fit"``: prediction for each row by networks that were not trained on
        it; NaN for rows of weight zero.
    oof_pit_ : ndarray of shape (n, 2)
        With ``strategy="cross-fit"``, out of fold, too: the probability that was expected
        below each outcome, and up to it. They differ at values with a probability of their own.
    oof_fold_ : ndarray of shape (n,), int
        With ``strategy="cross-fit"``: the fold that left each row out.
    fingerprint_ : str
        SHA-256 of the table that it was trained on.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, only if X had names

    Notes
    -----
    With residual r, standard deviation σ and ``z = r/σ``, of standardised y, a row's share is

    ============= ================================================================================
    objective     minimised
    ============= ================================================================================
    "nll"         ``log σ² + z²``
    "beta-nll"    ``[σ^2β] (log σ² + z²)``; what is in brackets has no gradient
    "faithful"    ``r² + log σ² + [r]²/σ²``
    "crps"        ``2√π σ (z (2Φ(z) - 1) + 2φ(z) - 1/√π)``
    "student-t"   ``log σ² + (ν + 1) log(1 + z²/ν)``, ν = ``df``; σ is its scale
    "natural"     ``log σ² + z²``, where the first network's output is mean / σ², not the mean
    ============= ================================================================================

    in which the warm-up holds σ² at e. What is predicted is a normal, but with "student-t" it is
    Student's t, as a mixture of normals of several widths: that of a normal whose precision has a
    Gamma distribution. The history, early stopping and the search of :class:`MVERegressorCV` go by
    the likelihood of what is predicted, whatever is minimised. Sources: Seitzer et al.,
    https://arxiv.org/abs/2203.09168; Stirn et al., https://arxiv.org/abs/2212.09184; Gneiting et
    al., https://doi.org/10.1175/MWR2904.1; Takahashi et al., https://arxiv.org/abs/1802.10530;
    Immer et al., https://arxiv.org/abs/2304.07658.

    See Also
    --------
    AutoRegressor : Finds the model by itself.
    MVERegressorCV : Chooses both penalties by cross-validation, as the paper does.

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

    strategy: str = setting(choice(CROSS_FIT, *STRATEGIES), default=CROSS_FIT)
    encoding: str | None = setting(choice("auto", "piecewise", "both"), None, default="auto")
    activation: str = setting(choice("auto", *ACTIVATIONS), default="auto")
    schedule: str = setting(choice("auto", *fleet.SCHEDULES), default="auto")
    batch_size: Any = setting(at_least(1, 2**31 - 1), choice("auto"), default="auto")
    reg_mean: float | str = setting(PENALTY, choice("auto"), default="auto")
    reg_var: float | str = setting(PENALTY, choice("auto"), default="auto")
    target: str = setting(choice(*plans.TARGETS), default="auto")

    def _plan(self, table: Table) -> _MemberPlan:
        n, entropy = len(table.rows), fleet.seed_entropy(self.random_state)
        folds: Folds = []
        if self.strategy == CROSS_FIT and n >= FEWEST_ROWS:
            n_folds = usual_number(FOLDS, table.dependence, table.rows)
            folds = folds_of_table("cv", n_folds, table, fleet.derived_seed(entropy, 0, 0, 0))
        if self.target == "log" and not folds:
            raise ValueError(
                f"target='log' needs rows left out, and strategy={self.strategy!r} on {n} rows "
                "leaves none out: use strategy='cross-fit' and at least 8 rows, or fit log(y)."
            )
        target = self.target if folds else "identity"
        unit = plans.unit_of(table.y[table.rows]) if folds else 1.0
        table = replace(table.within(folds), y=table.y / unit)
        scales = plans.possible_scales(table.y[table.rows], target)
        encodings, piecewise = self._encodings(bool(folds)), None
        if folds or any(encodings):
            piecewise = Piecewise.of(table.source[table.rows])
        parts = folds or [(table.rows, table.rows[:0])]
        requests = [
            self._request(
                scaled.encoded(piecewise) if encoded and piecewise else scaled, parts, entropy
            )
            for scaled in (plans.on_scale(table, log) for log in scales)
            for encoded in encodings
        ]
        rounds = (Round(tuple(requests)),)
        return _MemberPlan(rounds, scales, encodings, piecewise, folds, unit, entropy)

    def _encodings(self, folds: bool) -> tuple[bool, ...]:
        """Whether columns are encoded, for each kind of networks; ``folds``: if there are any."""
        if self.encoding == "both" and self.strategy != CROSS_FIT:
            raise ValueError(
                f"encoding='both' mixes networks by rows left out, and strategy={self.strategy!r} "
                "leaves none out: use strategy='cross-fit', or encoding='piecewise' or None."
            )
        encoding = self.encoding
        if encoding in ("auto", "both"):
            encoding = "both" if folds else None
        return {None: (False,), "piecewise": (True,), "both": (False, True)}[encoding]

    def _request(self, table: Table, folds: Folds, entropy: Any) -> Request:
        """Ask for the members, the folds of a member side by side."""
        subsets = [self._split(train, entropy, table.dependence) for train, _ in folds]
        n_folds = len(subsets)
        if self.bootstrap:
            subsets = [
                (self._drawn(train, entropy, table.dependence, fold, member), valid)
                for member in range(self.n_members)
                for fold, (train, valid) in enumerate(subsets)
            ]
        columns = table.source.shape[1]  # at least: a list of all members would take memory, too
        fleet.check_memory(self.n_members * n_folds, self._architecture(), columns)
        networks = [
            fleet.Network(
                self._stages(len(subsets[fold][0]), *self._penalties(table)),
                fleet.derived_seed(entropy, fold, member),
                member * n_folds + fold if self.bootstrap else fold,
            )
            for member in range(self.n_members)
            for fold in range(n_folds)
        ]
        training = self._training(self._batch_size(len(table.rows)))
        architecture = replace(self._architecture(), activation=self._usual("activation"))
        if self.strategy == CROSS_FIT and table.columns is None:
            # As they are, columns may lead a network astray far from all rows; pieces end there.
            architecture = replace(architecture, input_bound=BOUND)
        return Request(table, subsets, networks, architecture, training)

    def _usual(self, name: str) -> str:
        """A parameter, or what it is by itself for the strategy."""
        value: str = getattr(self, name)
        usual = CROSS_FIT_DEFAULT if self.strategy == CROSS_FIT else DEFAULT
        return str(usual[name]) if value == "auto" else value

    def _batch_size(self, n: int) -> int:
        if self.batch_size != "auto":
            return int(self.batch_size)
        return batch_size_for(n) if self.strategy == CROSS_FIT else int(DEFAULT["batch_size"])

    def _penalties(self, table: Table) -> tuple[float, float]:
        auto = isinstance(self.reg_mean, str)
        if not auto:
            reg_mean = float(self.reg_mean)
        elif self.strategy == CROSS_FIT:
            reg_mean = AUTO_PENALTIES[table.columns is not None]
        else:
            reg_mean = AUTO_PRIOR / len(table.rows)
        if not isinstance(self.reg_var, str):
            return reg_mean, float(self.reg_var)
        crossed = auto and self.strategy == CROSS_FIT
        return reg_mean, AUTO_VARIANCE_PENALTY if crossed else 10 * reg_mean

    def _stages(self, n_rows: int, reg_mean: float, reg_var: float) -> tuple[Stage, ...]:
        crossed = self.strategy == CROSS_FIT
        return self._described_stages(
            "warmup" if crossed else self.strategy,
            n_rows,
            self._batch_size(n_rows),
            (reg_mean, reg_var),
            AUTO_LENGTHS if crossed else None,
            schedule=self._usual("schedule"),
        )

    def _fitting(self, table: Table, plan: _MemberPlan) -> Fitting[list[Warning]]:
        trained = yield plan.rounds[0].requests
        if plan.folds:
            return self._cross_fitted(table, plan, trained)
        (result,) = trained
        kept, warned = self._without_diverged(result)
        self._keep(plan, [kept])
        self.n_steps_ = result.steps
        n = len(kept.networks)
        self.summary_ = (
            f"{n} network{'s' * (n != 1)}; penalties {self.reg_mean_:.3g} (mean) and "
            f"{self.reg_var_:.3g} (variance)."
        )
        self.model_ = Ensemble(
            kept.networks,
            piecewise=plan.piecewise if plan.encodings[0] else None,
            df=self._df(),
        )
        return warned

    def _keep(self, plan: _MemberPlan, trained: Sequence[fleet.Fleet]) -> None:
        """Set the attributes that every strategy has."""
        asked = plan.rounds[0].requests[0]
        stages = asked.networks[0].stages
        histories = [result.history_columns(stages, asked.training) for result in trained]
        for before, history in itertools.pairwise(histories):
            history["member"] += before["member"].max(initial=-1) + 1
        self.history_ = {
            name: np.concatenate([history[name] for history in histories]) for name in histories[0]
        }
        self.reg_mean_, self.reg_var_ = stages[-1].reg_mean, stages[-1].reg_var

    def _cross_fitted(
        self, table: Table, plan: _MemberPlan, trained: list[fleet.Fleet]
    ) -> list[Warning]:
        """Choose scale, widths and tails by out-of-fold predictions, and keep the model."""
        tried = [self._tried(plan, trained, log) for log in plan.scales]
        if not any(candidates for _, candidates in tried):
            self._without_diverged(trained[0])
            raise fleet.DivergedError("In every member some fold diverged: lower learning_rate.")
        best, gain = better_scale(tried, plan.entropy)
        held_out, candidates = tried[best]
        predicted = held_out.mix(candidates, plan.entropy)
        for candidate in candidates:
            candidate.share = candidate.weight  # the mixture's mean, which is what is predicted
        assert plan.piecewise is not None
        model = composed(plan.piecewise, held_out, candidates, predicted, Refit(), plan.unit)
        predicted = predicted.times(plan.unit)
        chosen = trained[best * len(plan.encodings) : (best + 1) * len(plan.encodings)]
        self._keep(plan, chosen)
        self.n_steps_ = sum(result.steps for result in trained)
        self.oof_mean_, self.oof_std_ = predicted.mean, predicted.std
        self.oof_pit_ = predicted.pit
        self.oof_fold_ = fold_numbers(plan.folds, len(table.y))
        self.summary_ = summary.sentences(
            candidates, predicted, table.y, log=held_out.log, gain=gain
        )
        self.model_ = model
        lost = self._lost(sum(map(self._n_lost, chosen)), len(chosen) * self.n_members)
        return lost + self._noticed(table)

    def _leaves_rows_out(self) -> bool:
        return self.strategy == CROSS_FIT

    def _n_lost(self, result: fleet.Fleet) -> int:
        """Members of which some fold's network diverged."""
        return int(result.diverged.reshape(self.n_members, -1).any(axis=1).sum())

    def _tried(
        self, plan: _MemberPlan, trained: list[fleet.Fleet], log: bool
    ) -> tuple[OutOfFold, list[Candidate]]:
        """The rows left out on a scale, and the networks of each encoding as candidates."""
        first = plan.scales.index(log) * len(plan.encodings)
        requests = plan.rounds[0].requests[first : first + len(plan.encodings)]
        held_out = OutOfFold(replace(requests[0].table, columns=None, steps=None), plan.folds, log)
        candidates = []
        for number, request in enumerate(requests):
            result, encoded = trained[first + number], request.table.columns is not None
            gone = result.diverged.reshape(self.n_members, -1).any(axis=1)
            kept = result[np.repeat(~gone, len(plan.folds))]
            if len(kept.networks):
                name = "network on pieces" if encoded else "network"
                candidates.append(
                    held_out.as_candidate(name, kept, request.table.X, encoded=encoded, joint=True)
                )
        return held_out, candidates
