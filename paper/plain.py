"""Networks in plain NumPy, many at once, for readings of the paper that mvenet has no option for.

One input, no warm-up; other starts, data as they are, rows in their order, other optimisers. With
the defaults it is the paper's recipe, so that it can be checked against the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from measure import Array
from numpy.typing import NDArray

Stack = NDArray[np.float32]  # the network is the first axis
LIMITS = {  # of uniform starting weights, from the number of inputs and outputs of a layer
    "glorot": lambda a, b: np.sqrt(6 / (a + b)),
    "he": lambda a, b: np.sqrt(6 / a),
    "pytorch": lambda a, b: 1 / np.sqrt(a),
}


@dataclass(frozen=True)
class Plain:
    """What can be read differently; the defaults are those of the authors' code."""

    start: str = "glorot"  # of LIMITS; "pytorch" draws the biases too
    variance_bias: float = 1.0  # log-variance at the start
    standardise_x: bool = True
    standardise_y: bool = True
    shuffle: bool = True  # a fresh order each epoch; else the rows from left to right
    penalise_biases: bool = False
    optimiser: str = "adam"  # "sgd"; "adamw" has the penalty as weight decay beside the gradient
    learning_rate: float = 1e-3
    hidden: tuple[int, ...] = (40, 20)
    epochs: int = 100
    batch_size: int = 32
    clip_value: float = 5.0


def train(
    reading: Plain, x: Array, y: Array, at: Array, penalties: Array, seed: int
) -> tuple[Array, Array]:
    """Train a network for each row of x, y and penalties (mean, variance); mean and std at ``at``.

    Parameters
    ----------
    x, y : ndarray of shape (K, n)
    at : ndarray of shape (m,)
    penalties : ndarray of shape (K, 2)
    seed : int
        Of starts and batches: the same for all K networks.
    """
    shift_x, scale_x = _standard(x, reading.standardise_x)
    shift_y, scale_y = _standard(y, reading.standardise_y)
    x, y = ((x - shift_x) / scale_x).astype("f4"), ((y - shift_y) / scale_y).astype("f4")
    rng = np.random.default_rng(seed)
    networks = [_start(reading, bias, len(x), rng) for bias in (0.0, reading.variance_bias)]
    step = _Optimiser(reading, networks, penalties)
    for _ in range(reading.epochs):
        order = rng.permutation(x.shape[1]) if reading.shuffle else np.argsort(x[0])
        for rows in np.split(order, range(reading.batch_size, len(order), reading.batch_size)):
            mean, log_var = (_forward(network, x[:, rows]) for network in networks)
            residual = y[:, rows, None] - mean[-1]
            exp = np.exp(log_var[-1])
            var = exp + np.float32(1e-6)
            slopes = -2 * residual / var, (1 / var - (residual / var) ** 2) * exp
            step(
                [
                    _backward(network, layers, slope / len(rows))
                    for network, layers, slope in zip(
                        networks, (mean, log_var), slopes, strict=True
                    )
                ]
            )
    grid = ((np.tile(at, (len(x), 1)) - shift_x) / scale_x).astype("f4")
    mean, log_var = (_forward(network, grid)[-1][:, :, 0] for network in networks)
    return mean * scale_y + shift_y, np.sqrt(np.exp(log_var) + 1e-6) * scale_y


def _standard(values: Array, wanted: bool) -> tuple[Any, Any]:
    if not wanted:
        return 0.0, 1.0
    return values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)


def _start(reading: Plain, bias: float, n: int, rng: np.random.Generator) -> list[Stack]:
    """Weights and biases of each layer, the same for all n networks."""
    parameters = []
    for a, b in pairwise((1, *reading.hidden, 1)):
        limit = LIMITS[reading.start](a, b)
        parameters.append(rng.uniform(-limit, limit, (a, b)))
        parameters.append(rng.uniform(-limit, limit, b) * (reading.start == "pytorch"))
    parameters[-1] = parameters[-1] + bias
    return [np.repeat(p[None].astype("f4"), n, axis=0) for p in parameters]


def _forward(network: list[Stack], x: Stack) -> list[Stack]:
    """Values of each layer; ELU between them."""
    layers = [x[:, :, None]]
    for i in range(0, len(network), 2):
        z = layers[-1] @ network[i] + network[i + 1][:, None]
        last = i == len(network) - 2
        layers.append(z if last else np.where(z > 0, z, np.expm1(np.minimum(z, 0))))
    return layers


def _backward(network: list[Stack], layers: list[Stack], slope: Stack) -> list[Stack]:
    """Gradients of all parameters, in their order."""
    gradients: list[Stack] = []
    for i in range(len(network) - 2, -1, -2):
        below = layers[i // 2]
        gradients = [below.transpose(0, 2, 1) @ slope, slope.sum(axis=1), *gradients]
        if i:
            slope = (slope @ network[i].transpose(0, 2, 1)) * np.where(below > 0, 1, below + 1)
    return gradients


class _Optimiser:
    """Adam, Adam with decoupled weight decay, or gradient descent, in place."""

    def __init__(self, reading: Plain, networks: list[list[Stack]], penalties: Array) -> None:
        self.reading = reading
        self.parameters = [p for network in networks for p in network]
        self.penalties = [
            np.float32(2) * weight.astype("f4").reshape(-1, *[1] * (p.ndim - 1))
            * (p.ndim == 3 or reading.penalise_biases)
            for network, weight in zip(networks, penalties.T, strict=True)
            for p in network
        ]  # fmt: skip
        self.moments = [(np.zeros_like(p), np.zeros_like(p)) for p in self.parameters]
        self.steps = 0

    def __call__(self, gradients: list[list[Stack]]) -> None:
        reading, rate = self.reading, self.reading.learning_rate
        self.steps += 1
        correction = np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        flat = [g for network in gradients for g in network]
        for p, g, penalty, (m, v) in zip(
            self.parameters, flat, self.penalties, self.moments, strict=True
        ):
            pull = penalty * p
            if reading.optimiser == "adamw":
                p -= rate * pull
            else:
                g = g + pull
            g = np.clip(g, -reading.clip_value, reading.clip_value)
            if reading.optimiser == "sgd":
                p -= rate * g
                continue
            m += np.float32(0.1) * (g - m)
            v += np.float32(0.001) * (g * g - v)
            p -= np.float32(rate * correction) * m / (np.sqrt(v) + np.float32(1e-7))
