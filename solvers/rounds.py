"""The rounds of column generation, which every search for a channel goes through.

A search holds columns (posteriors that outputs may have) and a master program over them. A round is

1. `solve`: the master gives the best channel of the columns so far, its value, and prices;
2. `price`: at these prices a search over the whole set looks for columns that gain, and proves a
   bound for all channels.

Searches differ in what a column costs (entropy, the entropy of a task, leakage, variance) and in
the set that columns come from. `run_rounds` has what they share: when a run ends, and why. The
bound may lie on either side of the value, for some searches maximise.

The loop over polytopes and uncertain sets (`solvers.envelope.generation`) has phases of its own,
with prices in a box; its rounds are not these.
"""

from __future__ import annotations

import time
from typing import Protocol

from solvers.results import EnvelopeStatus


class Rounds(Protocol):
    """What a search does in a round, and where it stands."""

    @property
    def value(self) -> float:
        """Of the best channel so far; infinite before there is one."""
        ...

    @property
    def bound(self) -> float:
        """What no channel can pass, as far as it is proven."""
        ...

    def solve(self) -> EnvelopeStatus | None:
        """Solve the master over the columns so far; a status ends the run."""
        ...

    def price(self) -> bool:
        """Add columns and sharpen the bound; False if nothing was gained."""
        ...

    def report(self) -> None:
        """Tell the caller how the search stands."""
        ...


def run_rounds(
    search: Rounds, *, gap: float, end: float, most_idle: int
) -> EnvelopeStatus:
    """Solve and price until value and bound meet, or a limit is met.

    Parameters
    ----------
    search : Rounds
        Its value and bound are valid at any moment, so Ctrl-C ends a run like a limit.
    gap : float
        Distance of value and bound at which the search is done.
    end : float
        When to stop, on the clock of `time.process_time`.
    most_idle : int
        Rounds in a row without a gain, after which doubles prove nothing more.
    """
    idle = 0
    try:
        while True:
            ended = search.solve()
            if ended is not None:
                return ended
            search.report()
            if abs(search.value - search.bound) <= gap:
                return EnvelopeStatus.OPTIMAL
            if time.process_time() >= end:
                return EnvelopeStatus.TIME_LIMIT
            if idle > most_idle:
                return EnvelopeStatus.STALLED
            if search.price():
                idle = 0
            else:
                idle += 1
    except KeyboardInterrupt:
        return EnvelopeStatus.INTERRUPTED
