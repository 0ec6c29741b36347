"""Student's t as a mixture of normals, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from mvenet._models import student
from mvenet.distributions import NormalMixture

MEANS, SCALES = np.array([[0.0, 50.0], [1.0, -2.0]]), np.array([[1.0, 3.0], [0.5, 1e-3]])


@pytest.mark.parametrize("df", [3.0, 3.7, 5.0, 12.0, 80.0, 1000.0])
def test_it_is_students_t(df):
    dist = NormalMixture(*student.spread(MEANS[:1], SCALES[:1], df))
    truth = stats.t(df, MEANS[0], SCALES[0])
    for mass in (1e-10, 1e-6, 1e-3, 0.1, 0.5, 0.8, 0.999):
        y = truth.isf(mass)
        assert_allclose(dist.logpdf(y), truth.logpdf(y), rtol=0, atol=1e-3)
    for mass in (1e-6, 1e-3, 0.05, 0.4, 0.5):
        assert_allclose(dist.sf(truth.isf(mass)), mass, rtol=1e-3)
    assert_allclose(dist.std, SCALES[0] * np.sqrt(df / (df - 2)), rtol=1e-4)
    assert_allclose(student.relative_std(df) * SCALES[0], dist.std, rtol=1e-12)


def test_of_several_members_all_weigh_the_same():
    dist = NormalMixture(*student.spread(MEANS, SCALES, 4.0))
    y = np.array([0.7, -2.0])
    truth = np.mean([stats.t(4, m, s).pdf(y) for m, s in zip(MEANS, SCALES, strict=True)], axis=0)
    assert_allclose(dist.pdf(y), truth, rtol=1e-3)
    assert_allclose(dist.mean, MEANS.mean(axis=0), rtol=1e-12)


def test_degrees_of_freedom_by_row():
    df = np.array([[3.0, 100.0], [17.0, 1000.0]])
    dist = NormalMixture(*student.spread_by_row(MEANS, SCALES, df))
    for y in (np.array([0.7, -2.0]), np.array([40.0, 90.0])):
        each = zip(df, MEANS, SCALES, strict=True)
        assert_allclose(dist.pdf(y), np.mean([stats.t(*row).pdf(y) for row in each], axis=0), 1e-3)
    same = student.spread_by_row(MEANS, SCALES, np.full((2, 2), 5.0))
    one, other = (NormalMixture(*parts) for parts in (same, student.spread(MEANS, SCALES, 5.0)))
    assert_allclose(one.crps([0.3, 4.0]), other.crps([0.3, 4.0]), rtol=1e-12)
    assert_allclose(one.std, other.std, rtol=1e-9)
