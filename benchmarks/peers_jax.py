"""JAX's time per network and gradient step on the paper's network.

Joint stage of docs/develop/architecture.md: two perceptrons 13 → 40 → 20 → 1, ELU, one for the mean
and one for the log-variance, 455 rows in batches of 32 (the last of an epoch has 7 and counts as a
step), float32, with drawing the permutations and gathering the rows inside the measured time, and
compilation (seconds) outside it. Run in an environment of its own (benchmarks/requirements.txt)::

    .venv-bench/bin/python benchmarks/peers_jax.py --seconds 3    # one JSON object on stdout
    .venv-bench/bin/python benchmarks/peers_jax.py --check        # is it the algorithm we say?

XLA takes its number of threads from the processors that it may use, and offers no setting: for one
core run it under ``taskset -c 0``. What was tried to be fair, and kept because it was faster: ELU
with exp instead of ``jax.nn.elu``'s expm1, NumPy's permutations instead of ``jax.random``'s sorts,
gathering the rows once an epoch, separate products for the two sub-networks under vmap. One network
alone is timed with separate products (XLA may then use two cores) and with one product for the pair
(it uses one), and the better is taken. Left out: the networks divided between two host devices by
``shard_map``, which took about a seventh off vmap's time on two otherwise idle cores.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

SIZES = (13, 40, 20, 1)
ROWS = 455
BATCH = 32
STEPS_PER_EPOCH = -(-ROWS // BATCH)
LEARNING_RATE = 1e-3
BETAS = (0.9, 0.999)
EPSILON = 1e-7
CLIP = 5.0
VARIANCE_FLOOR = 1e-6

# Two sub-networks, mean and variance, each three layers (weights, biases): either a pair of them,
# or one whose arrays have a leading axis of length two ("paired").
Parameters = Any
State = tuple[Parameters, Parameters, Parameters, Array]


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw standard-normal inputs (455, 13) and a standardised noisy target (455,), float64."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, SIZES[0]))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * np.exp(0.5 * X[:, 2]) * rng.standard_normal(ROWS)
    return X, (y - y.mean()) / y.std()


def initial_parameters(n_networks: int, seed: int = 1) -> Parameters:
    """Draw Glorot-uniform starts; the variance output's bias is 1.

    Returns
    -------
    list of two lists of three (weights, biases)
        Weights (n, inputs, outputs) and biases (n, outputs), the mean sub-network's first.
    """
    rng = np.random.default_rng(seed)
    networks = []
    for _ in ("mean", "variance"):
        layers = []
        for fan_in, fan_out in itertools.pairwise(SIZES):
            limit = np.sqrt(6 / (fan_in + fan_out))
            weights = rng.uniform(-limit, limit, (n_networks, fan_in, fan_out))
            layers.append((weights, np.zeros((n_networks, fan_out))))
        networks.append(layers)
    networks[1][2][1][:] = 1.0
    return networks


def penalties(n_networks: int) -> np.ndarray:
    """Give each network its (reg_mean, reg_var) from a 5 × 5 grid, repeated; shape (n, 2)."""
    grid = np.logspace(-5, -1, 5)
    pairs = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.resize(pairs, (n_networks, 2))


def permutations(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw orders of the rows, int32 of shape (*shape, 455)."""
    return rng.permuted(np.tile(np.arange(ROWS, dtype=np.int32), (*shape, 1)), axis=-1)


def elu(x: Array) -> Array:
    """ELU with exp; the inner minimum keeps the unused branch's gradient finite."""
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0)) - 1)


def subnetwork(layers: Parameters, x: Array) -> Array:
    """Evaluate one perceptron on (rows, 13); shape (rows,)."""
    for weights, biases in layers[:-1]:
        x = elu(x @ weights + biases)
    weights, biases = layers[-1]
    return (x @ weights + biases)[:, 0]


