"""The command with several targets: one model of them all, from the fit to the report."""

from __future__ import annotations

import json

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("skops")
pytest.importorskip("rich")

import numpy as np  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from numpy.testing import assert_allclose, assert_array_equal  # noqa: E402

import mvenet  # noqa: E402
from mvenet import MVERegressor, metrics, workflow  # noqa: E402
from mvenet.cli._commands import app  # noqa: E402

pytestmark = pytest.mark.usefixtures("short", "blank")

NASTY = "<b>math</b>"
TARGETS = ("--target", "read", "--target", NASTY)


def ran(*arguments):
    outcome = CliRunner().invoke(app, list(map(str, arguments)))
    return outcome.exit_code, " ".join(f"{outcome.output} {outcome.exception or ''}".split())


@pytest.fixture(scope="module")
def pupils(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 150
    hours, errors = rng.uniform(0, 10, n), rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], n)
    frame = pd.DataFrame({"hours": hours.round(2), "school": rng.choice(["A", "B"], n)})
    frame["read"] = (40 + 3 * hours + 5 * errors[:, 0]).round(2)
    frame[NASTY] = (50 + 2 * hours + 9 * (frame["school"] == "B") + 4 * errors[:, 1]).round(2)
    frame.loc[3, "read"] = frame.loc[[4, 5], NASTY] = np.nan
    place = tmp_path_factory.mktemp("pupils") / "pupils.csv"
    frame.to_csv(place, index=False)
    return place


@pytest.fixture(scope="module")
def fitted(pupils, tmp_path_factory):
    model = tmp_path_factory.mktemp("model") / "pupils.mve"
    report = model.with_suffix(".html")
    code, told = ran(
        "fit", pupils, *TARGETS, "--no-search", "-o", model, "--report", report, "--unit", "points"
    )
    assert code == 0, told
    return model, report, told


def test_a_fit_tells_of_each_target_and_of_both(fitted):
    _, _, told = fitted
    assert "147 rows, 3 that lack one of the targets left out" in told
    assert "read: on 30 rows held out" in told and f"{NASTY}: on 30 rows held out" in told
    assert "All targets together: on 30 rows held out" in told
    assert "90 % intervals for all at once" in told


def test_it_is_the_model_that_python_fits(pupils):
    frame = pd.read_csv(pupils)
    whole = frame.dropna()
    made = workflow.fit_targets(frame, ["read", NASTY], search=False, holdout=0, seed=0)
    X = whole[["hours", "school"]]
    alone = MVERegressor(random_state=0).fit(X, whole[["read", NASTY]])
    assert_array_equal(made.model.predict(X), alone.predict(X))
    assert made.without_target == 3 and made.evaluation is None
    assert [len(part.evaluation.y) for part in made.parts] == [147, 147]


def test_predictions_are_those_of_python_target_by_target(fitted, pupils, tmp_path):
    out, frame = tmp_path / "out.csv", pd.read_csv(pupils)[["hours", "school"]]
    asked = ("--interval", "0.9", "--quantile", "0.1")
    code, said = ran("predict", fitted[0], pupils, "-o", out, *asked)
    assert code == 0, said
    told, model = pd.read_csv(out), mvenet.load(fitted[0])
    dist = model.predict_dist(frame)
    for j, name in enumerate(("read", NASTY)):
        found = told[[f"{name}_{what}" for what in ("mean", "std", "low_90", "high_90", "q_10")]]
        one = dist.marginal(name)
        expected = [one.mean, one.std, *one.interval(0.9).T, one.ppf(0.1)]
        assert_allclose(found, np.column_stack(expected), rtol=1e-12)
        assert_allclose(found.iloc[:, 0], model.predict(frame)[:, j], rtol=1e-12)
    assert ran("predict", fitted[0], pupils, "-o", out, *asked, "--simultaneous")[0] == 0
    wider = pd.read_csv(out)[["read_low_90", "read_high_90"]]
    both = model.predict_interval(frame, 0.9, kind="simultaneous")
    assert_allclose(wider, both[:, 0], rtol=1e-12)


