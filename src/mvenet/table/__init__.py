"""Tables as people have them: read from a file, and turned into numbers. Needs polars."""

from mvenet.table._columns import Column, split_target, with_numbers, without
from mvenet.table._encoder import TableEncoder
from mvenet.table._files import COLUMNAR, Part, ahead, chunks, read, write, write_columnar
from mvenet.table._profile import Drift, drifts

__all__ = [
    "COLUMNAR",
    "Column",
    "Drift",
    "Part",
    "TableEncoder",
    "ahead",
    "chunks",
    "drifts",
    "read",
    "split_target",
    "with_numbers",
    "without",
    "write",
    "write_columnar",
]