def sum_of_squares(layers: Parameters) -> Array:
    """Sum the squares of one sub-network's weights, not of its biases."""
    return sum(jnp.sum(weights**2) for weights, _ in layers)


def objective(parameters: Parameters, reg: Array, x: Array, y: Array, paired: bool) -> Array:
    """Evaluate J of docs/develop/architecture.md for one network."""

    def both(function: Callable[[Parameters], Array]) -> Any:
        return jax.vmap(function)(parameters) if paired else map(function, parameters)

    mean, log_variance = both(lambda layers: subnetwork(layers, x))
    penalty_mean, penalty_variance = both(sum_of_squares)
    variance = jnp.exp(log_variance) + VARIANCE_FLOOR
    loss = jnp.mean(jnp.log(variance) + (y - mean) ** 2 / variance)
    return loss + reg[0] * penalty_mean + reg[1] * penalty_variance


def adam(state: State, gradient: Parameters) -> State:
    """Clip the gradient per element and take one step of Adam."""
    parameters, first, second, count = state
    count = count + 1
    gradient = jax.tree.map(lambda g: jnp.clip(g, -CLIP, CLIP), gradient)
    first = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, first, gradient)
    second = jax.tree.map(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, second, gradient)
    rate = LEARNING_RATE / (1 - BETAS[0] ** count)
    root = lax.rsqrt(1 - BETAS[1] ** count)
    parameters = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) * root + EPSILON), parameters, first, second
    )
    return parameters, first, second, count


def train(state: State, orders: Array, reg: Array, X: Array, y: Array, *, paired: bool) -> State:
    """Train one network for as many epochs as `orders`, of shape (epochs, 455), has rows."""
    full = ROWS // BATCH * BATCH

    def step(state: State, x: Array, target: Array) -> State:
        return adam(state, jax.grad(objective)(state[0], reg, x, target, paired))

    def epoch(state: State, order: Array) -> tuple[State, None]:
        x, target = X[order], y[order]
        batches = x[:full].reshape(-1, BATCH, SIZES[0]), target[:full].reshape(-1, BATCH)
        state, _ = lax.scan(lambda s, batch: (step(s, *batch), None), state, batches)
        return step(state, x[full:], target[full:]), None

    return lax.scan(epoch, state, orders)[0]


# One network; and many, each with its own parameters, batches and penalties on shared data.
train_one = jax.jit(train, static_argnames="paired")
_AXES = (0, 0, 0, None)  # the step count is common
train_many = jax.jit(
    jax.vmap(partial(train, paired=False), in_axes=(_AXES, 0, 0, None, None), out_axes=_AXES)
)


def start_state(parameters: Parameters, dtype: Any) -> State:
    """Put parameters on the device, with moments of zero."""
    parameters = jax.tree.map(lambda p: jnp.asarray(p, dtype), parameters)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return parameters, zeros, zeros, jnp.zeros((), dtype)


def take(parameters: Parameters, network: int, paired: bool) -> Parameters:
    """Take one network out of many, its two sub-networks as one pair of them or stacked."""
    pair = jax.tree.map(lambda p: p[network], parameters)
    return jax.tree.map(lambda *p: np.stack(p), *pair) if paired else pair


def fastest(run: Callable[[], Any], seconds: float, rounds: int = 3) -> float:
    """Repeat for about so many seconds, at least `rounds` times; the fastest round in seconds.

    Each round starts from the same parameters; the first two, with the compilation, do not count.
    """
    for _ in range(2):
        result = jax.block_until_ready(run())
    best, end = np.inf, time.perf_counter() + seconds
    while rounds > 0 or time.perf_counter() < end:
        start = time.perf_counter()
        result = jax.block_until_ready(run())
        best = min(best, time.perf_counter() - start)
        rounds -= 1
    finite = all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(result))
    require(finite, "training diverged")
    return float(best)


