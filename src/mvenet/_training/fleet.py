"""Many networks at once: specifications in, trained parameters out.

A fleet is a set of networks over subsets of the same rows. What two of them have in common is
trained once: stages that are equal in content (same rows, seed and settings, whatever the penalty
of a network that the stage does not train) become one job of the engine, and what follows starts
from its result. This needs no parameter.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet import _engine
from mvenet._models.architecture import Architecture
from mvenet._models.networks import Networks, regular
from mvenet._utils.machine import require_memory
from mvenet.recipes import Stage, Training

# What the engine knows, by name: the only lists of them in Python, but for the activations.
OBJECTIVES = tuple(_engine.objectives())
SCHEDULES = tuple(_engine.schedules())

VARIANCE_FLOOR = 1e-6  # the engine's, in units of the variance of y
DESCRIBED = 500  # bytes at least of a training as Python objects

Rows = NDArray[np.int64]
# Inputs that are steps (mvenet._models.piecewise): how many come before them, and the column that
# each is of.
Steps = tuple[int, Rows]
Progress = Callable[[int], object]


class DivergedError(ValueError):
    """No network of a fit was trained to its end."""


@dataclass(frozen=True)
class Network:
    """One network of a fleet: its stages, its seed and the number of its subset of rows."""

    stages: tuple[Stage, ...]
    seed: int
    subset: int = 0


@dataclass(frozen=True)
class Fleet:
    """What :func:`train` returns: networks in the order of the request, and how it went.

    Attributes
    ----------
    networks : Networks
    diverged : ndarray of shape (K,), bool
        Networks that met a NaN or an infinity; their parameters mean nothing.
    history : list of K lists, an ndarray of shape (epochs, 2) for each stage
        Training and validation loss, log σ² + r²/σ² in standardised units; of Student's t
        log σ² + (df + 1) log(1 + r²/(df σ²)).
    jobs : list of K lists of int
        The stages of each network, as numbers of what the engine trained.
    job_steps : ndarray of int
        Gradient steps of everything that the engine trained.
    """

    networks: Networks
    diverged: NDArray[np.bool_]
    history: list[list[NDArray[np.float32]]]
    jobs: list[list[int]]
    job_steps: NDArray[np.int64]

    @property
    def steps(self) -> int:
        """Gradient steps of these networks, each shared one once."""
        return int(self.job_steps[sorted({job for chain in self.jobs for job in chain})].sum())

    def __getitem__(self, part: Any) -> Fleet:
        """Some of the networks: a slice, a mask or an array of numbers."""
        chosen = np.arange(len(self.diverged))[part]
        history, jobs = ([whole[i] for i in chosen] for whole in (self.history, self.jobs))
        return Fleet(self.networks[part], self.diverged[part], history, jobs, self.job_steps)

    def history_columns(
        self, stages: Sequence[Stage], training: Training
    ) -> dict[str, NDArray[Any]]:
        """History as columns, in negative log-likelihood a row and units of y."""
        columns: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("member", "stage", "epoch", "nll", "validation_nll")
        }
        for member, pieces in enumerate(self.history):
            constant = log_constant(training) + math.log(self.networks.y_scale[member])
            for stage, losses in zip(stages, pieces, strict=True):
                n = len(losses)
                columns["member"].append(np.full(n, member))
                columns["stage"].append(np.full(n, stage.mode))
                columns["epoch"].append(np.arange(1, n + 1))
                nll = 0.5 * losses.astype(np.float64) + constant
                columns["nll"].append(nll[:, 0])
                columns["validation_nll"].append(nll[:, 1])
        return {name: np.concatenate(parts) for name, parts in columns.items()}


def train(
    X: NDArray[Any],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    subsets: Sequence[tuple[Rows, Rows]],
    networks: Sequence[Network],
    *,
    architecture: Architecture,
    training: Training,
    steps: Steps | None = None,
    threads: int = 1,
    precise: bool = False,
    record_history: bool = False,
    progress: Progress | None = None,
) -> Fleet:
    """Train a fleet.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64, in either memory order
    y : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,), positive, or None
    subsets : sequence of (training rows, validation rows)
        Row numbers; the validation rows may be empty.
    networks : sequence of Network
    architecture, training : Architecture, Training
    steps : Steps or None
        Which columns of X are steps, if some are: the engine then need not multiply all of them.
    threads : int
    precise : bool
        float64 instead of float32: for the tests against the reference; no estimator uses it.
    record_history : bool
    progress : callable or None
        Called now and then with the number of gradient steps done.

    Returns
    -------
    Fleet
    """
    jobs, chains = _share(networks)
    architecture = dataclasses.replace(architecture, natural=training.objective == "natural")
    clip = math.inf if training.clip_value is None else training.clip_value
    mean_sizes, var_sizes = architecture.sizes(X.shape[1])
    check_memory(
        len(jobs),
        architecture,
        X.shape[1],
        epochs=sum(job.stage.epochs for job in jobs),
        threads=threads,
        number=8 if precise else 4,
    )
    result = _engine.train(
        x=regular(X),
        y=y,
        weight=sample_weight,
        subsets=[(row_numbers(rows), row_numbers(valid)) for rows, valid in subsets],
        jobs=[_engine_job(job) for job in jobs],
        mean_sizes=mean_sizes,
        var_sizes=var_sizes,
        activation=architecture.activation,
        input_bound=architecture.input_bound,
        precise=precise,
        threads=threads,
        record_history=record_history,
        steps=steps,
        progress=progress,
        **vars(training) | {"clip_value": clip},
    )
    last = [chain[-1] for chain in chains]
    subset = [network.subset for network in networks]
    pieces = _pieces(jobs, result) if record_history else None
    scaling = (result[name][subset] for name in ("x_mean", "x_scale", "y_mean", "y_scale"))
    parameters = result["parameters"]
    if last != list(range(len(jobs))):  # a copy only where jobs are shared or come in stages
        parameters = parameters[last]
    return Fleet(
        networks=Networks(architecture, parameters, *scaling),
        diverged=result["status"][last] != 0,
        history=[[pieces[j] for j in chain] if pieces else [] for chain in chains],
        jobs=chains,
        job_steps=result["steps"],
    )


def log_constant(training: Training) -> float:
    """Half a recorded loss and this are a negative log-likelihood in standardised units."""
    if training.objective != "student-t":
        return 0.5 * math.log(2 * math.pi)
    df = training.df
    return math.lgamma(df / 2) - math.lgamma((df + 1) / 2) + 0.5 * math.log(df * math.pi)


def _pieces(jobs: Sequence[_Job], result: dict[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
    """The history of each job, which may have ended before the epochs it was given."""
    starts = np.cumsum([0, *(job.stage.epochs for job in jobs)])
    return [result["history"][a : a + n] for a, n in zip(starts, result["epochs"], strict=False)]


def check_memory(
    trainings: int,
    architecture: Architecture,
    columns: int,
    *,
    epochs: int = 0,
    threads: int = 1,
    number: int = 4,
) -> None:
    """Refuse networks that this machine's memory cannot hold, before any is trained or described.

    ``epochs`` are those of all trainings, ``number`` the bytes of a parameter.
    """
    layers = (pair for sizes in architecture.sizes(columns) for pair in pairwise(sizes))
    parameters = sum((before + 1) * after for before, after in layers)
    # The result of each; weights, gradients and two moments of those in work; the history.
    copies = trainings + 4 * min(threads, trainings)
    needed = number * parameters * copies + 8 * epochs + DESCRIBED * trainings
    require_memory(
        needed,
        f"{trainings:,} trainings of networks with {parameters:,} parameters",
        "use fewer hidden units (hidden_mean, hidden_var), members (n_members) or penalties.",
    )


def planned_steps(
    networks: Sequence[Network], subsets: Sequence[tuple[Rows, Rows]], batch_size: int
) -> int:
    """Gradient steps that :func:`train` will do at most, each shared one counted once."""
    jobs, _ = _share(networks)
    return sum(j.stage.epochs * math.ceil(len(subsets[j.subset][0]) / batch_size) for j in jobs)


@dataclass(frozen=True)
class _Job:
    """A stage as the engine runs it; equal jobs are one job."""

    stage: Stage
    seed: int
    subset: int
    parent: int


def _share(networks: Sequence[Network]) -> tuple[list[_Job], list[list[int]]]:
    """Distinct jobs, parents before children, and each network's chain of them."""
    numbers: dict[_Job, int] = {}
    chains = []
    for network in networks:
        chain: list[int] = []
        for stage in network.stages:
            parent = chain[-1] if chain else -1
            job = _Job(_canonical(stage), network.seed, network.subset, parent)
            chain.append(numbers.setdefault(job, len(numbers)))
        chains.append(chain)
    return list(numbers), chains


