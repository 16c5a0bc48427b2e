"""Two plain types through which long computations report their progress to the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the finished and the total amount of work, in one unit (rows, bytes, sets).

The first call comes before the work and counts what an earlier run finished. Another call
follows after each step.
"""


@dataclass(frozen=True)
class Step:
    """The state of a search; `str` gives the line that is printed."""

    text: str
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    done: int | None = None
    total: int | None = None

    def __str__(self) -> str:
        return self.text


Steps: TypeAlias = Callable[[Step], None]
"""Called with each step of a search."""