def one_at_a_time(seconds: float, paired: bool = True) -> float:
    """Train one network, the whole loop compiled; microseconds per gradient step."""
    epochs = 200
    X, y = (jnp.asarray(a, jnp.float32) for a in problem())
    state = start_state(take(initial_parameters(1), 0, paired), jnp.float32)
    reg = jnp.asarray([1e-3, 1e-2], jnp.float32)
    rng = np.random.default_rng(2)

    def run() -> State:
        return train_one(state, permutations(rng, epochs), reg, X, y, paired=paired)

    return 1e6 * fastest(run, seconds) / (epochs * STEPS_PER_EPOCH)


def vmapped(n_networks: int, seconds: float) -> float:
    """Train many networks under vmap; microseconds per network and gradient step."""
    epochs = 5
    X, y = (jnp.asarray(a, jnp.float32) for a in problem())
    state = start_state(initial_parameters(n_networks), jnp.float32)
    reg = jnp.asarray(penalties(n_networks), jnp.float32)
    rng = np.random.default_rng(2)

    def run() -> State:
        return train_many(state, permutations(rng, n_networks, epochs), reg, X, y)

    return 1e6 * fastest(run, seconds) / (epochs * STEPS_PER_EPOCH * n_networks)


def require(condition: bool, message: str) -> None:
    """Stop the benchmark with a message: figures from a broken peer must not be published."""
    if not condition:
        sys.exit(f"peers_jax: {message}")


def largest_difference(a: Parameters, b: Parameters) -> float:
    """Compare two sets of parameters; the largest absolute difference of any."""
    differences = jax.tree.map(lambda p, q: float(jnp.abs(p - q).max()), a, b)
    return max(jax.tree.leaves(differences))


def train_literally(
    parameters: Parameters, orders: np.ndarray, reg: Array, X: Array, y: Array
) -> tuple[Parameters, int]:
    """Train one network by Adam's formulas in NumPy; also count the elements that were clipped."""
    gradient_of = jax.jit(jax.grad(partial(objective, paired=True)))
    leaves, tree = jax.tree.flatten(jax.tree.map(np.array, parameters))
    first = [np.zeros_like(p) for p in leaves]
    second = [np.zeros_like(p) for p in leaves]
    clipped = 0
    batches = (rows for order in orders for rows in np.split(order, range(BATCH, ROWS, BATCH)))
    for step, rows in enumerate(batches, start=1):
        gradient = gradient_of(jax.tree.unflatten(tree, leaves), reg, X[rows], y[rows])
        for i, g in enumerate(map(np.asarray, jax.tree.leaves(gradient))):
            clipped += int((np.abs(g) > CLIP).sum())
            g = np.clip(g, -CLIP, CLIP)
            first[i] = BETAS[0] * first[i] + (1 - BETAS[0]) * g
            second[i] = BETAS[1] * second[i] + (1 - BETAS[1]) * g**2
            m_hat, v_hat = first[i] / (1 - BETAS[0] ** step), second[i] / (1 - BETAS[1] ** step)
            leaves[i] = leaves[i] - LEARNING_RATE * m_hat / (np.sqrt(v_hat) + EPSILON)
    return jax.tree.unflatten(tree, leaves), clipped


