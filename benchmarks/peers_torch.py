"""PyTorch's time per network and gradient step on the paper's network.

Joint stage of docs/develop/architecture.md: two perceptrons 13 → 40 → 20 → 1, ELU, one for the mean
and one for the log-variance, 455 rows in batches of 32 (the last of an epoch has 7 and counts as a
step), float32, with drawing the permutations and gathering the rows inside the measured time.
Run in an environment of its own (benchmarks/requirements.txt)::

    .venv-bench/bin/python benchmarks/peers_torch.py --seconds 3    # one JSON object on stdout
    .venv-bench/bin/python benchmarks/peers_torch.py --check        # is it the algorithm we say?

What was tried to be fair, and kept because it was faster: the fused Adam (against foreach, plain
operations per tensor, one flat buffer), the penalties' gradient by hand instead of through autograd
(a third off one network's step), ELU in place, plain products instead of ``nn.Module``,
``autograd.grad`` instead of ``backward``, ``index_select`` instead of indexing, NumPy's shuffles
instead of ``rand().argsort()``. Left out: the private ``torch._fused_adam_`` without the optimizer
around it (another fifth off one network's step), and ``torch.compile``, which needs a C++ compiler
(about a seventh off the stack's).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

SIZES = (13, 40, 20, 1)
ROWS = 455
BATCH = 32
STEPS_PER_EPOCH = -(-ROWS // BATCH)
LEARNING_RATE = 1e-3
BETAS = (0.9, 0.999)
EPSILON = 1e-7
CLIP = 5.0
VARIANCE_FLOOR = 1e-6


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw standard-normal inputs (455, 13) and a standardised noisy target (455, 1), float64."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, SIZES[0]))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * np.exp(0.5 * X[:, 2]) * rng.standard_normal(ROWS)
    return X, ((y - y.mean()) / y.std())[:, None]


def initial_parameters(n_networks: int, seed: int = 1) -> list[np.ndarray]:
    """Draw Glorot-uniform starts; the variance output's bias is 1.

    Returns
    -------
    list of 12 arrays
        Weights (n, inputs, outputs) and biases (n, 1, outputs) of the mean sub-network's three
        layers, then of the variance sub-network's.
    """
    rng = np.random.default_rng(seed)
    parameters = []
    for _ in ("mean", "variance"):
        for fan_in, fan_out in itertools.pairwise(SIZES):
            limit = np.sqrt(6 / (fan_in + fan_out))
            parameters.append(rng.uniform(-limit, limit, (n_networks, fan_in, fan_out)))
            parameters.append(np.zeros((n_networks, 1, fan_out)))
    parameters[-1] += 1.0
    return parameters


def penalties(n_networks: int) -> np.ndarray:
    """Give each network its (reg_mean, reg_var) from a 5 × 5 grid, repeated; shape (n, 2)."""
    grid = np.logspace(-5, -1, 5)
    pairs = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.resize(pairs, (n_networks, 2))


def permutations(rng: np.random.Generator, n_networks: int) -> np.ndarray:
    """Draw one order of the rows for each network, shape (n, 455)."""
    return rng.permuted(np.tile(np.arange(ROWS), (n_networks, 1)), axis=1)


def make_trainer(
    parameters: list[Tensor], reg: Tensor, X: Tensor, y: Tensor, *, warmup: bool = False
) -> Callable[[Tensor], None]:
    """Return a function that trains one network, or a stack of them, for one epoch in place.

    Parameters
    ----------
    parameters : list of 12 tensors
        As from `initial_parameters`; without the leading axis for a network alone.
    reg : Tensor of shape (2,) or (n, 2)
        reg_mean and reg_var.
    X, y : Tensor of shape (455, 13), (455, 1)
        The data, shared by all networks.
    warmup : bool
        Train the mean alone, at the constant variance e.

    Returns
    -------
    callable
        Takes the order of the rows, shape (455,) or (n, 455).
    """
    alone = reg.ndim == 1
    if warmup:
        parameters = parameters[:6]
    affine = torch.addmm if alone else torch.baddbmm
    for parameter in parameters:
        parameter.requires_grad_()
    optimizer = torch.optim.Adam(parameters, LEARNING_RATE, BETAS, EPSILON, fused=True)
    weights = [parameter.detach() for parameter in parameters[::2]]
    decays = [2 * reg[..., i // 3, None, None].contiguous() for i in range(len(weights))]

    def subnetwork(p: list[Tensor], x: Tensor) -> Tensor:
        h = nn.functional.elu(affine(p[1], x, p[0]), inplace=True)
        h = nn.functional.elu(affine(p[3], h, p[2]), inplace=True)
        return affine(p[5], h, p[4])

    def epoch(order: Tensor) -> None:
        rows = order.reshape(-1)
        X_epoch = X.index_select(0, rows).view(*order.shape, -1)
        y_epoch = y.index_select(0, rows).view(*order.shape, -1)
        batches = zip(X_epoch.split(BATCH, -2), y_epoch.split(BATCH, -2), strict=True)
        for x, target in batches:
            mean = subnetwork(parameters[:6], x)
            if warmup:
                terms = (target - mean).square() / math.e
            else:
                variance = subnetwork(parameters[6:], x).exp() + VARIANCE_FLOOR
                terms = variance.log() + (target - mean).square() / variance
            # The sum over networks: each gets the gradient of its own mean over the batch.
            loss = terms.mean() if alone else terms.sum() / x.shape[-2]
            gradients = torch.autograd.grad(loss, parameters)
            for gradient, weight, decay in zip(gradients[::2], weights, decays, strict=True):
                gradient.addcmul_(weight, decay)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.clamp_(-CLIP, CLIP)
            optimizer.step()

    return epoch


def as_tensors(arrays: list[np.ndarray], dtype: torch.dtype) -> list[Tensor]:
    """Copy arrays into tensors of one type."""
    return [torch.tensor(array, dtype=dtype) for array in arrays]


@contextmanager
def num_threads(threads: int) -> Iterator[None]:
    """Set PyTorch's threads within the block, and put them back."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fastest(run: Callable[[], None], seconds: float, rounds: int = 3) -> float:
    """Repeat for about so many seconds, at least `rounds` times; the fastest round in seconds."""
    for _ in range(2):
        run()
    best, end = np.inf, time.perf_counter() + seconds
    while rounds > 0 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        rounds -= 1
    return float(best)


