"""From the command to Python and back: one model, the same predictions, report, card and ONNX."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pd = pytest.importorskip("pandas")
pytest.importorskip("polars")

import mvenet  # noqa: E402
from mvenet import AutoRegressor, CalibratedRegressor, MVERegressor, persistence  # noqa: E402
from mvenet.workflow import check, evaluate, fit_table, predictions  # noqa: E402

pytestmark = pytest.mark.usefixtures("short", "blank")

QUICK = {"strategy": "warmup", "epochs": 20, "warmup_epochs": 10, "random_state": 0}


def houses(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(20, 200, n).round(1),
            "town": rng.choice(["A", "B", "C"], n),
            "garden": rng.choice(["yes", "no"], n),
        }
    )
    noise = rng.standard_normal(n)
    frame["price"] = (frame["size"] * 2 + 40 * (frame["town"] == "B") + 9 * noise).round(2)
    frame.loc[::9, "size"] = np.nan
    return frame


FRAME = houses()
X, Y = FRAME.drop(columns="price"), FRAME["price"]


@pytest.fixture(scope="module")
def model() -> MVERegressor:
    return MVERegressor(**QUICK).fit(X, Y)


@pytest.mark.parametrize("calibrate", [False, True])
def test_the_command_and_python_fit_the_same_model(calibrate: bool, tmp_path) -> None:
    made = fit_table(FRAME.astype(str), "price", search=False, holdout=0, seed=0,
                     calibrate=calibrate).model  # fmt: skip
    alone = MVERegressor(random_state=0)
    alone = (CalibratedRegressor(alone) if calibrate else alone).fit(X, Y)
    assert_array_equal(made.predict_interval(X), alone.predict_interval(X))
    made.save(tmp_path / "model.mve")
    again = mvenet.load(tmp_path / "model.mve")
    assert type(again) is type(alone)
    assert_array_equal(again.predict_interval(X), alone.predict_interval(X))
    assert again.columns_["town"].kind == "category" and again.target_name_ == "price"


def test_a_search_is_the_same_too() -> None:
    made = fit_table(FRAME.astype(str), "price", effort="low", holdout=0, seed=0).model
    alone = AutoRegressor("low", random_state=0).fit(X, Y)
    assert_allclose(made.predict(X), alone.predict(X), rtol=1e-12)


def test_the_command_uses_a_model_of_python(model: MVERegressor, tmp_path) -> None:
    mvenet.save(model, tmp_path / "model.mve")
    loaded = persistence.load_to_predict(tmp_path / "model.mve")
    told = predictions(loaded, X.astype(str), [0.9])
    assert_array_equal(told["mean"].to_numpy(), model.predict(X))
    assert evaluate(loaded, FRAME).scores["rmse"] > 0
    assert check(loaded, X).changes == []
    numbers = MVERegressor(**QUICK).fit(X[["size"]].assign(twice=2 * X["size"]), Y)
    texts = X[["size"]].assign(twice=2 * X["size"])
    assert_array_equal(predictions(numbers, texts.astype(str))["mean"], numbers.predict(texts))


def test_a_card_tells_what_a_file_holds(model: MVERegressor, tmp_path) -> None:
    model.save(tmp_path / "model.mve")
    card = persistence.info(tmp_path / "model.mve")["card"]
    assert (card["target"], card["rows"], card["log_scale"]) == ("price", 80, False)
    assert card["columns"][0] == {
        "name": "size", "kind": "number", "remark": "9 missing",
        "low": float(X["size"].min()), "high": float(X["size"].max()),
    }  # fmt: skip
    fitted = fit_table(FRAME, "price", search=False, seed=0, unit="€").model
    fitted.save(tmp_path / "model.mve")
    card = persistence.info(tmp_path / "model.mve")["card"]
    assert card["unit"] == "€" and card["rows_held_out"]["rows"] == 16
    assert json.loads(json.dumps(card)) == card


def test_a_report_of_a_model_of_python(model: MVERegressor, tmp_path) -> None:
    pytest.importorskip("jinja2")
    model.report(tmp_path / "out.html", X[:30], Y[:30], unit="$")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "price" in page and "±&nbsp;$" in page and "what-if" in page
    with pytest.raises(ValueError, match="give both, or neither"):
        model.report(tmp_path / "out.html", X)


def test_the_encoding_in_an_onnx_file(model: MVERegressor, tmp_path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    place = str(tmp_path / "model.onnx")
    mvenet.onnx.export(model, place, encode=True, quantiles=[0.1])
    rows = X.assign(town=["Q", *X["town"][1:]], garden=(X["garden"] == "yes").astype(float))
    given = {
        name: (v.to_numpy(object) if name == "town" else v.to_numpy(np.float32))[:, None]
        for name, v in rows.items()
    }
    mean, std, low = runtime.InferenceSession(place).run(None, given)
    with pytest.warns(UserWarning, match="'town'"):
        expected = model.predict_dist(rows)
    assert_allclose(mean, expected.mean, rtol=1e-5)
    assert_allclose(std, expected.std, rtol=1e-4)
    assert_allclose(low[:, 0], expected.ppf(0.1), rtol=1e-4)
    dated = MVERegressor(**QUICK).fit(X.assign(day=pd.date_range("2020-01-01", periods=80)), Y)
    with pytest.raises(ValueError, match="'day' holds dates"):
        mvenet.onnx.export(dated, place, encode=True)
    with pytest.raises(ValueError, match="fitted to a frame"):
        mvenet.onnx.export(MVERegressor(**QUICK).fit(np.eye(5), np.arange(5)), place, encode=True)