def check_same(dtype: Any, epochs: int = 4) -> dict[str, Any]:
    """Train the same networks on the same batches under vmap, alone and literally.

    The objectives at the end are for comparison with those of ``peers_torch.py --check``, which
    starts from the same numbers and sees the same batches.
    """
    X, y = (jnp.asarray(a, dtype) for a in problem())
    y = y * 20  # wide enough that the clip acts in the first epochs
    reg = jnp.asarray(penalties(25)[[0, 4, 12, 20, 24]], dtype)
    start = initial_parameters(len(reg))
    rng = np.random.default_rng(3)
    orders = np.stack([permutations(rng, len(reg)) for _ in range(epochs)], axis=1)

    together = train_many(start_state(start, dtype), orders, reg, X, y)[0]
    stacking, algorithm, moved, objectives, clipped = [], [], [], [], 0
    for k in range(len(reg)):
        state = start_state(take(start, k, paired=True), dtype)
        alone = train_one(state, orders[k], reg[k], X, y, paired=True)[0]
        state_separate = start_state(take(start, k, paired=False), dtype)
        separate = train_one(state_separate, orders[k], reg[k], X, y, paired=False)[0]
        literal, count = train_literally(state[0], orders[k], reg[k], X, y)
        clipped += count
        stacking.append(largest_difference(alone, take(together, k, paired=True)))
        stacking.append(largest_difference(separate, take(together, k, paired=False)))
        algorithm.append(largest_difference(alone, literal))
        moved.append(largest_difference(alone, state[0]))
        objectives.append(float(objective(alone, reg[k], X, y, paired=True)))
    return {
        "steps": epochs * STEPS_PER_EPOCH,
        "elements_clipped": clipped,
        "parameters_moved": max(moved),
        "vmapped_minus_alone": max(stacking),
        "alone_minus_literal": max(algorithm),
        "objective": objectives,
    }


def check_trains(epochs: int = 40) -> dict[str, float]:
    """Train one network in float32; the loss over all rows, without penalties, before and after."""
    X, y = (jnp.asarray(a, jnp.float32) for a in problem())
    state = start_state(take(initial_parameters(1), 0, paired=True), jnp.float32)
    reg = jnp.asarray([1e-4, 1e-3], jnp.float32)
    rng = np.random.default_rng(4)
    trained = train_one(state, permutations(rng, epochs), reg, X, y, paired=True)
    before, after = (
        float(objective(s[0], jnp.zeros(2), X, y, paired=True)) for s in (state, trained)
    )
    return {"before": before, "after": after}


def check() -> dict[str, Any]:
    """Verify that the training trains and that all ways of it give the same parameters."""
    jax.config.update("jax_enable_x64", True)
    loss = check_trains()
    same = {"float64": check_same(jnp.float64), "float32": check_same(jnp.float32)}
    require(loss["after"] < loss["before"] - 0.5, f"the loss does not fall: {loss}")
    for dtype, tolerance in (("float64", 1e-10), ("float32", 1e-5)):
        require(same[dtype]["elements_clipped"] > 0, "the clip never acted, so it was not tested")
        for key in ("vmapped_minus_alone", "alone_minus_literal"):
            found = same[dtype][key]
            require(found < tolerance, f"{dtype}: {key} is {found}, above {tolerance}")
    return {"loss": loss, **same}


def usable_cpus() -> int:
    """Count the processors this process may run on, which is how many threads XLA starts."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def measure(n_networks: int, seconds: float) -> dict[str, Any]:
    """Time both ways, one network alone in both layouts."""
    alone = {
        layout: one_at_a_time(seconds, layout == "paired") for layout in ("paired", "separate")
    }
    return {
        "one_at_a_time": min(alone.values()),
        "one_at_a_time_layout": min(alone, key=alone.__getitem__),
        "by_layout": {"one_at_a_time": alone},
        "vmapped": vmapped(n_networks, seconds),
        "threads": f"XLA's default ({usable_cpus()} processors)",
        "networks": n_networks,
    }


def main() -> None:
    """Print one JSON object: microseconds per network and step, or what the checks found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each timing")
    parser.add_argument("--networks", type=int, default=250, help="trained at once under vmap")
    parser.add_argument("--check", action="store_true", help="verify the training, time nothing")
    options = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    # Others at work on the machine make every figure worse: a reader should see that they were.
    head = {
        "library": "jax",
        "version": jax.__version__,
        "cpus": usable_cpus(),
        "load_before": os.getloadavg()[0],
    }
    report = check() if options.check else measure(options.networks, options.seconds)
    print(json.dumps({**head, **report}))


if __name__ == "__main__":
    main()
