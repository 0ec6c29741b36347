"""MLflow: a model that answers with intervals.

A model file of mvenet becomes an artefact of an MLflow model, and `predict` answers with mean,
standard deviation and the ends of an interval; its coverage is a parameter of the call. MLflow
pickles the class below, not the model: that one is loaded by `mvenet.load`, which runs no code.

Needs `pip install "mvenet[persist]" mlflow pandas`.
"""

import sys
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema
from sklearn.datasets import load_diabetes

import mvenet
from mvenet import MVERegressor


class WithIntervals(mlflow.pyfunc.PythonModel):
    """What MLflow asks for: load once, predict often."""

    def load_context(self, context):
        """Load the model; a damaged or foreign file is refused."""
        self.model = mvenet.load(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        """Mean, standard deviation and interval of each row."""
        mean, std = self.model.predict(model_input, return_std=True)
        ends = self.model.predict_interval(model_input, (params or {}).get("coverage", 0.9))
        return pd.DataFrame({"mean": mean, "std": std, "low": ends[:, 0], "high": ends[:, 1]})


folder = Path(sys.argv[1] if len(sys.argv) > 1 else "served")
X, y = load_diabetes(return_X_y=True, as_frame=True)
model = MVERegressor(random_state=0).fit(X, y)
model.save("diabetes.mve")

signature = ModelSignature(
    inputs=Schema([ColSpec("double", name) for name in X.columns]),
    outputs=Schema([ColSpec("double", name) for name in ("mean", "std", "low", "high")]),
    params=ParamSchema([ParamSpec("coverage", "double", 0.9)]),
)
mlflow.pyfunc.save_model(
    folder,
    python_model=WithIntervals(),
    artifacts={"model": "diabetes.mve"},
    signature=signature,
    pip_requirements=[f"mvenet=={mvenet.__version__}"],
)

served = mlflow.pyfunc.load_model(str(folder))
wide, narrow = (served.predict(X.head(3), params={"coverage": c}) for c in (0.9, 0.5))
assert np.array_equal(wide["mean"], model.predict(X.head(3)))
print(wide.round(1))
print("50 % intervals are narrower:", (narrow["high"] - narrow["low"]).round(1).tolist())
