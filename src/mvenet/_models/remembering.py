"""A place for what a part of a model makes once and needs for every row."""

from __future__ import annotations

from typing import Any, TypeVar

_Thing = TypeVar("_Thing")


class Remembers:
    """Beside the fields of a frozen dataclass: what is there is not saved, compared or checked."""

    __slots__ = ("_remembered",)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def remembered(self) -> Any:
        """What was remembered last, or None."""
        return getattr(self, "_remembered", None)

    def remember(self, thing: _Thing) -> _Thing:
        """Keep it in the place of what was there."""
        object.__setattr__(self, "_remembered", thing)
        return thing
