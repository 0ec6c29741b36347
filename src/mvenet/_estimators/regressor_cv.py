"""MVERegressorCV: both penalties by cross-validation, in one fleet."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from mvenet._estimators.base import NetworkRegressor
from mvenet._estimators.folds import Folds, fold_numbers, folds_of_table, usual_number
from mvenet._estimators.parameters import PENALTY, at_least, choice, setting, with_settings
from mvenet._estimators.penalty_search import LeftOut, PairScore
from mvenet._models.ensemble import Ensemble
from mvenet._models.networks import join
from mvenet._training import fleet
from mvenet._training.plan import Fitting, Plan, Request, Round, Table

Array = NDArray[np.float64]
Pair = tuple[float, float]
GRID = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class _SearchPlan(Plan):
    """A search: a network for each pair and fold, then what the chosen pair needs besides."""

    pairs: list[Pair]
    folds: Folds


@with_settings
class MVERegressorCV(NetworkRegressor):
    """Mean-variance networks with penalties by cross-validation: the paper's Algorithm 1.

    Networks are trained for every pair of penalties and every fold, all in one fleet, and the pair
    that predicts the rows left out best is chosen. A warm-up depends on no variance penalty, so one
    serves all of them. :class:`AutoRegressor` looks further than for penalties.

    Parameters
    ----------
    reg_mean, reg_var : list of float, default=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
        Penalties to try on the squared weights of the mean and of the variance network.
    selection : {"separate", "equal", "ratio"}, default="separate"
        Try all pairs; only equal ones (the values that both grids hold); or each ``reg_mean`` with
        a ``reg_var`` ten times as large, the paper's advice when a search is too dear.
    cv : int, splitter, iterable or None, default=None
        Folds. A number means that many shuffled ones, with ``groups`` of whole groups; None is 10,
        or 5 if rows belong together.
    final : {"folds", "refit"}, default="folds"
        What to keep: the networks of the chosen pair, each trained without one fold, as a mixture;
        or new networks trained on all rows.
    scale : bool, default=True
        Multiply all standard deviations by the one factor that maximises the likelihood of the rows
        left out, and choose the pair after its factor. Without it a search shies away from small
        mean penalties, whose means are best but whose variances are too small in a way that one
        number mends. False, with ``scoring="nll"``, is exactly the paper's rule.
    scoring : {"nll", "crps"}, default="nll"
        What the pair is chosen by: the log-likelihood, as in the paper, or the continuous ranked
        probability score. The likelihood forgives a poor mean where the standard deviation is
        large; the other forgives it less, so prefer it if the mean matters as much as the spread.
    n_members : int, default=4
        Networks with different random starts: for each fold with ``final="folds"``, in all with
        ``final="refit"``. The search itself uses one for each pair and fold.
    strategy : {"warmup", "warmup-fixed-mean", "no-warmup"}, default="warmup"
        The paper's three ways to train, as in :class:`MVERegressor`.
    bootstrap : bool, default=False
        Whether each network after the search, of ``final="refit"`` only, is trained on rows drawn
        with replacement, as in :class:`MVERegressor`.
    hidden_mean, hidden_var, activation, objective, beta, df, epochs, warmup_epochs, \
