"""Exported models, run by a runtime that does not know mvenet."""

from __future__ import annotations

import onnxruntime

from mvenet.onnx import export


def session(model, folder):
    path = str(folder / "model.onnx")
    export(model, path)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def run(model, folder, X):
    return session(model, folder).run(["mean", "std"], {"X": X})
