"""The command and bounds of the target: kept, and told where they make no sense."""

from __future__ import annotations

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("skops")
pytest.importorskip("rich")

import numpy as np  # noqa: E402
from click.testing import CliRunner  # noqa: E402

from mvenet.cli._commands import app  # noqa: E402

pytestmark = pytest.mark.usefixtures("short")


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    place = tmp_path_factory.mktemp("shares") / "shares.csv"
    share = np.clip(50 + 25 * x + 10 * rng.normal(size=80), 0.5, 99.5).round(2)
    pd.DataFrame({"x": x.round(3), "share": share}).to_csv(place, index=False)
    return place


def ran(*arguments):
    outcome = CliRunner().invoke(app, list(map(str, arguments)))
    return outcome.exit_code, f"{outcome.output} {outcome.exception}"


def test_no_interval_of_a_prediction_leaves_the_bounds(shares, tmp_path):
    model, out = tmp_path / "shares.mve", tmp_path / "out.csv"
    quick = ("--target", "share", "-o", model, "--effort", "low", "--bounds", "0", "100", "-q")
    assert ran("fit", shares, *quick)[0] == 0
    assert ran("predict", model, shares, "-o", out, "--interval", "0.999")[0] == 0
    told = pd.read_csv(out)
    ends = told[[name for name in told if name.startswith(("low", "high"))]]
    assert ends.shape[1] == 2 and (ends >= 0).all(axis=None) and (ends <= 100).all(axis=None)


@pytest.mark.parametrize(
    ("bounds", "what"),
    [
        (("0", "50"), "beyond bounds"),
        (("a", "3"), "a is no number; write none for an open end"),
        (("3", "3"), "must rise"),
    ],
    ids=str,
)
def test_bounds_that_make_no_sense_are_told(shares, tmp_path, bounds, what):
    place = tmp_path / "m.mve"
    code, told = ran("fit", shares, "--target", "share", "-o", place, "--bounds", *bounds)
    assert code != 0 and what in " ".join(told.split()) and not place.exists()


def test_bounds_are_for_a_search(shares, tmp_path):
    place = tmp_path / "m.mve"
    quick = ("--target", "share", "-o", place, "--no-search", "--bounds", "0", "100")
    code, told = ran("fit", shares, *quick)
    assert code != 0 and "bounds are for a search" in told and not place.exists()
