"""Does a figure show what the paper says? Sentences computed from the measured numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from measure import Fit, honest, learned, median

HOLDS, PARTLY, CONTRADICTED, NOTED = "holds", "holds in part", "CONTRADICTED", "noted"


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what became of it, and the numbers that say so."""

    claim: str
    outcome: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.claim} ({self.evidence})"


def works(claim: str, fits: Sequence[Fit], limit: float) -> Verdict:
    """A claim that a setting learns the mean: all seeds must, or at least more than half."""
    count, n = learned(fits, limit), len(fits)
    outcome = HOLDS if count == n else PARTLY if 2 * count > n else CONTRADICTED
    return Verdict(claim, outcome, _counts(fits, limit))


def fails(claim: str, fits: Sequence[Fit], limit: float) -> Verdict:
    """A claim that a setting does not learn the mean: no seed must, or at most less than half."""
    count, n = learned(fits, limit), len(fits)
    outcome = HOLDS if count == 0 else PARTLY if 2 * count < n else CONTRADICTED
    return Verdict(claim, outcome, _counts(fits, limit))


def _counts(fits: Sequence[Fit], limit: float) -> str:
    count, n = learned(fits, limit), len(fits)
    text = f"{count} of {n} learned it, median RMSE {median(fits):.3f}"
    blind = count - honest(fits, limit)
    return (
        f"{text}; in {blind} of them the std is less than half of the residuals" if blind else text
    )


def noted(subject: str, fits: Sequence[Fit], limit: float) -> Verdict:
    """What the paper does not claim but a reader should know: whether most seeds learn the mean."""
    count, n = learned(fits, limit), len(fits)
    does = "does learn it" if 2 * count > n else "does not learn it"
    return Verdict(f"{subject} {does}", NOTED, f"{count} of {n}, median RMSE {median(fits):.3f}")


def none_works(claim: str, groups: Mapping[str, Sequence[Fit]], limit: float) -> Verdict:
    """A claim that no setting of a grid learns the mean: judged by the one where most seeds do."""
    best = max(groups, key=lambda name: (learned(groups[name], limit), -median(groups[name])))
    worst = fails(claim, groups[best], limit)
    return Verdict(claim, worst.outcome, f"at best, {best}: {worst.evidence}")


def one_works(claim: str, groups: Mapping[str, Sequence[Fit]], limit: float) -> Verdict:
    """A claim that a setting of a grid learns the mean: judged by the one where most seeds do."""
    best = max(groups, key=lambda name: (learned(groups[name], limit), -median(groups[name])))
    verdict = works(claim, groups[best], limit)
    return Verdict(claim, verdict.outcome, f"{best}: {verdict.evidence}")


def undone(before: Sequence[Fit], after: Sequence[Fit], limit: float) -> Verdict:
    """A note on seeds that know the mean after the warm-up and no longer at the end."""
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a.rmse_mean < limit]
    lost = sum(b.rmse_mean >= limit for _, b in pairs)
    claim = "the second stage undoes a mean that the warm-up had learned"
    evidence = f"median RMSE {median(before):.4f} before it, {median(after):.4f} after"
    return Verdict(claim, NOTED, f"in {lost} of {len(pairs)} seeds; {evidence}")


def overfits(claim: str, fits: Sequence[Fit]) -> Verdict:
    """A claim that the std overfits slightly: it wavers though the truth does not.

    Slightly: residuals of new observations stay below two predicted standard deviations.
    """
    wavers, residuals = median(fits, "unevenness"), median(fits, "calibration")
    outcome = CONTRADICTED if wavers < 0.05 else HOLDS if residuals < 2 else PARTLY
    evidence = f"it wavers by {wavers:.0%}; residuals of new observations are {residuals:.2f} stds"
    return Verdict(claim, outcome, evidence)


def quadratic(
    groups: Sequence[Sequence[Fit]], flat_mean: float, flat_std: float, network: str
) -> list[Verdict]:
    """The four panels of x², strongest variance penalty first.

    Learned is an error below half of that of the best constant (``flat_mean``, ``flat_std``).
    """
    high, medium, low, none = groups
    n = len(high)
    flat = n - learned(high, flat_std / 2, "rmse_std")
    both = sum(f.rmse_mean < flat_mean / 2 and f.rmse_std < flat_std / 2 for f in medium)
    worse = sum(b.rmse_mean > a.rmse_mean for a, b in zip(medium, low, strict=True))
    medians = ", ".join(f"{median(fits):.3f}" for fits in groups)
    return [
        _counted(f"{network}: at 0.1 the varying std is not learned", flat, n,
                 f"median RMSE of the std {median(high, 'rmse_std'):.3f}, of a constant "
                 f"{flat_std:.3f}"),
        _counted(f"{network}: at 0.04 both mean and std are learned", both, n,
                 f"median RMSE {median(medium):.3f} and {median(medium, 'rmse_std'):.3f}"),
        _counted(f"{network}: at 0.01 the mean is worse than at 0.04", worse, n,
                 f"median RMSE of the mean at 0.1, 0.04, 0.01, 0: {medians}"),
        fails(f"{network}: at 0 the mean is not learned at all", none, flat_mean / 2),
    ]  # fmt: skip


def _counted(claim: str, count: int, n: int, evidence: str) -> Verdict:
    outcome = HOLDS if count == n else PARTLY if 2 * count > n else CONTRADICTED
    return Verdict(claim, outcome, f"{count} of {n} seeds; {evidence}")


def minima(claim: str, found: Sequence[Sequence[float]]) -> Verdict:
    """Positions of the local minima of each draw: one near 2 and one near 5, and no more.

    Near is within half of that group's standard deviation.
    """
    right = [
        len(m) == 2 and abs(m[0] - 2) < 0.25 and abs(m[1] - 5) < 0.05 for m in map(sorted, found)
    ]
    places = " and ".join(
        f"{np.median(column):.3f}" for column in zip(*(sorted(m) for m in found), strict=False)
    )
    return _counted(claim, sum(right), len(found), f"median positions {places}")


def untouched(claim: str, changes: Sequence[float]) -> Verdict:
    """Largest change of the mean when only the variance network's penalty changes: none."""
    outcome = HOLDS if max(changes) == 0 else CONTRADICTED
    return Verdict(claim, outcome, f"largest change of the mean {max(changes):g}")
