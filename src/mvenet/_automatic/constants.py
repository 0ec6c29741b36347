"""The constants of the automatic search, in one place.

Beside each stands what it rests on: the command that measures it, or the word *untested* where a
plausible value was taken and no command compares it with others. ``benchmarks/ablation.py`` halves
and doubles a dozen of them on tables that the league does not have.
"""

from __future__ import annotations

import numpy as np

# --- networks ------------------------------------------------------------------------------------
LEARNING_RATE = 1e-2  # of Adam, at the start of each stage: benchmarks/default.py
DEEP = (64, 64, 64)  # hidden units of a mean: benchmarks/ablation.py --only deep
SHORT = (32, 32, 32)  # of one with few rows, trained for short: benchmarks/ablation.py --only short
SMALL = (40, 20)  # of networks that learn a variance, too: the paper's
FEW_ROWS = 5_000  # with fewer, starting more often takes seconds: untested
# A weaker penalty is tried if the weakest so far has an error below so much of all others'.
WORTH_MORE = 0.95  # benchmarks/ablation.py --only worth_more

WORTH_A_START = 0.15  # share in the mean of what starts a second time: docs/understand/search.md

# --- blend, shape and mixture --------------------------------------------------------------------
SMALLEST_SHARE = 0.05  # of a mean, and of a noise: benchmarks/ablation.py --only smallest_share
SMALLEST_WEIGHT = 2e-3  # of a component; what weighs less is left out: untested
# Weights of the multiples before any row was seen, worth PRIOR_ROWS rows: tails somewhat heavier
# than a normal's, so that a width that no row needed so far is not ruled out.
PRIOR = np.array([0.02, 0.05, 0.10, 0.20, 0.26, 0.20, 0.10, 0.04, 0.02, 0.01])  # untested
PRIOR_ROWS = 5.0  # benchmarks/ablation.py --only prior_rows
DEGREES = 4.0  # of freedom, of the likelihood of a shape: benchmarks/ablation.py --only degrees
ITERATIONS = 200  # of expectation-maximisation: benchmarks/ablation.py --only iterations
SLACK = 0.5  # a logarithm of std may leave what occurred on rows left out by so much: untested
MOST_ROWS_MIXED = 50_000  # that shape and weights are fitted on: untested
BETTER_BY = 2.0  # standard errors by which the log scale must be better: untested

