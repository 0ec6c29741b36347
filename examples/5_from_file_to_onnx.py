"""A model saved, looked at, loaded without running code, and served without mvenet."""

import numpy as np
import onnxruntime
from sklearn.datasets import load_diabetes

import mvenet
import mvenet.onnx
from mvenet import MVERegressor, persistence

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = MVERegressor(n_members=4, random_state=0).fit(X, y)

model.save("diabetes.mve")
told = persistence.info("diabetes.mve")  # without building anything
print("written by mvenet", told["versions"]["mvenet"], "for the columns", told["feature_names"])

loaded = mvenet.load("diabetes.mve")
assert (loaded.predict(X) == model.predict(X)).all()  # to the bit

mvenet.onnx.export(loaded, "diabetes.onnx")
session = onnxruntime.InferenceSession("diabetes.onnx")
mean, std = session.run(["mean", "std"], {"X": X.to_numpy(dtype=np.float32)})
expected = model.predict(X, return_std=True)
print("largest difference of the means:", np.abs(mean / expected[0] - 1).max())
print("largest difference of the stds: ", np.abs(std / expected[1] - 1).max())
