"""The normal distribution's functions, from SciPy when first needed: its import takes a while.

A prediction of mean and standard deviation does without.
"""

from __future__ import annotations

from typing import Any


def erf(x: Any) -> Any:
    """The error function."""
    import scipy.special

    return scipy.special.erf(x)


def ndtr(x: Any) -> Any:
    """The standard normal's distribution function."""
    import scipy.special

    return scipy.special.ndtr(x)


def log_ndtr(x: Any) -> Any:
    """Logarithm of the standard normal's distribution function, of any tail."""
    import scipy.special

    return scipy.special.log_ndtr(x)


def erfcx(x: Any) -> Any:
    """``exp(x²) erfc(x)``, of any x that is not negative."""
    import scipy.special

    return scipy.special.erfcx(x)


def ndtri(p: Any) -> Any:
    """The inverse of the standard normal's distribution function."""
    import scipy.special

    return scipy.special.ndtri(p)
