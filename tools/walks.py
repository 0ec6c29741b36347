"""Count the files, functions and calls between modules that one call passes: python tools/walks.py.

Counted is what lies in ``src/mvenet``: files entered, functions entered, and edges, the pairs of
modules of which one calls a function of the other (directly: what scikit-learn or joblib calls back
counts as a file and a function, and as no edge). "Both ways" are pairs that call each other, which
a reader has to hold in mind at once. Functions are those with a name; what a module does while it
is imported is not counted.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import mvenet
from mvenet import cli
from mvenet.comparison import strategy_arms
from mvenet.persistence import load, save

HOME = str(Path(mvenet.__file__).parent)
_INLINE = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"}


class Walk:
    """What was entered while it was on, in any thread."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self.edges: set[tuple[str, str]] = set()

    @property
    def both_ways(self) -> int:
        """Pairs of modules that call each other."""
        return sum((b, a) in self.edges for a, b in self.edges) // 2

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Watch this thread, and those that begin meanwhile."""
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _enter(self, frame: FrameType, event: str, _: Any) -> None:
        code, caller = frame.f_code, frame.f_back.f_code if frame.f_back else None
        inside = event == "call" and code.co_filename.startswith(HOME)
        if not inside or _imports(code) or (caller is not None and _imports(caller)):
            return
        if code.co_name in _INLINE:
            return
        self.files.add(code.co_filename)
        self.functions.add((code.co_filename, code.co_qualname))
        where = caller.co_filename if caller is not None else ""
        if where.startswith(HOME) and where != code.co_filename:
            self.edges.add((where, code.co_filename))


def _imports(code: CodeType) -> bool:
    """Whether this is the body of a module or of a class, which runs once, at import."""
    return not code.co_flags & inspect.CO_OPTIMIZED


def walks(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """A name for each call, and the call."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 3))
    y = X[:, 0] ** 2 + (0.1 + 0.1 * np.abs(X[:, 1])) * rng.standard_normal(200)
    small = {"epochs": 20, "warmup_epochs": 10, "random_state": 0}
    model = mvenet.MVERegressor(strategy="warmup", **small)
    automatic = mvenet.AutoRegressor(effort="low", random_state=0)
    grid = mvenet.MVERegressorCV([1e-2], [1e-1, 1.0], cv=3, **small)
    table, file, fitted = (str(folder / name) for name in ("table.csv", "model.mve", "fitted.mve"))
    rows = "\n".join(",".join(f"{value:.6g}" for value in row) for row in np.column_stack([X, y]))
    Path(table).write_text(f"a,b,c,y\n{rows}\n", encoding="utf-8")
    page, out = str(folder / "page.html"), str(folder / "out.csv")
    fit = ["fit", table, "--target", "y", "--effort", "low", "-o", fitted, "--report", page]
    yield 'MVERegressor(strategy="warmup").fit', lambda: model.fit(X, y)
    yield "MVERegressor().fit", lambda: mvenet.MVERegressor(random_state=0).fit(X, y)
    yield "MVERegressorCV().fit", lambda: grid.fit(X, y)
    yield 'AutoRegressor(effort="low").fit', lambda: automatic.fit(X, y)
    yield "predict(return_std=True)", lambda: model.predict(X, return_std=True)
    yield "the same, of AutoRegressor", lambda: automatic.predict(X, return_std=True)
    yield "mvenet fit --report", lambda: run(fit)
    yield "mvenet predict", lambda: run(["predict", fitted, table, "-o", out])
    yield (
        "compare_strategies",
        lambda: mvenet.compare_strategies(
            X, y, strategy_arms(**small), outer_cv=2, inner_cv=2, n_jobs=1
        ),
    )
    yield "save", lambda: save(automatic, file)
    yield "load", lambda: load(file)


def run(arguments: list[str]) -> None:
    """The command, without what it prints."""
    sys.argv = ["mvenet", *arguments]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as said,
    ):
        code = cli._run()
    if code:
        sys.exit(said.getvalue())


def main() -> None:
    """Print the table."""
    print("| walk | files | functions | edges | both ways |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in walks(Path(folder)):
            walk = Walk()
            with walk.on():
                call()
            counts = (len(walk.files), len(walk.functions), len(walk.edges), walk.both_ways)
            print(f"| `{name}` | " + " | ".join(map(str, counts)) + " |", flush=True)


if __name__ == "__main__":
    main()
