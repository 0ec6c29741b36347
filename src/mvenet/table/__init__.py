"""Tables as people have them: read from a file, and turned into numbers column by column."""

from mvenet.table._encoder import Column, TableEncoder, split_target
from mvenet.table._files import chunks, read, write

__all__ = ["Column", "TableEncoder", "chunks", "read", "split_target", "write"]
