"""What comparisons at one budget share: a way, its time limit, and the table of all ways.

A comparison at one budget (`average_ways`, `purpose_ways`) sets several channels beside each other.
Each channel is a `Way`; the kind of the comparison adds the figure by which it measures them.
`table_of_ways` lists chosen fields of all ways by columns: ::

    {"name": ["certified optimum", "greedy merging"], "kept": [0.688, 0.599], ..,
     "eps_l": [0.694, 0.155], "eps_u": [0.406, 0.134]}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.auditing.verdict import Achieved

TIME_LIMIT = 30.0
"""Seconds of each way for which no limit was given."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """A verified channel of a comparison.

    Attributes
    ----------
    name : str
    kept : float
        I(X;Y) / H(X) of the integers of the channel.
    achieved : Achieved
        Its extreme log-lifts (nats).
    outputs : int
        Number of its outputs.
    seconds : float
        Time of its design.
    """

    name: str
    kept: float
    achieved: Achieved
    outputs: int
    seconds: float


def seconds_of_each(time_limit: float | None) -> float:
    """The time limit of each way, given that of the user."""
    if time_limit is None:
        return TIME_LIMIT
    return time_limit


def table_of_ways(ways: Sequence[Way], figures: Sequence[str]) -> dict[str, list[Any]]:
    """Some figures of every way and its budgets in nats, by columns."""
    table: dict[str, list[Any]] = {}
    for name in figures:
        table[name] = [getattr(way, name) for way in ways]
    for side in ("eps_l", "eps_u"):
        table[side] = [getattr(way.achieved, side) for way in ways]
    return table
