"""Compiled kernel of `solvers.RobustSearch`; arrays are contiguous float64.

See `_robust_rows.h`.
"""

from typing import Any

class Search:
    def __init__(
        self,
        lower: Any,
        spread: Any,
        room: Any,
        scale: Any,
        share_lower: Any,
        share_spread: Any,
        share_room: float,
        ratio: float,
        upper: float,
        least: float,
        margin: float,
        allowance: float,
        rest: float,
        top: Any,
    ) -> None: ...
    def start(
        self,
        y: Any,
        cutoff: float,
        tolerance: float,
        slack: float,
        column_cutoff: float,
        max_columns: int,
        box_limit: int,
        part: int = 0,
        parts: int = 1,
        auxiliary_costs: Any = None,
        halves: bool = False,
        time_left: float = ...,
    ) -> None: ...
    def run(self, nodes: int, seconds: float, columns: int, /) -> int: ...
    def descend(
        self, center: Any, weight: float, first: int, step: int, seconds: float, /
    ) -> int: ...
    def tighten(self, first: int, seconds: float, /) -> tuple[int, bytes]: ...
    def linear(self, cost: Any, /) -> tuple[int, float, bytes]: ...
    def columns(self) -> tuple[int, bytes, bytes, bytes, bytes]: ...
    def state(self) -> tuple[float, int, int, int, int, int, int]: ...
