"""How fast work goes and how long it will last, from what is done at which time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

WINDOW = 30.0
"""Seconds that a rate looks back: long enough to be calm, short enough to follow a change."""

LEAST = 10
"""Units that a rate looks back at least, for a few of them come by fits and starts."""


@dataclass(frozen=True)
class Reading:
    """One look at a meter; None where something is not known."""

    done: int | None
    total: int | None
    seconds: float
    rate: float | None
    seconds_left: float | None


class Meter:
    """Counts work; `advance` and `at` are cheap enough for every batch."""

    def __init__(
        self,
        total: int | None = None,
        limit: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._done: int | None = None
        self._total = total
        self._limit = limit
        self._samples: deque[tuple[float, int]] = deque()

    def advance(self, amount: int) -> None:
        """Another `amount` is done."""
        if self._done is None:
            self._samples.append((self._began, 0))
            self._done = 0
        self._done += amount

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done; where the first call is above 0, an earlier run did it, and it says nothing of the rate."""
        if self._done is None:
            self._samples.append((self._clock(), done))
        self._done = done
        if total is not None:
            self._total = total

    def read(self) -> Reading:
        """Where the work stands now."""
        now, done, total = self._clock(), self._done, self._total
        seconds = now - self._began
        rate = None if done is None else self._rate(now, done)
        left: float | None = None
        if total is not None:
            if done is not None and done >= total:
                left = 0.0
            elif done is not None and rate:
                left = (total - done) / rate
        if self._limit is not None:
            until = max(0.0, self._limit - seconds)
            left = until if left is None else min(left, until)
        return Reading(done, total, seconds, rate, left)

    def _rate(self, now: float, done: int) -> float | None:
        """Mean over the window, or over a longer time if too little was done within it."""
        samples = self._samples
        while len(samples) > 1 and samples[1][0] <= now - WINDOW and samples[1][1] <= done - LEAST:
            samples.popleft()
        since, before = samples[0]
        samples.append((now, done))
        return (done - before) / (now - since) if now > since and done > before else None


def duration(seconds: float) -> str:
    """As 0:07, 12:34 or 1:02:03."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def amounts(reading: Reading, unit: str) -> str:
    """What is done and at which rate, as in ``12.5 of 40.0 MB, 3.1 MB/s`` or ``3 of 40 rows, 1.5 rows/s``."""
    if reading.done is None:
        return ""
    if unit == "B":
        scale, name = _scale(reading.total if reading.total is not None else reading.done)
        done = f"{reading.done / scale:.1f}"
        total = None if reading.total is None else f"{reading.total / scale:.1f}"
    else:
        name = unit
        done = f"{reading.done:,}"
        total = None if reading.total is None else f"{reading.total:,}"
    said = f"{done} {name}" if total is None else f"{done} of {total} {name}"
    return said if reading.rate is None else f"{said}, {_speed(reading.rate, unit)}"


def _scale(size: float) -> tuple[float, str]:
    for power, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= power:
            return power, name
    return 1.0, "B"


def _speed(rate: float, unit: str) -> str:
    if unit == "B":
        scale, name = _scale(rate)
        return f"{rate / scale:.1f} {name}/s"
    return f"{rate:,.0f} {unit}/s" if rate >= 100.0 else f"{rate:.3g} {unit}/s"
