"""Where a training stands, in a file: a killed ``fit`` goes on from it with the same result."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from mvenet.torch import _files
from mvenet.torch._identity import same
from mvenet.torch._loop import Loop, Record, Stages

KIND = "checkpoint"
SHARE = 20  # at most a twentieth of the time is spent on writing


@dataclass
class Checkpoint:
    """Members done, and the state of the one in hand, as of the last time it was written.

    ``key`` and ``module`` are what must be the same for a training to go on: data and settings, and
    the identity of the module.
    """

    path: str | os.PathLike[str]
    key: str
    entropy: Any
    module: dict[str, Any] | None = None
    done: list[Record] = field(default_factory=list)
    weights: dict[str, Tensor] = field(default_factory=dict)
    current: tuple[dict[str, Any], dict[str, Tensor]] | None = None
    next_write: float = 0.0

    @classmethod
    def open(cls, path: str | os.PathLike[str], key: str, entropy: Any) -> Checkpoint:
        """What the file says, or a new one; an error if it is damaged or of another training."""
        if not os.path.exists(path):
            return cls(path, key, entropy)
        about, tensors = _files.read(path, KIND)
        if about["key"] != key:
            raise _other(path, "data or settings")
        weights = {name: t for name, t in tensors.items() if name.startswith("member.")}
        current = None
        if about["current"] is not None:
            current = about["current"], _files.state_of(tensors, "current.")
        module = about.get("module")  # of earlier versions: no
        return cls(path, key, about["entropy"], module, about["done"], weights, current)

    def begin(self, module: dict[str, Any]) -> None:
        """Go on with this module, or refuse it if the file is of another."""
        if self.module is not None and not same(self.module, module):
            raise _other(self.path, "module")
        self.module = module

    def resume(self, loop: Loop, stages: Stages) -> None:
        """Bring a fresh loop to where the file left it."""
        if self.current is None:
            return
        about, tensors = self.current
        loop.module_.load_state_dict(_files.state_of(tensors, "net."))
        state = dict(about["schedule"], best_weights=_files.state_of(tensors, "best."))
        state["best"] = math.inf if state["best"] is None else state["best"]
        stages.schedule.load_state_dict(state)
        stages.epochs = [(stage, a, _nan(b)) for stage, a, b in about["epochs"]]
        optimizer = loop.optimizer_.state_dict()
        for name, value in _files.state_of(tensors, "optimizer.").items():
            number, _, part = name.partition(".")
            optimizer["state"].setdefault(int(number), {})[part] = value
        loop.optimizer_.load_state_dict(optimizer)
        self.current = None

    def save(self, loop: Loop, stages: Stages) -> None:
        """Write where the training stands, unless that was done a moment ago."""
        if time.monotonic() < self.next_write:
            return
        state = stages.schedule.state_dict()
        best = state.pop("best_weights")
        state["best"] = state["best"] if math.isfinite(state["best"]) else None
        epochs = [(stage, a, b if math.isfinite(b) else None) for stage, a, b in
                  stages.epochs]  # fmt: skip
        tensors = {f"current.net.{k}": v for k, v in loop.module_.state_dict().items()}
        tensors |= {f"current.best.{k}": v for k, v in best.items()}
        for number, moments in loop.optimizer_.state_dict()["state"].items():
            tensors |= {f"current.optimizer.{number}.{k}": v for k, v in moments.items()}
        self._write({"schedule": state, "epochs": epochs}, tensors)

    def member_done(self, net: nn.Module, record: Record) -> None:
        """Write that a member is trained."""
        number = len(self.done)
        self.done.append(record)
        self.weights |= {f"member.{number}.{k}": v.clone() for k, v in net.state_dict().items()}
        self._write(None, {})

    def _write(self, current: dict[str, Any] | None, tensors: dict[str, Tensor]) -> None:
        started = time.monotonic()
        about = {
            "key": self.key,
            "entropy": self.entropy,
            "module": self.module,
            "done": self.done,
            "current": current,
        }
        _files.write(self.path, KIND, about, self.weights | tensors)
        now = time.monotonic()
        self.next_write = now + SHARE * (now - started)


def _other(path: str | os.PathLike[str], what: str) -> ValueError:
    return ValueError(
        f"checkpoint={os.fspath(path)!r} is of another training (other {what}): remove it to start "
        "anew, or choose another path."
    )


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
