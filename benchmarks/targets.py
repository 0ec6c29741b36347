"""Several targets at once, on tables whose dependence is known.

    python benchmarks/targets.py --effort low

Each table is fitted once with all targets, and target by target. Printed are, on fresh rows: the
CRPS of the targets as a share of separate fits'; what the joint log score gains by the dependence,
what the true one gains with true marginals on the same rows (``true_gain``), and what it gains at
most with the marginals that were fitted, whose own errors hide some of it (``best_gain``); the
coverage of simultaneous 90 % intervals; and gradient steps and processor seconds, as shares of k
times those of one target.

The tables: two targets with errors of correlation 0, 0.5 and 0.95, and of 0.8 and -0.8 by region;
three targets; and energy (``MVENET_DATA``), whose heating load is real but for some noise. Its
cooling load is made from it, ``cooling`` below, since the real one is not there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

from mvenet import AutoRegressor, MVERegressor, metrics
from mvenet.distributions._copula import Copula

N, FRESH = 1_000, 2_000
HALF = float(np.sqrt(0.5))


def synthetic(rho, n, seed, by_region=False, targets=2):
    """Columns, targets, their errors in standard deviations, and the correlations of these."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    sign = np.sign(X[:, 3]) if by_region else np.ones(n)
    matrix = np.broadcast_to(np.eye(targets), (n, targets, targets)).copy()
    for i in range(targets):
        for j in range(i):
            matrix[:, i, j] = matrix[:, j, i] = rho * sign
    errors = np.einsum("nij,nj->ni", np.linalg.cholesky(matrix), rng.standard_normal((n, targets)))
    means = [np.sin(3 * X[:, 0]), X[:, 1] ** 2 + X[:, 0], 2 * X[:, 2]][:targets]
    widths = [0.2 + 0.2 * X[:, 0] ** 2, 0.3 * np.ones(n), 0.5 + 0.3 * X[:, 1]][:targets]
    return X, np.column_stack(means) + errors * np.column_stack(widths), errors, matrix


def cooling(X, heating, rng):
    """Heating with noise, a cooling load, and the noise of both in standard deviations.

    Cooling is three quarters of heating, and what the height (column 4) and the glazing (column 6)
    add. Both get noise of 3 % of the cooling load, with a correlation of the root of a half.
    """
    shared, own = rng.standard_normal((2, len(X)))
    level = 0.75 * heating + 6.0 * X[:, 6] + 0.8 * X[:, 4] + 4.0
    spread = 0.03 * level
    noise = np.column_stack([shared, HALF * (shared + own)])
    return np.column_stack([heating, level]) + spread[:, None] * noise, noise


def energy(seed):
    """Energy with noisy heating and synthetic cooling: to train on, and fresh rows."""
    table = np.loadtxt(
        Path(os.environ["MVENET_DATA"]) / "energy.csv", delimiter=",", skiprows=1, ndmin=2
    )
    rng = np.random.default_rng(seed)
    X = table[:, :-1]
    Y, noise = cooling(X, table[:, -1], rng)
    order = rng.permutation(len(X))
    cut = len(X) // 4
    train, fresh = order[cut:], order[:cut]
    return (X[train], Y[train]), (X[fresh], Y[fresh]), noise[fresh]


def true_gain(matrix, errors):
    """What knowing these correlations is worth for these errors, in log-likelihood a row."""
    return float(np.mean(Copula(matrix, 0.0).log_ratio(errors, errors)))


def best_gain(matrix, scores):
    """What the true correlation gains with these marginals, drawn to none as far as is best."""
    apart = matrix - np.eye(matrix.shape[-1])
    tried = [
        float(np.mean(Copula(np.eye(len(apart[0])) + t * apart, 0.0).log_ratio(scores, scores)))
        for t in np.linspace(0.0, 1.0, 201)
    ]
    return max(tried)


def timed(model, X, y):
    """A fitted model, and the processor seconds that it took."""
    start = time.process_time()
    fitted = clone(model).fit(X, y)
    return fitted, time.process_time() - start


def judged(model, train, fresh, errors, matrix):
    """One table: figures of all targets at once, and of separate fits."""
    (X, Y), (new, outcome) = train, fresh
    matrix = np.broadcast_to(matrix, (len(new), *matrix.shape[1:]))
    k = Y.shape[1]
    joint, seconds = timed(model, X, Y)
    alone, apart = zip(*(timed(model, X, Y[:, j]) for j in range(k)), strict=True)
    dist = joint.predict_dist(new)
    crps = dist.crps(outcome).mean(axis=0)
    separate = [metrics.crps(outcome[:, j], alone[j].predict_dist(new)) for j in range(k)]
    nll = sum(metrics.nll(outcome[:, j], dist.marginal(j)) for j in range(k))
    return {
        "crps_share": [round(float(a / b), 4) for a, b in zip(crps, separate, strict=True)],
        "gain": round(nll - metrics.joint_nll(outcome, dist), 3),
        "best_gain": round(best_gain(matrix, dist.scores(outcome)), 3),
        "true_gain": round(true_gain(matrix, errors), 3),
        "covered": round(metrics.joint_coverage(outcome, dist), 3),
        "boxes_of_each": round(metrics.joint_coverage(outcome, dist.interval(0.9)), 3),
        "steps_share": round(joint.n_steps_ / sum(part.n_steps_ for part in alone), 3),
        "seconds_share": round(seconds / sum(apart), 3),
    }


def tables(seed, n):
    """By name: rows to train on, fresh ones, and the true errors of these and correlations."""
    kinds = {
        "rho 0": (0.0, False, 2),
        "rho 0.5": (0.5, False, 2),
        "rho 0.95": (0.95, False, 2),
        "rho 0.8 and -0.8 by region": (0.8, True, 2),
        "three, rho 0.5": (0.5, False, 3),
    }
    for name, (rho, by_region, k) in kinds.items():
        X, Y, *_ = synthetic(rho, n, seed, by_region, k)
        new, outcome, errors, matrix = synthetic(rho, FRESH, seed + 1_000, by_region, k)
        yield name, (X, Y), (new, outcome), errors, matrix
    if "MVENET_DATA" in os.environ:
        yield "energy, synthetic cooling", *energy(seed), np.array([[[1.0, HALF], [HALF, 1.0]]])


def main() -> None:
    """Print a line of JSON for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effort", choices=("quick", "low", "medium", "high"), default="medium")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=N, help="to train on")
    parser.add_argument("--only", default="", help="part of a table's name")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in range(given.seeds):
        for name, *table in tables(seed, given.rows):
            if given.only not in name:
                continue
            model = MVERegressor(random_state=seed)
            if given.effort != "quick":
                model = AutoRegressor(given.effort, random_state=seed)
            found = judged(model, *table)
            line = {
                "table": name,
                "seed": seed,
                "effort": given.effort,
                "rows": given.rows,
                **found,
            }
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
