"""Python in a process of its own, and what can do without one."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def python(code: str, *arguments: Any, flags: tuple[str, ...] = (), **options: Any) -> str:
    """What code prints in a fresh process, which must end well.

    Options are those of ``subprocess.run``. It may take as long as a busy machine makes it.
    """
    command = [sys.executable, *flags, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def script(path: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """What ``python path arguments`` does, in this process, which has imported all before."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before = sys.argv
    sys.argv = [str(path), *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as left:
        code = left.code or 0
        if isinstance(code, str):  # what sys.exit prints
            err.write(f"{code}\n")
            code = 1
    finally:
        sys.argv = before
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
    return subprocess.CompletedProcess(str(path), code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as if the disk were full."""
    import resource  # which Windows does not have

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[bool]:
    """Put a disk of so many bytes where the folder is; false if this process may not mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def somebody_else() -> Iterator[None]:
    """Be a user without rights, if this is root, who may read and write anything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
