"""What a composite adds outside of the rows that it was trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from mvenet._models.seen import Range


def test_the_variance_that_is_added_grows_from_nothing_within_to_that_of_y_far_outside():
    rows = np.array([[0.5, 5.0], [2.0, 5.0], [3.0, 5.0], [1e300, 5.0], [0.5, 6.0], [1.025, 5.0]])
    for typical in (0.0, 3.0):
        seen = Range.of(np.array([[0.0, 5.0], [1.0, 5.0]]), np.array([0.0, 2.0]), typical)
        added = seen.added_variance(rows, seen.within(rows), unknown_std=2.0)
        far = np.array([0, 0.5, 0.8, 1, 0.5, 0.025**2 / (1 + 0.025**2)])
        near = np.array([0, 1, 1, 1, 1, 0.25])
        assert_allclose(added, 4 * far + typical**2 * near, atol=1e-12)


def test_in_time_the_variance_grows_with_the_stretches_beyond():
    rows = np.array([[0.5, 5.0], [1.5, 5.0], [2.5, 9.0], [1e300, 5.0]])
    seen = Range.of(np.array([[0.0, 5.0], [1.0, 5.0]]), np.array([0.0, 2.0]), 3.0)
    usual = seen.added_variance(rows, seen.within(rows), unknown_std=2.0)
    drifting = replace(seen, pace=np.array([2.0, 0.0]), drift_std=7.0)  # half a unit in a stretch
    added = drifting.added_variance(rows, seen.within(rows), unknown_std=2.0)
    assert_allclose(added - usual, 49 * np.array([0, 1 / 2, 9 / 10, 1]))
