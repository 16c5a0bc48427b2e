"""Two plain types through which long computations report their progress to the caller.

A caller passes a function and the computation calls it: a `Progress` where the amount of work is
known, as (0, 3000), (1000, 3000), .. rows, and a `Steps` where a search does not know its end, as
``Step("split 12: value 0.3", {"value": 0.3})``. The command line draws a bar or prints the text.
"""

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
    """The state of a search; `str` gives the line that is printed.

    Attributes
    ----------
    text : str
        The line.
    figures : mapping
        The numbers in it by name, for callers that compute with them.
    done, total : int, optional
        The finished and all rounds of a search in rounds; others have none.
    """

    text: str
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    done: int | None = None
    total: int | None = None

    def __str__(self) -> str:
        return self.text


Steps: TypeAlias = Callable[[Step], None]
"""Called with each step of a search."""
