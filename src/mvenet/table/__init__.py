"""Tables as people have them: read from a file, and turned into numbers. Needs polars."""

from mvenet.table._columns import Column, split_target
from mvenet.table._encoder import TableEncoder
from mvenet.table._files import Part, chunks, read, write

__all__ = ["Column", "Part", "TableEncoder", "chunks", "read", "split_target", "write"]
