"""What a promise asks of posteriors, of merged sets of symbols and of integers: all that designers know of it.

It is about one table, or about several (`auditing.demands`): of several secrets, of the tables that earlier releases
leave, with budgets of single symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.lifts import Demand
from mechdesign.mechanisms.classes import Classes, classes, merged_columns
from mechdesign.mechanisms.partitions import ZERO_LIFT_RISK, MergedSets, Risk, rounding_slack
from mechdesign.mechanisms.posteriors import Rows, posteriors
from mechdesign.mechanisms.rounding import LARGEST_MIXING, Rounded, TableJudge, round_channel
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import Polytope

Array = NDArray[np.float64]

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
"""Margins tried in turn until the rounded channel passes the exact audit: the first is enough for nearly
every table; at small budgets utility is steep in the budget, so the last ones are a last resort."""

LARGEST_STACKED_MIXING = 1e-3
"""As `LARGEST_MIXING`, without margins: what earlier releases left may be little, and repair then costs more."""


@dataclass(frozen=True)
class Rules:
    """A notion on a table, or on the tables of `demands` over its useful symbols."""

    joint: Joint
    notion: Notion
    demands: Sequence[Demand] | None = None

    @cached_property
    def judge(self) -> TableJudge:
        """Who decides on integers."""
        return TableJudge(self.joint, self.notion, self.demands)

    @cached_property
    def reduced(self) -> Classes:
        """Symbols that the promise cannot tell apart: with proportional columns in all tables."""
        stacked = [row for each in self.demands or () for row in each.counts]
        return classes(self.joint, [self.joint.useful_counts, *stacked] if stacked else ())

    @cached_property
    def rows(self) -> Rows | None:
        """All rows over the classes, where there are several tables."""
        if self.demands is None:
            return None
        group = self.reduced.group.tolist()
        merged = [replace(each, counts=merged_columns(each.counts, group)) for each in self.demands]
        return Rows(merged, self.reduced.joint)

    @property
    def is_homogeneous(self) -> bool:
        """Whether some rows compare two functions of an output that may have no mass: then they have no margin."""
        return self.rows is not None and self.rows.is_homogeneous

    @property
    def margins(self) -> tuple[float, ...]:
        """How far inside the polytope of the notion the columns lie, to be tried in turn."""
        return (0.0,) if self.is_homogeneous else MARGINS

    def method(self, asked: str) -> str:
        """How the optimum is searched: homogeneous rows meet in far more than n at a vertex, and pivoting ties."""
        return "columns" if asked == "auto" and self.is_homogeneous else asked

    def polytope(self, margin: float = 0.0) -> Polytope:
        """Posteriors of the classes."""
        if self.rows is not None:
            return self.rows.polytope(margin)
        return posteriors(self.reduced.joint, self.notion, margin=margin)

    def of_symbols(self, margin: float = 0.0) -> Polytope:
        """Posteriors of the symbols themselves."""
        if self.demands is not None:
            return Rows(self.demands, self.joint).polytope(margin)
        return posteriors(self.joint, self.notion, margin=margin)

    def sets(self, joint: Joint, risk: Risk = "auto") -> MergedSets:
        """Merged sets of the symbols of the whole table, or of that of the classes."""
        if self.demands is None or self.rows is None:
            return MergedSets(joint.p, self.notion.limits, risk)
        return StackedSets(self.rows if joint is self.reduced.joint else Rows(self.demands, joint), joint)

    def rounded(self, weights: Array, posteriors: object) -> Rounded:
        """The channel of integers of a float design, verified."""
        mixing = LARGEST_STACKED_MIXING if self.is_homogeneous else LARGEST_MIXING
        joint, notion = self.joint, self.notion
        return round_channel(weights, posteriors, joint, notion, judge=self.judge, largest_mixing=mixing)


class StackedSets(MergedSets):
    """Merged sets of symbols judged by all rows; `given_s` has L and C of a set, which add up over its members."""

    def __init__(self, rows: Rows, joint: Joint) -> None:
        self._rows, self.p_x = rows, joint.p_x
        self.given_s = np.vstack([rows.lift, rows.mass]) * joint.p_x
        self._slack = 2.0 * rounding_slack((len(self.given_s), len(joint.p_x)))

    def within(self, given_s: Array, mass: Array) -> NDArray[np.bool_]:
        """Surely private."""
        used, zeros = self._used(given_s)
        return (used <= -self._slack) & (zeros == 0)

    def nearly_within(self, given_s: Array, mass: Array) -> NDArray[np.bool_]:
        """Perhaps private."""
        used, zeros = self._used(given_s)
        return (used <= self._slack) & (zeros == 0)

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The worst logarithm beyond its budget; larger is worse, most of all lifts of zero."""
        used, zeros = self._used(given_s)
        return used + ZERO_LIFT_RISK * zeros

    def _used(self, given_s: Array) -> tuple[Array, NDArray[np.intp]]:
        """The largest log lift minus its budget, (k,), and how many lifts are zero that must not be."""
        rows = self._rows
        lift, mass = given_s[: len(rows.of)], given_s[len(rows.of) :][rows.of]
        occurs = mass > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(occurs, np.log(lift / mass), 0.0)
        bounded = np.isfinite(rows.lower)[:, None] | math.isfinite(rows.ratio)
        zero = np.isinf(logs)
        zeros = (zero & bounded).sum(axis=0)
        logs = np.where(zero, 0.0, logs)
        used = np.maximum((logs - rows.upper[:, None]).max(axis=0), (-logs - rows.lower[:, None]).max(axis=0))
        if math.isfinite(rows.ratio):
            high, low = (each.reduceat(logs, rows.starts[:-1]) for each in (np.maximum, np.minimum))
            used = np.maximum(used, (high - low).max(axis=0) - rows.ratio)
        return used, zeros
