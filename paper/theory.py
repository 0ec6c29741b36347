"""The paper's appendix, checked by simulation.

    python paper/theory.py [--quick] [--output FOLDER]

Prints a claim a line: what the formula predicts, what a simulation finds with its Monte-Carlo
error, and whether the two agree within four such errors. Ends with status 1 if one does not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import style
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import digamma

Array = NDArray[np.float64]
FOLDER = Path(__file__).with_name("figures")
ERRORS = 4  # Monte-Carlo standard errors within which a formula and its simulation agree
BATCHES = 50  # replications come in so many batches, for the jackknife


@dataclass(frozen=True)
class Check:
    """One claim, judged; ``holds`` is None for an observation that the paper does not claim."""

    claim: str
    predicted: float
    simulated: float
    error: float
    holds: bool | None

    @property
    def verdict(self) -> str:
        """The last column of the table."""
        return "noted" if self.holds is None else "holds" if self.holds else "FAILS"


def agrees(claim: str, predicted: float, simulated: float, error: float) -> Check:
    """A formula that must give what the simulation finds."""
    close = bool(abs(simulated - predicted) <= ERRORS * error)
    return Check(claim, predicted, simulated, error, close)


def positive(claim: str, predicted: float, simulated: float, error: float) -> Check:
    """A difference that must be what the formula gives, and beyond doubt above zero."""
    close = bool(abs(simulated - predicted) <= ERRORS * error)
    return Check(claim, predicted, simulated, error, close and bool(simulated > ERRORS * error))


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean of independent replications and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def best_penalty(p: int, noise: float, beta: Array) -> float:
    """The paper's λ* = p·σ²/(βᵀβ), with ``noise`` the variance of the residuals."""
    return p * noise / float(beta @ beta)


# --- Appendix A: taking the variance into account ------------------------------------------------


@dataclass(frozen=True)
class LeastSquares:
    """Coefficients estimated in many replications, and what theory says of their covariance."""

    beta: Array  # (p,)
    ordinary: Array  # (replications, p)
    general: Array  # (replications, p)
    cov_ordinary: Array  # (p, p)
    cov_general: Array  # (p, p)