def one_at_a_time(threads: int, seconds: float, *, warmup: bool = False) -> float:
    """Train one network alone, eagerly; microseconds per gradient step."""
    epochs = 5
    dtype = torch.float32
    X, y = as_tensors(list(problem()), dtype)
    parameters = as_tensors([p[0] for p in initial_parameters(1)], dtype)
    reg = torch.tensor([1e-3, 1e-2], dtype=dtype)
    with num_threads(threads):
        epoch = make_trainer(parameters, reg, X, y, warmup=warmup)

        def run() -> None:
            for _ in range(epochs):
                epoch(torch.randperm(ROWS))

        best = fastest(run, seconds)
    require(all(p.isfinite().all().item() for p in parameters), "training diverged")
    return 1e6 * best / (epochs * STEPS_PER_EPOCH)


def stacked(n_networks: int, threads: int, seconds: float) -> float:
    """Train many networks in batched products; microseconds per network and gradient step.

    Each network has its own start, penalties and batches; the data are shared.
    """
    dtype = torch.float32
    X, y = as_tensors(list(problem()), dtype)
    parameters = as_tensors(initial_parameters(n_networks), dtype)
    reg = torch.tensor(penalties(n_networks), dtype=dtype)
    rng = np.random.default_rng(2)
    with num_threads(threads):
        epoch = make_trainer(parameters, reg, X, y)
        best = fastest(lambda: epoch(torch.from_numpy(permutations(rng, n_networks))), seconds)
    require(all(p.isfinite().all().item() for p in parameters), "training diverged")
    return 1e6 * best / (STEPS_PER_EPOCH * n_networks)


def objective(
    parameters: list[Tensor], reg: Tensor, X: Tensor, y: Tensor, penalised: bool = True
) -> Tensor:
    """Evaluate J of docs/develop/architecture.md for one network, as literally as can be."""
    outputs = []
    for p in (parameters[:6], parameters[6:]):
        h = nn.functional.elu(X @ p[0] + p[1])
        h = nn.functional.elu(h @ p[2] + p[3])
        outputs.append(h @ p[4] + p[5])
    mean, variance = outputs[0], torch.exp(outputs[1]) + VARIANCE_FLOOR
    loss = torch.mean(torch.log(variance) + (y - mean) ** 2 / variance)
    if penalised:
        loss = loss + reg[0] * sum((w**2).sum() for w in parameters[0:6:2])
        loss = loss + reg[1] * sum((w**2).sum() for w in parameters[6::2])
    return loss


def train_literally(
    parameters: list[Tensor], reg: Tensor, X: Tensor, y: Tensor, orders: Tensor
) -> int:
    """Train one network by `objective`, autograd and Adam's formulas; how many elements clipped."""
    first = [torch.zeros_like(p) for p in parameters]
    second = [torch.zeros_like(p) for p in parameters]
    step = clipped = 0
    for order in orders:
        for rows in order.split(BATCH):
            leaves = [p.clone().requires_grad_() for p in parameters]
            gradients = torch.autograd.grad(objective(leaves, reg, X[rows], y[rows]), leaves)
            step += 1
            for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
                clipped += int((g.abs() > CLIP).sum())
                g = g.clamp(-CLIP, CLIP)
                m.copy_(BETAS[0] * m + (1 - BETAS[0]) * g)
                v.copy_(BETAS[1] * v + (1 - BETAS[1]) * g**2)
                m_hat, v_hat = m / (1 - BETAS[0] ** step), v / (1 - BETAS[1] ** step)
                p -= LEARNING_RATE * m_hat / (v_hat.sqrt() + EPSILON)
    return clipped


