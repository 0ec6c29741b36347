"""Reports without their pictures, for tests that read what else is on the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

BLANK = b'<svg xmlns="http://www.w3.org/2000/svg" width="576pt" height="360pt"/>'


@contextmanager
def blank_pictures() -> Iterator[None]:
    """Draw nothing: pictures are most of the time of a small report."""
    from mvenet import report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_svg", lambda draw, size, letters: BLANK)
        yield
