"""The parameters that say how networks are built and trained: name, default and range, once.

A parameter of an estimator is a field of a dataclass, ``setting(*allowed, default=...)``. A new one
is a line here and, if the engine is to know it, a field of that name in :mod:`mvenet.recipes`.
"""

from __future__ import annotations

import dataclasses
import math
from numbers import Integral, Real
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np

from mvenet._models import student
from mvenet._models.architecture import ACTIVATIONS, Architecture, hidden_units
from mvenet._training import fleet
from mvenet._training.dependence import Dependence
from mvenet._utils.sklearn import Interval, StrOptions
from mvenet.recipes import CONVERGED, DEFAULT, STRATEGIES, Length, Stage, Training, stages

C = TypeVar("C", bound=type)


def setting(*allowed: Any, default: Any, kw_only: bool = True) -> Any:
    """A parameter: what scikit-learn is to allow, and its default."""
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"allowed": allowed})


@dataclass_transform(kw_only_default=True, field_specifiers=(setting,))
def with_settings(cls: C) -> C:
    """Make ``__init__`` and the constraints of a class from its fields and those of its parents."""
    dataclasses.dataclass(eq=False, repr=False, kw_only=True)(cls)
    parameters = dataclasses.fields(cast(Any, cls))
    allowed = {field.name: list(field.metadata["allowed"]) for field in parameters}
    cast(Any, cls)._parameter_constraints = allowed
    return cls


def at_least(least: int, most: int | None = None) -> Interval:
    """Whole numbers from ``least`` on."""
    return Interval(Integral, least, most, closed="left" if most is None else "both")


def choice(*names: str) -> StrOptions:
    """One of these words."""
    return StrOptions(set(names))


POSITIVE = Interval(Real, 0, None, closed="neither")
PENALTY = Interval(Real, 0, 1e6, closed="both")
THREADS = (Interval(Integral, None, -1, closed="right"), at_least(1), None)


def held_out(
    n_rows: int, fraction: float, entropy: Any, dependence: Dependence | None = None
) -> tuple[fleet.Rows, fleet.Rows]:
    """Numbers of the rows to train on, and of those that say when to stop, in order.

    Of rows that belong together these are whole groups, as many as make up the fraction; of rows
    in time the last.
    """
    n_valid = math.ceil(fraction * n_rows)
    if n_rows - n_valid < 2:
        raise ValueError(
            f"validation_fraction={fraction} leaves {n_rows - n_valid} of {n_rows} rows for "
            "training: lower it or set early_stopping=False."
        )
    random = np.random.default_rng(fleet.derived_seed(entropy, 0))
    if dependence is not None:
        return _units_held_out(dependence, n_valid, random)
    order = random.permutation(n_rows)
    return np.sort(order[n_valid:]), np.sort(order[:n_valid])


def _units_held_out(
    dependence: Dependence, n_valid: int, random: np.random.Generator
) -> tuple[fleet.Rows, fleet.Rows]:
    if dependence.groups is None:
        assert dependence.time is not None
        order = np.argsort(dependence.time, kind="stable")
        return np.sort(order[:-n_valid]), np.sort(order[-n_valid:])
    _, numbers, sizes = np.unique(dependence.groups, return_inverse=True, return_counts=True)
    order = random.permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    held = np.isin(numbers, order[:-1][(before < n_valid)[:-1]])
    return np.flatnonzero(~held), np.flatnonzero(held)


@with_settings
class CommonSettings:
    """What every estimator that trains networks takes."""

    n_jobs: int | None = setting(*THREADS, default=None)
    random_state: Any = setting("random_state", np.random.Generator, default=None)
    verbose: int = setting("verbose", default=0)


# What only PyTorch has, by the parameter that it may be looked for in.
ELSEWHERE = {
    ("objective", "quality-driven"): "quality-driven intervals have two ends and no density, so "
    "that they are no objective: use mvenet.torch.QualityDrivenRegressor",
    ("objective", "skafte"): "it is a way to train and no objective: use "
    "mvenet.torch.SkafteRegressor",
    ("df", "learned"): "degrees of freedom that differ by row need a third network: use "
    "mvenet.torch.TorchMVERegressor, or a number",
}


