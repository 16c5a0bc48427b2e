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


FEWEST = 0.2
"""Seconds of processor time after which the speed of the clock on the wall is measured."""


class _Measured:
    """Seconds by the clock for each of processor time, as this process had it of late."""

    def __init__(self) -> None:
        self._used = time.process_time()
        self._passed = time.perf_counter()
        self._pace = math.inf

    def pace(self) -> float:
        """The pace since the last look that was long enough ago; infinite before the first."""
        used = time.process_time()
        if used - self._used >= FEWEST:
            passed = time.perf_counter()
            self._pace = (passed - self._passed) / (used - self._used)
            self._used = used
            self._passed = passed
        return self._pace


_measured = _Measured()


def passing(seconds: float) -> float:
    """Seconds by the clock in which `seconds` of processor time can be had at least, most likely.

    On an idle machine they are the same. On a busy one the load says how many share a processor. A
    process may have more than its share, so what it had of late counts, too, unless it has waited.
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
    pace = min(ROOM * shared, SLOWEST, ROOM * max(_measured.pace(), 1.0))
    return max(seconds, 0.0) * pace


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
