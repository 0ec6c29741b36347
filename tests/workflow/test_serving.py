"""Predictions where nothing is fitted: the same numbers, without scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fuzz_persistence as fuzz
import numpy as np
import pytest
from processes import python
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import CalibratedRegressor, MVERegressor, MVERegressorCV
from mvenet.persistence import _archive as archive
from mvenet.persistence import load, load_to_predict, save

pl = pytest.importorskip("polars")
pytest.importorskip("skops")
from mvenet.table import TableEncoder  # noqa: E402
from mvenet.workflow import _known, _serving  # noqa: E402
from mvenet.workflow._evaluation import evaluate  # noqa: E402

pytestmark = pytest.mark.usefixtures("short")

QUICK: dict[str, Any] = {"epochs": 3, "warmup_epochs": 3, "random_state": 0}
ESTIMATORS = {
    "networks": MVERegressor(strategy="warmup", n_members=2, **QUICK),
    "search": MVERegressorCV(
        [0.01, 0.1], [0.1], strategy="warmup", cv=2, n_members=1, scale=True, **QUICK
    ),
    "automatic": MVERegressor(random_state=0),
    "conformal": CalibratedRegressor(MVERegressor(strategy="warmup", **QUICK), cv=3),
    "calibrated": CalibratedRegressor(MVERegressor(strategy="warmup", **QUICK), "scale", cv=3),
}


def houses(n: int = 60) -> Any:
    """A column of every kind, with gaps."""
    rng = np.random.default_rng(0)
    size = rng.uniform(20, 200, n)
    return pl.DataFrame(
        {
            "size": [None if i % 9 == 0 else value for i, value in enumerate(size)],
            "town": rng.choice(["Bonn", "Köln"], n),
            "street": [f"street {i}" for i in rng.integers(40, size=n)],
            "garden": rng.choice([True, False], n),
            "sold": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)],
            "price": 3 * size + rng.normal(0, 10, n),
        }
    )


def fitted(name: str) -> Pipeline:
    frame = houses()
    y = frame["price"].to_numpy()
    encoder = TableEncoder(target="price")
    encoded = encoder.fit_transform(frame.drop("price"), y)
    return Pipeline([("table", encoder), ("model", ESTIMATORS[name].fit(encoded, y))])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serving") / "model.mve"
    save(fitted("networks"), path)
    return path


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_numbers_are_those_of_the_estimator(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    save(model, tmp_path / "model.mve")
    plain = load_to_predict(tmp_path / "model.mve")
    assert type(plain) is tuple and not any(hasattr(step, "get_params") for step in plain)
    new = houses(20).with_columns(pl.lit("Ulm").alias("town"))
    for asked in ((), ([0.5, 0.9], [0.1])):
        expected = _serving.predictions(model, new.drop("price"), *asked)
        assert _serving.predictions(plain, new.drop("price"), *asked).equals(expected)
    new = new.with_columns(pl.lit("Bonn").alias("town"))  # a new level is no number to predict with
    mean, std = model[-1].predict(model[0].transform(new), return_std=True)
    told = _serving.predictions(plain, new, [0.9])
    np.testing.assert_allclose(told["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(told["std"], std, rtol=1e-12)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("predict", "new.csv --interval 0.9 -o out.csv"),
        ("check", "new.csv --json"),
        ("evaluate", "new.csv"),
        ("export", "model.onnx"),
        ("info", ""),
    ],
)
def test_commands_that_import_neither_scikit_learn_nor_what_it_brings(
    file: Path, tmp_path: Path, command: str, options: str
) -> None:
    if command == "export":
        pytest.importorskip("onnx")
    houses(300).write_csv(tmp_path / "new.csv")
    code = """
        import sys
        from mvenet.cli import main
        sys.argv[0] = "mvenet"
        try:
            main()
        except SystemExit as end:
            assert end.code in (0, 3, None)
        slow = {"sklearn", "skops", "pandas", "matplotlib", "scipy.stats", "scipy.optimize",
                "joblib", "pydantic"}
        if sys.argv[1] == "predict":
            slow.add("scipy")
        print("imported:", *sorted(slow & set(sys.modules)))
    """
    assert python(code, command, file, *options.split(), cwd=tmp_path).endswith("imported:\n")
    if command == "predict":
        names = pl.read_csv(tmp_path / "out.csv").columns
        assert names[-5:] == ["mean", "std", "low_90", "high_90", "outside"]


def test_any_estimator_that_tells_a_std_may_follow_the_encoder() -> None:
    frame = houses()
    for between in ([], [StandardScaler()]):
        model = make_pipeline(TableEncoder(target="price"), *between, BayesianRidge())
        model.fit(frame.drop("price"), frame["price"].to_numpy())
        mean, std = model.predict(frame, return_std=True)
        told = _serving.predictions(model, frame.drop("price"), [0.9])
        np.testing.assert_allclose(told["mean"], mean)
        np.testing.assert_allclose((told["high_90"] - mean) / 1.6448536, std)
        assert evaluate(model, frame).scores["rmse"] > 0


def test_a_model_of_other_parts_is_loaded_whole(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = make_pipeline(StandardScaler(), MVERegressor(strategy="warmup", **QUICK)).fit(
        X, X[:, 0]
    )
    save(model, tmp_path / "model.mve")
    again = load_to_predict(tmp_path / "model.mve")
    assert isinstance(again, Pipeline)
    assert (again.predict(X) == model.predict(X)).all()
    with pytest.raises(ValueError, match="does not know its table"):
        _known.known(again)


@pytest.mark.parametrize(
    ("attribute", "value"), [("n_jobs", "0"), ("n_jobs", '"all"'), ("n_features_in_", "-1")]
)
def test_what_predict_would_trip_over_is_refused(
    file: Path, tmp_path: Path, attribute: str, value: str
) -> None:
    metadata, members = archive.unpack(file.read_bytes())
    del metadata["sha256"]
    schema = json.loads(members["schema.json"])
    steps = schema["content"]["content"]["steps"]["content"]
    parameters = steps[1]["content"][1]["content"]["content"]
    assert parameters[attribute]["__loader__"] == "JsonNode"
    parameters[attribute]["content"] = value
    changed = {**members, "schema.json": json.dumps(schema).encode()}
    (tmp_path / "model.mve").write_bytes(fuzz.seal(metadata, changed))
    for function in (load, load_to_predict):
        with pytest.raises(ValueError, match=r"model\.mve' .*: .*\.$"):
            function(tmp_path / "model.mve")


def test_a_table_of_another_width_is_refused(file: Path) -> None:
    _, predictor = load_to_predict(file)
    for X, said in ((np.zeros((2, 3)), r"shape \(2, 3\)"), (np.zeros(3), r"shape \(3,\)")):
        with pytest.raises(ValueError, match=said):
            predictor.predict(X)
    with pytest.raises(ValueError, match="contains infinity in column"):
        predictor.predict(np.full((2, predictor.n_features_in_), np.inf))


def test_a_line_that_is_written_as_it_stands_says_what_its_cells_do(
    file: Path, tmp_path: Path
) -> None:
    model = load_to_predict(file)
    houses().drop("price").write_csv(tmp_path / "plain.csv")
    lines = (tmp_path / "plain.csv").read_bytes()
    (tmp_path / "windows.csv").write_bytes(lines.replace(b"\n", b"\r\n"))
    written = []
    for name in ("plain.csv", "windows.csv"):
        with (tmp_path / "out.csv").open("wb") as out:
            assert _serving.predict_file(model, tmp_path / name, out, intervals=[0.9]).rows == 60
        written.append((tmp_path / "out.csv").read_bytes())
    assert written[0] == written[1] and written[0].count(b"\n") == 61
