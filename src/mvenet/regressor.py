"""MVERegressor: a mean and a standard deviation for every row, behind scikit-learn's interface."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mvenet import fleet, recipes
from mvenet.distributions import Normal, NormalMixture

__all__ = ["DistributionRegressor", "MVERegressor", "NetworkSettings"]

AUTO_PRIOR = 5.0  # reg_mean="auto" times the number of rows (benchmarks/README.md)
LARGEST = 1e302  # sums and ranges of larger numbers overflow
_SMALLEST_STD = np.finfo(np.float64).tiny


class DistributionRegressor(RegressorMixin, BaseEstimator):
    """What every estimator of ours can do once ``networks_`` is there: all ways to predict."""

    networks_: fleet.Networks
    scale_: float = 1.0  # factor on all standard deviations
    n_jobs: int | None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")

    def predict_dist(self, X: ArrayLike) -> Normal | NormalMixture:
        """Predictive distribution of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        Normal or NormalMixture
            A mixture with one component for each network if there is more than one.
        """
        check_is_fitted(self)
        table: NDArray[Any] = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        threads = fleet.effective_threads(self.n_jobs)
        means, stds = self.networks_.predict(table, threads=threads)
        stds = np.maximum(self.scale_ * stds, _SMALLEST_STD)
        return Normal(means[0], stds[0]) if len(means) == 1 else NormalMixture(means, stds)

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean of the predictive distribution and, if asked, its standard deviation.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        return_std : bool, default=False

        Returns
        -------
        mean : ndarray of shape (n,)
        std : ndarray of shape (n,), only with ``return_std=True``
            In units of y. It is the spread of a new observation, noise included.
        """
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def predict_interval(
        self, X: ArrayLike, coverage: float | ArrayLike = 0.9
    ) -> NDArray[np.float64]:
        """Central prediction interval.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        coverage : float or list of k floats in (0, 1), default=0.9

        Returns
        -------
        ndarray of shape (n, 2), or (n, k, 2) for a list
            Lower and upper end, in units of y.
        """
        return self.predict_dist(X).interval(coverage)

    def predict_quantiles(
        self, X: ArrayLike, quantiles: ArrayLike = (0.1, 0.5, 0.9)
    ) -> NDArray[np.float64]:
        """Quantiles of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        quantiles : list of k floats in (0, 1), default=(0.1, 0.5, 0.9)

        Returns
        -------
        ndarray of shape (n, k), in units of y
        """
        return self.predict_dist(X).ppf(np.atleast_1d(np.asarray(quantiles)))


