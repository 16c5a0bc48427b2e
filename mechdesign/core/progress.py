"""How long work tells its caller where it stands: two plain shapes, known to every layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with what is done and what there is to do, in one unit (rows, bytes, sets).

The first call comes before the work, with what an earlier run has left done; one more follows each step.
"""


@dataclass(frozen=True)
class Step:
    """Where a search stands; `str` is the line for people."""

    text: str
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    done: int | None = None
    total: int | None = None

    def __str__(self) -> str:
        return self.text


Steps: TypeAlias = Callable[[Step], None]
"""Called with each step of a search."""
