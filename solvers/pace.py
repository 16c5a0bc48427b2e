"""Processor time of a search: how much of it is left, and one thread of linear algebra.

*Time.* Limits of time are counted in processor time, so that a busy machine ends no search earlier
than an idle one. Other people's solvers count the seconds that go by, which are more on a busy
machine.

*One thread.* BLAS starts a thread for every processor, and lets them wait for each other in a loop.
The matrices of searches are small: such threads gain little time, and the waiting counts as
processor time, of which limits are made. On two busy processors the design for frequencies of 15
symbols took 2.3 seconds of it with two threads, and 0.5 with one (docs/reference/performance.md).
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

# --------------------------------------------------------------------------------- time

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


def end_of(time_limit: float | None) -> float:
    """When so many seconds from now are over, on the clock of `time.process_time`; never without a
    limit.
    """
    if time_limit is None:
        return math.inf
    return time.process_time() + time_limit


def seconds_until(end: float) -> float | None:
    """Seconds that are left until a moment of `time.process_time`; None where it never comes."""
    if end == math.inf:
        return None
    return max(end - time.process_time(), 0.0)


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


# ------------------------------------------------------------------------------ threads


@contextmanager
def one_thread(*, for_scipy: bool = False) -> Generator[None]:
    """Let the linear algebra inside run on one thread; as a decorator, too.

    Parameters
    ----------
    for_scipy : bool
        Whether `scipy.linalg` is used inside. It has a library of its own, which must be there
        before it can be limited, and takes long to load.
    """
    if for_scipy:
        import_module("scipy.linalg")
    with _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries(has_scipy: bool) -> Any:
    """The libraries that are loaded; they are looked for again when SciPy's has been added."""
    # It has no complete types.
    threadpools: Any = import_module("threadpoolctl")
    return threadpools.ThreadpoolController()
