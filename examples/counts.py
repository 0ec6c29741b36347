"""Counts: each whole number has a probability.

How often does somebody see a doctor in two weeks? Mostly never. `AutoRegressor` sees that the
target lies on a grid of whole numbers; `dist.pmf` is the probability of each.

Picture: Bars of the predicted probabilities of 0 to 8 visits for a healthy and an ill person,
beside the true ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import poisson

from mvenet import AutoRegressor

rng = np.random.default_rng(0)
illness = rng.uniform(0, 1, (1500, 1))
visits = rng.poisson(0.2 + 4 * illness[:, 0] ** 2).astype(float)

model = AutoRegressor(effort="low", random_state=0).fit(illness, visits)
people = {"healthy": 0.1, "ill": 0.9}
figure, panels = plt.subplots(1, 2, sharey=True, layout="constrained")
values = np.arange(9.0)
for panel, (who, state) in zip(panels, people.items(), strict=True):
    dist = model.predict_dist([[state]])
    predicted = [dist.pmf(value)[0] for value in values]
    true = poisson(0.2 + 4 * state**2)
    print(f"{who:8s} P(no visit) = {predicted[0]:.2f}, true {true.pmf(0):.2f}")
    panel.bar(values, predicted, alpha=0.5, label="predicted")
    panel.plot(values, true.pmf(values), "k_", ms=12, label="true")
    panel.set(title=who, xlabel="visits")
panels[0].set_ylabel("probability")
panels[1].legend()
figure.savefig("counts.png", dpi=130)
