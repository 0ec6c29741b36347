"""A first model: predictions that say how sure they are.

Fit on three quarters of the rows, predict the rest. A good model of uncertainty has 90 % intervals
that hold about 90 % of the rows it was not trained on.

Picture: Observed against predicted values of 111 patients with 90 % intervals; most intervals
touch the diagonal.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from mvenet import AutoRegressor, metrics
from mvenet.plots import PredictionDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = AutoRegressor(random_state=0)
model.fit(X_train, y_train)

mean, std = model.predict(X_test, return_std=True)
low, high = model.predict_interval(X_test, coverage=0.9).T
print("patient   mean    std    90 % interval   observed")
for i in range(5):
    print(f"{i:7d}{mean[i]:7.0f}{std[i]:7.0f}{low[i]:9.0f} to {high[i]:3.0f}{y_test.iloc[i]:11.0f}")

dist = model.predict_dist(X_test)
print(f"\nRMSE                        {metrics.rmse(y_test, dist):.1f}  (y spreads {y.std():.1f})")
print(f"mean log-likelihood         {-metrics.nll(y_test, dist):.2f}")
print(f"90 % intervals that hold y  {metrics.coverage(y_test, dist, nominal=0.9):.0%}")
PredictionDisplay.from_predictions(y_test, dist)
plt.savefig("first_model.png", dpi=130)
