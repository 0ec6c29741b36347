"""Beside MAPIE: our estimator in its split conformal regressor, our std as its scale."""

import numpy as np
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import train_test_split

from mvenet import MVERegressor, datasets


class Spread(RegressorMixin, BaseEstimator):
    """The std of a fitted estimator, as MAPIE's model of the size of residuals."""

    def __init__(self, model):
        self.model = model
        self.fitted_ = True

    def fit(self, X, y):
        """Nothing to do: the model is fitted."""
        return self

    def predict(self, X):
        """Return the std of each row."""
        return self.model.predict(X, return_std=True)[1]


sample, new = (datasets.quadratic(n=n, random_state=n) for n in (600, 5000))
X, X_cal, y, y_cal = train_test_split(sample.X, sample.y, test_size=0.5, random_state=0)
model = MVERegressor(strategy="warmup", reg_mean=1e-3, reg_var=1e-2, random_state=0).fit(X, y)
score = ResidualNormalisedScore(residual_estimator=Spread(model), prefit=True)
mapie = SplitConformalRegressor(model, confidence_level=0.9, conformity_score=score, prefit=True)
mapie.conformalize(X_cal, y_cal)

_, intervals = mapie.predict_interval(new.X)
low, high = intervals[:, 0, 0], intervals[:, 1, 0]
print(f"MAPIE's 90 % intervals cover {np.mean((low <= new.y) & (new.y <= high)):.1%} of new rows")
