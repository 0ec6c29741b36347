"""Folds on a Dask cluster, by its scheduler's address."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import joblib


@contextlib.contextmanager
def on_dask(address: str | None) -> Iterator[None]:
    """Let joblib run on the cluster of this scheduler within the block; None changes nothing."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('A cluster needs Dask: pip install "mvenet[distributed]"') from error
    try:
        client: Any = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise OSError(
            f"No Dask scheduler answers at {address}: start one with `dask scheduler`, and give "
            "the address that it prints, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        if sum(client.nthreads().values()) == 1:  # joblib would not send it anything
            raise ValueError(
                f"The cluster at {address} has one thread in all, which is no gain: add workers "
                "with `dask worker`, or leave the address out."
            )
        with joblib.parallel_config(backend="dask"):
            yield
