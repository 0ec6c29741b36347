"""Predictive distributions: normal, a mixture of normals or of log-normals, for each of n rows.

All are a :class:`Distribution`: SciPy's method names, closed forms, and the parts of the variance.
Several targets together are a :class:`Joint`.
"""

from mvenet.distributions._atoms import WithAtoms
from mvenet.distributions._bounded import Bounded
from mvenet.distributions._interface import Distribution
from mvenet.distributions._joint import Joint
from mvenet.distributions._lognormal import LogNormalMixture
from mvenet.distributions._normal import Normal, NormalMixture

__all__ = [
    "Bounded",
    "Distribution",
    "Joint",
    "LogNormalMixture",
    "Normal",
    "NormalMixture",
    "WithAtoms",
]