@with_settings
class NetworkSettings(CommonSettings):
    """How networks are built and trained, and what follows from it."""

    hidden_mean: tuple[int, ...] | None = setting(
        "array-like", None, default=DEFAULT["hidden_mean"]
    )
    hidden_var: tuple[int, ...] | None = setting("array-like", None, default=DEFAULT["hidden_var"])
    activation: str = setting(choice(*ACTIVATIONS), default=DEFAULT["activation"])
    strategy: str = setting(choice(*STRATEGIES), default=DEFAULT["strategy"])
    objective: str = setting(choice(*fleet.OBJECTIVES), default=DEFAULT["objective"])
    beta: float = setting(Interval(Real, 0, 1, closed="both"), default=Training.beta)
    df: float = setting(
        Interval(Real, student.LEAST, student.MOST, closed="both"), default=Training.df
    )
    epochs: int | str = setting(at_least(1, 10**8), choice("auto"), default=DEFAULT["epochs"])
    warmup_epochs: int | str = setting(
        at_least(1, 10**8), choice("auto", CONVERGED), default=DEFAULT["warmup_epochs"]
    )
    batch_size: Any = setting(at_least(1, 2**31 - 1), default=DEFAULT["batch_size"])
    learning_rate: float = setting(POSITIVE, default=DEFAULT["learning_rate"])
    schedule: str = setting(choice(*fleet.SCHEDULES), default=DEFAULT["schedule"])
    clip_value: float | None = setting(POSITIVE, None, default=DEFAULT["clip_value"])
    n_members: int = setting(at_least(1), default=1)
    bootstrap: bool = setting("boolean", default=False)
    early_stopping: bool = setting("boolean", default=False)
    validation_fraction: float = setting(Interval(Real, 0, 1, closed="neither"), default=0.1)
    n_iter_no_change: int = setting(at_least(1), default=20)

    def _validate_params(self) -> None:
        for (name, value), reason in ELSEWHERE.items():
            if isinstance(given := getattr(self, name), str) and given == value:
                raise ValueError(f"{name}={value!r} is not here: {reason}.")
        super()._validate_params()  # type: ignore[misc]  # of scikit-learn's BaseEstimator

    def _architecture(self) -> Architecture:
        return dataclasses.replace(
            Architecture(**self._shared(Architecture)),
            hidden_mean=hidden_units("hidden_mean", self.hidden_mean),
            hidden_var=hidden_units("hidden_var", self.hidden_var),
        )

    def _training(self, batch_size: int) -> Training:
        return Training(**self._shared(Training) | {"batch_size": batch_size})

    def _stages(self, n_rows: int, reg_mean: float, reg_var: float) -> tuple[Stage, ...]:
        """Stages of a network that is trained on so many rows."""
        return self._described_stages(self.strategy, n_rows, self.batch_size, (reg_mean, reg_var))

    def _described_stages(
        self,
        strategy: str,
        n_rows: int,
        batch_size: int,
        penalties: tuple[float, float],
        auto: tuple[Length, Length] | None = None,
        **settings: Any,
    ) -> tuple[Stage, ...]:
        if self.objective == "natural" and strategy != "no-warmup":
            raise ValueError(
                "objective='natural' trains both networks at once, as neither is the mean by "
                f"itself, and strategy={self.strategy!r} trains the mean first: use "
                "strategy='no-warmup'."
            )
        return stages(
            strategy,
            n_rows=n_rows,
            batch_size=batch_size,
            warmup_epochs=self.warmup_epochs,
            auto=auto,
            **self._shared(Stage)
            | dict(zip(("reg_mean", "reg_var"), penalties, strict=True))
            | settings,
            patience=self.n_iter_no_change if self.early_stopping else 0,
        )

    def _shared(self, kind: type[Any]) -> dict[str, Any]:
        """Our parameters that a dataclass has fields of the same names for."""
        ours = {f.name for f in dataclasses.fields(self)}
        names = (f.name for f in dataclasses.fields(kind) if f.name in ours)
        return {name: getattr(self, name) for name in names}

    def _df(self) -> float | None:
        """Degrees of freedom of what is predicted, if it is Student's t."""
        return float(self.df) if self.objective == "student-t" else None

    def _drawn(
        self, rows: fleet.Rows, entropy: Any, dependence: Dependence | None, *key: int
    ) -> fleet.Rows:
        """As many of the rows, drawn with replacement (Heskes 1997), for the member of this key."""
        if self.n_members < 2:
            raise ValueError(
                "bootstrap=True makes members differ by the rows that they are trained on, and "
                "n_members=1 has nothing to differ from: use n_members=5, or bootstrap=False."
            )
        if dependence is not None:
            raise ValueError(
                "bootstrap=True draws single rows, and with groups or time rows belong together: "
                "use bootstrap=False."
            )
        random = np.random.default_rng(fleet.derived_seed(entropy, *key, 0, 0))
        return np.sort(random.choice(rows, len(rows)))

    def _split(
        self, rows: fleet.Rows, entropy: Any, dependence: Dependence | None
    ) -> tuple[fleet.Rows, fleet.Rows]:
        """Training and validation rows."""
        if not self.early_stopping:
            return rows, rows[:0]
        tied = None if dependence is None else dependence.of(rows)
        train, valid = held_out(len(rows), self.validation_fraction, entropy, tied)
        return np.sort(rows[train]), np.sort(rows[valid])
