"""Two kinds of uncertainty: noise in the data, and what the model has not seen.

*Aleatoric* variance is noise, which more rows do not remove. *Epistemic* variance is what the
networks of an ensemble disagree about; more rows would shrink it, and only it.

Picture: Fitted mean with the two parts of the uncertainty: epistemic is large in the gap without
data, aleatoric where the data are noisy.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import MVERegressor
from mvenet.plots import UncertaintyDisplay

rng = np.random.default_rng(0)
x = np.r_[rng.uniform(-3, -1, 200), rng.uniform(1, 3, 200)]  # nothing between -1 and 1
noise = np.where(x > 0, 0.4, 0.05)  # and much noise on the right
y = np.sin(2 * x) + noise * rng.standard_normal(400)
X = x[:, None]

model = MVERegressor(
    strategy="warmup", n_members=10, reg_mean=1e-4, reg_var=1e-2, random_state=0
).fit(X, y)

print("     x    aleatoric std   epistemic std")
for at, what in [(-2.0, "quiet"), (0.0, "gap"), (2.0, "noisy")]:
    dist = model.predict_dist([[at]])
    print(f"{at:6.1f}{dist.aleatoric[0] ** 0.5:14.3f}{dist.epistemic[0] ** 0.5:16.3f}    {what}")

UncertaintyDisplay.from_estimator(model, X)
plt.savefig("two_kinds_of_uncertainty.png", dpi=130)
