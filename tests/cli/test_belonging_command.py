"""The command on tables whose rows belong together."""

from __future__ import annotations

import json

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("skops")
pytest.importorskip("rich")

import numpy as np  # noqa: E402
from click.testing import CliRunner  # noqa: E402

from mvenet.cli._commands import app  # noqa: E402

pytestmark = pytest.mark.usefixtures("short", "blank")

QUICK = ("--target", "score", "--no-search")


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """Six visits of each of 20 patients."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(20), 6)
    place = tmp_path_factory.mktemp("visits") / "visits.csv"
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.tile(np.arange(6) * 9, 20) + patient, "D")
    pd.DataFrame(
        {
            "patient": [f"p{number}" for number in patient],
            "day": day.strftime("%Y-%m-%d"),
            "dose": rng.normal(size=120).round(3),
            "score": (rng.normal(size=20)[patient] + 0.2 * rng.normal(size=120)).round(3),
        }
    ).to_csv(place, index=False)
    return place


def ran(*arguments):
    outcome = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_fit_info_and_evaluate_say_for_whom_the_promise_holds(visits, tmp_path):
    model, page = tmp_path / "m.mve", tmp_path / "m.html"
    out = ran("fit", visits, *QUICK, "--group", "patient", "-o", model, "--report", page)
    assert "What is promised holds for rows of new values of patient." in out
    assert "24 rows held out" in out
    assert "rows of new values of patient" in page.read_text(encoding="utf-8")
    assert json.loads(ran("info", model, "--json"))["promise"] == "rows of new values of patient"
    assert "What is promised holds for rows of new values of patient" in ran(
        "evaluate", model, visits
    )


def test_fit_by_time_holds_out_what_is_last(visits, tmp_path):
    given = ("--time", "day", "--horizon", "7")
    told = json.loads(ran("fit", visits, *QUICK, *given, "-o", tmp_path / "m.mve", "--json"))
    assert told["promise"] == "the next 7 days"
    assert 0 < told["held_out"]["rows"] < 30


def test_a_comparison_takes_groups(visits):
    given = ("--target", "score", "--outer", "2", "--inner", "2", "--dry-run", "--json")
    told = json.loads(ran("strategies", visits, *given, "--group", "patient"))
    assert told["folds"] == 2
