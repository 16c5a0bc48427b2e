"""What comparisons at one budget share: a way, its time limit, and its row.

A comparison at one budget (`average_ways`, `purpose_ways`) sets several channels beside each other.
Each channel is a `Way`; the kind of the comparison adds the figure by which it measures them.
`row_of_way` makes it a row of `compare`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechdesign.auditing.verdict import Achieved
from mechdesign.comparison.rows import ComparisonRow

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


def row_of_way(way: Way, notion: str, epsilon: float) -> ComparisonRow:
    """A way as a row of `compare`: its name without blanks is the mechanism."""
    return ComparisonRow(
        mechanism=way.name.replace(" ", "-"),
        notion=notion,
        epsilon=epsilon,
        lam=None,
        eps_l=None,
        eps_u=None,
        nmi=way.kept,
        upper_bound_nmi=None,
        max_log_lift=way.achieved.eps_u,
        min_log_lift=0.0 - way.achieved.eps_l,
        satisfied=True,
        repaired=False,
        seconds=way.seconds,
    )
