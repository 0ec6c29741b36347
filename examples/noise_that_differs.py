"""Noise that differs from row to row.

A model with one ± for all rows is too careful where the data are quiet, and too sure where they are
noisy. `MVERegressor` learns the width of the noise together with the mean.

Picture: Points along a curve whose scatter grows to the right, with the fitted mean and a 90 % band
that widens as the scatter does.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import MVERegressor
from mvenet.plots import BandDisplay

rng = np.random.default_rng(0)
x = rng.uniform(0, 4, 500)
noise = 0.05 + 0.15 * x  # what is to be found
y = np.sin(2 * x) + noise * rng.standard_normal(500)

model = MVERegressor(random_state=0).fit(x[:, None], y)
for at in (0.5, 2.0, 3.5):
    std = model.predict([[at]], return_std=True)[1][0]
    print(f"x = {at}: predicted std {std:.2f}, true {0.05 + 0.15 * at:.2f}")
BandDisplay.from_estimator(model, x[:, None], y)
plt.savefig("noise_that_differs.png", dpi=130)