def families(networks: Sequence[Network]) -> list[list[int]]:
    """Groups of networks, by number, that share a first stage."""
    found: dict[int, list[int]] = {}
    for number, chain in enumerate(_share(networks)[1]):
        found.setdefault(chain[0], []).append(number)
    return list(found.values())


def _canonical(stage: Stage) -> Stage:
    """The stage without the penalty of a network that it does not train."""
    if stage.mode == "warmup":
        return dataclasses.replace(stage, reg_var=0.0)
    if stage.mode == "variance":
        return dataclasses.replace(stage, reg_mean=0.0)
    return stage


def _engine_job(job: _Job) -> _engine.Job:
    return _engine.Job(
        subset=job.subset,
        parent=job.parent,
        seed=job.seed,
        **vars(job.stage),
    )


def row_numbers(rows: ArrayLike) -> Rows:
    """Row numbers as the engine takes them."""
    return np.ascontiguousarray(rows, dtype=np.int64)


def derived_seed(entropy: Any, *key: int) -> int:
    """Seed for one purpose: (fold, member) for a network, other lengths for splits of the rows.

    It depends on nothing that is being compared, so networks that differ in their penalties see
    the same start and the same batches.
    """
    sequence = np.random.SeedSequence(entropy, spawn_key=key)
    return int(sequence.generate_state(1, np.uint64)[0])


def seed_entropy(random_state: Any) -> int | list[int]:
    """Entropy for ``SeedSequence`` from whatever scikit-learn takes as random_state."""
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return random_state.randint(2**31, size=4).tolist()  # type: ignore[no-any-return]
    return int(random_state)
