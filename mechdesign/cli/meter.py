"""The rate of long work and the seconds that are left, from two counts at two times.

`Meter.advance` and `Meter.at` only count, so they are cheap in an inner loop. `Meter.read` computes

    rate = (done now - done then) / (now - then),    seconds left = (total - done) / rate,

where "then" is about WINDOW seconds ago, or as long ago as it took for LEAST units. With 40 of 100
units done now and 10 of them 30 seconds ago, the rate is 1 unit a second, and a minute is left.
`amounts` and `duration` put a reading into words: ``40 of 100 rows, 1 rows/s`` and ``1:00``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

WINDOW = 30.0
"""Seconds that a rate looks back: long enough to be calm, short enough to follow a change."""

LEAST = 10
"""Fewest units that a rate is computed from, because single units come irregularly."""


class Reading(NamedTuple):
    """The state of a meter: units of work, seconds, units a second; None where not yet known."""

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
        self._limit = limit
        # None until the work counts something; a search may never do.
        self._done: int | None = None
        self._total = total
        self._samples: deque[tuple[float, int]] = deque()

    def advance(self, amount: int = 1) -> None:
        """Another `amount` is done."""
        # The first sample of a rate: nothing was done at the beginning.
        if self._done is None:
            self._samples.append((self._began, 0))
        self._done = (self._done or 0) + amount

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done. What the first call counts was done by an earlier run, and
        does not count for the rate.
        """
        if self._done is None:
            self._samples.append((self._clock(), done))
        self._done = done
        if total is not None:
            self._total = total

    def read(self) -> Reading:
        """The state of the work now."""
        # Copied, because the thread of the work may count on in between.
        now = self._clock()
        done = self._done
        total = self._total
        rate: float | None = None
        seconds_left: float | None = None
        if done is not None:
            rate = self._rate(now, done)
            if total is not None:
                seconds_left = _seconds_left(done, total, rate)
        # The work ends at its limit even if it is not done.
        if self._limit is not None:
            until_limit = max(0.0, self._limit - (now - self._began))
            if seconds_left is None or until_limit < seconds_left:
                seconds_left = until_limit
        return Reading(done, total, now - self._began, rate, seconds_left)

    def _rate(self, now: float, done: int) -> float | None:
        """Mean over the window, or over a longer time if too little was done within it."""
        # The first sample is "then". It goes once the next one, too, is WINDOW seconds and LEAST
        # units back.
        samples = self._samples
        while len(samples) > 1:
            next_time, next_done = samples[1]
            if next_time > now - WINDOW or next_done > done - LEAST:
                break
            samples.popleft()
        since, before = samples[0]
        samples.append((now, done))
        # Without progress there is no rate, rather than one of 0 that never ends.
        if now > since and done > before:
            return (done - before) / (now - since)
        return None


def _seconds_left(done: int, total: int, rate: float | None) -> float | None:
    """Seconds until the total at this rate; None where the rate is not yet known."""
    if done >= total:
        return 0.0
    if rate is None:
        return None
    return (total - done) / rate


def duration(seconds: float) -> str:
    """A time as 0:07, 12:34 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def amounts(reading: Reading, unit: str) -> str:
    """The work done and its rate, as in ``12.5 of 40.0 MB, 3.1 MB/s`` or ``3 of 40
    rows, 1.5 rows/s``.
    """
    if reading.done is None:
        return ""
    digits = 0
    scale = 1.0
    name = unit
    if unit == "B":
        digits = 1
        scale, name = _scale(reading.total or reading.done)
    text = f"{reading.done / scale:,.{digits}f}"
    if reading.total is not None:
        text += f" of {reading.total / scale:,.{digits}f}"
    text += f" {name}"
    if reading.rate is None:
        return text
    return f"{text}, {_rate_text(reading.rate, unit)}"


def _rate_text(rate: float, unit: str) -> str:
    """A rate with few digits: ``3.1 MB/s``, ``1.5 rows/s``."""
    if unit == "B":
        scale, name = _scale(rate)
        return f"{rate / scale:.1f} {name}/s"
    if rate >= 100.0:
        return f"{rate:,.0f} {unit}/s"
    return f"{rate:.3g} {unit}/s"


def _scale(size: float) -> tuple[float, str]:
    """The unit of bytes in which a size has few digits."""
    for scale, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= scale:
            return scale, name
    return 1.0, "B"