batch_size, learning_rate, schedule, clip_value, early_stopping, validation_fraction, \
n_iter_no_change, n_jobs, random_state, verbose
        As in :class:`MVERegressor`.

    Attributes
    ----------
    model_ : mvenet._models.ensemble.Ensemble
        The final networks as arrays, ``model_.networks``, and the factor on all standard
        deviations, ``model_.scale``.
    summary_ : str
        What was chosen, in words.
    best_score_ : float
        Mean over the folds of the chosen pair's log-likelihood or negative CRPS, in units of y,
        after the factor if ``scale``: the higher the better.
    cv_results_ : dict of ndarray
        As in ``GridSearchCV``, with the score of each fold, and the column ``scale``. Loads into a
        DataFrame. Networks that diverged score -inf.
    best_reg_mean_, best_reg_var_ : float
        The chosen pair.
    best_index_ : int
        Its row in ``cv_results_``.
    oof_mean_, oof_std_ : ndarray of shape (n,)
        Prediction for each row by networks that were not trained on it; NaN for rows of weight
        zero and rows that no fold leaves out.
    oof_pit_ : ndarray of shape (n, 2)
        Out of fold, too: the probability that was expected below each outcome, and up to it. They
        differ at values with a probability of their own only.
    oof_fold_ : ndarray of shape (n,), int
        The fold that left each row out (of several the last), -1 for none. With ``final="folds"``
        its networks are ``model_.networks[fold::n_splits_]``.
    history_ : dict of ndarray
        As in :class:`MVERegressor`: of the first network of each fold,
        ``model_.networks[:n_splits_]``, or with ``final="refit"`` of all that were kept.
    n_splits_ : int
    n_steps_ : int
        Gradient steps done, shared ones counted once.
    fingerprint_ : str
        SHA-256 of the table that it was trained on.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, only if X had names

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> y = X[:, 0] ** 2 + (0.1 + 0.2 * X[:, 0] ** 2) * rng.standard_normal(200)
    >>> model = MVERegressorCV(cv=3, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.0], [1.0]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    reg_mean: ArrayLike = setting("array-like", default=GRID, kw_only=False)
    reg_var: ArrayLike = setting("array-like", default=GRID, kw_only=False)
    selection: str = setting(
        choice("separate", "equal", "ratio"), default="separate", kw_only=False
    )
    cv: Any = setting("cv_object", default=None, kw_only=False)
    final: str = setting(choice("folds", "refit"), default="folds", kw_only=False)
    scale: bool = setting("boolean", default=True, kw_only=False)
    scoring: str = setting(choice("nll", "crps"), default="nll", kw_only=False)
    n_members: int = setting(at_least(1), default=4)

    def _plan(self, table: Table) -> _SearchPlan:
        entropy = fleet.seed_entropy(self.random_state)
        cv = self.cv
        if cv is None:
            cv = usual_number(10, table.dependence, table.rows)
        folds = folds_of_table("cv", cv, table, fleet.derived_seed(entropy, 0, 0, 0))
        table = table.within(folds)
        parts = [train for train, _ in folds] + ([table.rows] if self.final == "refit" else [])
        subsets = [self._split(part, entropy, table.dependence) for part in parts]
        pairs = self._pairs()
        settings = self._architecture(), self._training(self.batch_size)
        drawn = self._drawn_subsets(subsets, entropy, table) if self.bootstrap else {}
        numbers = {key: len(subsets) + i for i, key in enumerate(drawn)}
        subsets += drawn.values()

        def network(pair: Pair, subset: int, member: int) -> fleet.Network:
            stages = self._stages(len(subsets[subset][0]), *pair)
            seed = fleet.derived_seed(entropy, subset, member)
            return fleet.Network(stages, seed, numbers.get((subset, member), subset))

        k, refitted = len(folds), self.n_members if self.final == "refit" else 0
        trainings = k * (len(pairs) + self._extra_members()) + refitted
        fleet.check_memory(trainings, settings[0], table.X.shape[1])
        grid = [network(pair, fold, 0) for pair, fold in itertools.product(pairs, range(k))]
        # Further members for the folds of the chosen pair, then those on all rows.
        extra = range(1, self._extra_members() + 1)
        chosen = [network(pairs[-1], fold, member) for member in extra for fold in range(k)]
        chosen += [network(pairs[-1], k, member) for member in range(refitted)]
        rounds = [Round((Request(table, subsets, grid, *settings),))]
        if chosen:
            rounds.append(Round((Request(table, subsets, chosen, *settings),), settled=False))
        return _SearchPlan(tuple(rounds), pairs, folds)

    def _fitting(self, table: Table, plan: _SearchPlan) -> Fitting[list[Warning]]:
        pairs, k = plan.pairs, len(plan.folds)
        (searched,) = yield plan.rounds[0].requests
        source = plan.rounds[0].requests[0].table.source
        left_out = LeftOut(source, table.y, table.weight, plan.folds, self._df())
        of_pairs = self._scored(searched, left_out, len(pairs))
        best = _strongest_of_the_best([pair.score for pair in of_pairs])
        kept = searched[best * k : (best + 1) * k]
        groups = [kept.networks]
        scale = of_pairs[best].scale
        steps = searched.steps
        warned: list[Warning] = []
        stopped = None
        for later in plan.rounds[1:]:
            try:
                (added,) = yield [asked.with_penalties(*pairs[best]) for asked in later.requests]
            except KeyboardInterrupt as pressed:
                if self.final == "refit":
                    raise
                stopped = pressed  # the folds' first networks are a model
                break
            steps += added.steps
            n_extra = self._extra_members()
            whole = [m for m in range(n_extra) if not added.diverged[m * k : (m + 1) * k].any()]
            groups += [added.networks[m * k : (m + 1) * k] for m in whole]
            scale = left_out.score(groups, self.scale, self.scoring).scale
            if self.final == "refit":
                kept, warned = self._without_diverged(added[n_extra * k :])
            else:
                warned = self._lost(n_extra - len(whole), self.n_members)
        self._set_results(pairs, of_pairs, best)
        n = len(table.y)
        self.oof_mean_, self.oof_std_, below = left_out.moments(groups, scale, n)
        self.oof_pit_ = np.column_stack([below, below])
        self.oof_fold_, self.n_splits_ = fold_numbers(plan.folds, n), k
        asked = plan.rounds[0].requests[0]
        self.history_ = kept.history_columns(asked.networks[0].stages, asked.training)
        self.n_steps_ = steps
        networks = kept.networks if self.final == "refit" else join(groups)
        self.summary_ = (
            f"{len(networks)} network{'s' * (len(networks) != 1)}; penalties "
            f"{self.best_reg_mean_:.3g} (mean) and {self.best_reg_var_:.3g} (variance), chosen "
            f"from {len(pairs)} pairs."
        )
        self.model_ = Ensemble(networks, scale, df=self._df())
        if stopped is not None:
            raise stopped
        return warned + self._edges(pairs)

    def _drawn_subsets(
        self, subsets: list[tuple[fleet.Rows, fleet.Rows]], entropy: Any, table: Table
    ) -> dict[tuple[int, int], tuple[fleet.Rows, fleet.Rows]]:
        """Rows drawn for each member after the search, by the number of its part and its own."""
        if self.final != "refit":
            raise ValueError(
                "bootstrap=True needs final='refit': with final='folds' the networks differ by the "
                "rows that their folds leave out already."
            )
        members = {
            part: range(part < len(subsets) - 1, self.n_members) for part in range(len(subsets))
        }
        return {
            (part, member): (
                self._drawn(subsets[part][0], entropy, table.dependence, part, member),
                subsets[part][1],
            )
            for part, numbers in members.items()
            for member in numbers
        }

    def _leaves_rows_out(self) -> bool:
        return True

    def _extra_members(self) -> int:
        """Members of the folds beyond the first.

        With ``final="refit"`` they serve the factor alone: it must come from as many members as it
        is used on.
        """
        return 0 if self.final == "refit" and not self.scale else self.n_members - 1

    def _scored(self, searched: fleet.Fleet, left_out: LeftOut, n_pairs: int) -> list[PairScore]:
        """The score of each pair; a pair with a network that diverged scores -inf."""
        k = len(left_out.rows)
        of_pairs = []
        for i in range(n_pairs):
            part = slice(i * k, (i + 1) * k)
            if searched.diverged[part].any():
                of_pairs.append(PairScore(np.full(k, -np.inf), 1.0))
            else:
                networks = [searched.networks[part]]
                of_pairs.append(left_out.score(networks, self.scale, self.scoring))
        if not np.isfinite([pair.score for pair in of_pairs]).any():
            raise fleet.DivergedError(
                f"All {n_pairs} penalty pairs diverged: lower learning_rate (now "
                f"{self.learning_rate}) or clip_value (now {self.clip_value})."
            )
        return of_pairs

    def _pairs(self) -> list[Pair]:
        """Pairs to try, the weakest penalties first."""
        means, variances = _grid("reg_mean", self.reg_mean), _grid("reg_var", self.reg_var)
        if self.selection == "separate":
            return list(itertools.product(means, variances))
        if self.selection == "ratio":
            return [(value, 10 * value) for value in means]
        both = [(value, value) for value in means if value in variances]
        if not both:
            raise ValueError(
                "selection='equal' needs values that reg_mean and reg_var have in common: got "
                f"{self.reg_mean!r} and {self.reg_var!r}."
            )
        return both

    def _set_results(self, pairs: list[Pair], of_pairs: list[PairScore], best: int) -> None:
        """Set the attributes of the search, as GridSearchCV does."""
        scores = np.array([pair.fold_scores for pair in of_pairs])
        mean = np.array([pair.score for pair in of_pairs])
        columns: dict[str, Any] = {
            "param_reg_mean": np.ma.masked_array([p[0] for p in pairs]),
            "param_reg_var": np.ma.masked_array([p[1] for p in pairs]),
            "params": [{"reg_mean": p[0], "reg_var": p[1]} for p in pairs],
        }
        columns |= {f"split{i}_test_score": scores[:, i] for i in range(scores.shape[1])}
        with np.errstate(invalid="ignore"):
            columns["std_test_score"] = np.where(np.isfinite(mean), scores.std(axis=1), np.nan)
        columns["mean_test_score"] = mean
        columns["rank_test_score"] = rankdata(-mean, method="min").astype(np.int32)
        columns["scale"] = np.array([pair.scale for pair in of_pairs])
        self.cv_results_ = columns
        self.best_index_ = best
        self.best_reg_mean_, self.best_reg_var_ = pairs[best]
        self.best_score_ = float(mean[best])

    def _edges(self, pairs: list[Pair]) -> list[Warning]:
        """Warnings of a choice at the end of its grid."""
        warned: list[Warning] = []
        both = self.selection == "separate" and self.hidden_var is not None
        names = ("reg_mean", "reg_var") if both else ("reg_mean",)
        for i, name in enumerate(names):
            tried = sorted({pair[i] for pair in pairs})
            value = (self.best_reg_mean_, self.best_reg_var_)[i]
            if len(tried) > 2 and value in (tried[0], tried[-1]) and value > 0:
                end = "smallest" if value == tried[0] else "largest"
                warned.append(
                    GridEndWarning(
                        f"The best {name}={value:g} is the {end} that was tried: a better one may "
                        f"lie beyond, so extend {name}."
                    )
                )
        return warned


class GridEndWarning(UserWarning):
    """A search chose the smallest or the largest penalty that was tried."""


def _strongest_of_the_best(scores: list[float]) -> int:
    """Index of the highest score; of equal ones the last, which has the strongest penalties."""
    return len(scores) - 1 - int(np.argmax(scores[::-1]))


def _grid(name: str, values: ArrayLike) -> list[float]:
    """Check a grid and return it sorted, each value once."""
    try:
        given = np.asarray(values)
    except ValueError:  # ragged
        given = np.array([])
    grid = np.unique(given) if given.dtype.kind in "iuf" and given.ndim == 1 else np.array([])
    if not len(grid) or not all(value in PENALTY for value in grid):
        raise ValueError(
            f"The {name!r} parameter must be a list of at least one finite number, none negative "
            f"or above {PENALTY.right:g}, such as [1e-3, 1e-2]. Got {values!r} instead."
        )
    return [float(value) for value in grid]