def largest_difference(a: list[list[Tensor]], b: list[list[Tensor]]) -> float:
    """Compare two lists of networks; the largest absolute difference of any parameter."""
    pairs = zip(itertools.chain(*a), itertools.chain(*b), strict=True)
    return max((p.detach() - q.detach()).abs().max().item() for p, q in pairs)


def require(condition: bool, message: str) -> None:
    """Stop the benchmark with a message: figures from a broken peer must not be published."""
    if not condition:
        sys.exit(f"peers_torch: {message}")


def check_same(dtype: torch.dtype, epochs: int = 4) -> dict[str, Any]:
    """Train the same networks on the same batches stacked, alone and literally, and compare."""
    X, y = as_tensors(list(problem()), dtype)
    y *= 20  # wide enough that the clip acts in the first epochs
    reg = torch.tensor(penalties(25)[[0, 4, 12, 20, 24]], dtype=dtype)
    n_networks = len(reg)
    start = initial_parameters(n_networks)
    rng = np.random.default_rng(3)
    orders = torch.from_numpy(np.stack([permutations(rng, n_networks) for _ in range(epochs)]))

    stack = as_tensors(start, dtype)
    epoch = make_trainer(stack, reg, X, y)
    for order in orders:
        epoch(order)
    together = [[p[k] for p in stack] for k in range(n_networks)]

    alone, literal, clipped = [], [], 0
    for k in range(n_networks):
        alone.append(as_tensors([p[k] for p in start], dtype))
        epoch = make_trainer(alone[k], reg[k], X, y)
        for order in orders[:, k]:
            epoch(order)
        literal.append(as_tensors([p[k] for p in start], dtype))
        clipped += train_literally(literal[k], reg[k], X, y, orders[:, k])

    untrained = [as_tensors([p[k] for p in start], dtype) for k in range(n_networks)]
    return {
        "steps": epochs * STEPS_PER_EPOCH,
        "elements_clipped": clipped,
        "parameters_moved": largest_difference(literal, untrained),
        "stacked_minus_alone": largest_difference(together, alone),
        "alone_minus_literal": largest_difference(alone, literal),
        "objective": [objective(p, r, X, y).item() for p, r in zip(literal, reg, strict=True)],
    }


def check_trains(epochs: int = 40) -> dict[str, float]:
    """Train one network in float32; the loss over all rows, without penalties, before and after."""
    X, y = as_tensors(list(problem()), torch.float32)
    parameters = as_tensors([p[0] for p in initial_parameters(1)], torch.float32)
    reg = torch.tensor([1e-4, 1e-3])
    rng = np.random.default_rng(4)
    before = objective(parameters, reg, X, y, penalised=False).item()
    epoch = make_trainer(parameters, reg, X, y)
    for _ in range(epochs):
        epoch(torch.from_numpy(permutations(rng, 1)[0]))
    return {"before": before, "after": objective(parameters, reg, X, y, penalised=False).item()}


def check() -> dict[str, Any]:
    """Verify that the training trains and that all ways of it give the same parameters."""
    with num_threads(1):
        loss = check_trains()
        same = {dtype: check_same(dtype) for dtype in (torch.float64, torch.float32)}
    require(loss["after"] < loss["before"] - 0.5, f"the loss does not fall: {loss}")
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        require(same[dtype]["elements_clipped"] > 0, "the clip never acted, so it was not tested")
        for key in ("stacked_minus_alone", "alone_minus_literal"):
            found = same[dtype][key]
            require(found < tolerance, f"{dtype}: {key} is {found}, above {tolerance}")
    return {"loss": loss, "float64": same[torch.float64], "float32": same[torch.float32]}


def usable_cpus() -> int:
    """Count the processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def measure(n_networks: int, seconds: float) -> dict[str, Any]:
    """Time both ways with one thread and with several, and name the better setting."""
    settings = sorted({1, min(2, usable_cpus()), usable_cpus()})
    alone = {threads: one_at_a_time(threads, seconds) for threads in settings}
    together = {threads: stacked(n_networks, threads, seconds) for threads in settings}
    return {
        "one_at_a_time": min(alone.values()),
        "one_at_a_time_threads": min(alone, key=alone.__getitem__),
        "one_at_a_time_warmup": min(one_at_a_time(t, seconds, warmup=True) for t in settings),
        "stacked": min(together.values()),
        "stacked_threads": min(together, key=together.__getitem__),
        "by_threads": {"one_at_a_time": alone, "stacked": together},
        "networks": n_networks,
    }


def main() -> None:
    """Print one JSON object: microseconds per network and step, or what the checks found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each timing")
    parser.add_argument("--networks", type=int, default=250, help="trained at once when stacked")
    parser.add_argument("--check", action="store_true", help="verify the training, time nothing")
    options = parser.parse_args()
    # Others at work on the machine make every figure worse: a reader should see that they were.
    head = {
        "library": "torch",
        "version": torch.__version__,
        "cpus": usable_cpus(),
        "load_before": os.getloadavg()[0],
    }
    report = check() if options.check else measure(options.networks, options.seconds)
    print(json.dumps({**head, **report}))


if __name__ == "__main__":
    main()
