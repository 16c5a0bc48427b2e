"""The rows that a promise about several tables puts on a posterior, and the polytope that they are.

There are several tables in two cases (`auditing.demands`). Where several secrets are protected,
there is one for each of them. Where the same record was released before, by channels W1, .., Wk
with the outputs y1, .., yk, there is one for each vector u(x) = W1(y1|x) .. Wk(yk|x), up to a
factor. Its counts are what u leaves of those of P(s, x), and P(. | u) is their law. Without earlier
releases u is 1.

Given u, an output with posterior v has the lift (L_s v) / (C v), with

    L_s(x) = P(s, x | u) / (P(s) P(x)),   C(x) = P(x | u) / P(x).

Where a_s and b_s are the least and the largest lift, the bounds on it are the rows

    (L_s - b_s C) v <= 0   and   (a_s C - L_s) v <= 0,

and a bound on the quotients of lifts is (L_s - e^eps L_t) v <= 0 for all s and t. Where C is 1, as
for a table without earlier releases, they are bounds on L v, and L is the A of `posteriors`. All
together they are a polytope with P_X in it wherever the earlier releases alone keep the promise.

For example, let P(x) = (1/2, 1/2), P(s) = 1/2, and let u leave the counts (3, 1) of s and (1, 1) of
the other secret. Then C = (4/3, 2/3) and L_s = (2, 2/3), and with b_s = 1.4 the row of s is
2/15 v_1 <= 4/15 v_2, so v_1 is 2/3 at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import Demand
from mechdesign.mechanisms.posteriors import OUTWARDS, high_bound, low_bound
from mechdesign.tables.joint import Joint
from solvers import Array, Polytope

UPPER, LOWER, QUOTIENT = "upper", "lower", "quotient"


class StackedRows:
    """The rows of several tables in floating point, with their budgets.

    `Rules` makes them of the demands of a promise. `polytope` is for the search, the arrays are for
    merged sets (`partitions`), and `needed` is for the repair of a rounded channel.

    Attributes
    ----------
    lift, mass : arrays
        L, a row for each symbol of each table, and C, one for each table (module docstring).
    table_of : (rows of L,) array
        The table of each row of L.
    starts : (tables + 1,) array
        The first row of each table.
    differing : (tables,) array of bool
        Where C is not 1.
    lower, upper, ratio
        Budgets of the rows of L, and of their quotients.
    """

    def __init__(self, demands: Sequence[Demand], joint: Joint) -> None:
        total = joint.total
        lift: list[list[float]] = []
        mass: list[list[float]] = []
        differing: list[bool] = []
        for demand in demands:
            # Products of integers, each quotient rounded once: a quotient of equal numbers is
            # exactly 1. With N records and n(s, x) the counts of the demand, P(x | u) =
            # sums[x] / whole and P(x) = count / N, where sums[x] is the sum of n(s, x) over s.
            sums = [sum(column) for column in zip(*demand.counts, strict=True)]
            whole = sum(sums)
            base = [whole * count for count in joint.useful_counts]
            scaled = [part * total for part in sums]
            mass.append(_quotients(scaled, base))
            differing.append(scaled != base)
            prior = sum(demand.sums)
            # L_s(x) = (n(s, x) / whole) / ((share / prior) (count / N)).
            for row, share in zip(demand.counts, demand.sums, strict=True):
                tops = [cell * total * prior for cell in row]
                lift.append(_quotients(tops, [part * share for part in base]))
        self.lift = np.array(lift)
        self.mass = np.array(mass)
        self.p_x = joint.p_x
        sizes = [len(demand.sums) for demand in demands]
        self.table_of = np.repeat(np.arange(len(demands)), sizes)
        self.starts = np.concatenate(([0], np.cumsum(sizes)))
        self.differing = np.array(differing)
        self.lower = np.concatenate([np.array(demand.lower) for demand in demands])
        self.upper = np.concatenate([np.array(demand.upper) for demand in demands])
        self.ratio = demands[0].ratio

    @property
    def is_homogeneous(self) -> bool:
        """Whether some rows are inequalities between two linear functions of v."""
        return bool(self.differing.any()) or math.isfinite(self.ratio)

    def polytope(self, margin: float, reach: float = math.inf) -> Polytope:
        """{v : all rows}, smaller by `margin`; budgets beyond `reach` as in `posteriors.low_bound`.

        Under rows with C other than 1 an output may have no mass: their margin is a factor.
        """
        # Rows with C = 1 are bounds on L v.
        bounded = np.isfinite(self.lower) | np.isfinite(self.upper)
        plain = ~self.differing[self.table_of] & bounded
        most = self.lift.max()
        plain_lower = [low_bound(side, margin, reach) for side in self.lower[plain]]
        plain_upper = [
            high_bound(side, margin, reach, most) for side in self.upper[plain]
        ]

        # Homogeneous rows have no scale, which tolerances need. As sum v = 1, the same constant
        # may be added to both sides of positive v <= negative v: it is the size of the row.
        positive, negative, far = self.opposed(~plain, reach)
        size = (positive + negative).max(axis=1, initial=0.0)
        # Rows that hold for every v >= 0 restrict nothing.
        binding = (positive > negative).any(axis=1)
        # Powers of two, so that adding the constant and its end rounds alike.
        size = np.exp2(np.ceil(np.log2(size[binding])))
        rows = (1.0 + margin) * positive[binding] - negative[binding] + size[:, None]
        ends = size
        if margin <= 0.0:
            # For bounds: rows beyond the reach must hold for every v, that is for its unit vectors.
            ends = size * (1.0 + OUTWARDS)
            widest = np.maximum(ends, rows.max(axis=1, initial=0.0))
            ends = np.where(far[binding], widest, ends)
        return Polytope(
            np.vstack([self.lift[plain], rows]),
            np.concatenate([plain_lower, np.full(len(size), -np.inf)]),
            np.concatenate([plain_upper, ends]),
        )

    def opposed(
        self, chosen: NDArray[np.bool_], reach: float = math.inf
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The sides of ``positive v <= negative v``, of chosen rows and all quotients.

        Upper bounds are L v <= b C v, lower ones a C v <= L v, quotients L_s v <= e^ratio L_t v.
        The last result is which of them are beyond `reach`.
        """
        up = np.flatnonzero(chosen & np.isfinite(self.upper))
        low = np.flatnonzero(chosen & np.isfinite(self.lower))
        mass = self.mass[self.table_of]
        positive = [
            self.lift[up],
            np.exp(-np.minimum(self.lower[low], reach))[:, None] * mass[low],
        ]
        negative = [
            np.exp(np.minimum(self.upper[up], reach))[:, None] * mass[up],
            self.lift[low],
        ]
        far = [self.upper[up] > reach, self.lower[low] > reach]
        if math.isfinite(self.ratio):
            # Every ordered pair of symbols of each table.
            for first, end in pairwise(self.starts.tolist()):
                s, t = np.nonzero(~np.eye(end - first, dtype=np.bool_))
                positive.append(self.lift[first + s])
                factor = math.exp(min(self.ratio, reach))
                negative.append(factor * self.lift[first + t])
                far.append(np.full(len(s), self.ratio > reach))
        return np.vstack(positive), np.vstack(negative), np.concatenate(far)

    def names(self, chosen: NDArray[np.bool_]) -> list[tuple[str, int, int]]:
        """What the rows of `opposed` bound: the upper or the lower end of a row s of L, or its
        quotient by a row t.
        """
        found = [
            (UPPER, int(s), -1)
            for s in np.flatnonzero(chosen & np.isfinite(self.upper))
        ]
        for s in np.flatnonzero(chosen & np.isfinite(self.lower)):
            found.append((LOWER, int(s), -1))
        if math.isfinite(self.ratio):
            for first, end in pairwise(self.starts.tolist()):
                for s, t in permutations(range(first, end), 2):
                    found.append((QUOTIENT, s, t))
        return found

    def needed(self, w: Array, unit: float) -> Array:
        """The weight on all entries that brings each column of `w` (n, k) inside, (k,).

        Entries are wrong by up to `unit`. A row that fails by e, and has the slack c at a constant
        column, needs the weight e / c. A row without slack needs an infinite one.
        """
        all_rows = np.ones(len(self.table_of), dtype=np.bool_)
        positive, negative, _ = self.opposed(all_rows)
        masses = w * self.p_x[:, None]
        spare = ((negative - positive) @ self.p_x)[:, None]
        size = ((positive + negative) @ self.p_x)[:, None]
        excess = np.maximum((positive - negative) @ masses, 0.0)
        excess += unit * (2.0 * size + 8.0 * ((positive + negative) @ masses))
        with np.errstate(divide="ignore"):
            needed = np.where(spare > 0.0, excess / spare, np.inf)
        return np.maximum(2.0 * unit, needed.max(axis=0))


def _quotients(tops: Sequence[int], bottoms: Sequence[int]) -> list[float]:
    """Quotients of integers of any size, each rounded once."""
    return [top / bottom for top, bottom in zip(tops, bottoms, strict=True)]
