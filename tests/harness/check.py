"""Run the engine's harness and compare what it prints with the reference.

    python tests/harness/check.py COMMAND...        such as: qemu-aarch64 build/cross/harness

One network shared by threads, and more networks than threads: both must agree with
tests/helpers/reference.py, and with one thread to the bit.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import reference as ref

HIDDEN_MEAN, HIDDEN_VAR = (128, 90), (70,)  # wide enough for threads to share a network
ROWS, COLUMNS, BATCH, EPOCHS = 90, 5, 64, 2


def table() -> tuple[np.ndarray, np.ndarray]:
    """Rows with a signal and noise that differs between them."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (ROWS, COLUMNS))
    return X, 5 + 2 * np.sin(X[:, 0]) + 0.3 * X[:, -1] * rng.standard_normal(ROWS)


def ran(command: list[str], threads: int, networks: int) -> list[np.ndarray]:
    """Parameters, means and deviations of each network, one after the other."""
    X, y = table()
    sizes = [(COLUMNS, *hidden, 1) for hidden in (HIDDEN_MEAN, HIDDEN_VAR)]
    numbers = [threads, networks, ROWS, COLUMNS, BATCH, EPOCHS]
    for shape in sizes:
        numbers += [len(shape), *shape]
    given = " ".join(map(str, numbers)) + "\n"
    given += "\n".join(" ".join(map(repr, row.tolist())) for row in np.column_stack([X, y]))
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return [np.array(line.split(), dtype=float) for line in done.stdout.splitlines()[1:]]


def expected(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by the reference."""
    X, y = table()
    net = ref.Net(COLUMNS, HIDDEN_MEAN, HIDDEN_VAR, "silu")
    Xs, ys, scaling = ref.standardise(X, y)
    theta = ref.initial(net, seed)
    shared = {"epochs": EPOCHS, "batch_size": BATCH, "learning_rate": 1e-3, "seed": seed}
    theta, _ = ref.train_stage(net, theta, Xs, ys, mode="warmup", **shared)
    theta, _ = ref.train_stage(
        net, theta, Xs, ys, mode="joint", schedule="cosine", reg_mean=1e-3, reg_var=1e-3,
        init_var_bias=True, **shared,
    )  # fmt: skip
    mu, s = ref.forward(net, theta, Xs)
    deviation = scaling.y_scale * np.sqrt(ref.variance(s))
    return theta, scaling.y_mean + scaling.y_scale * mu, deviation


def main() -> None:
    """Compare, and say how far apart they are."""
    command = sys.argv[1:]
    start = time.perf_counter()
    alone = ran(command, threads=1, networks=3)
    worst = 0.0
    for seed in range(3):
        for got, wanted in zip(alone[3 * seed : 3 * seed + 3], expected(seed), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)
            worst = max(worst, float(np.max(abs(got - wanted) / (1 + abs(wanted)))))
    for threads, networks in ((3, 3), (2, 1), (4, 1)):
        for got, wanted in zip(ran(command, threads, networks), alone, strict=False):
            np.testing.assert_array_equal(got, wanted)
    seconds = time.perf_counter() - start
    sys.stdout.write(
        f"{' '.join(command)}: agrees with the reference to {worst:.1e}, and whatever the "
        f"threads to the bit ({seconds:.1f} s)\n"
    )


if __name__ == "__main__":
    main()
