"""Merged sets of symbols, judged by a promise about several tables.

Heuristics merge symbols of X to a set T that is released as one output (`merged_sets`). Beside
earlier releases the promise must hold after whatever these may have put out. Each case u of their
outputs has a table P(s, x | u), and so has each of several secrets; all tables have the same
symbols x (`stacked_rows`). With

    L_s(T) = P(s, T | u) / P(s)   and   C(T) = P(T | u),

which add up over the members of T, the lift of s after u and T is L_s(T) / C(T). For example, with
L_s = (0.3, 0.1) and C = (0.2, 0.2) the single symbols have the lifts 1.5 and 0.5, and both together
0.4 / 0.4 = 1.

Each s of each table has a budget for log(L_s(T) / C(T)), above and below; LDP bounds the difference
of any two of these logarithms in one table. A set is as risky as the worst: `omega` says by how
many nats that is beyond its budget, and `within` whether it is not beyond it, rounding included. A
table in which T has no mass says nothing about T.

The sums of a set are one column: first L_s for every s of every table, then C for every table. For
two tables with two symbols s each it is (L_1, L_2, L_1', L_2', C, C').

`rules` makes one `StackedSets` for a table of symbols, or for one of classes.
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

    `given_s` has a column of L and C for each symbol (module docstring); that of a set is the sum.
    The methods have the argument `mass`, P(T), as in `MergedSets`, and do not use it: the mass that
    counts is C, which is another one in each table.
    """

    def __init__(self, rows: StackedRows, joint: Joint) -> None:
        self._rows = rows
        self.p_x = joint.p_x
        self.given_s = np.vstack([rows.lift, rows.mass]) * joint.p_x
        self.slack = 2.0 * rounding_slack((len(self.given_s), len(joint.p_x)))

    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """Whether each set keeps all budgets, less the slack for rounding, as in `MergedSets`."""
        used, zeros = self._used(given_s)
        return (used <= -safety * self.slack) & (zeros == 0)

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The worst logarithm beyond its budget; larger is worse, most of all lifts of zero."""
        used, zeros = self._used(given_s)
        return used + ZERO_LIFT_RISK * zeros

    def _used(self, given_s: Array) -> tuple[Array, NDArray[np.intp]]:
        """The largest log lift minus its budget, (k,), and the number of forbidden zero lifts."""
        rows = self._rows
        # The rows of L come first, then a row of C for each table. `table_of` repeats them, so
        # that every row of L has the C of its own table beside it.
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
