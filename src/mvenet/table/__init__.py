"""Tables as people have them: read from a file, and turned into numbers. Needs polars."""

from mvenet.table._columns import Column, split_target, without
from mvenet.table._encoder import TableEncoder
from mvenet.table._files import Part, chunks, read, write
from mvenet.table._profile import Drift, drifts

__all__ = [
    "Column",
    "Drift",
    "Part",
    "TableEncoder",
    "chunks",
    "drifts",
    "read",
    "split_target",
    "without",
    "write",
]
