from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Job:
    def __init__(
        self,
        *,
        mode: str,
        subset: int,
        parent: int,
        seed: int,
        epochs: int,
        learning_rate: float,
        schedule: str,
        reg_mean: float,
        reg_var: float,
        init_var_bias: bool,
        patience: int,
        window: int,
    ) -> None: ...

def train(
    *,
    x: NDArray[Any],
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    subsets: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    jobs: Sequence[Job],
    mean_sizes: Sequence[int],
    var_sizes: Sequence[int],
    activation: str,
    input_bound: float,
    objective: str,
    beta: float,
    df: float,
    batch_size: int,
    clip_value: float,
    precise: bool,
    threads: int,
    record_history: bool,
    steps: tuple[int, NDArray[np.int64]] | None = None,
    progress: Callable[[int], object] | None,
) -> dict[str, NDArray[Any]]: ...

class Networks:
    def predict(
        self,
        x: NDArray[Any],
        last: NDArray[np.float64] | None,
        threads: int,
        deviations: bool,
        mixture: bool,
        factor: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]: ...

def networks(
    *,
    parameters: NDArray[Any],
    x_mean: NDArray[np.float64],
    x_scale: NDArray[np.float64],
    y_mean: NDArray[np.float64],
    y_scale: NDArray[np.float64],
    mean_sizes: Sequence[int],
    var_sizes: Sequence[int],
    activation: str,
    input_bound: float,
    natural: bool,
    steps: tuple[
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.float64],
        float,
    ]
    | None,
    last: bool,
) -> Networks: ...
def predict_trees(
    *,
    x: NDArray[Any],
    feature: NDArray[np.int16] | NDArray[np.int32],
    threshold: NDArray[np.float32],
    right: NDArray[np.int32],
    starts: NDArray[np.int64],
    threads: int,
    each: bool = False,
) -> NDArray[np.float64]: ...
def grow_trees(
    *,
    x: NDArray[Any],
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    seeds: NDArray[np.uint64],
    drawn: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]: ...
def predict_process(
    *,
    x: NDArray[Any],
    center: NDArray[np.float64],
    scale: NDArray[np.float64],
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    polynomial: NDArray[np.float64],
    slope: NDArray[np.float64],
    intercept: float,
    threads: int,
) -> NDArray[np.float64]: ...
def covariances(
    *,
    points: NDArray[np.float64],
    linear: NDArray[np.float64],
    amplitudes: NDArray[np.float64],
    slope: float,
) -> NDArray[np.float64]: ...
def pair_sums(
    *,
    points: NDArray[np.float64],
    linear: NDArray[np.float64],
    amplitudes: NDArray[np.float64],
    factor: NDArray[np.float64],
    t: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def quantiles(
    *,
    means: NDArray[np.float64],
    stds: NDArray[np.float64],
    weights: NDArray[np.float64],
    mass: float,
    sign: float,
    probit: float,
) -> NDArray[np.float64]: ...
def probabilities(
    *,
    means: NDArray[np.float64],
    stds: NDArray[np.float64],
    weights: NDArray[np.float64],
    places: NDArray[np.float64],
    sign: float,
) -> NDArray[np.float64]: ...
def shares_below(
    *,
    means: NDArray[np.float64],
    stds: NDArray[np.float64],
    weights: NDArray[np.float64],
    places: NDArray[np.float64],
) -> NDArray[np.float32]: ...
def partials(
    *,
    means: NDArray[np.float64],
    stds: NDArray[np.float64],
    weights: NDArray[np.float64],
    cells: NDArray[np.float64],
    origin: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def moments(
    *,
    means: NDArray[np.float64],
    stds: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def crps(
    *,
    means: NDArray[np.float64],
    stds: NDArray[np.float64],
    weights: NDArray[np.float64],
    y: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def count_lines(text: bytes) -> int: ...
def side_by_side(left: bytes, right: bytes, separator: str) -> bytes: ...
def activations() -> list[str]: ...
def objectives() -> list[str]: ...
def schedules() -> list[str]: ...
def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
