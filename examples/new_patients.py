"""New patients: say which rows belong together.

Twelve measurements of each patient are alike. Folds that tear a patient apart see his own
measurements on both sides, and promise too much. With `groups=` whole patients are left out.

Picture: Coverage of 90 % intervals on patients never seen before: far below 90 % without groups,
about 90 % with them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mvenet import AutoRegressor, DependenceWarning

rng = np.random.default_rng(3)


def measured(patients, first):
    """Twelve rows of each patient, who have two values and a level of their own."""
    who = np.repeat(np.arange(patients) + first, 12)
    own, level = rng.standard_normal((patients, 2)), rng.standard_normal(patients)
    dose = rng.uniform(0, 1, len(who))
    X = np.column_stack([dose, own.repeat(12, 0)])
    return X, 2 * dose + level.repeat(12) + 0.3 * rng.standard_normal(len(who)), who


X, y, who = measured(40, first=0)
X_new, y_new, _ = measured(400, first=1000)
covered = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DependenceWarning)  # it says that rows seem to depend
    for name, groups in {"told nothing": None, "groups=who": who}.items():
        model = AutoRegressor(effort="low", random_state=0).fit(X, y, groups=groups)
        low, high = model.predict_interval(X_new, 0.9).T
        covered[name] = np.mean((low <= y_new) & (y_new <= high))
        print(f"{name:14s} 90 % intervals cover {covered[name]:.0%} of new patients' rows")

figure, ax = plt.subplots(layout="constrained")
ax.bar(list(covered), [100 * share for share in covered.values()], color=["C1", "C0"])
ax.axhline(90, color="k", ls="--", lw=1, label="what was promised")
ax.set(ylabel="coverage of new patients in %", ylim=(0, 100))
ax.legend(loc="center left")
figure.savefig("new_patients.png", dpi=130)
