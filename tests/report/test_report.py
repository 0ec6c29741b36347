"""The report: its numbers, and how it looks in a real browser that has no network."""

from __future__ import annotations

import base64
import functools
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from blank import blank_pictures
from browsers import opened, requests
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from mvenet import AutoRegressor, MVERegressor, metrics, report, workflow  # noqa: E402
from mvenet._utils import wording  # noqa: E402
from mvenet.distributions import Normal  # noqa: E402
from mvenet.report import _findings as findings  # noqa: E402
from mvenet.workflow import evaluate_predictions, fit_table  # noqa: E402

pytestmark = pytest.mark.usefixtures("short")

SCRIPT = "<script>alert(1)</script>"
NASTY = '"><img src=x onerror=alert(2)>'
LONG = "average_of_all_that_was_measured_" * 8


def table(n=80, scale=1.0, target="price"):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(20, 200, n),
            SCRIPT: rng.choice([SCRIPT, "plain", NASTY], n),
            "constant": "same",
            "sold": [f"2020-01-{i % 28 + 1:02}" for i in range(n)],
            LONG: rng.normal(size=n),
        }
    )
    frame[target] = scale * (3 * frame["size"] + rng.normal(0, 0.2, n) * frame["size"])
    return frame


@pytest.fixture(autouse=True, scope="module")
def quick():
    settings = {"epochs": 15, "warmup_epochs": 15}
    search = functools.partial(AutoRegressor, effort="low", candidates=["linear"], cv=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            workflow._fitting, "MVERegressor", functools.partial(MVERegressor, **settings)
        )
        patch.setattr(workflow._fitting, "AutoRegressor", search)
        yield


def fit(frame, target="price", **settings):
    settings = {"search": False, "members": 2, "seed": 0, **settings}
    return fit_table(frame, target, **settings)


def rendered(fitted, source="houses.csv"):
    return report.render(fitted.model, fitted.evaluation, source=source, fitted=fitted)


@pytest.fixture(scope="module")
def fitted():
    return fit(table())


@pytest.fixture(scope="module")
def pages(fitted):
    """Every kind of report, by name."""
    narrow = table()[["size", "price"]]
    patterns = table(scale=1e12, target="価格").rename(columns=lambda name: f"^{name}$")
    made = {
        "plain": rendered(fitted, source=f"{SCRIPT}.csv"),
        "one row": rendered(fit(narrow[:4], holdout=0.2)),
        "same": rendered(fit(narrow.assign(price=1.0))),
        "tiny": rendered(fit(table(scale=1e-9, target="US$ 1_0^2 $x"), "US$ 1_0^2 $x")),
        "huge": rendered(fit(patterns, "^価格$")),
    }
    with blank_pictures():  # as they are on other pages
        made |= {
            "search": rendered(fit(table(), search=True, members=None)),
            "not checked": rendered(fit(table()[:7], holdout=0)),
            "folds": rendered(fit(table(), search=True, members=None, holdout=0)),
            "one feature": rendered(fit(narrow)),
            "script": rendered(fit(table(target=SCRIPT[:-1]), SCRIPT[:-1])),
            "long": rendered(fit(narrow.rename(columns={"price": LONG}), LONG), source=LONG),
        }
        evaluation = workflow.evaluate(fitted.model, table(120))
        made["evaluate"] = report.render(fitted.model, evaluation, source="test.csv")
    return made


