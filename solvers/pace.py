"""How much of the processor time of a search is left, and the seconds that go by meanwhile.

Limits of time are counted in processor time, so that a busy machine ends no search earlier than an
idle one. Other people's solvers count the seconds that go by, which are more on a busy machine.
"""

from __future__ import annotations

import math
import os
import time

ROOM = 1.5
"""So many times the estimate, for a machine that becomes busier."""

SLOWEST = 50.0
"""A processor that seems to be shared with more others is not believed to be."""


def passing(seconds: float) -> float:
    """Seconds by the clock in which `seconds` of processor time can be had at least, most likely.

    On an idle machine they are the same. On a busy one the load says how many share a processor.
    """
    if seconds == math.inf:
        return seconds
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        # Windows does not say.
        return max(seconds, 0.0)
    shared = load / (os.cpu_count() or 1)
    if shared <= 1.0:
        return max(seconds, 0.0)
    return max(seconds, 0.0) * min(ROOM * shared, SLOWEST)


FEWEST = 0.2
"""Seconds of processor time after which the speed of the clock on the wall is measured."""


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
