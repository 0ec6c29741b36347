"""Python in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
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
