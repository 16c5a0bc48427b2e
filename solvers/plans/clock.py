"""How much of the processor time of a search is left."""

from __future__ import annotations

import math
import time

FEWEST = 0.2
"""Seconds of processor time after which the speed of the clock on the wall is measured."""

SLOWEST = 50.0
"""A processor that is shared with so many others is not believed to be shared with more."""


class Clock:
    """Counts processor time, and estimates the time that goes by meanwhile.

    HiGHS knows only the latter, which is longer on a busy machine.
    """

    def __init__(self, limit: float, parent: Clock | None = None) -> None:
        self._ends = time.process_time() + limit
        self._started = time.process_time()
        self._passed = time.perf_counter()
        if parent is not None:
            self._started, self._passed = parent._started, parent._passed

    def __call__(self) -> float:
        """Seconds of processor time that are left."""
        return self._ends - time.process_time()

    def passing(self) -> float:
        """Seconds that will go by until then."""
        left = self()
        if math.isinf(left):
            return left
        used = time.process_time() - self._started
        if used < FEWEST:
            return left
        pace = (time.perf_counter() - self._passed) / used
        return max(left, 0.0) * min(max(pace, 1.0), SLOWEST)


NEVER = Clock(math.inf)
"""Does not end."""