class Text(HTMLParser):
    """The tables of a page as lists of lists, the tags and attributes, and all text."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.tags, self.text, self.cell = [], [], "", None
        self.script = False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.script = tag == "script"
        self.text += " "
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.cell = self.tables[-1][-1]

    def handle_endtag(self, tag):
        self.script = False
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.script:
            return
        data = data.replace("\N{NO-BREAK SPACE}", " ")
        self.text += data
        if self.cell is not None:
            self.cell[-1] += data

    def table(self, heading):
        return next(table for table in self.tables if table[0][0] == heading)

    def pictures(self):
        sources = [a["src"] for tag, a in self.tags if tag == "img"]
        assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
        return [base64.b64decode(source.partition(",")[2]).decode() for source in sources]


# --- numbers -------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_evaluation(fitted, pages):
    page, e = Text(pages["plain"]), fitted.evaluation
    facts = re.sub(r"\s+", " ", page.text)
    assert f"± {wording.readable(e.scores['mae'])} average distance" in facts
    assert f"{100 * e.scores['r2']:.0f} % of the differences in price explained" in facts
    assert f"{100 * e.coverage[0.9]:.1f} % of the values lay" in facts
    assert "16 rows checked" in facts
    trust = page.table("claims")[1:]
    for (level, share), row in zip(e.coverage.items(), trust, strict=True):
        word, low, high = wording.verdict(level, share, len(e.y))
        chance = f"{100 * low:.1f} to {100 * high:.1f} %"
        assert row == [f"{100 * level:.0f} %", f"{100 * share:.1f} %", chance, word]
    ours = page.table("model")[1]
    expected = [e.scores["rmse"], None, e.scores["crps"], None]
    assert ours[0] == "mvenet" and ours[1] == wording.readable(expected[0])
    assert ours[2] == f"{-e.scores['nll']:.2f}" and ours[3] == wording.readable(expected[2])
    assert ours[4] == f"{100 * e.coverage[0.9]:.1f} %"
    assert ours[5] == wording.readable(float(np.diff(e.dist.interval(0.9)).mean()))
    width = wording.readable(float(np.median(np.diff(e.dist.interval(0.9)))))
    assert f"Half of the 90 % intervals are narrower than {width}." in facts
    middle = wording.readable(float(np.abs(e.y - np.median(e.y)).mean()))
    assert f"Always guessing the middle value would be off by {middle}." in facts


def test_simpler_models_are_judged_on_the_same_rows(fitted, pages):
    lines = Text(pages["plain"]).table("model")[1:]
    assert [line[0] for line in lines] == [
        "mvenet", "constant mean and variance", "linear, constant variance",
        "gradient boosting, quantiles",
    ]  # fmt: skip
    y, train = fitted.evaluation.y, fitted.train["price"].to_numpy()
    n = len(y)
    constant = Normal(np.full(n, train.mean()), np.full(n, train.std()))
    assert lines[1][1] == wording.readable(metrics.rmse(y, constant))
    assert lines[1][2] == f"{-metrics.nll(y, constant):.2f}"
    assert lines[3][2:4] == ["–", "–"]  # it has no density
    assert len(Text(pages["evaluate"]).table("model")) == 2  # nothing to fit them to
    assert "Simpler models are fitted only together" in pages["evaluate"]


def test_baselines():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    X[:, 1] = 7  # constant
    y = 5 * X[:, 0] + rng.normal(size=400)
    constant, linear, boosted = findings.baselines(X[:300], y[:300], X[300:], y[300:])
    assert constant.rmse == pytest.approx(np.sqrt(np.mean((y[300:] - y[:300].mean()) ** 2)))
    assert linear.rmse == pytest.approx(1, abs=0.15) and boosted.rmse < 0.5 * constant.rmse
    assert linear.width == pytest.approx(2 * 1.645, rel=0.1)
    assert 0.8 < linear.coverage < 0.97 and 0.7 < boosted.coverage < 0.97
    for scale in (1e-9, 1e12):  # the scale is nobody's business
        again = findings.baselines(X[:300], scale * y[:300], X[300:], scale * y[300:])
        for line, plain in zip(again, (constant, linear, boosted), strict=True):
            assert_allclose([line.rmse, line.width], [scale * plain.rmse, scale * plain.width],
                            rtol=0.02)  # fmt: skip


def test_many_rows_get_no_baselines_and_a_small_file(fitted, monkeypatch):
    monkeypatch.setattr(report, "MOST_BASELINE_ROWS", 10)
    assert len(Text(rendered(fitted)).table("model")) == 2
    big = workflow.evaluate(fitted.model, table(20_000))
    page = report.render(fitted.model, big, source="big.csv")
    assert len(page) < 3e6 and "20,000" in page


def test_where_it_is_unsure():
    frame = table(200)
    frame["gaps"] = np.where(np.arange(200) % 5 == 0, None, "given")
    encoder = fit(frame).model.encoder_
    columns, tidy = encoder.columns_, encoder.tidy(frame)
    std = frame["size"].to_numpy()
    first = findings.drivers(tidy, columns, std)[0]
    assert first.column == "size" and first.strength == pytest.approx(1)
    assert first.text == "less sure where size is large"
    assert findings.drivers(tidy, columns, 1 / std)[0].text == "less sure where size is small"
    std = np.where(frame[SCRIPT] == "plain", 2.0, 1.0)
    first = findings.drivers(tidy, columns, std)[0]
    assert first.text == f"less sure where {SCRIPT} is plain" and first.strength > 0.99
    std = np.where(frame["gaps"].isna(), 2.0, 1.0)
    assert findings.drivers(tidy, columns, std)[0].text == "less sure where gaps is missing"
    assert all(d.strength < 0.3 for d in findings.drivers(tidy, columns, np.ones(200)))


@pytest.fixture
def without_pictures():
    with blank_pictures():
        yield


@pytest.mark.usefixtures("without_pictures")
def test_odd_rows_are_named_as_in_the_file(fitted):
    y = np.zeros(100)
    y[[10, 60]] = [-5, 9]
    dist = Normal(np.zeros(100), np.ones(100))
    assert findings.odd_rows(y, dist).tolist() == [60, 10]
    e = evaluate_predictions(y, dist, np.arange(100) * 3 + 1000)
    page = Text(report.render(fitted.model, e, source="new.csv"))
    rows = page.table("row")[1:]
    assert [row[0] for row in rows] == ["1,181", "1,031"]
    assert [row[1] for row in rows] == ["9", "-5"]
    assert "2 of 100 rows lie beyond" in page.text and "as they are in new.csv" in page.text
    y[:50] = 9
    page = Text(
        report.render(fitted.model, evaluate_predictions(y, dist, np.arange(100)), source="new.csv")
    )
    assert len(page.table("row")) == 21 and "The 20 farthest" in page.text


@pytest.mark.usefixtures("without_pictures")
def test_verdicts_in_words(fitted):
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    for std, words in ((0.5, "too sure of itself"), (1.0, "as claimed"), (3.0, "wider than they")):
        dist = Normal(np.zeros(400), np.full(400, std))
        page = report.render(fitted.model, evaluate_predictions(y, dist, np.arange(400)))
        text = re.sub(r"\s+", " ", Text(page).text)
        assert words in text.partition("Can the intervals")[2].partition("claims")[0]
        assert "hardly better than guessing" in text


def test_what_each_report_holds(fitted, pages):
    for name, page in pages.items():
        text = Text(page)
        assert 1000 < len(page) < 3e6
        expected = {"not checked": 1, "search": 4, "folds": 4}.get(name, 5)
        curves = page.count('alt="Prediction and 90 % interval against')
        assert len(text.pictures()) == expected + curves, name
        assert (curves > 0) == (name not in ("not checked", "evaluate")), name
        assert "nan" not in text.text.lower().replace("nano", ""), name
        assert "None" not in text.text.partition("Settings and versions")[0].replace("None:", "")
    assert "over the epochs" in pages["plain"] and "over the epochs" not in pages["search"]
    assert "No rows were held out" in pages["not checked"]
    assert "left out by a fold" in pages["folds"]
    assert "none of them trained on" in pages["plain"] and "held out" in pages["plain"]
    for claim in ("none of them trained on", "were held out", "were not trained on"):
        assert claim not in pages["evaluate"]  # nobody has said so
    columns = {row[0]: row[1:] for row in Text(pages["plain"]).table("column")[1:]}
    assert columns["constant"] == ["dropped", "always same"]
    assert columns[SCRIPT] == ["category", "3 levels"] and columns["price"] == ["target", ""]
    assert "too few to be sure of anything" in pages["one row"]
    assert "all rows checked have the same" in pages["same"]
    assert "hardly better" not in pages["same"] + pages["one row"]
    assert pages["long"].count(LONG) == 4  # its title, file and column; else the name is cut
    assert f"{LONG[:59]}…" in pages["long"]


@pytest.mark.usefixtures("without_pictures")
def test_progress_is_told(fitted):
    told = []
    report.render(fitted.model, fitted.evaluation, fitted=fitted, progress=told.append)
    assert len(told) > 5 and told == sorted(told) and told[-1] == 1.0


# --- safe and offline ----------------------------------------------------------------------------


def test_nothing_is_fetched_and_nothing_runs(pages):
    for page in pages.values():
        text = Text(page)
        tags = {tag for tag, _ in text.tags}
        assert not tags & {"link", "iframe", "object", "embed", "base", "form"}
        assert [a for tag, a in text.tags if tag == "script"] in (
            [], [{"type": "application/json", "id": "what-if-data"}, {}])  # fmt: skip
        for tag, attributes in text.tags:
            assert not any(name.startswith("on") for name in attributes)
            assert "href" not in attributes
            assert ("src" in attributes) == (tag == "img")
        assert "url(" not in page and "@import" not in page
        for picture in text.pictures():
            assert "<script" not in picture.lower()
            addresses = re.findall(r'(?:href|src)="([^"]*)"', picture)
            assert all(a.startswith(("#", "data:image/png;base64,")) for a in addresses)


def test_names_levels_and_files_are_escaped(pages):
    page = pages["plain"]
    assert page.count("<script") == 2 and "onerror=alert(2)>" not in page.replace("&gt;", "")
    text = Text(page)
    assert f"{SCRIPT}.csv" in text.text and SCRIPT in [r[0] for r in text.table("column")]
    assert Text(pages["script"]).text.count(SCRIPT[:-1]) > 3


def test_missing_packages(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'A report needs jinja2: pip install "mvenet\[report\]"'):
        rendered(fitted)


# --- in a browser --------------------------------------------------------------------------------


def test_every_report_at_the_widths_of_a_screen_and_a_telephone(browser, pages, tmp_path):
    for name, page in pages.items():
        path = tmp_path / "report.html"
        path.write_text(page, encoding="utf-8")
        for width in (1280, 390):
            where = f"{name} at {width}"
            look = opened(browser, path, width)
            assert look["width"] == width and look["scroll"] <= width, where
            assert look["outside"] == look["spilt"] == [], where
            assert len(look["pictures"]) == len(Text(page).pictures()), where
            for picture in look["pictures"]:
                assert picture["loaded"] and picture["seen"], where
                assert picture["left"] >= 0 and picture["right"] <= width, where
                assert picture["width"] > 250 and picture["height"] > 200, where
        assert browser.get_log("browser") == [], name
        asked = requests(browser)
        assert asked and all(url.startswith(("file://", "data:")) for url in asked), name
        assert sum(url.startswith("file://") for url in asked) == 2, name


def test_nothing_is_cut_off_on_paper(browser, pages, tmp_path):
    path = tmp_path / "report.html"
    spilt = """return [...document.querySelectorAll(".wide")].filter(
        wide => wide.firstElementChild.offsetWidth > wide.clientWidth).length"""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        for name in ("plain", "search", "evaluate", "folds"):
            path.write_text(pages[name], encoding="utf-8")
            look = opened(browser, path, 718)  # A4 without its margins
            assert look["scroll"] <= 718, name
            assert browser.execute_script(spilt) == 0, name
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_check_sees_what_it_should(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        '<body><p>x</p><img src="data:image/svg+xml;base64,xx"><div style="width:600px">.</div>'
        '<script src="http://127.0.0.1:9/x.js"></script><script>nonsense()</script>'
    )
    look = opened(browser, path, 390)
    assert look["scroll"] > 390 and not look["pictures"][0]["loaded"]
    assert len(browser.get_log("browser")) >= 2
    assert any(url.startswith("http://127.0.0.1") for url in requests(browser))


def test_scripts_are_text(browser, pages, tmp_path):
    from selenium.common.exceptions import NoAlertPresentException
    from selenium.webdriver.common.by import By

    path = tmp_path / f"{SCRIPT.replace('/', '_')}.html"
    path.write_text(pages["plain"], encoding="utf-8")
    opened(browser, path, 1280)
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert
    body = browser.find_element(By.TAG_NAME, "body").text
    assert f"{SCRIPT}.csv" in body
    assert body.count(SCRIPT) >= 2  # the column too
    path.write_text(pages["script"], encoding="utf-8")
    opened(browser, path, 1280)
    assert SCRIPT[:-1] in browser.find_element(By.TAG_NAME, "h1").text
    assert SCRIPT[:-1] in browser.title


def test_truth_values_are_yes_and_no():
    insight = report.insight

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=80), "garden": rng.random(80) < 0.5})
    y = frame["size"].to_numpy() + 3.0 * frame["garden"].to_numpy()
    model = workflow.fit_table(
        frame.assign(price=y), "price", search=False, holdout=0, seed=0
    ).model
    tidy = model.encoder_.tidy(frame)
    (curve,) = insight.dependences(model, tidy, ["garden"], ["garden"])
    assert curve.values == ["no", "yes"] and np.diff(curve.mean)[0] > 2
    dist = model.predict_dist(frame)
    (first, *_), *_ = insight.examples(
        tidy, ["garden"], y, dist, np.arange(80), ["garden"]
    ).values()
    assert first.cells == ["yes" if frame["garden"][first.row - 1] else "no"]