class NetworkSettings(DistributionRegressor, ABC):
    """The parameters that say how networks are built and trained, and what follows from them."""

    hidden_mean: tuple[int, ...]
    hidden_var: tuple[int, ...] | None
    activation: str
    strategy: str
    objective: str
    beta: float
    epochs: int | str
    warmup_epochs: int | str
    batch_size: int
    learning_rate: float
    schedule: str
    clip_value: float | None
    n_members: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    random_state: Any
    verbose: int

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own form)
        "hidden_mean": ["array-like"],
        "hidden_var": ["array-like", None],
        "activation": [StrOptions({"elu", "relu", "tanh", "silu"})],
        "strategy": [StrOptions({"no-warmup", "warmup", "warmup-fixed-mean"})],
        "objective": [StrOptions({"nll", "beta-nll", "faithful"})],
        "beta": [Interval(Real, 0, 1, closed="both")],
        "epochs": [Interval(Integral, 1, 10**8, closed="both"), StrOptions({"auto"})],
        "warmup_epochs": [Interval(Integral, 1, 10**8, closed="both"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"constant", "cosine"})],
        "clip_value": [Interval(Real, 0, None, closed="neither"), None],
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,) or None
            Not negative; a row of weight zero is left out.

        Returns
        -------
        self
        """
        self.__dict__.pop("networks_", None)  # a fit that is interrupted leaves nothing half-fitted
        table, target, weight, rows = check_table(self, X, y, sample_weight)
        threads = fleet.effective_threads(self.n_jobs)
        fitting = self._fitting(table, target, weight, rows)
        [told] = fleet.drive(
            table, target, weight, [fitting], threads=threads, verbose=self.verbose
        )
        for warning in told:
            warnings.warn(warning, stacklevel=3)  # past scikit-learn's decorator, to the caller
        return self

    @abstractmethod
    def _fitting(
        self,
        X: NDArray[Any],
        y: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        rows: fleet.Rows,
    ) -> Generator[fleet.Request, fleet.Fleet, list[Warning]]:
        """Ask for networks, set the fitted attributes when they are there, return warnings."""

    def _architecture(self) -> recipes.Architecture:
        return recipes.Architecture(
            hidden_units("hidden_mean", self.hidden_mean),
            None if self.hidden_var is None else hidden_units("hidden_var", self.hidden_var),
            self.activation,
        )

    def _training(self) -> recipes.Training:
        return recipes.Training(
            objective=self.objective,
            beta=self.beta,
            batch_size=self.batch_size,
            clip_value=math.inf if self.clip_value is None else self.clip_value,
        )

    def _stages(self, n_rows: int, reg_mean: float, reg_var: float) -> tuple[recipes.Stage, ...]:
        return recipes.stages(
            self.strategy,
            n_rows=n_rows,
            batch_size=self.batch_size,
            epochs=self.epochs,
            warmup_epochs=self.warmup_epochs,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            reg_mean=reg_mean,
            reg_var=reg_var,
            patience=self.n_iter_no_change if self.early_stopping else 0,
        )

    def _split(self, rows: fleet.Rows, entropy: Any) -> tuple[fleet.Rows, fleet.Rows]:
        """Training and validation rows."""
        if not self.early_stopping:
            return rows, rows[:0]
        n_valid = math.ceil(self.validation_fraction * len(rows))
        if len(rows) - n_valid < 2:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves {len(rows) - n_valid} of "
                f"{len(rows)} rows for training: lower it or set early_stopping=False."
            )
        rng = np.random.default_rng(fleet.derived_seed(entropy, 0))
        order = rng.permutation(rows)
        return np.sort(order[n_valid:]), np.sort(order[:n_valid])

    def _without_diverged(self, result: fleet.Fleet) -> tuple[fleet.Networks, list[Warning]]:
        """Return the networks that trained; none at all is an error, some a warning."""
        lost = int(result.diverged.sum())
        if lost == len(result.diverged):
            raise ValueError(
                f"Training diverged (learning_rate={self.learning_rate}, "
                f"clip_value={self.clip_value}): lower learning_rate or clip_value."
            )
        return result.networks[~result.diverged], self._lost(lost, len(result.diverged))

    def _lost(self, lost: int, members: int) -> list[Warning]:
        if not lost:
            return []
        message = (
            f"{lost} of {members} members diverged and were left out: lower learning_rate (now "
            f"{self.learning_rate})."
        )
        return [ConvergenceWarning(message)]


class MVERegressor(NetworkSettings):
    """Mean-variance network: regression that says how sure it is.

    Two networks share the inputs: one predicts the mean, the other the log-variance of y. They are
    trained on the Gaussian likelihood as Sluijterman, Cator and Heskes show they must be: first the
    mean alone at constant variance, then both, each with a penalty of its own.

    Parameters
    ----------
    hidden_mean : tuple of int, default=(40, 20)
        Hidden units of the mean network, a number a layer; ``()`` is a linear mean.
    hidden_var : tuple of int or None, default=(40, 20)
        The same for the log-variance; ``()`` is linear in the inputs, None a constant.
    activation : {"elu", "relu", "tanh", "silu"}, default="elu"
        Activation of the hidden units.
    strategy : {"warmup", "warmup-fixed-mean", "no-warmup"}, default="warmup"
        Train the mean, then both networks; the mean, then only the variance; or both at once, which
        is what most libraries do and what fails on some data.
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
    epochs, warmup_epochs : int or "auto", default="auto"
        Passes over the rows after and during the warm-up. "auto" thinks in gradient steps, so that
        a hundred rows are trained as thoroughly as a hundred thousand.
    batch_size : int, default=32
        Rows in a gradient step.
    learning_rate : float, default=1e-2
        Of Adam, at the start of each stage.
    schedule : {"cosine", "constant"}, default="cosine"
        Whether the learning rate falls to zero along half a cosine within each stage.
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
        The trained networks as arrays.
    history_ : dict of ndarray
        Columns ``member``, ``stage``, ``epoch``, ``nll`` and ``validation_nll`` (mean negative
        log-likelihood a row, in units of y; NaN without validation rows). Loads into a DataFrame.
    reg_mean_, reg_var_ : float
        The penalties used.
    n_steps_ : int
        Gradient steps done.
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

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own form)
        **NetworkSettings._parameter_constraints,
        "reg_mean": [Interval(Real, 0, 1e6, closed="both"), StrOptions({"auto"})],
        "reg_var": [Interval(Real, 0, 1e6, closed="both"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        hidden_mean: tuple[int, ...] = (40, 20),
        hidden_var: tuple[int, ...] | None = (40, 20),
        activation: str = "elu",
        strategy: str = "warmup",
        objective: str = "nll",
        beta: float = 0.5,
        reg_mean: float | str = "auto",
        reg_var: float | str = "auto",
        epochs: int | str = "auto",
        warmup_epochs: int | str = "auto",
        batch_size: int = 32,
        learning_rate: float = 1e-2,
        schedule: str = "cosine",
        clip_value: float | None = 5.0,
        n_members: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_mean = hidden_mean
        self.hidden_var = hidden_var
        self.activation = activation
        self.strategy = strategy
        self.objective = objective
        self.beta = beta
        self.reg_mean = reg_mean
        self.reg_var = reg_var
        self.epochs = epochs
        self.warmup_epochs = warmup_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.clip_value = clip_value
        self.n_members = n_members
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fitting(
        self,
        X: NDArray[Any],
        y: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        rows: fleet.Rows,
    ) -> Generator[fleet.Request, fleet.Fleet, list[Warning]]:
        entropy = seed_entropy(self.random_state)
        subset = self._split(rows, entropy)
        reg_mean = AUTO_PRIOR / len(rows) if self.reg_mean == "auto" else float(self.reg_mean)
        reg_var = 10 * reg_mean if self.reg_var == "auto" else float(self.reg_var)
        stages = self._stages(len(subset[0]), reg_mean, reg_var)
        networks = [
            fleet.Network(stages, fleet.derived_seed(entropy, 0, member))
            for member in range(self.n_members)
        ]
        result = yield fleet.Request(
            [subset], networks, self._architecture(), self._training(), record_history=True
        )
        trained, warned = self._without_diverged(result)
        self.history_ = history_columns(result, stages)
        self.reg_mean_, self.reg_var_ = reg_mean, reg_var
        self.n_steps_ = result.steps
        self.networks_ = trained
        return warned


def hidden_units(name: str, value: Any) -> tuple[int, ...]:
    """Check a parameter such as ``hidden_mean`` and return it as a tuple of int."""
    units = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (None,)
    whole = (isinstance(u, int | np.integer) and not isinstance(u, bool) for u in units)
    if not all(whole) or not all(1 <= u <= 65536 for u in units):
        raise ValueError(
            f"The {name!r} parameter must hold whole numbers of hidden units from 1 to 65536, such "
            f"as (40, 20). Got {value!r} instead."
        )
    return tuple(int(u) for u in units)


def check_table(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64] | None, fleet.Rows]:
    """Validate what ``fit`` was given; return X, y, weights and the rows that count."""
    table, target = validate_data(
        estimator,
        X,
        y,
        dtype=[np.float64, np.float32],
        y_numeric=True,
        ensure_min_samples=2,
    )
    target = np.ascontiguousarray(target, dtype=np.float64)
    for name, values in (("X", table), ("y", target)):
        largest = max(float(values.max()), -float(values.min()))
        if largest > LARGEST:
            raise ValueError(
                f"{name} holds {largest:g}, too large to standardise: divide by a constant first, "
                f"so that nothing exceeds {LARGEST:g}."
            )
    rows = np.arange(len(target))
    if sample_weight is None:
        return table, target, None, rows
    weight = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    weight = weight / (weight.max() or 1.0)
    rows = np.flatnonzero(weight)
    if len(rows) < 2:
        raise ValueError(
            f"sample_weight is positive for {len(rows)} row(s): at least 2 rows must count."
        )
    return table, target, weight, rows


def seed_entropy(random_state: Any) -> int | list[int]:
    """Entropy for ``SeedSequence`` from whatever scikit-learn takes as random_state."""
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return random_state.randint(2**31, size=4).tolist()  # type: ignore[no-any-return]
    return int(random_state)


def history_columns(
    result: fleet.Fleet, stages: tuple[recipes.Stage, ...]
) -> dict[str, NDArray[Any]]:
    """History of all members as columns, in negative log-likelihood a row and units of y."""
    columns: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("member", "stage", "epoch", "nll", "validation_nll")
    }
    for member, pieces in enumerate(result.history):
        constant = 0.5 * math.log(2 * math.pi) + math.log(result.networks.y_scale[member])
        for stage, losses in zip(stages, pieces, strict=True):
            n = len(losses)
            columns["member"].append(np.full(n, member))
            columns["stage"].append(np.full(n, stage.mode))
            columns["epoch"].append(np.arange(1, n + 1))
            nll = 0.5 * losses.astype(np.float64) + constant
            columns["nll"].append(nll[:, 0])
            columns["validation_nll"].append(nll[:, 1])
    return {name: np.concatenate(parts) for name, parts in columns.items()}
