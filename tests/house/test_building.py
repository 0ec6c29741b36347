"""How the engine is built: which compilers are refused, and what no test can afford to run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def configured(folder, compiler):
    """Configure as if CMake had found this compiler behind the command line of Visual Studio."""
    if COMPILER is None or shutil.which("cmake") is None:
        pytest.skip("needs cmake and a compiler")
    found = {
        "CMAKE_CXX_COMPILER": COMPILER,
        "CMAKE_CXX_COMPILER_ID": compiler,
        "CMAKE_CXX_COMPILER_ID_RUN": 1,  # it is known already
        "CMAKE_CXX_COMPILER_VERSION": "18.1",
        "CMAKE_CXX_COMPILER_FORCED": 1,
        "CMAKE_CXX_COMPILE_FEATURES": "cxx_std_17;cxx_std_20",
        "CMAKE_CXX_SIMULATE_ID": "MSVC",
        "CMAKE_CXX_STANDARD_COMPUTED_DEFAULT": 17,
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "CMAKE_HAVE_LIBC_PTHREAD": 1,
        "MSVC": 1,
        "Python_EXECUTABLE": sys.executable,
    }
    command = ["cmake", "-S", ROOT, "-B", folder, *(f"-D{k}={v}" for k, v in found.items())]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    return " ".join(told.split())


def test_visual_studio_is_refused(tmp_path):
    told = configured(tmp_path, "MSVC")
    assert "needs GCC's vector types: build with clang-cl" in told


def test_clang_cl_is_not_refused(tmp_path):
    """Its vector types are GCC's; options that Visual Studio does not know go behind /clang:."""
    assert "needs GCC's vector types" not in configured(tmp_path, "Clang")
    lines = json.loads((tmp_path / "compile_commands.json").read_text())
    (line,) = [at["command"] for at in lines if at["file"].endswith("kernel_baseline.cpp")]
    assert "/clang:-O3 /clang:-fno-math-errno" in line and "-Wextra" not in line


def run_harness(name, folder, *checks):
    """Compile a program of tests/harness and run it."""
    if COMPILER is None:
        pytest.skip("needs a compiler")
    command = [COMPILER, "-std=gnu++20", "-O0", "-pthread", *checks, f"-I{ROOT / 'engine'}"]
    program = folder / name
    subprocess.run([*command, ROOT / f"tests/harness/{name}.cpp", "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_widest_layers_are_counted_without_an_overflow(tmp_path):
    run_harness("widest", tmp_path, "-fsanitize=undefined", "-fno-sanitize-recover=all")


def test_what_threads_throw_reaches_the_caller(tmp_path):
    run_harness("threads", tmp_path)
