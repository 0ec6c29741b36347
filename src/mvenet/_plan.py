"""Fits that ask for networks, round by round, and get them from shared fleets.

A fit is a generator: it yields a :class:`Request`, is sent the trained :class:`mvenet.fleet.Fleet`,
and may then ask for more. Several fits on the same rows run side by side, and what they have in
common is trained once.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mvenet import fleet
from mvenet._progress import steps_bar
from mvenet.recipes import Architecture, Training

T = TypeVar("T")
SAMPLE = 4000  # gradient steps of a network that is trained to see how long it takes


@dataclass(frozen=True)
class Request:
    """Networks that a fit needs before it can go on; the arguments of :func:`train`."""

    subsets: Sequence[tuple[fleet.Rows, fleet.Rows]]
    networks: Sequence[fleet.Network]
    architecture: Architecture
    training: Training


def drive(
    X: NDArray[Any],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    fits: Sequence[Generator[Request, fleet.Fleet, T]],
    *,
    threads: int = 1,
    verbose: int = 0,
    progress: fleet.Progress | None = None,
) -> list[T]:
    """Run several fits on the same rows side by side, and return what each returns.

    A fit is a generator that yields requests and is sent their fleets. The requests of one round
    become one fleet for each architecture, so that what two fits have in common is trained once.
    ``progress`` is told the gradient steps done in all rounds; ``verbose`` draws a bar for each.
    """
    waiting = {i: next(fit) for i, fit in enumerate(fits)}
    results: dict[int, T] = {}
    done = 0

    def tick(steps: int) -> None:
        if progress is not None:
            progress(done + steps)

    while waiting:
        answers: dict[int, fleet.Fleet] = {}
        for members in _kindred(waiting):
            requests = [waiting[i] for i in members]
            rows, networks = _merged(requests)
            total = fleet.planned_steps(networks, rows, requests[0].training.batch_size)
            with steps_bar("training", total, verbose) as bar:
                whole = fleet.train(
                    X,
                    y,
                    sample_weight,
                    rows,
                    networks,
                    architecture=requests[0].architecture,
                    training=requests[0].training,
                    threads=threads,
                    record_history=True,
                    progress=bar or (tick if progress else None),
                )
            tick(whole.steps)
            done += whole.steps
            start = 0
            for i, request in zip(members, requests, strict=True):
                answers[i] = whole[start : start + len(request.networks)]
                start += len(request.networks)
        waiting = {}
        for i, answer in answers.items():
            try:
                waiting[i] = fits[i].send(answer)
            except StopIteration as end:
                results[i] = end.value
    return [results[i] for i in range(len(fits))]


def _kindred(requests: Mapping[int, Request]) -> list[list[int]]:
    """Numbers of the requests that one fleet can serve: of one architecture and training."""
    groups = defaultdict(list)
    for i, request in requests.items():
        groups[request.architecture, request.training].append(i)
    return list(groups.values())


def _merged(
    requests: Sequence[Request],
) -> tuple[list[tuple[fleet.Rows, fleet.Rows]], list[fleet.Network]]:
    """Subsets and networks of several requests, equal subsets made one."""
    subsets: dict[tuple[bytes, bytes], int] = {}
    rows: list[tuple[fleet.Rows, fleet.Rows]] = []
    networks: list[fleet.Network] = []
    for request in requests:
        numbers = []
        for train_rows, valid_rows in request.subsets:
            subset = fleet.row_numbers(train_rows), fleet.row_numbers(valid_rows)
            key = subset[0].tobytes(), subset[1].tobytes()
            if key not in subsets:
                subsets[key] = len(rows)
                rows.append(subset)
            numbers.append(subsets[key])
        networks += [
            dataclasses.replace(network, subset=numbers[network.subset])
            for network in request.networks
        ]
    return rows, networks


@dataclass(frozen=True)
class Workload:
    """What requests cost.

    Attributes
    ----------
    networks : int
        Different networks.
    steps : int
        Gradient steps at most, those that networks share counted once.
    unshared_steps : int
        The same with each network trained from its own start.
    seconds : float
        Expected time.
    """

    networks: int = 0
    steps: int = 0
    unshared_steps: int = 0
    seconds: float = 0.0

    def __add__(self, other: Workload) -> Workload:
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Workload(*(a + b for a, b in pairs))


def steps(requests: Sequence[Request]) -> int:
    """Gradient steps of the requests of one round at most, shared ones counted once."""
    kinds = ([requests[i] for i in kind] for kind in _kindred(dict(enumerate(requests))))
    merged = ((*_merged(kind), kind[0].training.batch_size) for kind in kinds)
    return sum(fleet.planned_steps(networks, rows, size) for rows, networks, size in merged)


def estimate(
    X: NDArray[Any], y: NDArray[np.float64], requests: Sequence[Request], *, threads: int = 1
) -> Workload:
    """Workload of the requests of one round; the time from training a few networks a little."""
    whole = Workload()
    for members in _kindred(dict(enumerate(requests))):
        kind = requests[members[0]]
        rows, networks = _merged([requests[i] for i in members])
        networks = list(dict.fromkeys(networks))
        batch_size = kind.training.batch_size
        alone = [fleet.planned_steps([network], rows, batch_size) for network in networks]
        together = fleet.planned_steps(networks, rows, batch_size)
        every = max(1, len(networks) // (4 * threads))
        sample = [_shortened(n, SAMPLE / s) for n, s in zip(networks, alone, strict=True)][::every]
        start = time.perf_counter()
        trained = fleet.train(
            X,
            y,
            None,
            rows,
            sample,
            architecture=kind.architecture,
            training=kind.training,
            threads=threads,
        )
        seconds = (time.perf_counter() - start) / trained.steps * together
        whole += Workload(len(networks), together, sum(alone), seconds)
    return whole


def _shortened(network: fleet.Network, factor: float) -> fleet.Network:
    """The network with this share of its epochs, at least one a stage."""
    return dataclasses.replace(
        network,
        stages=tuple(
            dataclasses.replace(s, epochs=max(1, round(s.epochs * min(factor, 1.0))))
            for s in network.stages
        ),
    )
