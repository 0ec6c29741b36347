"""Run a notebook and keep what it shows in it: python tools/site/notebook.py NOTEBOOK.

The cells are Python, run from top to bottom in one namespace; what a cell prints, and the value of
its last line, are what it shows. No Jupyter is needed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any


def run(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells of a notebook, with what they show."""
    space: dict[str, Any] = {"__name__": "__main__"}
    count, done = 0, []
    for cell in cells:
        if cell["cell_type"] != "code":
            done.append(cell)
            continue
        count += 1
        outputs = _shown("".join(cell["source"]), space, count)
        done.append({**cell, "execution_count": count, "outputs": outputs})
    return done


def _shown(code: str, space: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell; return its outputs as the format wants them."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(ast.Module(body, []), "cell", "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        result = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        outputs.append({**result, "data": data})
    return outputs


def _lines(text: str | io.StringIO) -> list[str]:
    whole = text if isinstance(text, str) else text.getvalue()
    return whole.splitlines(keepends=True)


def main(place: Path) -> None:
    """Run it, and write it back."""
    book = json.loads(place.read_text("utf-8"))
    book["cells"] = run(book["cells"])
    place.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
