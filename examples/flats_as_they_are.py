"""A frame as it is: categories, dates, truth values and gaps.

Prices of 600 made-up flats, in the frame that somebody has: a town, a day of sale, whether there is
a balcony, a size that is sometimes missing. Nothing is encoded by hand, `columns_` tells what was
made of each column, and the interval of a flat whose size is not known is wider.

Picture: 90 % intervals of the same 12 flats with their size and without it; without it they are
mostly two to three times as wide, and lie nearer to the middle of all prices.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mvenet import AutoRegressor, metrics

rng = np.random.default_rng(0)
n = 600
flats = pd.DataFrame(
    {
        "size": rng.uniform(30, 150, n).round(),
        "town": pd.Categorical(rng.choice(["Bonn", "Köln", "Trier"], n)),
        "balcony": rng.random(n) < 0.4,
        "sold": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), "D"),
    }
)
worth = flats["town"].map({"Bonn": 3.4, "Köln": 4.1, "Trier": 2.6}).astype(float)
years = (flats["sold"] - flats["sold"].min()).dt.days / 365
price = flats["size"] * worth * 1.06**years + 15 * flats["balcony"]
price = (price * np.exp(0.12 * rng.normal(size=n))).round().rename("price")
flats.loc[rng.random(n) < 0.1, "size"] = np.nan

model = AutoRegressor(effort="low", random_state=0).fit(flats[:500], price[:500])
print(model)
print(model.columns_)
new, paid = flats[500:], price[500:]
print("covered", metrics.coverage(paid, model.predict_dist(new), nominal=0.9))

some = new.dropna()[:12]
known = model.predict_interval(some, 0.9)
unknown = model.predict_interval(some.assign(size=np.nan), 0.9)
figure, ax = plt.subplots(layout="constrained")
place = np.arange(len(some))
ax.vlines(place - 0.15, *known.T, color="C0", lw=4, label="size known")
ax.vlines(place + 0.15, *unknown.T, color="C1", lw=4, label="size missing")
ax.plot(place, paid[some.index], "k_", ms=12, label="paid")
ax.set(xlabel="flat", ylabel="price in 1,000 €", xticks=[])
ax.legend()
figure.savefig("flats_as_they_are.png", dpi=130)
