"""With MAPIE: its conformal intervals, scaled by our standard deviations.

MAPIE gives a guarantee, and alone the same width everywhere. With our `std` as its scale the
intervals are wide where the noise is.

Picture: New points with MAPIE's 90 % intervals, narrow in the middle and wide at both ends, as the
noise is.
"""

import matplotlib.pyplot as plt
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

order = np.argsort(new.X[:, 0])
figure, ax = plt.subplots(layout="constrained")
ax.plot(new.X[::5, 0], new.y[::5], ".", color="0.6", ms=3, label="new rows")
ax.fill_between(
    new.X[order, 0], low[order], high[order], alpha=0.35, label="90 % interval of MAPIE"
)
ax.set(xlabel="x", ylabel="y")
ax.legend()
figure.savefig("with_mapie.png", dpi=130)
