"""What a core could do: its fused multiply-adds, measured by peak.cpp, which is compiled here."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from mvenet import _engine

HERE = Path(__file__).parent
WIDE = "-mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512"
SETS = {  # bytes and number of the vector registers, and the options, as in CMakeLists.txt
    "avx512": (64, 32, f"-mavx2 -mfma {WIDE}"),
    "avx2": (32, 16, "-mavx2 -mfma"),
    "baseline": (16, 32 if platform.machine() in {"aarch64", "arm64"} else 16, ""),
}


def fma_peak(seconds: float = 0.3) -> float:
    """FLOP/s of one core in float32, with the instruction set that the engine uses, now."""
    return float(_compiled(_engine.instruction_set()).peak(ctypes.c_double(seconds)))


@functools.cache
def _compiled(name: str) -> ctypes.CDLL:
    size, registers, options = SETS[name]
    defined = {"ISA": name, "VECTOR_BYTES": size, "REGISTERS": registers}
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "peak.so"
        subprocess.run(
            [
                os.environ.get("CXX", "c++"), "-std=gnu++20", "-O3", "-ffp-contract=fast",
                "-shared", "-fPIC", *options.split(),
                *(f"-DMVENET_{k}={v}" for k, v in defined.items()),
                f"-I{HERE.parent / 'engine'}", str(HERE / "peak.cpp"), "-o", str(library),
            ],
            check=True,
        )  # fmt: skip
        loaded = ctypes.CDLL(str(library))
    loaded.peak.restype = ctypes.c_double
    return loaded
