"""TorchMVERegressor: scikit-learn's contract around a mean-variance network of one's own."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import nn

from mvenet import recipes
from mvenet._estimators.parameters import (
    PENALTY,
    POSITIVE,
    at_least,
    choice,
    held_out,
    setting,
    with_settings,
)
from mvenet._models import student
from mvenet._models.predictor import PredictsDistribution
from mvenet._training.fleet import DivergedError, derived_seed, log_constant, seed_entropy
from mvenet._utils.sklearn import Interval
from mvenet.distributions import Distribution, NormalMixture
from mvenet.distributions._normal import normal_or_mixture
from mvenet.torch import _data
from mvenet.torch._checkpoint import Checkpoint
from mvenet.torch._files import state_of
from mvenet.torch._identity import identity
from mvenet.torch._loop import Loop, Record, outputs
from mvenet.torch._losses import BetaNLL, CRPSLoss, FaithfulNLL, GaussianNLL, StudentTNLL
from mvenet.torch._net import MeanVarianceNet
from mvenet.torch._schedule import SCHEDULES, STRATEGIES, stages
from mvenet.torch._skafte import LocalityBatches
from mvenet.torch._training import (
    device_of,
    own_randomness,
    random_starts,
    train_member,
)

SMALLEST_STD = float(np.finfo(np.float64).tiny)
LEARNED = "learned"

OBJECTIVES: dict[str, Callable[[Any], nn.Module]] = {
    "nll": lambda _: GaussianNLL(),
    "beta-nll": lambda model: BetaNLL(model.beta),
    "faithful": lambda _: FaithfulNLL(),
    "crps": lambda _: CRPSLoss(),
    "student-t": lambda model: StudentTNLL(None if model.df == LEARNED else model.df),
    "natural": lambda _: GaussianNLL(),  # of a network whose outputs are natural parameters
}


@with_settings
class TorchMVERegressor(PredictsDistribution, RegressorMixin, BaseEstimator):
    """A mean-variance network of your own, trained as the paper says it must be.

    Parameters
    ----------
    module : MeanVarianceNet, or a function without arguments that makes one
        It is copied, and trained from the weights that it has. Of a function each member of an
        ensemble is made anew, with ``random_state`` as PyTorch's seed.
    strategy : {"warmup", "warmup-fixed-mean", "no-warmup", "alternating"}, default="warmup"
        As of :class:`mvenet.MVERegressor`, as are all parameters up to ``n_iter_no_change``.
        "alternating" trains variance and mean in turn after a warm-up, an epoch each.
    objective : {"nll", "beta-nll", "faithful", "crps", "student-t", "natural"}, default="nll"
        "natural" needs a ``MeanVarianceNet(..., natural=True)`` and no warm-up.
    beta : float, default=0.5
    df : float or "learned", default=5.0
        Degrees of freedom of ``objective="student-t"``. "learned" are those of each row, between 3
        and 100, and needs a ``MeanVarianceNet(..., tails=...)``.
    reg_mean : float, default=1e-4
        Penalty on the squared weights of the mean, in units of standardised y.
    reg_var : float or "auto", default="auto"
        The same for the variance; "auto" is ten times ``reg_mean``, and ``reg_mean`` for networks
        that share a trunk, where only one penalty is possible.
    epochs, warmup_epochs : int or "auto", default="auto"
    batch_size : int, default=32
    learning_rate : float, default=1e-3
    schedule : {"ramp-cosine", "cosine", "constant"}, default="ramp-cosine"
    clip_value : float or None, default=5.0
    n_members : int, default=1
        A deep ensemble. Copies of a module are told to ``reset_parameters``, layer by layer.
    early_stopping : bool, default=False
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=20
    neighbours : int or None, default=None
        Draw batches of so many neighbours after the warm-up, as :class:`LocalityBatches` does, with
        eight of them around each of ``batch_size / 8`` rows. Rows must be plain numbers, in units
        in which distances mean something.
    n_samples : int, default=50
        Draws for a prediction if the module has MCDropout or ConcreteDropout.
    device : str, default="auto"
        "auto" takes CUDA, else MPS, else the CPU. CUDA and MPS were never run by the tests.
    mixed_precision : bool, default=False
        Run the network in bfloat16 where PyTorch thinks it safe.
    num_workers : int, default=0
        Processes that load the items of a Dataset.
    checkpoint : str, path or None, default=None
        File in which the training is kept while it lasts: the same call after a kill goes on with
        it, to the same result. It is removed at the end.
    warm_start : bool, default=False
        Whether a fitted one goes on from its weights and its units of y.
    random_state : int, RandomState, Generator or None, default=None
        Seed of starts, batches, dropout and held-out rows.
    verbose : int, default=0
        1 shows a progress bar (tqdm).

    Attributes
    ----------
    networks_ : list of MeanVarianceNet
        The trained members, of X to y in standardised units.
    y_mean_, y_scale_ : ndarray of shape (n_members,)
        Those units.
    history_ : dict of ndarray
        Columns ``member``, ``stage``, ``epoch``, ``nll`` and ``validation_nll``, as of
        :class:`mvenet.MVERegressor`.
    reg_mean_, reg_var_ : float
        The penalties used.

    Notes
    -----
    y is standardised, X is not: what a network of your own wants (pixels, token numbers, columns
    of mean 0) only you know. For a table, put a ``StandardScaler`` before it. Whole numbers in
    arrays become floating ones unless the module has an ``Embedding``.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from mvenet.torch import MeanVarianceNet, TorchMVERegressor
    >>> def small():
    ...     return nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> y = X[:, 0] + (0.05 + 0.3 * (X[:, 0] > 0)) * rng.standard_normal(200)
    >>> model = TorchMVERegressor(
    ...     lambda: MeanVarianceNet(small(), small()),
    ...     epochs=40, warmup_epochs=20, learning_rate=0.01, random_state=0,
    ... )
    >>> mean, std = model.fit(X, y).predict([[-0.5], [0.5]], return_std=True)
    >>> bool(std[1] > 2 * std[0])
    True
    """

    module: Any = setting(nn.Module, callable, default=dataclasses.MISSING, kw_only=False)
    strategy: str = setting(choice(*STRATEGIES), default="warmup")
    objective: str = setting(choice(*OBJECTIVES), default="nll")
    beta: float = setting(Interval(Real, 0, 1, closed="both"), default=0.5)
    df: float | str = setting(
        Interval(Real, student.LEAST, student.MOST, closed="both"), choice(LEARNED), default=5.0
    )
    reg_mean: float = setting(PENALTY, default=1e-4)
    reg_var: float | str = setting(PENALTY, choice("auto"), default="auto")
    epochs: int | str = setting(at_least(1, 10**8), choice("auto"), default="auto")
    warmup_epochs: int | str = setting(at_least(1, 10**8), choice("auto"), default="auto")
    batch_size: int = setting(at_least(1, 2**31 - 1), default=32)
    learning_rate: float = setting(POSITIVE, default=1e-3)
    schedule: str = setting(choice(*SCHEDULES), default="ramp-cosine")
    clip_value: float | None = setting(POSITIVE, None, default=5.0)
    n_members: int = setting(at_least(1), default=1)
    early_stopping: bool = setting("boolean", default=False)
    validation_fraction: float = setting(Interval(Real, 0, 1, closed="neither"), default=0.1)
    n_iter_no_change: int = setting(at_least(1), default=20)
    neighbours: int | None = setting(at_least(2), None, default=None)
    n_samples: int = setting(at_least(1), default=50)
    device: str = setting(str, default="auto")
    mixed_precision: bool = setting("boolean", default=False)
    num_workers: int = setting(at_least(0), default=0)
    checkpoint: str | os.PathLike[str] | None = setting(str, os.PathLike, None, default=None)
    warm_start: bool = setting("boolean", default=False)
    random_state: Any = setting("random_state", np.random.Generator, default=None)
    verbose: int = setting("verbose", default=0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")

    # --- training --------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or tensor of shape (n, ...), or torch Dataset
            Rows of any shape. The items of a Dataset are (inputs, target), or inputs with ``y``
            apart; inputs may be dicts, whose names are those of the module's arguments.
        y : array-like of shape (n,), or None with a Dataset of pairs
        sample_weight : array-like of shape (n,) or None
            Not negative; a row of weight zero is left out.

        Returns
        -------
        self
        """
        self._validate_params()
        device = device_of(self.device)
        before = self._before()
        self.__dict__.pop("networks_", None)  # an interrupted fit leaves nothing half-fitted
        rows = _data.training_rows(self, X, y, sample_weight)
        entropy = seed_entropy(self.random_state)
        checkpoint = self._open_checkpoint(rows, entropy, warm=before is not None)
        if checkpoint is not None:
            entropy = checkpoint.entropy
        parts = self._split(rows, entropy)
        with own_randomness(device):
            if before is None:
                nets = random_starts(self.module, self.n_members, entropy)
                units = np.tile(parts[0].units(), (len(nets), 1))
            else:
                nets, units = before
            self._check_outputs(nets[0])
            if checkpoint is not None:
                checkpoint.begin(identity(nets[0], rows))
            self.reg_mean_, self.reg_var_ = self._penalties(nets[0])
            records = self._trained(nets, units, parts, device, entropy, checkpoint)
        self._keep(nets, records, units)
        if checkpoint is not None:
            Path(checkpoint.path).unlink(missing_ok=True)
        return self

    def _trained(
        self,
        starts: list[MeanVarianceNet],
        units: NDArray[np.float64],
        parts: tuple[_data.Rows, _data.Rows | None],
        device: str,
        entropy: Any,
        checkpoint: Checkpoint | None,
    ) -> list[Record]:
        """Train each member, one after the other."""
        records: list[Record] = []
        planned, nearby = self._stages(len(parts[0])), self._nearby(parts[0])
        with self._bar(len(starts) * sum(stage.epochs for stage in planned)) as tick:
            for number, net in enumerate(starts):
                if checkpoint is not None and number < len(checkpoint.done):
                    net.load_state_dict(state_of(checkpoint.weights, f"member.{number}."))
                    records.append(checkpoint.done[number])
                    continue
                mean, scale = units[number].tolist()
                train = parts[0].standardised(mean, scale, net)
                held_out = parts[1] and parts[1].standardised(mean, scale, net)
                seed = partial(derived_seed, entropy, 0, number)
                loop = self._loop(net, device, nearby)
                record = train_member(self, loop, planned, train, held_out, seed, checkpoint, tick)
                if checkpoint is not None:
                    checkpoint.member_done(net, record)
                records.append(record)
        return records

    @property
    def _learns_tails(self) -> bool:
        return self.objective == "student-t" and self.df == LEARNED

    def _check_outputs(self, net: MeanVarianceNet) -> None:
        """Refuse a network that does not return what the objective is of."""
        if self.df == LEARNED and self.objective != "student-t":
            raise ValueError(
                f"df='learned' is for objective='student-t', not for {self.objective!r}: leave df "
                "out, or change the objective."
            )
        if self._learns_tails and net.tails is None:
            raise ValueError(
                "df='learned' needs a module with degrees of freedom: make it by "
                "MeanVarianceNet(..., tails=...), or give df a number."
            )
        if not self._learns_tails and net.tails is not None:
            raise ValueError(
                "The module has tails, which only objective='student-t' with df='learned' trains: "
                "set both, or leave tails out."
            )
        if self.objective == "natural" and not net.natural:
            raise ValueError(
                "objective='natural' needs a module whose first output is mean / variance: make it "
                "by MeanVarianceNet(..., natural=True)."
            )

    def _nearby(self, train: _data.Rows) -> LocalityBatches | None:
        """Batches of neighbours, if they are wanted."""
        if self.neighbours is None:
            return None
        shape = tuple(getattr(train.inputs, "shape", ()))
        if len(shape) != 2:
            raise ValueError(
                f"neighbours={self.neighbours} needs a table of numbers to measure distances in, "
                f"got {f'rows of shape {shape[1:]}' if shape else 'a Dataset'}: leave it out."
            )
        each = min(8, self.neighbours)
        around = min(len(train), max(1, self.batch_size // each))
        return LocalityBatches(train.inputs.numpy(), around, each, self.neighbours)

    def _loop(
        self, net: MeanVarianceNet, device: str, nearby: LocalityBatches | None = None
    ) -> Loop:
        loop = Loop(
            net,
            OBJECTIVES[self.objective](self),
            penalties=(self.reg_mean_, self.reg_var_),
            autocast=self.mixed_precision,
            num_workers=self.num_workers,
            nearby=nearby,
            device=device,
            lr=self.learning_rate,
            batch_size=self.batch_size,
        )
        loop.initialize()
        return loop

    def _stages(self, n_rows: int) -> tuple[recipes.Stage, ...]:
        return stages(
            self.strategy,
            n_rows=n_rows,
            batch_size=self.batch_size,
            epochs=self.epochs,
            warmup_epochs=self.warmup_epochs,
            learning_rate=self.learning_rate,
        )

    def _split(self, rows: _data.Rows, entropy: Any) -> tuple[_data.Rows, _data.Rows | None]:
        """Training and held-out rows."""
        if not self.early_stopping:
            return rows, None
        train, valid = held_out(len(rows), self.validation_fraction, entropy)
        return rows.take(train), rows.take(valid)

    def _before(self) -> tuple[list[MeanVarianceNet], NDArray[np.float64]] | None:
        """Members to go on from, and their units of y, if that was asked for."""
        if not (self.warm_start and hasattr(self, "networks_")):
            return None
        return copy.deepcopy(self.networks_), np.column_stack([self.y_mean_, self.y_scale_])

    def _penalties(self, net: MeanVarianceNet) -> tuple[float, float]:
        if self.reg_var != "auto":
            return float(self.reg_mean), float(self.reg_var)
        shares = net.trunk is not None
        return float(self.reg_mean), float(self.reg_mean) * (1 if shares else 10)

    @property
    def penalties_(self) -> tuple[float, float]:
        """Penalties on the mean and on the variance that the networks were trained with."""
        return self.reg_mean_, self.reg_var_

    # --- what remains ----------------------------------------------------------------------------

    def _keep(
        self, nets: list[MeanVarianceNet], records: list[Record], units: NDArray[np.float64]
    ) -> None:
        """Set the fitted attributes; no trained member is an error, a lost one a warning."""
        kept = [k for k, record in enumerate(records) if not record["diverged"]]
        lost = len(records) - len(kept)
        remedy = f"lower learning_rate (now {self.learning_rate})"
        if not kept:
            raise DivergedError(
                f"Training diverged, the loss became NaN or infinite: {remedy} or clip_value (now "
                f"{self.clip_value}), and look for huge numbers in X."
            )
        if lost:
            message = f"{lost} of {len(records)} members diverged and were left out: {remedy}."
            warnings.warn(ConvergenceWarning(message), stacklevel=3)
        self.y_mean_, self.y_scale_ = units[kept].T
        training = recipes.Training() if self._learns_tails else recipes.Training(
            self.objective, df=float(self.df)
        )  # fmt: skip
        constant = log_constant(training)
        self.history_ = _history([records[k]["epochs"] for k in kept], self.y_scale_, constant)
        self.networks_ = [nets[k] for k in kept]

    def _open_checkpoint(self, rows: _data.Rows, entropy: Any, warm: bool) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        apart = ("module", "device", "verbose", "num_workers", "checkpoint", "random_state")
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in apart}
        settings["random_state"] = repr(self.random_state)
        settings["warm_start"] = warm  # whether it does, not whether it would
        text = json.dumps([settings, _data.fingerprint(rows)], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        return Checkpoint.open(self.checkpoint, key, entropy)

    @contextlib.contextmanager
    def _bar(self, epochs: int) -> Iterator[Callable[[], object]]:
        """A progress bar over the epochs of all members, if one is wanted."""
        if not self.verbose:
            yield lambda: None
            return
        from tqdm.auto import tqdm

        with tqdm(total=epochs, unit="epoch") as bar:
            yield bar.update

    def predict_dist(self, X: Any) -> Distribution:
        """Predictive distribution of each row.

        Parameters
        ----------
        X : array-like or tensor of shape (n, ...), or torch Dataset

        Returns
        -------
        Normal or NormalMixture
            A mixture of the members, and of the draws of their dropout if they have some.
        """
        check_is_fitted(self)
        rows, device = _data.unlabelled_rows(self, X), device_of(self.device)
        means, stds, tails = [], [], []
        with own_randomness(device):
            for number, net in enumerate(self.networks_):
                loop = self._loop(copy.deepcopy(net), device)
                part = rows.standardised(0.0, 1.0, net)
                for mean, std, *df in outputs(loop, part, self.n_samples, 1_000_003 * number):
                    tails += df
                    means.append(self.y_mean_[number] + self.y_scale_[number] * mean)
                    stds.append(getattr(self, "scale_", 1.0) * self.y_scale_[number] * std)
        if self.objective == "student-t":
            location, scale = np.array(means), np.array(stds)
            spread = (
                student.spread_by_row(location, scale, np.array(tails))
                if self._learns_tails
                else student.spread(location, scale, float(self.df))
            )
            return NormalMixture(spread[0], np.maximum(spread[1], SMALLEST_STD), spread[2])
        stds = [np.maximum(std, SMALLEST_STD) for std in stds]
        return normal_or_mixture(means, stds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as safetensors, for :func:`mvenet.torch.load`.

        Parameters
        ----------
        path : str or path
            Customarily ending in ``.safetensors``. Replaced whole or not at all.
        """
        from mvenet.torch import _persistence

        _persistence.save(self, path)


def _history(
    members: list[Any], scale: NDArray[np.float64], constant: float
) -> dict[str, NDArray[Any]]:
    """Columns in negative log-likelihood a row and units of y, from twice that but a constant."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("member", "stage", "epoch", "nll", "validation_nll")
    }
    for number, epochs in enumerate(members):
        added = constant + math.log(scale[number])
        counts: dict[str, int] = {}
        for stage, trained, validated in epochs:
            counts[stage] = counts.get(stage, 0) + 1
            validated = math.nan if validated is None else validated
            row = (number, stage, counts[stage], trained / 2 + added, validated / 2 + added)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return {name: np.array(values) for name, values in columns.items()}