def simulate_least_squares(replications: int, seed: int, n: int = 60) -> LeastSquares:
    """Y = Xβ + U with noise that grows with the first column and is correlated between rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 3))])
    beta = np.array([1.0, -2.0, 0.5, 1.5])
    std = np.exp(1.2 * X[:, 1])
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    sigma = std[:, None] * 0.5**steps * std
    B = np.linalg.cholesky(sigma)
    Y = X @ beta + rng.standard_normal((replications, n)) @ B.T
    X_scaled, Y_scaled = np.linalg.solve(B, X), np.linalg.solve(B, Y.T).T
    pinv = np.linalg.pinv(X)
    return LeastSquares(
        beta,
        Y @ pinv.T,
        Y_scaled @ np.linalg.pinv(X_scaled).T,
        pinv @ sigma @ pinv.T,
        np.linalg.inv(X_scaled.T @ X_scaled),
    )


def check_least_squares(sample: LeastSquares, seed: int) -> list[Check]:
    """Generalised least squares has the lower variance, and the lower error on a new row."""
    checks = []
    for name, estimates, cov in (
        ("ordinary", sample.ordinary, sample.cov_ordinary),
        ("generalised", sample.general, sample.cov_general),
    ):
        spread = ((estimates - sample.beta) ** 2).sum(axis=1)
        text = f"total variance of the coefficients, {name} least squares"
        checks.append(agrees(text, float(np.trace(cov)), *mean_and_error(spread)))
    # The direction in which the two differ least decides whether the difference is semi-definite.
    values, vectors = np.linalg.eigh(sample.cov_ordinary - sample.cov_general)
    along = [(e - sample.beta) @ vectors[:, 0] for e in (sample.ordinary, sample.general)]
    gain = mean_and_error(along[0] ** 2 - along[1] ** 2)
    text = "smallest gain in variance in any direction (Gauss-Markov)"
    checks.append(positive(text, float(values[0]), *gain))
    rng = np.random.default_rng([seed, 1])
    new = np.column_stack(
        [np.ones(len(sample.general)), rng.uniform(-1, 1, (len(sample.general), 3))]
    )
    # Both predict the same new y, independent of either estimate: its noise has std 1 here.
    y = new @ sample.beta + rng.standard_normal(len(new))
    loss = [(y - (new * e).sum(axis=1)) ** 2 for e in (sample.ordinary, sample.general)]
    second = np.diag([1, 1 / 3, 1 / 3, 1 / 3])  # E[x xᵀ] of a new row
    expected = float(np.trace((sample.cov_ordinary - sample.cov_general) @ second))
    text = "gain in squared error on a new row (lower RMSE)"
    checks.append(positive(text, expected, *mean_and_error(loss[0] - loss[1])))
    return checks


# --- Appendix B: the best penalty of each model --------------------------------------------------


@dataclass(frozen=True)
class Ridge:
    """A linear model with many replications of its targets."""

    X: Array  # (n, p)
    beta: Array  # (p,)
    targets: Array  # (replications, n)

    def errors(self, penalty: float) -> Array:
        """Squared distance of the ridge estimate from β in each replication."""
        p = len(self.beta)
        solution = np.linalg.solve(self.X.T @ self.X + penalty * np.eye(p), self.X.T)
        return ((self.targets @ solution.T - self.beta) ** 2).sum(axis=1)

    def optimum(self) -> tuple[float, float]:
        """The λ of lowest simulated MSE and its error, by a jackknife over batches."""
        whole = _minimiser(self.X, self.beta, self.targets)
        batches = np.array_split(np.arange(len(self.targets)), BATCHES)
        without = [
            _minimiser(self.X, self.beta, np.delete(self.targets, batch, axis=0))
            for batch in batches
        ]
        k = len(batches)
        return whole, float(
            np.sqrt((k - 1) / k * np.sum((np.array(without) - np.mean(without)) ** 2))
        )


def _minimiser(X: Array, beta: Array, targets: Array) -> float:
    # Averages of XᵀY and of its products are all that the MSE needs: 50 searches take no time.
    moments = targets @ X
    first, second = moments.mean(axis=0), moments.T @ moments / len(moments)
    gram, unit = X.T @ X, np.eye(len(beta))

    def mse(log_penalty: float) -> float:
        A = np.linalg.inv(gram + np.exp(log_penalty) * unit)
        return float(np.trace(A @ second @ A) - 2 * beta @ A @ first)

    return float(np.exp(minimize_scalar(mse, bounds=(-9, 9), method="bounded").x))


def orthonormal(rng: np.random.Generator, n: int, p: int) -> Array:
    """A design with XᵀX = I."""
    return np.linalg.qr(rng.standard_normal((n, p)))[0]


def simulate_mean(
    replications: int, seed: int, noise: float = 1.5, correlated: bool = False
) -> Ridge:
    """Scenario 1: the mean is linear and the variance of the noise known."""
    rng = np.random.default_rng(seed)
    X = orthonormal(rng, 40, 5)
    if correlated:
        X = X @ np.linalg.cholesky(0.1 * np.eye(5) + 0.9).T
    beta = np.array([2.0, -1.0, 0.5, 1.0, -1.5])
    return Ridge(X, beta, X @ beta + np.sqrt(noise) * rng.standard_normal((replications, len(X))))


def simulate_logvar(replications: int, seed: int) -> Ridge:
    """Scenario 2: the log-variance is linear, the mean known; the targets are the paper's z."""
    rng = np.random.default_rng(seed)
    X, beta = orthonormal(rng, 40, 5), np.array([1.5, -1.0, 0.5, 1.0, -2.0])
    residual = np.exp(X @ beta / 2) * rng.standard_normal((replications, len(X)))
    return Ridge(X, beta, np.log(residual**2) - (digamma(0.5) + np.log(2)))


def check_optimum(name: str, model: Ridge, predicted: float) -> Check:
    """The predicted λ must be where the simulated MSE is lowest."""
    return agrees(f"λ of lowest MSE, {name}", predicted, *model.optimum())


def check_log_residuals(replications: int, seed: int, sigmas: Sequence[float]) -> list[Check]:
    """Log of a squared residual: mean log σ² + ψ(½) + log 2 and variance π²/2, whatever σ."""
    checks = []
    for k, sigma in enumerate(sigmas):
        draws = np.random.default_rng([seed, k]).normal(7.0, sigma, replications)
        logs = np.log((draws - 7.0) ** 2)
        expected = float(np.log(sigma**2) + digamma(0.5) + np.log(2))
        checks.append(
            agrees(f"mean of log((y−μ)²), σ = {sigma:g}", expected, *mean_and_error(logs))
        )
        squares = (logs - logs.mean()) ** 2 * replications / (replications - 1)
        text = f"variance of log((y−μ)²), σ = {sigma:g}"
        checks.append(agrees(text, np.pi**2 / 2, *mean_and_error(squares)))
    return checks


def check_exchange(model: Ridge, own: float, other: float, noise: float) -> Check:
    """What the other model's best λ costs: why one constant cannot serve both."""

    def mse(penalty: float) -> float:  # of a ridge estimate on an orthonormal design
        return (penalty**2 * float(model.beta @ model.beta) + len(model.beta) * noise) / (
            1 + penalty
        ) ** 2

    cost = mean_and_error(model.errors(other) - model.errors(own))
    return positive("MSE of log σ² lost by using the mean's λ*", mse(other) - mse(own), *cost)


