"""What happens to a public name that is to go: it warns, and says what to use (develop/policy)."""

from __future__ import annotations

import warnings


def deprecated(old: str, new: str, *, removed_in: str, stacklevel: int = 3) -> None:
    """Warn the caller of the function that calls this.

    Parameters
    ----------
    old : str
        What was used, as one types it.
    new : str
        What to use instead.
    removed_in : str
        The version that will not have it any more. A test fails once that version is here.
    stacklevel : int
        Whose line the warning names; 3 is the caller of the public function.
    """
    warnings.warn(
        f"{old} is deprecated and will be removed in mvenet {removed_in}: use {new}.",
        FutureWarning,
        stacklevel=stacklevel,
    )
