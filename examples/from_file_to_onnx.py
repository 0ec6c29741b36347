"""From a file to ONNX: save, look inside, load without running code, serve without mvenet.

A model file holds no code. `onnx.export` writes the whole model, standardisation included, as one
graph that onnxruntime serves from any language.

Picture: Standard deviations by onnxruntime against those by mvenet; all points lie on the diagonal.
"""

import matplotlib.pyplot as plt
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

figure, ax = plt.subplots(layout="constrained")
ax.axline((50, 50), slope=1, color="0.7", lw=1)
ax.plot(expected[1], std, ".", ms=4)
ax.set(xlabel="std by mvenet", ylabel="std by onnxruntime")
figure.savefig("from_file_to_onnx.png", dpi=130)
