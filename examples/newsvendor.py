"""A decision with costs: how much to order.

A loaf that is left over costs 1, a customer without a loaf costs 4. The best order is then not the
mean but the 80 % quantile, 4 / (4 + 1), of each day's demand.
Days differ in how uncertain they are.

Picture: Average cost per day of three rules: order the mean, the mean plus the same for all days,
the 80 % quantile of each day. The last is the cheapest.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import AutoRegressor

LEFT_OVER, MISSED = 1.0, 4.0
rng = np.random.default_rng(0)


def days(n):
    """Weekday, temperature and demand, which varies most on weekends."""
    X = np.column_stack([rng.integers(0, 7, n), rng.uniform(-5, 30, n)]).astype(float)
    weekend = X[:, 0] >= 5
    return X, 100 + X[:, 1] + 40 * weekend + np.where(weekend, 25, 6) * rng.standard_normal(n)


X, y = days(700)
X_new, y_new = days(5000)
model = AutoRegressor(effort="low", random_state=0).fit(X, y)
right = MISSED / (MISSED + LEFT_OVER)
same = np.quantile(y - model.oof_mean_, right)  # by rows left out, one number for all days
mean = model.predict(X_new)
orders = {
    "the mean": mean,
    "the mean + the same": mean + same,
    "the 80 % quantile": model.predict_quantiles(X_new, [right])[:, 0],
}
costs = {}
for rule, order in orders.items():
    cost = LEFT_OVER * np.maximum(order - y_new, 0) + MISSED * np.maximum(y_new - order, 0)
    costs[rule] = cost.mean()
    print(f"{rule:20s} costs {costs[rule]:5.2f} a day")

figure, ax = plt.subplots(layout="constrained")
ax.barh(list(costs), list(costs.values()), color=["0.6", "C1", "C0"])
ax.invert_yaxis()
ax.set(xlabel="average cost of a day", ylabel="order")
figure.savefig("newsvendor.png", dpi=130)
