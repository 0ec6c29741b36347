"""How people write what is missing, and numbers with a comma."""

from __future__ import annotations

import re

# What means missing, and what only may, and is asked about.
MISSING = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
           "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan",
           "null")  # fmt: skip
PERHAPS_MISSING = ("?", "-", "–", ".")
DECIMAL_COMMA = re.compile(r"\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*")
