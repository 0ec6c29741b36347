"""SkafteRegressor: all four parts of the training of Skafte, Jørgensen and Hauberg, for tables."""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from mvenet._estimators.parameters import (
    PENALTY,
    POSITIVE,
    at_least,
    choice,
    setting,
    with_settings,
)
from mvenet._models.architecture import hidden_units
from mvenet._models.predictor import PredictsDistribution
from mvenet._training.fleet import derived_seed, seed_entropy
from mvenet._utils.sklearn import check_sample_weight
from mvenet.distributions import Distribution
from mvenet.recipes import DEFAULT
from mvenet.torch._convert import ACTIVATIONS
from mvenet.torch._regressor import LEARNED, TorchMVERegressor
from mvenet.torch._schedule import ALTERNATING
from mvenet.torch._skafte import FarVarianceNet

Array = NDArray[np.float64]


@with_settings
class SkafteRegressor(PredictsDistribution, RegressorMixin, BaseEstimator):
    """A mean and a variance network for tables, trained as Skafte et al. do (2019).

    All four parts of https://arxiv.org/abs/1906.03260: batches of neighbours
    (:class:`LocalityBatches`); mean and variance in turn, after a warm-up of the mean; a variance
    with an inverse Gamma posterior for each row, so that Student's t with degrees of freedom by row
    is predicted (:class:`StudentTNLL`); and a variance that goes to a given one away from the data
    (:class:`FarVarianceNet`), around the centres of a k-means clustering.

    It is a :class:`TorchMVERegressor` of columns that are standardised first. Where theirs draws
    variances from the posterior while it trains, this takes the integral.

    Parameters
    ----------
    hidden : tuple of int, default=(40, 20)
        Hidden units of each of the three networks, for mean, scale and degrees of freedom.
    activation : {"elu", "relu", "tanh", "silu"}, default="elu"
    reg_mean : float, default=1e-4
    reg_var : float or "auto", default="auto"
    neighbours : int, default=32
        How many of a row's nearest rows batches are drawn from; fewer if there are fewer rows.
    centres : int, default=100
        Centres of the clustering; fewer if there are fewer different rows.
    far : float, default=1.0
        Squared scale away from the data, in units of the variance of y.
    epochs, warmup_epochs : int or "auto", default="auto"
        Mean and variance share the epochs.
    batch_size : int, default=32
    learning_rate : float, default=1e-2
    n_members : int, default=1
        A deep ensemble.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    regressor_ : TorchMVERegressor
        Of standardised columns.
    scaler_ : StandardScaler
        What standardises them.
    centres_ : ndarray of shape (m, n_features)
        In standardised units.

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet.torch import SkafteRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(200)
    >>> model = SkafteRegressor(epochs=20, warmup_epochs=20, random_state=0).fit(X, y)
    >>> near, far = model.predict([[0.0], [1000.0]], return_std=True)[1]
    >>> bool(far > 3 * near)
    True
    """

    hidden: tuple[int, ...] = setting("array-like", default=DEFAULT["hidden_mean"])
    activation: str = setting(choice(*ACTIVATIONS), default=DEFAULT["activation"])
    reg_mean: float = setting(PENALTY, default=1e-4)
    reg_var: float | str = setting(PENALTY, choice("auto"), default="auto")
    neighbours: int = setting(at_least(2), default=32)
    centres: int = setting(at_least(1), default=100)
    far: float = setting(POSITIVE, default=1.0)
    epochs: int | str = setting(at_least(1, 10**8), choice("auto"), default="auto")
    warmup_epochs: int | str = setting(at_least(1, 10**8), choice("auto"), default="auto")
    batch_size: int = setting(at_least(1, 2**31 - 1), default=DEFAULT["batch_size"])
    learning_rate: float = setting(POSITIVE, default=DEFAULT["learning_rate"])
    n_members: int = setting(at_least(1), default=1)
    random_state: Any = setting("random_state", np.random.Generator, default=None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "regressor_")

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train.

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
        self._validate_params()
        self.__dict__.pop("regressor_", None)
        units = hidden_units("hidden", self.hidden) or ()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X, ensure_non_negative=True)
            counted = weight > 0
            X, y, weight = X[counted], y[counted], weight[counted]
        seed = derived_seed(seed_entropy(self.random_state), 0) % 2**32
        self.scaler_ = StandardScaler().fit(X, sample_weight=weight)
        rows = self.scaler_.transform(X)
        self.centres_ = self._clustered(rows, weight, seed)
        sizes = (X.shape[1], *units, 1)
        module = partial(_network, sizes, self.activation, self.centres_, self.far)
        self.regressor_ = self._trainer(module, len(rows), seed).fit(rows, y, weight)
        return self

    def _clustered(self, rows: Array, weight: Array | None, seed: int) -> Array:
        m = min(self.centres, len(np.unique(rows, axis=0)))
        found = KMeans(m, n_init=1, random_state=seed).fit(rows, sample_weight=weight)
        return np.asarray(found.cluster_centers_, dtype=np.float64)

    def _trainer(self, module: Any, n_rows: int, seed: int) -> TorchMVERegressor:
        names = ("reg_mean", "reg_var", "epochs", "warmup_epochs", "batch_size", "n_members")
        return TorchMVERegressor(
            module,
            strategy=ALTERNATING,
            objective="student-t",
            df=LEARNED,
            neighbours=min(self.neighbours, n_rows),
            learning_rate=self.learning_rate,
            device="cpu",
            random_state=seed,
            **{name: getattr(self, name) for name in names},
        )

    def predict_dist(self, X: ArrayLike) -> Distribution:
        """Predictive distribution of each row, Student's t as a mixture of normals.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        NormalMixture
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return self.regressor_.predict_dist(self.scaler_.transform(rows))._labelled(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refused: a file of safetensors has one network's weights, and this has a scaler too.

        ``regressor_.save(path)`` writes the networks; joblib writes all of it.
        """
        raise NotImplementedError(
            "SkafteRegressor has no file of its own: regressor_.save(path) writes its networks, of "
            "standardised columns; joblib.dump writes all of it, for yourself."
        )


def _network(sizes: tuple[int, ...], activation: str, centres: Array, far: float) -> FarVarianceNet:
    def perceptron() -> nn.Module:
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise(sizes):
            layers += [nn.Linear(n_in, n_out), ACTIVATIONS[activation]()]
        return nn.Sequential(*layers[:-1])

    parts = [perceptron() for _ in range(3)]
    return FarVarianceNet(parts[0], parts[1], centres, far, tails=parts[2])
