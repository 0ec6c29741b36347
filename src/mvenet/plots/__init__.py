"""Pictures of predictions, of how far to trust them, and of training; needs matplotlib.

All are Display classes as in scikit-learn: ``from_estimator`` and ``from_predictions`` compute what
is shown and draw it, ``plot`` draws it again, on axes of your own if you like. They work for any
estimator with ``predict(X, return_std=True)``; of those with ``predict_dist``, such as ours, they
show the true distribution, for an ensemble the mixture.

The legend stands below the axes if the figure has a layout engine, as the figures made here have,
and else within them: ``plt.subplots(layout="constrained")`` makes room.

===================== ==============================================================
BandDisplay           fitted mean with prediction intervals, over one feature
UncertaintyDisplay    aleatoric and epistemic variance, which add up to the total
DensityDisplay        density of a few rows, values with a probability as bars
PredictionDisplay     observed against predicted, with the prediction intervals
CoverageDisplay       coverage of the intervals against what they claim
CoverageByDisplay     the same group by group, or along time
PITDisplay            histogram of the probability integral transform
SpreadDisplay         size of the residuals against the predicted standard deviation
SearchDisplay         heat map of a search over both penalties
HistoryDisplay        likelihood over the epochs, with the end of the warm-up
ImportanceDisplay     which columns matter, for the mean and for the std
DependenceDisplay     how mean and interval, or the std, depend on a column
NarrowingDisplay      what widens the interval of a row, and what would narrow it
SimilarDisplay        density of a row, with outcomes of training rows like it
OutsideDisplay        how far rows are from all training rows
TargetsDisplay        how the errors of several targets go together
===================== ==============================================================
"""

from mvenet.plots._bands import BandDisplay
from mvenet.plots._calibration import CoverageDisplay, PITDisplay
from mvenet.plots._coverage_by import CoverageByDisplay
from mvenet.plots._density import DensityDisplay
from mvenet.plots._dependence import DependenceDisplay
from mvenet.plots._importance import ImportanceDisplay
from mvenet.plots._narrowing import NarrowingDisplay
from mvenet.plots._observed import PredictionDisplay
from mvenet.plots._similar import OutsideDisplay, SimilarDisplay
from mvenet.plots._spread import SpreadDisplay
from mvenet.plots._targets import TargetsDisplay
from mvenet.plots._training import HistoryDisplay, SearchDisplay
from mvenet.plots._uncertainty import UncertaintyDisplay

__all__ = [
    "BandDisplay",
    "CoverageByDisplay",
    "CoverageDisplay",
    "DensityDisplay",
    "DependenceDisplay",
    "HistoryDisplay",
    "ImportanceDisplay",
    "NarrowingDisplay",
    "OutsideDisplay",
    "PITDisplay",
    "PredictionDisplay",
    "SearchDisplay",
    "SimilarDisplay",
    "SpreadDisplay",
    "TargetsDisplay",
    "UncertaintyDisplay",
]
