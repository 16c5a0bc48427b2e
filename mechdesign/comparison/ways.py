"""What comparisons at one budget share: the time limit of a way, and their table.

A comparison at one budget (`average_ways`, `purpose_ways`) sets several channels beside each other.
Each channel is a way, with figures that depend on the kind of the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mechdesign.auditing.verdict import Achieved

TIME_LIMIT = 30.0
"""Seconds of each way for which no limit was given."""


class Way(Protocol):
    """A channel that was compared; its other figures are attributes, too."""

    @property
    def achieved(self) -> Achieved:
        """Its extreme log-lifts (nats)."""
        ...


def table_of_ways(ways: Sequence[Way], figures: Sequence[str]) -> dict[str, list[Any]]:
    """Some figures of every way and its budgets in nats, by columns."""
    table: dict[str, list[Any]] = {}
    for name in figures:
        table[name] = [getattr(way, name) for way in ways]
    for side in ("eps_l", "eps_u"):
        table[side] = [getattr(way.achieved, side) for way in ways]
    return table
