"""A table as people have it: cars, from the file to predictions.

Miles per gallon of 392 cars (Auto MPG, R. Quinlan 1993, UCI, CC BY 4.0; it comes with the package).
The widths of the intervals differ from car to car: old heavy cars are alike, light ones are not.
Its report is [one page to send around](report-table_of_cars.html).
On the command line: `mvenet fit cars.csv --target mpg -o cars.mve --report cars.html`.

Picture: 90 % intervals of 40 cars ordered by weight; those of light cars are wider.
"""

from importlib.resources import files
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mvenet import report, table, workflow

cars = table.read(files("mvenet.cli") / "cars.csv")
fitted = workflow.fit_table(cars, "mpg", search=False, seed=0)
print("on the fifth of the rows that was held out:")
print({name: round(value, 2) for name, value in fitted.evaluation.scores.items()})
print({level: round(share, 2) for level, share in fitted.evaluation.coverage.items()})

some = cars.sort("weight")[np.linspace(0, 391, 40).astype(int)]
told = workflow.predictions(fitted.model, some.drop("mpg"), [0.9])
print(some.head(3).hstack(told.head(3)))

figure, ax = plt.subplots(layout="constrained")
weight, mpg = (some[name].cast(float) for name in ("weight", "mpg"))  # read as text
ax.vlines(weight, told["low_90"], told["high_90"], lw=4, alpha=0.5, label="90 % interval")
ax.plot(weight, mpg, "k.", label="observed")
ax.set(xlabel="weight of the car in pounds", ylabel="miles per gallon")
ax.legend()
figure.savefig("table_of_cars.png", dpi=130)

page = report.render(fitted.model, fitted.evaluation, source="cars.csv", fitted=fitted, unit="mpg")
Path("table_of_cars.html").write_text(page, encoding="utf-8")
