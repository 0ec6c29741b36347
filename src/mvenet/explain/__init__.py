"""Reasons for predictions: which columns matter, how, and which rows are alike.

All ask a fitted model, ours or any other that predicts a standard deviation, about rows that they
change. They work on tables as a model takes them: a column is shuffled or replaced as it stands
there, before anything is encoded. :mod:`mvenet.plots` has a picture of each.

===================== ======================================================================
importance            how much each column matters, for the mean and for the std
partial_dependence    how mean, std and quantiles depend on a column, on average and row by row
narrowing             what widens the interval of a row, and which columns would narrow it
similar               the training rows that are most like a row
outside               how far a row is from all training rows
===================== ======================================================================
"""

from mvenet.explain._dependence import PartialDependence, partial_dependence
from mvenet.explain._importance import Importance, importance
from mvenet.explain._narrowing import Narrowing, narrowing
from mvenet.explain._similar import Outside, Similar, outside, similar

__all__ = [
    "Importance",
    "Narrowing",
    "Outside",
    "PartialDependence",
    "Similar",
    "importance",
    "narrowing",
    "outside",
    "partial_dependence",
    "similar",
]
