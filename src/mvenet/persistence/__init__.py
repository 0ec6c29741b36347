"""Models in files: :func:`save`, :func:`load`, and :func:`info` to look before loading.

A model file is a zip archive, and skops writes what is in it::

    mvenet.json     format, versions, feature names, fingerprint of the training data, checksums
    schema.json     the objects, as skops describes them
    0.npy, 1.npy …  one array each, not compressed

Nothing in a file is executed. skops could read it too, but is not careful enough: it builds any
estimator of scikit-learn, takes memory and time without limit if a file asks for it, and cannot
know which numbers our engine would trip over. So a file is read in three stages, each of which may
refuse it: the archive (sizes before contents, then checksums); the description (every type by name,
each array once, parts of a model only where a model has them); and at last each model (shapes,
types and values of all its parts, by the ``check`` that its builder calls too).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import zipfile
from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

import mvenet
from mvenet._models.card import card
from mvenet._models.predictor import PredictsDistribution
from mvenet._utils.atomic import place_for, replacing
from mvenet.persistence import _archive as archive
from mvenet.persistence import _audit as audit
from mvenet.persistence import _building as building
from mvenet.persistence._archive import Members, RefusalError, printable
from mvenet.persistence._names import FIELDS, written, written_fields

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["info", "load", "save"]

AnyPath = str | os.PathLike[str]


def save(model: BaseEstimator, path: AnyPath) -> None:
    """Write a fitted model to a file.

    It is written beside its place and then moved there: it is whole or not there at all, and a file
    of that name is replaced only if everything went well.

    Parameters
    ----------
    model : AutoRegressor, MVERegressor, MVERegressorCV, or an estimator around one
        CalibratedRegressor, TableEncoder and, of scikit-learn, Pipeline, ColumnTransformer,
        FeatureUnion, TransformedTargetRegressor, FrozenEstimator; scalers, encoders, SimpleImputer,
        PCA, VarianceThreshold; FunctionTransformer with a function of NumPy such as ``np.log1p``.
    path : str or path
        Customarily ending in ``.mve``.

    Raises
    ------
    ValueError
        If the model is not fitted, has no network of ours, or holds something that could not be
        loaded safely (a function of yours, a forest).
    OSError
        If the file cannot be written. One that was there is still there.

    Notes
    -----
    A random generator (``random_state=np.random.default_rng(0)``) is stored as None: predictions do
    not depend on it. Saving the same model twice gives the same bytes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> from mvenet.persistence import info, load, save
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> model = MVERegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/parabola.mve")
    ...     info(f"{folder}/parabola.mve")["estimator"]
    ...     again = load(f"{folder}/parabola.mve")
    'MVERegressor'
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    place = place_for(path)
    data = _pack(_skops_io(), model)
    _refuse_unreadable(data)
    with replacing(place) as fresh:
        fresh.write_bytes(data)


def load(path: AnyPath) -> Any:
    """Read a model from a file that :func:`save` wrote; its predictions are the same to the bit.

    No code in the file is run, whoever made it, and no type is built that is not on a list. What a
    file of unknown origin predicts is of course the choice of whoever made it.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    AutoRegressor, MVERegressor, MVERegressorCV, or the estimator around it

    Raises
    ------
    ValueError
        If the file is damaged, not a model of mvenet, or of a newer format.
    OSError
        If there is no such file, or it cannot be read.
    """
    return _loaded(path)


def load_to_predict(path: AnyPath) -> Any:
    """The same without scikit-learn, which takes a second to import, if it is not needed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Predictor or Conformal, or tuple of Encoding and one of these
        Base class of the estimator that :func:`load` returns, with all that predicts; of a file of
        an earlier format the steps of a pipeline. A model of other parts is as in :func:`load`.

    Raises
    ------
    ValueError, OSError
        As in :func:`load`.
    """
    return _loaded(path, only_predicts=True)


def info(path: AnyPath) -> dict[str, Any]:
    """Say what a model file holds, without building the model; skops is not needed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        ``format`` (int), ``versions`` (dict of str: what the file was written with), ``model`` and
        ``estimator`` (str: the class saved, and our own within it), ``n_features`` (int),
        ``feature_names`` (list of str, or None), ``fingerprint`` (str or None: of the table that
        our estimator was trained on, after the steps of a pipeline before it); of a table whose
        rows belong together ``promise`` (str: for which rows its intervals hold); of an estimator
        of ours ``card`` (dict: target, unit, date and rows of the fit, columns with their kinds and
        ranges, log scale, scores on rows left out and held out, promise, as far as known).

    Raises
    ------
    ValueError, OSError
        As in :func:`load`.
    """
    data = archive.read(path)
    with _refusals(path):
        metadata, _ = archive.unpack(data)
    del metadata["sha256"]
    return metadata


def _loaded(path: AnyPath, only_predicts: bool = False) -> Any:
    data = archive.read(path)
    with _refusals(path):
        metadata, members = archive.unpack(data)
        del data  # a second copy of the arrays would be in memory with it
        return _build(metadata, members, only_predicts)


