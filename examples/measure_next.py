"""Which row to measure next? Where the model lacks knowledge, not where the data are noisy.

Measuring is expensive. `epistemic` is the part of the variance that more rows would remove, so the
next measurement belongs where it is largest. The total variance would choose noisy rows in vain.

Picture: Above, the few measurements with the fitted mean and band; below, the epistemic standard
deviation, whose maximum in the gap between the measurements is marked.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import MVERegressor
from mvenet.plots import BandDisplay

rng = np.random.default_rng(0)
x = np.r_[rng.uniform(0, 3, 80), rng.uniform(5, 8, 80)]  # nothing measured between 3 and 5
noise = np.where(x > 6, 0.5, 0.05)
y = np.sin(x) + noise * rng.standard_normal(160)

model = MVERegressor(
    strategy="warmup", n_members=10, reg_mean=1e-4, reg_var=1e-2, random_state=0
).fit(x[:, None], y)
grid = np.linspace(0, 8, 400)
dist = model.predict_dist(grid[:, None])
unknown, total = np.sqrt(dist.epistemic), dist.std
print(f"measure next at x = {grid[unknown.argmax()]:.1f}, where most can be learned")
print(f"the largest total std is at x = {grid[total.argmax()]:.1f}, and is noise")

figure, (above, below) = plt.subplots(2, 1, sharex=True, height_ratios=[2, 1], layout="constrained")
BandDisplay.from_estimator(model, x[:, None], y, ax=above)
below.plot(grid, unknown, color="C3")
below.axvline(grid[unknown.argmax()], color="k", ls="--", lw=1)
below.set(xlabel="x", ylabel="epistemic std")
figure.savefig("measure_next.png", dpi=130)
