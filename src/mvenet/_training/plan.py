"""The rounds of a fit: described once, then read by the fit, the dry run and the progress bar.

An estimator describes its fit as a :class:`Plan` before anything is trained. Its fit is a generator
that yields requests, round by round, and is sent the trained :class:`~mvenet._training.fleet.Fleet`
of each; between two rounds it may do what it likes, and a round may depend on what came before.
Several fits on the same rows run side by side, and what they have in common is trained once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mvenet._models.architecture import Architecture
from mvenet._models.piecewise import Piecewise
from mvenet._training import distributed, fleet
from mvenet._training.dependence import Dependence
from mvenet._training.progress import steps_bar
from mvenet.recipes import Stage, Training

T = TypeVar("T")
Subsets = Sequence[tuple[fleet.Rows, fleet.Rows]]
SAMPLE = 500  # gradient steps of a network that is trained to see how long it takes


@dataclass(frozen=True, eq=False)
class Table:
    """What networks are trained on, as checked; two requests share networks if it is one object.

    Attributes
    ----------
    source : ndarray of shape (n, d)
        The columns that were given.
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    rows : ndarray of int
        The rows that count: those whose weight is not zero.
    columns : callable or None
        Makes what networks read from some rows, if that is not what was given.
    dependence : Dependence or None
        Which rows belong together, if that is known.
    first : ndarray of shape (n,), int, or None
        If copies of rows count once: for each row the first that is equal to it.
    steps : fleet.Steps or None
        Which of the inputs that networks read are steps, if some are.
    by_folds : callable or None
        Makes the columns anew for folds, if some were learned from y.
    """

    source: NDArray[Any]
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    rows: fleet.Rows
    columns: Callable[[Any], NDArray[Any]] | None = None
    dependence: Dependence | None = None
    first: fleet.Rows | None = None
    steps: fleet.Steps | None = None
    by_folds: Callable[[Subsets, fleet.Rows], NDArray[Any]] | None = None

    def encoded(self, piecewise: Piecewise) -> Table:
        """The table of which networks read columns cut into pieces."""
        steps = (self.source.shape[1], piecewise.column) if len(piecewise.column) else None
        columns = partial(_encoded, piecewise, self.source)
        return dataclasses.replace(self, columns=columns, steps=steps)

    def within(self, folds: Subsets) -> Table:
        """The table for these folds: what is learned from y comes from rows that each trains on."""
        if self.by_folds is None:
            return self
        source = self.by_folds(folds, self.rows) if folds else self.source
        return dataclasses.replace(self, source=source, by_folds=None)

    @cached_property
    def X(self) -> NDArray[Any]:  # noqa: N802
        """What networks read, made when it is first needed: a description needs none of it."""
        return self.source if self.columns is None else self.columns(slice(None))

    def of(self, rows: Any) -> NDArray[Any]:
        """What networks read of some rows."""
        made = self.columns is None or "X" in vars(self)
        return self.X[rows] if made or self.columns is None else self.columns(rows)


def _encoded(piecewise: Piecewise, source: NDArray[Any], rows: Any) -> NDArray[Any]:
    return piecewise.encode(source[rows])


@dataclass(frozen=True)
class Request:
    """Networks of one architecture that a fit needs, trained on subsets of one table."""

    table: Table
    subsets: Subsets
    networks: Sequence[fleet.Network]
    architecture: Architecture
    training: Training

    def with_penalties(self, reg_mean: float, reg_var: float) -> Request:
        """The same networks with these penalties."""

        def changed(stage: Stage) -> Stage:
            return dataclasses.replace(stage, reg_mean=reg_mean, reg_var=reg_var)

        return dataclasses.replace(
            self,
            networks=[
                dataclasses.replace(network, stages=tuple(map(changed, network.stages)))
                for network in self.networks
            ],
        )


@dataclass(frozen=True)
class Round:
    """Requests that a fit makes at once.

    A round that is not ``settled`` depends on the results of earlier ones: its requests stand for
    those that will be made, and cost at least as much.
    """

    requests: tuple[Request, ...]
    settled: bool = True


@dataclass(frozen=True)
class Plan:
    """All that a fit will train; an estimator may add what else its fit needs to know."""

    rounds: tuple[Round, ...]

    def seconds_beside(self, threads: int) -> float:
        """Expected time of what the fit does besides training networks."""
        return 0.0


Fitting = Generator[Sequence[Request], list[fleet.Fleet], T]


class Stop:
    """Ctrl-C, remembered: it ends a ``with`` block early, and the fit goes on with what it has."""

    def __init__(self, pressed: KeyboardInterrupt | None = None) -> None:
        self.pressed = pressed

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, KeyboardInterrupt):
            return False
        self.pressed = error
        return True

    def leave_if_pressed(self) -> None:
        """Skip the rest of a block if it was pressed before."""
        if self.pressed is not None:
            raise self.pressed

    def finish(self, make: Callable[[], T]) -> T:
        """Make what no model can do without: after Ctrl-C once more; the next one ends the fit."""
        try:
            return make()
        except KeyboardInterrupt as error:
            self.pressed = error
            return make()


def drive(
    plans: Sequence[Plan],
    fits: Sequence[Fitting[T]],
    *,
    threads: int | None = None,
    verbose: int = 0,
    progress: fleet.Progress | None = None,
) -> list[T]:
    """Run fits side by side, and return what each returns.

    The requests of one moment become one fleet for each table, architecture and training, so that
    what two fits have in common is trained once. ``progress`` gets the gradient steps done;
    ``verbose`` draws a bar of all that are planned. ``threads`` are those here or, on a cluster,
    of each unit of work; None takes all that are free. Ctrl-C is thrown into every fit, which may
    keep what it has before it passes it on.
    """
    results: dict[int, T] = {}
    done = 0
    with steps_bar("training", planned_steps(plans) if verbose else 0, verbose) as bar:
        watchers = [watcher for watcher in (bar, progress) if watcher is not None]

        def tick(steps: int) -> None:
            for watcher in watchers:
                watcher(done + steps)

        def answered(requests: Sequence[Request]) -> Iterator[tuple[int, fleet.Fleet]]:
            nonlocal done
            # All are begun before the first is waited for: a cluster's workers then never are idle.
            begun = [
                (numbers, _begin([requests[i] for i in numbers], threads))
                for numbers in _alike(requests)
            ]
            for numbers, finish in begun:
                whole = finish(tick if watchers else None)
                tick(whole.steps)
                done += whole.steps
                ends = itertools.accumulate(len(requests[i].networks) for i in numbers)
                for i, end in zip(numbers, ends, strict=True):
                    yield i, whole[end - len(requests[i].networks) : end]

        waiting = {i: next(fit) for i, fit in enumerate(fits)}
        while waiting:
            every = [request for requests in waiting.values() for request in requests]
            try:
                trained = dict(answered(every))
            except KeyboardInterrupt as stop:
                for i in waiting:
                    with contextlib.suppress(KeyboardInterrupt):
                        fits[i].throw(stop)
                raise
            start, served, waiting = 0, waiting, {}
            for i, requests in served.items():
                answer = [trained[j] for j in range(start, start + len(requests))]
                start += len(requests)
                try:
                    waiting[i] = fits[i].send(answer)
                except StopIteration as end:
                    results[i] = end.value
    return [results[i] for i in range(len(fits))]


def _begin(
    requests: Sequence[Request], threads: int | None
) -> Callable[[fleet.Progress | None], fleet.Fleet]:
    """Begin the fleet of requests that are alike."""
    subsets, networks = _merged(requests)
    first = requests[0]
    return distributed.begin(
        first.table.X,
        first.table.y,
        first.table.weight,
        subsets,
        networks,
        architecture=first.architecture,
        training=first.training,
        steps=first.table.steps,
        threads=threads,
    )


def _alike(requests: Iterable[Request]) -> list[list[int]]:
    """Numbers of the requests that one fleet can serve."""
    groups = defaultdict(list)
    for i, request in enumerate(requests):
        groups[id(request.table), request.architecture, request.training].append(i)
    return list(groups.values())


def _merged(requests: Sequence[Request]) -> tuple[Subsets, list[fleet.Network]]:
    """Subsets and networks of several requests, equal subsets made one."""
    numbers: dict[tuple[bytes, ...], int] = {}
    subsets: list[tuple[fleet.Rows, fleet.Rows]] = []
    networks: list[fleet.Network] = []
    for request in requests:
        here = []
        for train_rows, valid_rows in request.subsets:
            subset = fleet.row_numbers(train_rows), fleet.row_numbers(valid_rows)
            key = tuple(hashlib.sha256(rows.data).digest() for rows in subset)
            if key not in numbers:
                numbers[key] = len(subsets)
                subsets.append(subset)
            here.append(numbers[key])
        networks += [dataclasses.replace(n, subset=here[n.subset]) for n in request.networks]
    return subsets, networks


def _fleets(plans: Sequence[Plan]) -> Iterator[list[Request]]:
    """What is trained together, as far as that is known beforehand: requests of one kind."""
    for rounds in itertools.zip_longest(*(plan.rounds for plan in plans)):
        there = [r for r in rounds if r is not None]
        known = [request for r in there if r.settled for request in r.requests]
        for numbers in _alike(known):
            yield [known[i] for i in numbers]
        yield from ([request] for r in there if not r.settled for request in r.requests)


def planned_steps(plans: Sequence[Plan]) -> int:
    """Gradient steps of fits that run side by side, at most; shared ones counted once."""
    return sum(_steps(requests) for requests in _fleets(plans))


def most_units(plans: Sequence[Plan]) -> int:
    """So many workers can share the first round of fits that run side by side."""
    return len(fleet.families(_merged(next(_fleets(plans)))[1]))


def _steps(requests: Sequence[Request]) -> int:
    subsets, networks = _merged(requests)
    return fleet.planned_steps(networks, subsets, requests[0].training.batch_size)


@dataclass(frozen=True)
class Workload:
    """What fits cost.

    Attributes
    ----------
    networks : int
        Different networks.
    steps : int
        Gradient steps at most, those that networks share counted once.
    unshared_steps : int
        The same with each network trained from its own start.
    seconds : float
        Expected time, of all that the fits do.
    """

    networks: int = 0
    steps: int = 0
    unshared_steps: int = 0
    seconds: float = 0.0

    def __add__(self, other: Workload) -> Workload:
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Workload(*(a + b for a, b in pairs))


def estimate(plans: Sequence[Plan], *, threads: int = 1) -> Workload:
    """Workload of fits side by side; the time from training a few networks a little."""
    beside = Workload(seconds=sum(plan.seconds_beside(threads) for plan in plans))
    return sum((_measured(requests, threads) for requests in _fleets(plans)), beside)


def _measured(requests: Sequence[Request], threads: int) -> Workload:
    subsets, networks = _merged(requests)
    networks = list(dict.fromkeys(networks))
    first = requests[0]
    batch_size = first.training.batch_size
    single = [fleet.planned_steps([network], subsets, batch_size) for network in networks]
    together = fleet.planned_steps(networks, subsets, batch_size)
    every = max(1, len(networks) // (4 * threads))
    some = [_shortened(n, SAMPLE / s) for n, s in zip(networks, single, strict=True)][::every]
    few = SAMPLE * batch_size  # rows: an epoch of more would take too long
    cut = [(rows[:few], valid[:few]) for rows, valid in subsets]
    used = np.unique(np.concatenate([rows for pair in cut for rows in pair]))
    start = time.perf_counter()
    trained = fleet.train(
        first.table.of(used),
        first.table.y[used],
        None,
        [(np.searchsorted(used, a), np.searchsorted(used, b)) for a, b in cut],
        some,
        architecture=first.architecture,
        training=first.training,
        steps=first.table.steps,
        threads=threads,
    )
    seconds = (time.perf_counter() - start) / trained.steps * together
    return Workload(len(networks), together, sum(single), seconds)


def _shortened(network: fleet.Network, factor: float) -> fleet.Network:
    """The network with this share of its epochs, at least one a stage."""
    return dataclasses.replace(
        network,
        stages=tuple(
            dataclasses.replace(s, epochs=max(1, round(s.epochs * min(factor, 1.0))))
            for s in network.stages
        ),
    )
