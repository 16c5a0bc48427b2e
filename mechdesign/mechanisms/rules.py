"""What a promise asks of posteriors, of merged sets of symbols and of integers: all that designers know of it.

`TableRules` are those of one table. `StackedRules` are those of several (`auditing.demands`): of several secrets, of
the tables that earlier releases leave, with budgets of single symbols. For the direction u of earlier outputs, in
the coordinates of posteriors v = P(X|y),

    (L_s - b_s C) v <= 0   and   (a_s C - L_s) v <= 0,   L_s = P(s, x, u) / (P(s) P(x)),  C = P(x, u) / P(x),

a polytope with P_X in it wherever the earlier releases alone keep the promise. Where C is 1 these are bounds on A v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import Demand
from mechdesign.auditing.tuples import columns_on
from mechdesign.auditing.verdict import Audit, audit_demands, failing_demands
from mechdesign.channel.channel import Channel
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms.classes import Classes, classes, merged_columns
from mechdesign.mechanisms.partitions import ZERO_LIFT_RISK, MergedSets, Risk, rounding_slack
from mechdesign.mechanisms.posteriors import OUTWARDS, high_bound, low_bound, posteriors
from mechdesign.mechanisms.rounding import LARGEST_MIXING, UNIT, Judge, Rounded, TableJudge, round_channel
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
class TableRules:
    """A notion on one table."""

    joint: Joint
    notion: Notion

    @property
    def margins(self) -> tuple[float, ...]:
        """How far inside the polytope of the notion the columns lie, to be tried in turn."""
        return MARGINS

    @property
    def mixing(self) -> float:
        """Largest mixing that the repair of a rounded channel may take."""
        return LARGEST_MIXING

    def method(self, asked: str) -> str:
        """How the optimum is searched."""
        return asked

    @property
    def judge(self) -> Judge:
        """Who decides on integers."""
        return TableJudge(self.joint, self.notion)

    def rounded(self, weights: Array, posteriors: object) -> Rounded:
        """The channel of integers of a float design, verified."""
        return round_channel(
            weights, posteriors, self.joint, self.notion, judge=self.judge, largest_mixing=self.mixing
        )

    @cached_property
    def reduced(self) -> Classes:
        """Symbols that the promise cannot tell apart."""
        return classes(self.joint)

    def polytope(self, margin: float = 0.0) -> Polytope:
        """Posteriors of the classes."""
        return posteriors(self.reduced.joint, self.notion, margin=margin)

    def of_symbols(self, margin: float = 0.0) -> Polytope:
        """Posteriors of the symbols themselves."""
        return posteriors(self.joint, self.notion, margin=margin)

    def sets(self, joint: Joint, risk: Risk = "auto") -> MergedSets:
        """Merged sets of the symbols of the whole table, or of that of the classes."""
        return MergedSets(joint.p, self.notion.limits, risk)


@dataclass(frozen=True)
class StackedRules(TableRules):
    """A notion on several tables."""

    demands: Sequence[Demand]

    @cached_property
    def whole(self) -> Rows:
        """All rows over the symbols."""
        return Rows(self.demands, self.joint)

    @cached_property
    def rows(self) -> Rows:
        """All rows over the classes."""
        reduced = self.reduced
        if not reduced.is_reduced:
            return self.whole
        group = reduced.group.tolist()
        merged = [replace(each, counts=merged_columns(each.counts, group)) for each in self.demands]
        return Rows(merged, reduced.joint)

    def method(self, asked: str) -> str:
        """Homogeneous rows meet in far more than n at a vertex, where pivoting ends in ties."""
        return "columns" if asked == "auto" and self.rows.is_homogeneous else asked

    @property
    def margins(self) -> tuple[float, ...]:
        """Homogeneous rows have no margin, so a second try would be the first."""
        return (0.0,) if self.rows.is_homogeneous else MARGINS

    @property
    def mixing(self) -> float:
        """Without margins rows are repaired by mixing alone."""
        return LARGEST_STACKED_MIXING if self.rows.is_homogeneous else LARGEST_MIXING

    @property
    def judge(self) -> Judge:
        """The exact verdict on all tables."""
        return StackedJudge(self.joint, self.notion, self.demands, self.whole)

    @cached_property
    def reduced(self) -> Classes:
        """Symbols with proportional columns in all tables together."""
        stacked = [self.joint.useful_counts, *(row for each in self.demands for row in each.counts)]
        return classes(self.joint, stacked)

    def polytope(self, margin: float = 0.0) -> Polytope:
        """Posteriors of the classes that all tables allow."""
        return self.rows.polytope(margin)

    def of_symbols(self, margin: float = 0.0) -> Polytope:
        """Posteriors of the symbols that all tables allow."""
        return self.whole.polytope(margin)

    def sets(self, joint: Joint, risk: Risk = "auto") -> MergedSets:
        """Merged sets judged by all tables."""
        del risk
        return StackedSets(self.whole if joint is self.joint else self.rows, joint)


class Rows:
    """L (a row for each symbol of each table) and C (one for each table) in floating point, with their budgets."""

    def __init__(self, demands: Sequence[Demand], joint: Joint) -> None:
        total, useful = joint.total, joint.useful_counts
        lift: list[list[float]] = []
        mass: list[list[float]] = []
        differing: list[bool] = []
        for each in demands:
            sums = [sum(column) for column in zip(*each.counts, strict=True)]
            whole = sum(sums)
            base = [whole * count for count in useful]
            mass.append([part * total / below for part, below in zip(sums, base, strict=True)])
            differing.append(any(part * total != below for part, below in zip(sums, base, strict=True)))
            prior = sum(each.sums)
            for row, share in zip(each.counts, each.sums, strict=True):
                cells = zip(row, base, strict=True)
                lift.append([part * total * prior / (below * share) for part, below in cells])
        self.lift, self.mass, self.p_x = np.array(lift), np.array(mass), joint.p_x
        sizes = [len(each.sums) for each in demands]
        self.of = np.repeat(np.arange(len(demands)), sizes)
        self.starts = np.concatenate(([0], np.cumsum(sizes)))
        self.differing = np.array(differing)
        self.lower = np.array([side for each in demands for side in each.lower])
        self.upper = np.array([side for each in demands for side in each.upper])
        self.ratio = demands[0].ratio

    @property
    def is_homogeneous(self) -> bool:
        """Whether some rows are inequalities between two linear functions of v."""
        return bool(self.differing.any()) or math.isfinite(self.ratio)

    def polytope(self, margin: float) -> Polytope:
        """{v : all rows}; rows without C = 1 have no margin, for an output may have no mass under them."""
        plain = ~self.differing[self.of] & (np.isfinite(self.lower) | np.isfinite(self.upper))
        rows = [self.lift[plain]]
        lower = [np.array([low_bound(side, margin) for side in self.lower[plain]])]
        upper = [np.array([high_bound(side, margin) for side in self.upper[plain]])]
        # A constant on both sides gives homogeneous rows a scale: sum v = 1.
        positive, negative = self.opposed(~plain)
        size = (positive + negative).max(axis=1, initial=0.0)
        kept = (positive > negative).any(axis=1)
        positive, negative, size = positive[kept], negative[kept], np.exp2(np.ceil(np.log2(size[kept])))
        rows.append(positive - negative + size[:, None])
        lower.append(np.full(len(size), -np.inf))
        upper.append(size if margin > 0.0 else size * (1.0 + OUTWARDS))
        return Polytope(np.vstack(rows), np.concatenate(lower), np.concatenate(upper))

    def opposed(self, chosen: NDArray[np.bool_]) -> tuple[Array, Array]:
        """The two sides of all inequalities ``positive v <= negative v`` of chosen rows, and of all quotients."""
        up = np.flatnonzero(chosen & np.isfinite(self.upper))
        low = np.flatnonzero(chosen & np.isfinite(self.lower))
        mass = self.mass[self.of]
        positive = [self.lift[up], np.exp(-self.lower[low])[:, None] * mass[low]]
        negative = [np.exp(self.upper[up])[:, None] * mass[up], self.lift[low]]
        if math.isfinite(self.ratio):
            for a, b in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
                s, t = np.nonzero(~np.eye(b - a, dtype=np.bool_))
                positive.append(self.lift[a + s])
                negative.append(math.exp(self.ratio) * self.lift[a + t])
        return np.vstack(positive), np.vstack(negative)


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


@dataclass(frozen=True)
class StackedJudge:
    """See `rounding.Judge`."""

    joint: Joint
    notion: Notion
    demands: Sequence[Demand]
    rows: Rows

    def verdict(self, channel: Channel) -> Audit:
        """The exact audit of all tables."""
        return audit_demands(columns_on(channel, self.joint), channel.outputs, self.demands, self.notion)

    def failing(self, channel: Channel) -> tuple[int, ...]:
        """Outputs that violate one of them."""
        return failing_demands(columns_on(channel, self.joint), self.demands)

    def needed(self, rows: IntegerRows, failing: tuple[int, ...]) -> Array:
        """See `rounding.TableJudge.needed`: a row that fails by e and has c to spare at a constant needs e / c."""
        w = np.zeros((rows.shape[0], len(failing)))
        for k, y in enumerate(failing):
            at, values = rows.columns[y]
            w[list(at), k] = np.array(values) * UNIT
        positive, negative = self.rows.opposed(np.ones(len(self.rows.of), dtype=np.bool_))
        w *= self.joint.p_x[:, None]
        spare = ((negative - positive) @ self.joint.p_x)[:, None]
        excess = np.maximum((positive - negative) @ w, 0.0)
        size = (positive + negative) @ self.joint.p_x
        excess += UNIT * (2.0 * size[:, None] + 8.0 * ((positive + negative) @ w))
        with np.errstate(divide="ignore"):
            needed = np.where(spare > 0.0, excess / spare, np.inf)
        return np.maximum(2.0 * UNIT, needed.max(axis=0))
