"""The page to try values on: what it says in a real browser is what Python says."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import Pipeline

pl = pytest.importorskip("polars")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from blank import blank_pictures  # noqa: E402
from browsers import opened  # noqa: E402

from mvenet import AutoRegressor, CalibratedRegressor, MVERegressor, report, workflow  # noqa: E402
from mvenet._models.free_shape import Ends  # noqa: E402
from mvenet.persistence import load  # noqa: E402
from mvenet.predictive import predictive_distribution  # noqa: E402
from mvenet.report import _embedded  # noqa: E402
from mvenet.table import TableEncoder  # noqa: E402

# Streets come by turns, and with them what they are worth: rows a turn apart are alike.
pytestmark = [
    pytest.mark.usefixtures("short"),
    pytest.mark.filterwarnings("ignore::mvenet._estimators.dependence.DependenceWarning"),
]

FIXTURES = Path(__file__).parents[1] / "fixtures/format-2"
NASTY = "</script><script>alert(1)</script>"


def table(n=300):
    rng = np.random.default_rng(0)
    day = np.datetime64("2019-01-01") + rng.integers(0, 900, n)
    frame = pl.DataFrame(
        {
            "size": pl.Series(rng.uniform(20, 200, n).round(1)).set(
                pl.Series(range(n)) % 9 == 0, None
            ),
            "rooms": rng.integers(1, 9, n),
            "garden": rng.choice(["yes", "no"], n),
            "town": rng.choice(["Bonn", NASTY, "Köln"], n),
            "street": [f"S{i % 40}" for i in range(n)],
            "sold": [str(d) for d in day],
        }
    )
    size = frame["size"].fill_null(100).to_numpy()
    effect = np.sin(np.arange(n) % 40)
    noise = (0.1 + 0.001 * size) * rng.normal(size=n)
    return frame.with_columns(price=size / 50 + effect + noise)


def fitted(kind):
    frame = table({"automatic": 150, "zeros": 300}.get(kind, 200))  # the log scale takes long
    settings = {"epochs": 20, "warmup_epochs": 20, "random_state": 0}
    warm = {"strategy": "warmup", **settings}
    last = {
        "networks": MVERegressor(n_members=3, hidden_var=None, **warm),
        "pieces": MVERegressor(n_members=2, activation="silu", encoding="piecewise", **warm),
        "cross-fit": MVERegressor(n_members=2, **settings),
        "automatic": AutoRegressor(cv=2, target="log", random_state=0),
        "calibrated": CalibratedRegressor(
            AutoRegressor(cv=2, candidates=["linear", "gaussian process"], random_state=0)
        ),
        "other": BayesianRidge(),
    }.get(kind) or AutoRegressor(
        "low", ["trees"], "log" if kind == "log grid" else "identity", cv=2, random_state=0
    )
    price = frame["price"].to_numpy()
    heap = np.random.default_rng(1).choice([2.0, 6.0], len(price))
    prices = {
        "automatic": np.exp(price),
        "two modes": heap + 0.1 * price,
        "zeros": np.where(price < 1.5, 0.0, heap + 0.1 * price),
        "grid": np.round(price),
        "log grid": np.round(np.exp(0.5 * price)) + 1,
    }
    frame = frame.with_columns(price=prices.get(kind, price))
    model = Pipeline([("table", TableEncoder(target="price")), ("model", last)])
    model.fit(frame.drop("price"), frame["price"].to_numpy())
    if kind == "two modes":  # as if rows followed each other in time
        seen = last.model_.range
        later = replace(seen, pace=np.full(len(seen.x_low), 1e-3), drift_std=2.0)
        ends = Ends(np.array([0.0, 9.0]), np.array([0.5, 0.3]))  # and none were at these ends
        last.model_ = replace(last.model_, range=later, ends=ends)
    return model, frame


SHAPED = ("two modes", "zeros", "grid", "log grid")
KINDS = ("networks", "pieces", "cross-fit", "automatic", "calibrated", "other", *SHAPED)


class Pages(dict):
    """Models, their tables and reports, by the kind of model, made when first needed."""

    def __init__(self, folder):
        self.folder = folder

    def __missing__(self, kind):
        model, frame = fitted(kind)
        few = frame.head(60)  # what is told of the rows is tested elsewhere
        evaluation = workflow.evaluate(model, few)
        with contextlib.nullcontext() if kind == "networks" else blank_pictures():
            page = report.render(model, evaluation, source="houses.csv", frame=few, unit="€")
        path = self.folder / f"{kind}.html"
        path.write_text(page, encoding="utf-8")
        self[kind] = (model, frame, path)
        return self[kind]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return Pages(tmp_path_factory.mktemp("pages"))


ROWS = [
    {},
    {"size": 20.5, "rooms": 8.0, "garden": 0.0},
    {"size": None, "town": None, "street": "nowhere"},
    {"sold": 4000.25, "street": "S7", "size": 900.0},
    {"town": NASTY, "rooms": -5.0, "sold": None, "garden": None},
]


def coded(model, values):
    """A row of the page as a table that Python takes."""
    frame = pl.DataFrame({name: [value] for name, value in values.items()})
    days = pl.col("sold").cast(float) + model[0].dates_["sold"].origin
    return frame.with_columns((days * 86_400e6).round().cast(int).cast(pl.Datetime("us")))


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_says_what_python_says(browser, pages, kind):
    model, frame, path = pages[kind]
    opened(browser, path, 1280)
    data = json.loads(browser.execute_script(
        "return document.getElementById('what-if-data').textContent"))  # fmt: skip
    spread = frame["price"].std()
    if kind == "zeros":
        assert data["model"]["free"]["residuals"]["hurdle"]["values"] == [0.0]
    if kind == "calibrated":
        assert any("points" in mean for mean in data["model"]["means"]), "no Gaussian process"
    for changes in ROWS:
        row = {**data["starts"]["typical"], **changes}
        told = browser.execute_script("return mvenetWhatIf.predict(arguments[0])", row)
        encoded = browser.execute_script("return mvenetWhatIf.encode(arguments[0])", row)
        X = model[0].transform(coded(model, row))
        np.testing.assert_allclose(encoded, X[0], rtol=1e-9, atol=1e-9)
        dist = predictive_distribution(model[1:], X)
        interval = model[-1].predict_interval if kind == "calibrated" else None
        (low90, high90), (low50, high50) = (
            dist.interval(level)[0] if interval is None else interval(X, level)[0]
            for level in (0.9, 0.5)
        )
        expected = [dist.mean[0], low90, low50, high50, high90]
        got = [told[name] for name in ("mean", "low90", "low50", "high50", "high90")]
        inside = not changes or (set(changes) <= {"size", "rooms", "garden"} and row["size"])
        if kind != "other":
            assert np.abs(np.subtract(got, expected)).max() < 1e-4 * spread, changes
        elif inside:
            assert np.abs(np.subtract(got, expected)).max() < 0.5 * spread, changes


@pytest.mark.parametrize("kind", SHAPED)
def test_the_page_draws_the_shape_that_python_has(browser, pages, kind):
    model, _, path = pages[kind]
    assert "The model itself runs in this page. Nothing" in path.read_text(encoding="utf-8")
    composite = model[-1].model_
    assert (composite.free is not None, composite.atoms is not None) == {
        "two modes": (True, False),
        "zeros": (True, True),
    }.get(kind, (composite.free is not None, True))
    opened(browser, path, 1280)
    shapes = browser.execute_script("""
        const data = JSON.parse(document.getElementById('what-if-data').textContent);
        return Object.values(data.starts).map((row) => {
            const found = mvenetWhatIf.shape(mvenetWhatIf.normals(row), -5, 25);
            return {row: row, masses: found.masses, bars: found.bars.map((b) => b.mass)};
        });""")
    assert len(shapes) > 1
    for shape in shapes:
        (dist,) = [
            predictive_distribution(model[1:], model[0].transform(coded(model, shape["row"])))
        ]
        ends = dist.cdf(np.linspace(-5, 25, 201)[None])[0]
        np.testing.assert_allclose(shape["masses"], np.diff(ends), atol=2e-6)
        if composite.atoms is not None:
            masses = dist.pmf(composite.atoms.values[None])[0]
            np.testing.assert_allclose(shape["bars"], masses, atol=2e-6)
            path_of_bars = "return document.getElementById('what-if-atoms').getAttribute('d')"
            assert browser.execute_script(path_of_bars).startswith("M")


def test_the_report_says_what_was_recognised(pages):
    said = {kind: pages[kind][2].read_text(encoding="utf-8") for kind in SHAPED}
    assert "Many rows share the value 0, which has a probability of its own." in said["zeros"]
    ratings = r"All values of price are among \d, from -1 to \d in steps of 1: the model gives each"
    assert re.search(ratings, said["grid"])
    assert re.search(r"a 90&nbsp;% interval 9\d\.\d\s% of the rows, if all is well", said["grid"])
    assert "probability of its own" not in said["two modes"]
    assert "if all is well" not in said["two modes"]
    ends = "Hardly any row has price at 0 or 9: predictions come close to both and do not reach"
    assert ends in said["two modes"] and ends not in said["zeros"]


def test_two_modes_are_told_in_a_sentence_and_one_is_not(browser, pages):
    from selenium.webdriver.common.by import By

    said = {}
    for kind in ("two modes", "zeros", "networks", "grid", "other"):
        opened(browser, pages[kind][2], 1280)
        said[kind] = browser.find_element(By.ID, "what-if-modes").get_attribute("textContent")
        drawn = browser.find_element(By.ID, "what-if-density").is_displayed()
        assert drawn == (kind != "other")
        assert browser.get_log("browser") == []
    number = r"(exactly|about) \d[.\d]*\s€ \(\d+\s%\)"
    assert re.fullmatch(rf"Two outcomes are likely here: {number} or {number}\.", said["two modes"])
    assert re.fullmatch(
        rf"(Two|Three) outcomes are likely here: exactly 0.*{number}\.", said["zeros"]
    )
    assert said["networks"] == said["grid"] == said["other"] == ""


HEAPS = "return mvenetWhatIf.heaps(mvenetWhatIf.shape(arguments[0], -5, 25))"


def normals(*means, std=0.1):
    return [{"weight": 1 / len(means), "mean": mean, "std": std} for mean in means]


def test_neighbours_on_a_grid_are_one_heap(browser, pages):
    opened(browser, pages["grid"][2], 1280)
    assert len(browser.execute_script(HEAPS, normals(2.5))) == 1
    low, high = browser.execute_script(HEAPS, normals(0.1, 3.9))
    assert low == {"share": pytest.approx(0.5, abs=0.01), "value": 0, "exactly": True}
    assert high["exactly"] and high["value"] == 4


def test_heaps_are_counted(browser, pages):
    opened(browser, pages["networks"][2], 1280)
    for means in ([3], [3, 9], [0, 3, 15], [0, 0.3, 0.5], [3] * 9 + [20]):
        found = browser.execute_script(HEAPS, normals(*means, std=0.3))
        clear = [3] if len(means) == 10 else [0.3] if 0.5 in means else means
        assert [heap["value"] for heap in found] == pytest.approx(clear, abs=0.5)
        assert sum(heap["share"] for heap in found) == pytest.approx(1)
    # Values of a few trees of one heap are none of their own.
    draws = np.random.default_rng(0).normal(10, 3, (20, 25)).tolist()
    counts = [len(browser.execute_script(HEAPS, normals(*some, std=0.05))) for some in draws]
    assert counts.count(1) >= 18


def test_trees_that_name_values_are_not_embedded_twice():
    model = load(FIXTURES.with_name("format-3") / "automatic-atoms.mve")
    X = np.random.default_rng(0).normal(size=(30, 3))
    data, _ = _embedded.embedded(model, X)
    assert len(data["forests"]) == 1 and data["free"]["samplers"][0]["count"] == 25
    rounded = _embedded._rounded_composite(model.model_)
    (mean,) = rounded.means
    values = rounded.free.samplers[0].forest
    np.testing.assert_array_equal(values.threshold, mean.thinned(25).threshold)
    assert (values.threshold != model.model_.free.samplers[0].forest.threshold).any()


def test_trees_of_more_columns_than_two_bytes_count_are_not_embedded():
    model = load(FIXTURES / "automatic-search.mve")
    assert _embedded.embedded(model, np.zeros((3, 3))) is not None
    assert _embedded.embedded(model, np.zeros((3, 2**15))) is None


@pytest.mark.slow
def test_a_large_model_is_rounded_and_the_page_says_by_how_much(browser, pages, monkeypatch):
    model, frame, path = pages["automatic"]
    page = path.read_text(encoding="utf-8")
    assert "The model itself runs in this page. Nothing" in page and len(page) < 3e6
    assert "The model is of the logarithm of price: nothing" in page
    exact, _ = _embedded.embedded(model[-1], model[0].transform(frame))
    least = _embedded._size(exact)
    assert _embedded.embedded(model[-1], model[0].transform(frame), _embedded.MOST_BYTES) is None
    monkeypatch.setattr(_embedded, "MOST_BYTES", least - 1)
    evaluation = workflow.evaluate(model, frame)
    path = path.with_name("rounded.html")
    path.write_text(report.render(model, evaluation, frame=frame), encoding="utf-8")
    page = path.read_text(encoding="utf-8")
    assert "rounded to 16 bits, which moves no figure by more than 0.0" in page
    opened(browser, path, 1280)
    data = json.loads(re.search(r'id="what-if-data">(.*?)</script>', page)[1])
    assert data["stand_in"] is None and 0 < data["rounding"] < 1e-3
    row = data["starts"]["typical"]
    told = browser.execute_script("return mvenetWhatIf.predict(arguments[0])", row)
    mean = model.predict(coded(model, row))[0]
    assert 0 < abs(told["mean"] - mean) < 1e-4 * frame["price"].std()


def test_the_stand_in_says_how_far_it_is(pages):
    _, _, path = pages["other"]
    page = path.read_text(encoding="utf-8")
    shown = page[page.index("What if?</h2>") :]
    assert shown.index("Not the model itself") < shown.index("Turn a knob")  # in plain sight
    data = json.loads(re.search(r'id="what-if-data">(.*?)</script>', page)[1])
    assert 0 < data["stand_in"]["mean"] < 0.1 and 0 < data["stand_in"]["ends"] < 0.2
    assert f"by {100 * data['stand_in']['mean']:.1f}" in page
    assert len(page) < 3e6


def test_quantiles_of_the_stand_in_are_in_order():
    outputs = np.random.default_rng(0).normal(size=(6, 50))
    made = _embedded.stand_in_values(outputs, None)
    assert (np.diff(made[:, 1:], axis=1) > 0).all()
    assert _embedded.stand_in_values(outputs, 0.0).min() == 0.0


def test_knobs_by_keyboard_and_on_a_telephone(browser, pages):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    _, _, path = pages["networks"]
    look = opened(browser, path, 390)
    assert look["scroll"] <= 390 and not look["outside"] and not look["spilt"]
    mean = browser.find_element(By.ID, "what-if-mean")
    before = mean.text
    assert before.endswith("€")
    labels = {e.text.split()[0]: e.get_attribute("for") for e in
              browser.find_elements(By.CSS_SELECTOR, "#what-if-knobs label[for]")}  # fmt: skip
    slider = browser.find_element(By.ID, labels["size"])
    slider.send_keys(Keys.END)
    assert mean.text != before
    outside = browser.find_element(By.ID, "what-if-outside")
    assert "Outside what the model has seen: size" in outside.text
    browser.find_element(By.ID, "what-if-reset").send_keys(Keys.ENTER)
    assert mean.text == before and outside.text == ""
    Select(browser.find_element(By.ID, labels["town"])).select_by_visible_text(NASTY)
    assert outside.text == "" and browser.get_log("browser") == []


def test_pictures_name_the_unit(pages):
    page = pages["networks"][2].read_text(encoding="utf-8")
    drawn = [base64.b64decode(code) for code in re.findall(r"svg\+xml;base64,([^\"]+)", page)]
    labels = {text.decode() for svg in drawn for text in re.findall(rb"<!-- (.*?) -->", svg)}
    assert {"price (€)", "Predicted price (€)", "Observed price (€)"} <= labels
    assert "price" not in labels


def test_without_javascript_the_page_is_whole(pages):
    page = pages["networks"][2].read_text(encoding="utf-8")
    assert '<section id="what-if" hidden' in page and "<noscript>" in page
    assert page.count("<script") == 2 and "alert(1)</script>" not in page


def test_wide_tables_and_narrow_ones():
    rng = np.random.default_rng(0)
    last = MVERegressor(strategy="warmup", epochs=5, warmup_epochs=5)
    for d in (1, 62):
        X = rng.normal(size=(60, d))
        frame = pl.DataFrame({f"c{i}": X[:, i] for i in range(d)})
        frame = frame.with_columns(pl.col("^c60$").shift())  # a gap: a remark
        y = X[:, 0] + 0.1 * rng.normal(size=60)
        model = Pipeline([("table", TableEncoder(target="y")), ("model", last)]).fit(frame, y)
        frame = frame.with_columns(y=y)
        with blank_pictures():
            page = report.render(model, workflow.evaluate(model, frame), frame=frame)
        assert len(page) < 3e6 and page.count('class="meter"') == min(d, 15)
        assert ("Of 62 columns" in page) == (d == 62)
        assert ("61 of 62 columns need no remark" in page) == (d == 62)
        every, _, shown = page.partition("<summary>All columns</summary>")[2].partition(
            "</details>"
        )
        for name in ("c3", "c60") if d == 62 else ():
            assert (f">{name}</td>" in every, f">{name}</td>" in shown) == (True, name == "c60")