def test_an_evaluation_scores_both_together(fitted, pupils):
    code, told = ran("evaluate", fitted[0], pupils, "--json")
    facts, frame = json.loads(told), pd.read_csv(pupils).dropna()
    assert code == 0 and list(facts["targets"]) == ["read", NASTY]
    dist = mvenet.load(fitted[0]).predict_dist(frame[["hours", "school"]])
    Y = frame[["read", NASTY]].to_numpy()
    together = facts["together"]
    assert_allclose(together["nll"], metrics.joint_nll(Y, dist), rtol=1e-12)
    apart = sum(metrics.nll(Y[:, j], dist.marginal(j)) for j in range(2))
    assert_allclose(together["gain"], apart - together["nll"], rtol=1e-9)
    assert together["coverage"]["0.9"] == metrics.joint_coverage(Y, dist)
    assert facts["targets"]["read"]["rows_without_target"] == 3
    assert "All targets together" in ran("evaluate", fitted[0], pupils)[1]


def test_the_card_and_the_check_know_both(fitted, pupils):
    _, told = ran("info", fitted[0], "--json")
    card = json.loads(told)["card"]
    assert [one["target"] for one in card["targets"]] == ["read", NASTY]
    assert all(one["unit"] == "points" for one in card["targets"])
    assert all(0.5 < one["rows_left_out"]["covered_by_90"] <= 1 for one in card["targets"])
    (pair,) = card["together"]["errors"]
    model = mvenet.load(fitted[0])
    assert pair["correlation"] == model.model_.constant[0, 1] > 0.4
    _, shown = ran("info", fitted[0])
    assert "Correlation of errors" in shown and "90 % intervals cover" in shown
    assert "columns changed" in ran("check", fitted[0], pupils)[1]
    lines = repr(model).splitlines()
    assert lines[2] == f"  2 targets: read, {NASTY}." and "Correlation of errors" in lines[-1]


def test_the_report_has_a_page_for_each_and_a_picture_of_both(fitted):
    pytest.importorskip("jinja2")
    page = fitted[1].read_text("utf-8")
    assert NASTY not in page and "&lt;b&gt;math&lt;/b&gt;" in page
    assert page.count("<article id=") == 2 and "Do their errors go together?" in page
    assert 'alt="How the errors of the targets go together"' in page
    for i in (1, 2):
        assert f'id="t{i}-what-if-data"' in page and f'<a href="#target-{i}">' in page
    assert page.count("function whatIf(prefix)") == 1


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--target", "read", "--target", "read"), "'read' is named twice"),
        ((*TARGETS, "--calibrate"), "--calibrate is for one target"),
        ((*TARGETS, "--unit", "a", "--unit", "b", "--unit", "c"), "--unit is given 3 times"),
        (("--target", "read", "--unit", "a", "--unit", "b"), "there is 1 target"),
        ((*TARGETS, "--drop", "read"), "'read' is the target"),
        ((*TARGETS, "--group", "read"), "group='read' is a target"),
        ((*TARGETS, "--drop", "hours", "--drop", "school"), "all of them are targets"),
        ((*TARGETS, "--target", "reed"), "did you mean 'read'"),
        ((*TARGETS, "--holdout", "0.2", "--holdout", "0.3"), "--holdout is given 2 times"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_told(pupils, tmp_path, more, what):
    place = tmp_path / "m.mve"
    code, told = ran("fit", pupils, *more, "--no-search", "-o", place)
    assert code != 0 and what in told and not place.exists()


def test_simultaneous_intervals_are_for_several(pupils, tmp_path):
    place, out = tmp_path / "m.mve", tmp_path / "out.csv"
    assert ran("fit", pupils, "--target", "read", "--no-search", "-q", "-o", place)[0] == 0
    code, told = ran("predict", place, pupils, "-o", out, "--simultaneous")
    assert code != 0 and "is for several targets" in told and not out.exists()
