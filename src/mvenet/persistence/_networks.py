"""Whether the networks of a model file are such as training makes."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np

from mvenet.fleet import ACTIVATIONS, Networks
from mvenet.persistence._archive import require
from mvenet.recipes import Architecture, hidden_units


def check_networks(networks: Any) -> None:
    """Refuse networks that training cannot have made; the engine gets no others.

    Parameters
    ----------
    networks : mvenet.fleet.Networks, or whatever a file has in its place

    Raises
    ------
    ValueError
        If a type, a shape or a value is wrong, a number not finite or a scale not positive.
    """
    check_fields(networks, Networks)
    architecture = networks.architecture
    check_fields(architecture, Architecture)
    for name in ("hidden_mean", "hidden_var"):
        units = getattr(architecture, name)
        require(units is None or isinstance(units, tuple), f"has a {name} that is no tuple")
        require(hidden_units(name, units) == units, f"has a {name} that makes no sense")
    known = architecture.activation in ACTIVATIONS
    require(known, "has an activation that mvenet does not know")
    bound = architecture.input_bound
    require(isinstance(bound, float) and bound > 0, "has an input_bound that is not positive")

    shape = np.shape(networks.x_mean)
    require(len(shape) == 2 and min(shape) > 0, "has networks without inputs, or none at all")
    k, d = shape
    layers = (pair for sizes in architecture.sizes(d) for pair in pairwise(sizes))
    n_parameters = sum((before + 1) * after for before, after in layers)
    shapes = {"x_mean": (k, d), "x_scale": (k, d), "y_mean": (k,), "y_scale": (k,)}
    for name, shape in {"parameters": (k, n_parameters), **shapes}.items():
        array = getattr(networks, name)
        require(type(array) is np.ndarray, f"has networks whose {name} is no array")
        formats = ("<f8", "<f4") if name == "parameters" else ("<f8",)
        fits = array.dtype.str in formats and array.shape == shape and array.flags.c_contiguous
        require(fits, f"has networks whose {name} is not a block of {shape} numbers")
        usual = np.isfinite(array).all() and not (name.endswith("_scale") and array.min() <= 0)
        require(usual, f"has networks with a value in {name} that training never gives")


def check_fields(thing: Any, wanted: type) -> None:
    """Refuse anything but an object of that dataclass, with its fields and no others.

    Those with a default may be missing: the file may be older than they are.
    """
    fields = {field.name for field in dataclasses.fields(wanted)}
    needed = {f.name for f in dataclasses.fields(wanted) if f.default is dataclasses.MISSING}
    same = type(thing) is wanted and needed <= set(vars(thing)) <= fields
    require(same, f"has something else in the place of {wanted.__name__}")
