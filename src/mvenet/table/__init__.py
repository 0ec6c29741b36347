"""Tables as people have them: read from a file, and turned into numbers. Needs polars."""

from typing import TYPE_CHECKING, Any

from mvenet.table._files import read
from mvenet.table._sampling import Sample, sample

if TYPE_CHECKING:
    from mvenet._columns.encoder import TableEncoder

__all__ = ["Sample", "TableEncoder", "read", "sample"]


def __getattr__(name: str) -> Any:
    """Import the encoder when it is asked for: who only predicts needs no scikit-learn."""
    if name == "TableEncoder":
        from mvenet._columns.encoder import TableEncoder

        return TableEncoder
    raise AttributeError(f"module 'mvenet.table' has no attribute {name!r}")