@contextlib.contextmanager
def _refusals(path: AnyPath) -> Iterator[None]:
    """Name the file in every refusal, and make one of whatever a damaged file leads to."""
    try:
        yield
    except RefusalError as error:
        raise ValueError(f"{os.fspath(path)!r} {error}.") from error
    except MemoryError:  # says nothing about the file
        raise
    except Exception as error:  # zipfile, zlib, json and NumPy raise a dozen types
        damage = RefusalError(f"is damaged ({_brief(error)})")
        raise ValueError(f"{os.fspath(path)!r} {damage}.") from error


def _refuse_unreadable(data: bytes) -> None:
    """A file that cannot be loaded is not written."""
    try:
        _build(*archive.unpack(data))
    except MemoryError:
        raise
    except Exception as error:
        refused = isinstance(error, RefusalError)
        reason = error.args[0] if refused else f"would be damaged ({_brief(error)})"
        message = f"The model cannot be saved, because its file {reason}: fit it again."
        raise ValueError(message) from error


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {printable(error)}"


def _build(metadata: dict[str, Any], members: Members, only_predicts: bool = False) -> Any:
    """Audit, build and check the model of an unpacked file."""
    schema = audit.check_schema(members)
    plain = only_predicts and not building.needs_sklearn(schema)
    find = building.without_sklearn if plain else building.imported
    try:
        model = building.build(schema, members, find)
    except (MemoryError, RefusalError):
        raise
    except Exception as error:  # most likely other versions, whose classes differ
        versions = ", ".join(f"{name} {version}" for name, version in metadata["versions"].items())
        remedy = f"try the versions that it was written with, {printable(versions)}"
        raise RefusalError(f"cannot be rebuilt ({_brief(error)})", remedy) from error
    audit.check_model(model)
    return building.steps_of(model) if isinstance(model, building.Attributes) else model


def _pack(skops_io: Any, model: BaseEstimator) -> bytes:
    """The bytes of a model file."""
    from sklearn.utils.validation import check_is_fitted

    ours = audit.our_estimators(model)
    if not audit.can_predict(model) or not ours:
        raise ValueError(
            f"model={type(model).__name__} has no network of mvenet in it: save it with "
            "skops.io.dump."
        )
    check_is_fitted(model)
    fitted = [part for part in ours if audit.is_fitted(part)]
    if not fitted:
        raise ValueError(
            f"model={type(model).__name__} has no network of mvenet that is fitted: fit it again."
        )
    for estimator in fitted:
        audit.check_parameters(estimator)  # set_params may have come after fit
    try:
        with zipfile.ZipFile(io.BytesIO(skops_io.dumps(model))) as dump:
            schema = json.loads(dump.read("schema.json"))
            members = _tidy(schema, dump)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"The model cannot be saved ({_brief(error)}): use set_params to replace the parameter "
            "that is to blame."
        ) from error
    foreign = audit.foreign_types(list(audit.nodes(schema)))
    if foreign:
        raise ValueError(
            f"The model cannot be saved, because no model file may hold {foreign}: replace it, or "
            "save only the networks' estimator."
        )
    members["schema.json"] = _json(schema)
    metadata = _metadata(model, fitted[0], members)
    return archive.pack({"mvenet.json": _json(metadata), **members})


def _tidy(schema: Any, dump: zipfile.ZipFile) -> Members:
    """Take out of a description what is true in this process only; return its arrays."""
    arrays: Members = {}
    for node in audit.nodes(schema):
        if node["__loader__"] in ("RandomStateNode", "RandomGeneratorNode"):
            node.clear()
            node |= {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
            node |= {"content": "null", "is_json": True}
        node.pop("__id__", None)
        if not node["__class__"].startswith("_"):  # where a class is public, it will stay
            top, *inside = node["__module__"].split(".")
            public = takewhile(lambda part: part[0] != "_" and part != "core", inside)
            module, name = written(".".join([top, *public]), node["__class__"])
            node["__module__"], node["__class__"] = module, name
            if module == "mvenet" and name in FIELDS:
                held = node["content"]
                held["content"] = written_fields(name, held["content"])
        if audit.type_name(node) == "numpy.bool":  # called that in NumPy 2 only
            node["__class__"] = "bool_"
        if "file" in node:
            content = dump.read(node["file"])
            node["file"] = f"{len(arrays)}.npy"
            arrays[node["file"]] = content
    return arrays


def _metadata(model: BaseEstimator, estimator: BaseEstimator, members: Members) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    first = model.steps[0][1] if hasattr(model, "steps") else model
    promise = getattr(first, "promise_", "")
    return {
        "format": archive.FORMAT,
        "versions": {
            "mvenet": mvenet.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": import_module("sklearn").__version__,
            "skops": import_module("skops").__version__,
        },
        "model": type(model).__name__,
        "estimator": type(estimator).__name__,
        "n_features": int(getattr(model, "n_features_in_", estimator.n_features_in_)),
        "feature_names": None if names is None else [str(name) for name in names],
        "fingerprint": getattr(estimator, "fingerprint_", None),
        **({"promise": promise} if promise else {}),
        **({"card": card(model)} if isinstance(model, PredictsDistribution) else {}),
        "sha256": {name: hashlib.sha256(part).hexdigest() for name, part in members.items()},
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _skops_io() -> Any:
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            'Saving models needs skops: pip install "mvenet[persist]".', name="skops"
        ) from error
