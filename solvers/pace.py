"""Seconds that go by while a process computes for so many seconds.

Limits of time are counted in processor time, so that a busy machine ends no search earlier than an
idle one. Other people's solvers count the seconds that go by, which are more on a busy machine.
"""

from __future__ import annotations

import math
import os

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
