"""What all tests need."""

from __future__ import annotations

import os
import signal

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows, also where there is a screen

# Started in the background of a script, a process ignores Ctrl-C, and so does all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
