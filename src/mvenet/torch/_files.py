"""Safetensors files with a JSON description: models, and checkpoints of a training.

Reading one runs no code. The description, under ``"mvenet"`` in the file's metadata, has a checksum
of all, so that damage is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor

from mvenet._utils.atomic import replacing

FORMAT = 1
Path = str | os.PathLike[str]


def write(
    path: Path, kind: str, description: Mapping[str, Any], tensors: dict[str, Tensor]
) -> None:
    """Write a file whole or not at all."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    about = {**description, "kind": kind, "format": FORMAT}
    about["sha256"] = _checksum(about, tensors)
    with replacing(path) as fresh:
        # clone: safetensors refuses tensors that share memory, as a module's may
        clones = {name: value.clone() for name, value in tensors.items()}
        save_file(clones, fresh, metadata={"mvenet": json.dumps(about)})


def read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and tensors of a file; a ValueError if it is damaged or of another kind."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("mvenet", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} is damaged or no safetensors file ({error}): restore it, or move "
            "it away."
        ) from error
    if not isinstance(about, dict) or about.get("kind") != kind:
        found = about.get("kind") if isinstance(about, dict) else "not of mvenet.torch"
        raise ValueError(f"{os.fspath(path)!r} is no {kind} ({found}): pass another file.")
    if about.get("format") != FORMAT:
        raise ValueError(
            f"{os.fspath(path)!r} has format {about.get('format')!r}, this mvenet reads {FORMAT}: "
            "use the version that wrote it."
        )
    if about.pop("sha256", None) != _checksum(about, tensors):
        raise ValueError(f"{os.fspath(path)!r} is damaged (checksum): restore it, or move it away.")
    return about, tensors


def _checksum(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.flatten().view(torch.uint8).numpy().data if value.numel() else b"")
    return digest.hexdigest()


def state_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin so, without the prefix."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
