"""Merged sets of symbols, judged by a promise about several tables.

A promise beside earlier releases holds for each direction u of their outputs (`stacked_rows`). With
L_s(T) = P(s, T | u) / P(s) and C(T) = P(T | u), which add up over the members of T, the lift of s
after u and the set T is L_s(T) / C(T). For example, with L_s = (0.3, 0.1) and C = (0.2, 0.2) the
single symbols have the lifts 1.5 and 0.5, and both together 0.4 / 0.4 = 1.

A set is as risky as the worst of all these lifts: `omega` says by how many nats that is beyond its
budget. A table in which T has no mass says nothing about it. `rules` makes one `StackedSets` for a
table of symbols, or for one of classes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanisms.merged_sets import (
    ZERO_LIFT_RISK,
    MergedSets,
    rounding_slack,
)
from mechdesign.mechanisms.stacked_rows import StackedRows
from mechdesign.tables.joint import Joint
from solvers import Array


class StackedSets(MergedSets):
    """Merged sets of symbols judged by all rows of a promise about several tables.

    `given_s` has L and C of a set (`StackedRows`), which add up over its members.
    """

    def __init__(self, rows: StackedRows, joint: Joint) -> None:
        self._rows = rows
        self.p_x = joint.p_x
        self.given_s = np.vstack([rows.lift, rows.mass]) * joint.p_x
        self.slack = 2.0 * rounding_slack((len(self.given_s), len(joint.p_x)))

    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """As for a table."""
        used, zeros = self._used(given_s)
        return (used <= -safety * self.slack) & (zeros == 0)

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The worst logarithm beyond its budget; larger is worse, most of all lifts of zero."""
        used, zeros = self._used(given_s)
        return used + ZERO_LIFT_RISK * zeros

    def _used(self, given_s: Array) -> tuple[Array, NDArray[np.intp]]:
        """The largest log lift minus its budget, (k,), and the number of forbidden zero lifts."""
        rows = self._rows
        # The rows of L come first, then those of C, one for each table: for every row of L the C
        # of its table.
        lift = given_s[: len(rows.table_of)]
        mass = given_s[len(rows.table_of) :][rows.table_of]
        occurs = mass > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(occurs, np.log(lift / mass), 0.0)
        # A lift of zero is forbidden where a side below or a quotient is bounded.
        bounded = np.isfinite(rows.lower)[:, None] | math.isfinite(rows.ratio)
        zero = np.isinf(logs)
        zeros = (zero & bounded).sum(axis=0)
        logs = np.where(zero, 0.0, logs)
        above = (logs - rows.upper[:, None]).max(axis=0)
        below = (-logs - rows.lower[:, None]).max(axis=0)
        used = np.maximum(above, below)
        if math.isfinite(rows.ratio):
            # LDP compares the lifts of one table with each other, not those of different tables.
            high = np.maximum.reduceat(logs, rows.starts[:-1])
            low = np.minimum.reduceat(logs, rows.starts[:-1])
            used = np.maximum(used, (high - low).max(axis=0) - rows.ratio)
        return used, zeros
