"""What we use of scikit-learn that it does not promise to keep, in one place.

A release that moves or renames any of it breaks this module alone.
"""

from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as n_rows_of

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_sample_weight",
    "n_rows_of",
    "rows_of",
]
