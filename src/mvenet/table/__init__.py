"""Tables as people have them: read from a file, and turned into numbers. Needs polars."""

from typing import TYPE_CHECKING, Any

from mvenet.table._ahead import ahead
from mvenet.table._columns import Column, given_cells, split_target, with_numbers, without
from mvenet.table._files import COLUMNAR, Part, chunks, read
from mvenet.table._profile import Chance, Drift, drifts, outside
from mvenet.table._writing import write, write_columnar

if TYPE_CHECKING:
    from mvenet.table._encoder import TableEncoder

__all__ = [
    "COLUMNAR",
    "Chance",
    "Column",
    "Drift",
    "Part",
    "TableEncoder",
    "ahead",
    "chunks",
    "drifts",
    "given_cells",
    "outside",
    "read",
    "split_target",
    "with_numbers",
    "without",
    "write",
    "write_columnar",
]


def __getattr__(name: str) -> Any:
    """Import the encoder when it is asked for: who only predicts needs no scikit-learn."""
    if name == "TableEncoder":
        from mvenet.table._encoder import TableEncoder

        return TableEncoder
    raise AttributeError(f"module 'mvenet.table' has no attribute {name!r}")
