"""Ways that are compared at one budget, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mechdesign.auditing.verdict import Achieved


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