def check_all(
    replications: int, seed: int, optimum: Callable[[int, float, Array], float] = best_penalty
) -> tuple[list[Check], LeastSquares, dict[str, tuple[Ridge, float]]]:
    """All claims, and the simulations behind the pictures; ``optimum`` is the formula for λ*."""
    squares = simulate_least_squares(replications, seed)
    mean, logvar = simulate_mean(replications, seed + 1), simulate_logvar(replications, seed + 2)
    best = optimum(5, 1.5, mean.beta), optimum(5, np.pi**2 / 2, logvar.beta)
    skew = simulate_mean(replications, seed + 3, correlated=True)
    found, error = skew.optimum()
    checks = [
        *check_least_squares(squares, seed),
        check_optimum("mean", mean, best[0]),
        *check_log_residuals(20 * replications, seed + 4, (0.1, 1.0, 30.0)),
        check_optimum("log-variance", logvar, best[1]),
        check_exchange(logvar, best[1], best[0], np.pi**2 / 2),
        # The paper assumes XᵀX = I "for simplicity" and claims nothing beyond.
        Check("λ of lowest MSE, mean, correlated columns", best[0], found, error, None),
    ]
    return checks, squares, {"mean": (mean, best[0]), "log-variance": (logvar, best[1])}


# --- Pictures and table --------------------------------------------------------------------------


def draw_ridge(models: dict[str, tuple[Ridge, float]], folder: Path) -> None:
    """Simulated MSE against λ, with the predicted optimum marked."""
    figure, axes = style.panels(1, len(models), (7.0, 2.9), sharex=True)
    grid = np.logspace(-1.5, 1.5, 41)
    for panel, (name, (model, predicted)) in zip(axes.flat, models.items(), strict=True):
        # The Monte-Carlo error is thinner than the line.
        mse = [model.errors(penalty).mean() for penalty in grid]
        panel.plot(grid, mse, color=style.BLUE, label="simulated")
        lowest, _ = model.optimum()
        panel.plot(lowest, model.errors(lowest).mean(), "o", color=style.BLUE, zorder=3,
                   label="lowest simulated")  # fmt: skip
        panel.axvline(predicted, color=style.RED, linestyle="--", label="predicted λ*")
        plain = model.errors(0.0).mean()
        panel.axhline(plain, color=style.GREY, linewidth=1, label="without a penalty")
        panel.set(xscale="log", xlabel="penalty λ", ylabel="MSE of the coefficients")
        panel.set_ylim(bottom=0)
        style.title(panel, f"Ridge for the {name}: λ* = {predicted:.2f}")
    style.legend_outside(figure, axes[0, 0])
    style.save(figure, folder, "theory_ridge")


def draw_least_squares(sample: LeastSquares, folder: Path) -> None:
    """The spread of each coefficient under both estimators, simulated and predicted."""
    figure, axes = style.panels(1, 1, (5.0, 2.8))
    panel = axes[0, 0]
    at = np.arange(len(sample.beta))
    for shift, name, estimates, cov, colour in (
        (-0.2, "ordinary", sample.ordinary, sample.cov_ordinary, style.GREY),
        (0.2, "generalised", sample.general, sample.cov_general, style.BLUE),
    ):
        spread = estimates.std(axis=0)
        panel.bar(at + shift, spread, 0.36, color=colour, label=f"{name} least squares")
        panel.plot(at + shift, np.sqrt(np.diag(cov)), "_", color="black", markersize=16,
                   label="predicted" if shift > 0 else None)  # fmt: skip
    panel.set_xticks(at, [f"β{k}" for k in at])
    panel.set_ylabel("standard deviation")
    style.title(panel, "Spread of the estimated coefficients")
    style.legend_outside(figure, panel)
    style.save(figure, folder, "theory_gauss_markov")


def table(checks: Sequence[Check]) -> str:
    """Claims as text in columns."""
    width = max(len(check.claim) for check in checks)
    lines = [f"{'claim':<{width}}  predicted  simulated ± error     verdict"]
    lines += [
        f"{c.claim:<{width}}  {c.predicted:>9.4f}  {c.simulated:>9.4f} ± {c.error:.4f}    "
        + c.verdict
        for c in checks
    ]
    return "\n".join(lines)


def beyond(note: Check) -> str:
    """What the observation on correlated columns says about the formula."""
    off = abs(note.simulated - note.predicted) / note.error
    if off > ERRORS:
        return (
            f"The formula for λ* needs XᵀX = I: with correlated columns it is {off:.0f} errors off."
        )
    return f"With correlated columns the formula for λ* is only {off:.1f} errors off."


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, draw, print; return the status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few replications, in a second")
    parser.add_argument("--output", type=Path, help="folder of the pictures")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    folder = options.output or (Path(tempfile.mkdtemp()) if options.quick else FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    checks, squares, models = check_all(
        2_000 if options.quick else 50_000, options.seed, best_penalty
    )
    draw_ridge(models, folder)
    draw_least_squares(squares, folder)
    print(table(checks))
    claims = [check for check in checks if check.holds is not None]
    failed = sum(not check.holds for check in claims)
    print(f"\n{len(claims) - failed} of {len(claims)} claims hold within {ERRORS} errors.")
    print(beyond(checks[-1]))
    print(f"Pictures: {folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
