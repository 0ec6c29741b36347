"""Intervals that cover what they say, from a network that is too sure of itself.

A network that overfits leaves small residuals, and learns too small a noise from them. Conformal
intervals are as many predicted standard deviations wide as the rows left out needed.

Picture: Coverage of 90 % intervals of the plain network, with one factor, and conformal; the plain
network is clearly below 90 %, the others reach it.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import CalibratedRegressor, MVERegressor

rng = np.random.default_rng(1)


def table(n):
    """Rows whose noise is large where the second column is positive."""
    X = rng.uniform(-1, 1, (n, 4))
    noisy = X[:, 1] > 0
    y = np.sin(3 * X[:, 0]) + X[:, 2] ** 2 + (0.1 + 0.4 * noisy) * rng.standard_t(4, n)
    return X, y, noisy


X, y, _ = table(300)
X_new, y_new, noisy = table(5000)

network = MVERegressor(strategy="warmup", reg_mean=1e-3, reg_var=1e-2, random_state=0)
models = {
    "plain network": network.fit(X, y),
    "one factor on std": CalibratedRegressor(network, method="scale", cv=10).fit(X, y),
    "conformal, CV+": CalibratedRegressor(network, method="conformal", cv=10).fit(X, y),
}
covered = {}
print("90 % intervals        cover   where quiet   where noisy   mean width")
for name, model in models.items():
    low, high = model.predict_interval(X_new, coverage=0.9).T
    hit = (low <= y_new) & (y_new <= high)
    covered[name] = 100 * hit.mean()
    print(
        f"{name:20s}{hit.mean():7.1%}{hit[~noisy].mean():14.1%}{hit[noisy].mean():14.1%}"
        f"{np.mean(high - low):13.2f}"
    )

figure, ax = plt.subplots(layout="constrained")
ax.barh(list(covered), list(covered.values()), color=["C1", "C0", "C0"])
ax.axvline(90, color="k", ls="--", lw=1, label="what was asked for")
ax.invert_yaxis()
ax.set(xlabel="new rows inside their 90 % interval, in %", xlim=(50, 100))
ax.legend(loc="upper right")
figure.savefig("calibrated_intervals.png", dpi=130)