# --- free shapes and atoms -----------------------------------------------------------------------
# Trees whose values are components; from FEW_ROWS on fewer: docs/understand/search.md
TREE_VALUES, TREE_VALUES_OF_MANY = 50, 25
MARGINAL_VALUES = 32  # quantiles of y that stand for its distribution: untested
# Of normals around the trees' values, in standard deviations of y.
WIDTHS = np.array([0.0026, 0.01, 0.033, 0.08, 0.16, 0.33, 0.65])  # untested
RESIDUAL_VALUES = 25  # quantiles of residuals: untested
# Of normals around them, in standard deviations of the row.
RESIDUAL_WIDTHS = np.array([0.05, 0.1, 0.2, 0.4])  # untested
FREE_PRIOR = 0.02  # weight of each of them before any row was seen: untested
MOST_BINS = 4  # of rows by how far their trees disagree: benchmarks/ablation.py --only most_bins
ROWS_OF_A_BIN = 60  # at least: untested
BIN_PRIOR_ROWS = 20.0  # benchmarks/ablation.py --only bin_prior_rows
STEPS = (1.0, 0.85, 0.7, 0.5, 0.3, 0.15)  # towards the new weights: untested
# How much of the new weights is those of least CRPS: benchmarks/ablation.py --only by_crps
BY_CRPS = (0.0, 0.5, 1.0)
EARNED_BY = 1.0  # standard errors, of likelihood or CRPS: benchmarks/ablation.py --only earned_by
AS_GOOD = 1.005  # times the lowest CRPS at most, for a likelier step: docs/understand/search.md
MEAN_WORSE = 1.02  # times the mean's error that a better shape may cost at most: untested
PARTS = 4  # of the rows, each compared by weights that the others made: untested
MOST_ROWS_SHAPED = 20_000  # that the weights of a free shape are fitted on: untested
ROWS_SCORED = 1_500  # whose CRPS decides: untested
THRESHOLDS = 90, 60  # of that CRPS, dense where y is and evenly: docs/understand/search.md
GRID_SHARE = 0.95  # of rows that share their value: y lies on a grid: untested
MOST_LONE_ATOMS = 8  # that have a component of their own: untested
# How many trees the frequency of an atom counts as, beside those that name it: untested
HURDLE_TREES = (1, 3, 10, 25, 60, 150, 400, 1_000)
MOST_ATOMS = 256  # of a grid; beyond, narrow normals around values do: untested
# Into so much before a known end what is expected beyond may be squeezed, in standard deviations
# of y: untested
REACHES = (0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
ATOM_SHARE, ATOM_ROWS = 0.02, 10  # of rows that a value has, if it is an atom: untested

# --- the last training, on all rows --------------------------------------------------------------
ENOUGH = 100  # rows left out by the folds of the learning curve: docs/understand/search.md
DOUBT = 50.0  # rows that speak for no difference: benchmarks/ablation.py --only doubt
FARTHEST = 4.0  # standard deviations that an error counts at most: untested
NARROWEST = 0.5  # share of a standard deviation that remains at least: untested
MOST_STARTS = 7  # docs/understand/search.md
LEFT_TO_CHANCE = 0.04  # share of the squared error: benchmarks/ablation.py --only left_to_chance
LEFT_TO_CHANCE_FEW = 0.015  # the same below FEW_ROWS: benchmarks/ablation.py --only left_to_chance

# --- means that are not networks -----------------------------------------------------------------
LINEAR_PENALTIES = np.logspace(-3, 3, 13)  # on standardised columns: untested
# So many trees up to so many rows: benchmarks/ablation.py --only trees
TREES = ((100, 10_000), (50, 50_000))
FEWEST_TREES = 30  # untested
MOST_ROWS_OF_A_TREE = 50_000  # a tree of more would not be worth its memory: untested
MOST_ROWS_OF_A_PROCESS = 2_000  # its time grows with the cube of them: untested
MOST_COLUMNS_OF_A_PROCESS = 100  # each has a length scale of its own: untested
TIMED_ROWS = 1_000  # that are fitted to see how long it takes: untested
PROCESS_LEARNS_FROM = 300  # rows that its scales are learned from: untested
PROCESS_ITERATIONS = 20  # docs/understand/search.md
PROCESS_SPREAD = 1.5  # of the prior of a length scale's logarithm: untested
PROCESS_RATES = 2.0 ** np.arange(-1, 20, 2)  # of columns on a logarithmic scale: untested

# --- detection of rows that belong together (benchmarks/dependence.py) ---------------------------
FEWEST_ROWS_TESTED = 60  # with fewer nothing that matters is significant
MOST_ROWS_LOOKED_AT = 20_000  # whose errors are compared with their neighbours'
MOST_ROWS_TESTED = 1_500  # that the trees of a test are fitted to
MOST_COLUMNS_TESTED = 3  # with repeats, or that may be clocks
TESTED_TREES = 15  # of a fold
RUNS = 25  # of neighbours that are left out together
SIGNIFICANT = 3.3  # standard errors: one in two thousand tables by chance
MOST_APART = 24  # rows between two whose errors are compared: a panel has a period
SIGNIFICANT_OF_MANY = 4.2  # standard errors, where the largest of so many distances counts
NEIGHBOURS_ALIKE = 0.1  # rank correlation of errors from which on it matters
WORSE = 1.08  # times as large errors from which on it matters
FEWEST_LABELS = 20  # of a category that may be identifiers
FEWEST_VALUES = 30  # of a column of whole numbers that may be identifiers: hours are fewer
AS_PROMISED = 0.88  # coverage of 90 % intervals from which on it is not worth a word
NEW_VALUE_WORSE = 1.2  # times as large errors for a value of it that is new
STAND_TWICE = 1 / 3  # share of rows with copies from which on each counts once
DRIFT = 0.95  # rank correlation of a column with the order of the table, which it drifts along
DRIFT_COVERS = 0.8  # share of the last quarter covered by what is before, below which it matters
LEAK = 0.9999  # rank correlation of a column that gives the target away
