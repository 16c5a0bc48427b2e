"""Pricing of averages: the columns v of H(v) + sum_j beta_j L_j(v) < y.v.

There are two ways to find the cheapest columns:

- With two secrets and no polytope some cheapest column mixes at most two symbols, so all pairs are
  priced at once (`PairSearch`).
- Else tangents lie below the leakages (`Tangents`), and `ConcaveSearch` runs over them:
  local searches (`descend`) or branch and bound (`search_tree`). Where a column was found the
  tangents may lie too low, so that it costs more than it seemed to. `touch` adds tangents there, or
  else the next search would find the same column again.

`search_tree` proves a bound either way: what it returns is below the cost of every posterior.

How exact this must be follows from the tolerance of the search (`Charge.aim`). At 1e-4 nats, a
column must gain 2e-6, tangents may lie 1.5e-5 too low, and a tree ends once it proves that nothing
gains 4e-5.

*Two secrets.* Some minimiser of H(v) + sum_j beta_j L_j(v) - y.v has at most two symbols
(docs/explanation/averages-theory.md, 'Supports'). With the share c of the second symbol its cost is

    g(c) = h(c) + sum_j beta_j L_j(w + c d) - (1 - c) y_1 - c y_2,

where h(c) = -c log c - (1 - c) log(1 - c), w are the lifts of the first symbol and w + d those of
the second. All pairs are searched at once, by intervals of c:

1. Each pair begins with the interval [0, 1]; the single symbols are priced by themselves.
2. On an interval a chord lies below the concave h, and the tangent in the middle below the convex
   leakages. What is left is linear in c, so it is least at an end: the bound of the interval
   (`_bounds`). The cost in the middle is that of a possible column (`_cheapest`).
3. Intervals whose bound is below the target are halved; the others are done.

For example, with y = (0.2, 0.4) and no leakage, the chord over [0, 1] is 0, and -0.2 - 0.2 c is
least at c = 1: the bound is -0.4. In the middle the cost is 0.693 - 0.3 = 0.393.

*Branch and bound*: chords lie below the entropy, tangents below the leakage. The kernel of
`ConcaveSearch` minimises a concave function over a polytope, but a leakage L(v) = sum_s P(s) f(w_s)
is convex. So L becomes sum_i r_i, with auxiliary variables r_i >= 0 that cost the multiplier of L
and lie above tangents, rows that are linear in the lifts w = A v:

    mi, chi2          P(s) (f(t) + f'(t) (w_s - t)) <= r_s   for touching lifts t
    tv                P(s) (w_s - 1) <= r_s     (positive parts: half of sum_s P(s) |w_s - 1|)
    maximal-leakage   w_s - 1 <= r              (one r for all s)
    guess             P(s) w_s - P(t) w_t <= r  (one r for all s; t is the likeliest secret)
    gain              the same for every guess, with what it gains in the place of P(s) w_s

On a box the kernel replaces the entropy by its chords, and what is left is a linear program. Its
value bounds H + sum_j beta_j L_j - y.v from below, because L lies above its tangents. (beta_j is
the multiplier of the leakage L_j, and y are the prices of the symbols.) For mi and chi2 the
tangents begin at `FIRST_TANGENTS`; `Tangents.touch` adds more where columns were found, which stay
for all later rounds. `LeakageSearch` puts all rows into one kernel.

For example, chi2 with P(s) = 0.5 and t = 1.5 has f(t) = 0.25 and f'(t) = 1, which gives the row
0.5 w_s - 0.625 <= r_s. At w_s = 1.6 it asks for r_s >= 0.175, where the term itself is 0.18.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.average.goals import LEAST_MULTIPLIER, Charge
from solvers.average.problem import (
    FEW_ULP,
    LEAST_TANGENT,
    AverageProblem,
    Leakage,
    Measure,
)
from solvers.points import Array, Points, entropy_terms
from solvers.pricing.concave import (
    FEWEST_BOXES,
    MEMORY_LIMIT,
    ConcaveSearch,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.sets.polytope import KernelRows, identical_columns, kernel_rows

# --------------------------------------------------------------------- branch and bound

FIRST_TANGENTS = (
    1e-4,
    0.02,
    0.1,
    0.25,
    0.5,
    0.75,
    1.25,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
)
"""Lifts at which the first tangents touch."""


class Tangents:
    """Rows ``slope w_s - offset <= r_i`` below the terms of one leakage, with r_i the i-th term.

    Attributes
    ----------
    top : (i,) array
        Upper bounds of the r_i.
    """

    def __init__(self, matrix: Array, leakage: Leakage) -> None:
        self._matrix = matrix
        self._leakage = leakage
        secrets = leakage.secrets
        count = len(secrets)
        self._secret: list[int] = []
        self._slope: list[float] = []
        self._offset: list[float] = []
        largest = matrix.max(axis=1)
        guesses = leakage.guesses
        if guesses is not None:
            # Rows of differences of what guesses gain, in the place of lifts.
            without = leakage.best(guesses)
            gained = guesses @ matrix
            self._matrix = gained - gained[without]
            for guess in range(len(guesses)):
                if guess != without:
                    self._append(guess, 1.0, 0.0, float(gained.max()))
            top = np.array([float(self._matrix.max())])
        elif leakage.measure is Measure.MAXIMAL_LEAKAGE:
            self._add_kinks(np.ones(count))
            top = np.array([float(largest.max()) - 1.0])
        elif leakage.measure is Measure.TOTAL_VARIATION:
            self._add_kinks(secrets)
            top = secrets * (largest - 1.0)
        else:
            # f is convex, so it is largest at an end of the lifts that occur.
            ends = np.stack([np.zeros(count), largest])
            top = secrets * leakage.term(ends).max(axis=0)
            for s in range(count):
                for touch in FIRST_TANGENTS:
                    if touch < largest[s]:
                        self._add_touching(s, touch)
        # No term of a member is larger; some room for rounding.
        self.top = np.maximum(top, 0.0) * (1.0 + 1e-6) + 1e-9

    def _add_kinks(self, sizes: Array) -> None:
        """The single rows ``size (w_s - 1) <= r`` of a measure with a kink at 1."""
        for s, size in enumerate(sizes.tolist()):
            self._append(s, size, size, size)

    def _add_touching(self, s: int, touch: float) -> None:
        """The tangent of P(s) f at one lift."""
        weight = float(self._leakage.secrets[s])
        at = np.array([touch])
        value = weight * float(self._leakage.term(at)[0])
        slope = weight * float(self._leakage.slope(at)[0])
        self._append(s, slope, slope * touch - value, weight * (1.0 + touch))

    def _append(self, s: int, slope: float, offset: float, size: float) -> None:
        """One row, moved down by what rounding can have added anywhere on the simplex."""
        largest = float(np.abs(self._matrix[s]).max())
        room = FEW_ULP * (size + abs(offset) + abs(slope) * (largest + 1.0))
        self._secret.append(s)
        self._slope.append(slope)
        self._offset.append(offset + room)

    def touch(self, points: Points, room: float) -> int:
        """Add tangents where a term lies more than its part of `room` above those; how many."""
        # Tangents of a measure with a kink are exact.
        if not self._leakage.is_smooth or not len(points):
            return 0
        before = len(self._secret)
        lifts = points.images(self._matrix)
        secrets = self._leakage.secrets
        true = self._leakage.term(lifts) * secrets
        # A term each: if none is further from its tangents, the sum is within the room.
        room /= len(secrets)
        for k in range(len(points)):
            for s in range(len(secrets)):
                lift = float(lifts[k, s])
                if true[k, s] > self._height(s, lift) + room:
                    self._add_touching(s, max(lift, LEAST_TANGENT))
        return len(self._secret) - before

    def _height(self, s: int, lift: float) -> float:
        """The highest tangent of a term at a lift; at least 0, as r_s is."""
        height = 0.0
        for secret, slope, offset in zip(
            self._secret, self._slope, self._offset, strict=True
        ):
            if secret == s:
                height = max(height, slope * lift - offset)
        return height

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """``slope w_s - r_i <= offset``: the columns of v (m, n) and r (m, i), and ends (m,)."""
        secret = np.array(self._secret)
        slope = np.array(self._slope)
        of_points = slope[:, None] * self._matrix[secret]
        of_terms = np.zeros((len(secret), len(self.top)))
        if len(self.top) == 1:
            of_terms[:, 0] = -1.0
        else:
            of_terms[np.arange(len(secret)), secret] = -1.0
        return of_points, of_terms, np.array(self._offset)


class LeakageSearch(ConcaveSearch):
    """`ConcaveSearch` for H(v) + sum_j beta_j L_j(v) - y.v, each L_j above its tangents alone.

    Variables are v, the auxiliary variables of the polytope, then the r_i of each leakage in turn.
    Rows are those of the polytope, the tangents of each leakage, and last sum v = 1.
    """

    def __init__(self, problem: AverageProblem, leakages: Sequence[Tangents]) -> None:
        from solvers._kernel import Search

        self.n = len(problem.point)
        polytope = _polytope_rows(problem)
        self._auxiliaries = len(polytope.top) - self.n
        self._terms = [len(tangents.top) for tangents in leakages]
        matrix, lower, upper = _tangent_rows(leakages, self._auxiliaries)
        no_terms = np.zeros((len(polytope.matrix), sum(self._terms)))
        polytope_rows = np.hstack([polytope.matrix, no_terms])

        def joined(polytope_part: Array, tangent_part: Array) -> Array:
            # The kernel wants the row of ones last.
            return np.concatenate(
                [polytope_part[:-1], tangent_part, polytope_part[-1:]]
            )

        matrix = joined(polytope_rows, matrix)
        # Symbols that no row tells apart are one coordinate, as in `ConcaveSearch`.
        self._members, self._first = identical_columns(matrix[:, : self.n])
        distinct = len(self._first)
        columns = np.concatenate(
            [self._first, np.arange(self.n, matrix.shape[1])]
        ).astype(np.intp)
        top = np.concatenate([polytope.top, *[tangents.top for tangents in leakages]])
        self._kernels: list[Any] = [
            Search(
                np.ascontiguousarray(matrix[:, columns]),
                joined(polytope.outer_lower, lower),
                joined(polytope.outer_upper, upper),
                joined(polytope.inner_lower, lower),
                joined(polytope.inner_upper, upper),
                np.ascontiguousarray(top[columns]),
                distinct,
            )
        ]
        # As in `ConcaveSearch`: the bytes of one box.
        box_bytes = 10 * distinct + 2 * matrix.shape[0] + 64
        self._box_limit = max(FEWEST_BOXES, MEMORY_LIMIT // box_bytes)
        self._pool = None

    def charge(self, multipliers: Array) -> None:
        """Set what a unit of each leakage costs."""
        # Each r_i costs what its leakage does; the auxiliary variables of the polytope are free.
        of_terms = np.repeat(multipliers, self._terms)
        self._auxiliary_costs = np.concatenate([np.zeros(self._auxiliaries), of_terms])


def _tangent_rows(
    leakages: Sequence[Tangents], auxiliaries: int
) -> tuple[Array, Array, Array]:
    """The tangents of all leakages over all variables, and both ends of every row.

    `auxiliaries` is the number of variables between v and the first r_i.
    """
    rows: list[Array] = []
    lower_ends: list[Array] = []
    upper_ends: list[Array] = []
    width = auxiliaries + sum(len(tangents.top) for tangents in leakages)
    before = auxiliaries
    for tangents in leakages:
        of_points, of_terms, upper = tangents.rows
        # Tolerances of the kernel are absolute, so large rows are scaled, by powers of two.
        size = np.abs(of_points).max(axis=1)
        scale = np.exp2(-np.ceil(np.log2(np.maximum(size, 1.0))))
        # The kernel needs finite ends: on the simplex no row is less than this.
        lower = of_points.min(axis=1) - tangents.top.max() - 1.0
        terms = np.zeros((len(upper), width))
        terms[:, before : before + of_terms.shape[1]] = of_terms
        before += of_terms.shape[1]
        rows.append(np.hstack([of_points, terms]) * scale[:, None])
        lower_ends.append(lower * scale)
        upper_ends.append(upper * scale)
    return np.vstack(rows), np.concatenate(lower_ends), np.concatenate(upper_ends)


def _polytope_rows(problem: AverageProblem) -> KernelRows:
    """The rows of the polytopes; without any, the row of ones alone."""
    if problem.inner is not None and problem.outer is not None:
        return kernel_rows(problem.inner, problem.outer)
    n = len(problem.point)
    one = np.ones(1)
    return KernelRows(
        matrix=np.ones((1, n)),
        inner_lower=one,
        inner_upper=one,
        outer_lower=one,
        outer_upper=one,
        top=np.ones(n),
    )


# ------------------------------------------------------------------------------ pricing

# -------------------------------------------------------------------------- two secrets

MOST_SORTED = 50_000
"""Cheap intervals among which columns are chosen."""

ZOOMS = 14
"""Times that the interval around the cheapest share is halved."""

ZOOM_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of an interval that are compared."""

NARROWEST = 1e-9
"""Intervals of shares that are not halved any more; their bounds hold as they are."""

PAIR_ROUNDING = 1e-13
"""Relative error of the bound of an interval, of the sizes of its terms."""


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Pairs of symbols, each with an interval of the second one's share; all arrays are (k,)."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.first)

    @property
    def middle(self) -> Array:
        """The share in the middle of every interval."""
        return 0.5 * (self.low + self.high)

    def take(self, selection: NDArray[np.intp]) -> _Intervals:
        """The intervals with these numbers."""
        return _Intervals(
            self.first[selection],
            self.second[selection],
            self.low[selection],
            self.high[selection],
        )

    def halves(self, is_open: NDArray[np.bool_]) -> _Intervals:
        """Both halves of the open intervals; the others are left out."""
        middle = self.middle[is_open]
        return _Intervals(
            first=np.tile(self.first[is_open], 2),
            second=np.tile(self.second[is_open], 2),
            low=np.concatenate([self.low[is_open], middle]),
            high=np.concatenate([middle, self.high[is_open]]),
        )


class PairSearch:
    """`ConcaveSearch` for H(v) + sum_j beta_j L_j(v) - y.v, for two secrets and no polytope."""

    def __init__(self, problem: AverageProblem) -> None:
        self._problem = problem
        self._lifts = problem.matrix
        self._first, self._second = np.triu_indices(len(problem.point), 1)
        self._multipliers = np.zeros(len(problem.leakages))

    def charge(self, multipliers: Array) -> None:
        """Set what a unit of each leakage costs."""
        self._multipliers = multipliers

    def run(
        self,
        prices: Array,
        *,
        cutoff: float,
        tolerance: float,
        slack: float,
        column_cutoff: float,
        time_limit: float,
        columns: int,
    ) -> SearchResult:
        """As `ConcaveSearch.run`."""
        end = time.process_time() + time_limit
        # Single symbols first: their entropy is zero.
        leakage, _ = self._problem.charged(self._lifts, self._multipliers)
        alone = leakage - prices
        best = float(alone.min())
        size = float(np.abs(prices).max()) + float(leakage.max())
        bound = best - PAIR_ROUNDING * size
        gaining = np.flatnonzero(alone < column_cutoff)
        parts = [Points.units(gaining, len(prices))]
        count = len(self._first)
        intervals = _Intervals(
            self._first, self._second, np.zeros(count), np.ones(count)
        )
        status = SearchStatus.DONE
        nodes = 0
        while len(intervals):
            if time.process_time() > end:
                status = SearchStatus.TIME_LIMIT
                # What is left is bounded by the intervals as they stand.
                least, _ = self._bounds(prices, intervals)
                bound = min(bound, float(least.min()))
                break
            nodes += len(intervals)
            least, cost = self._bounds(prices, intervals)
            cheapest = self._cheapest(prices, intervals, cost, column_cutoff, columns)
            parts.append(cheapest)
            best = min(best, float(cost.min()))
            target = min(cutoff, best - tolerance - slack * abs(best))
            is_wide = intervals.high - intervals.low > NARROWEST
            is_open = (least < target) & is_wide
            # In the end every share lies in an interval that is done: the least bound counts.
            bound = min(bound, float(least[~is_open].min(initial=math.inf)))
            intervals = intervals.halves(is_open)
        points = Points.concatenate(parts)
        return SearchResult(status, bound, points, SearchCounts(nodes))

    def _bounds(self, prices: Array, intervals: _Intervals) -> tuple[Array, Array]:
        """A lower bound of g on every interval, and g in its middle."""
        first, second = intervals.first, intervals.second
        middle = intervals.middle
        width = intervals.high - intervals.low
        at_low = _binary_entropy(intervals.low)
        at_high = _binary_entropy(intervals.high)
        lifts = self._lifts[:, first]
        differences = self._lifts[:, second] - lifts
        leakage, slope = self._problem.charged(
            lifts + middle * differences, self._multipliers
        )
        paid = prices[first] + middle * (prices[second] - prices[first])
        rest = leakage - paid
        # The linear function below g: its value in the middle, and half of its change from end to
        # end, by which one of the ends is lower.
        linear = 0.5 * (at_low + at_high) + rest
        rise = (slope * differences).sum(axis=0)
        rise += prices[first] - prices[second]
        fall = 0.5 * np.abs(at_high - at_low + rise * width)
        steepest = float(np.abs(slope * differences).max(initial=0.0))
        size = 1.0 + float(np.abs(prices).max()) + steepest
        return linear - fall - PAIR_ROUNDING * size, _binary_entropy(middle) + rest

    def _cheapest(
        self,
        prices: Array,
        intervals: _Intervals,
        cost: Array,
        cutoff: float,
        columns: int,
    ) -> Points:
        """The cheapest shares of the cheapest intervals, one for each first symbol.

        `cost` is g in the middles; intervals in which it is not below the cutoff give no column.
        """
        gaining = np.flatnonzero(cost < cutoff)
        if len(gaining) > MOST_SORTED:
            part = np.argpartition(cost[gaining], MOST_SORTED)[:MOST_SORTED]
            gaining = gaining[part]
        order = gaining[np.argsort(cost[gaining], kind="stable")]
        # The first of each symbol in this order is its cheapest.
        _, place = np.unique(intervals.first[order], return_index=True)
        chosen = intervals.take(order[np.sort(place)[:columns]])
        share = self._zoomed(prices, chosen)
        # Unit vectors are priced by themselves.
        proper = (share > 0.0) & (share < 1.0)
        return Points.between(
            chosen.first[proper],
            chosen.second[proper],
            share[proper],
            len(self._problem.point),
        )

    def _zoomed(self, prices: Array, intervals: _Intervals) -> Array:
        """A share of small cost in every interval: the cheapest of five, in ever smaller ones."""
        first, second = intervals.first, intervals.second
        low = intervals.low
        high = intervals.high
        middle = intervals.middle
        for _ in range(ZOOMS):
            costs: list[Array] = []
            for step in ZOOM_STEPS:
                share = low + step * (high - low)
                # Of an interval without width the middle is the share itself.
                single = _Intervals(first, second, share, share)
                costs.append(self._bounds(prices, single)[1])
            at = np.array(ZOOM_STEPS)[np.argmin(costs, axis=0)]
            width = high - low
            middle = low + at * width
            low = np.maximum(low, middle - 0.25 * width)
            high = np.minimum(high, middle + 0.25 * width)
        return middle


def _binary_entropy(share: Array) -> Array:
    return entropy_terms(share) + entropy_terms(1.0 - share)


# ------------------------------------------------------------------------------ pricing

TANGENT_SHARE = 0.15
"""Share of the tolerance by which tangents may lie below a column's true leakage."""

MIXES = (0.5, 0.9, 0.2)
"""Weights of unit vectors in the mixtures with P(x) from which local searches begin."""

COLUMN_SHARE = 0.02
"""Share of the tolerance that a column must gain."""

CUTOFF_SHARE = 0.4
"""Share of the tolerance by which pricing may miss the minimum; the rest is for the master."""

TREE_SHARE = 0.25
"""Share of the tolerance between the cheapest column of a tree and its bound."""

TREE_SLACK = 0.05
"""Share of the (negative) minimum that the bound of a tree may lie below it."""

TREE_COLUMNS = 300
"""Columns that a tree returns at most; as many as there are symbols, if these are more."""


class AveragePricing:
    """The searches of one run.

    `has_descents` says whether there are local searches; with pairs there is nothing for them to
    find. `touched` counts the tangents that were added to the first ones.
    """

    def __init__(self, problem: AverageProblem) -> None:
        self._problem = problem
        self._tangents = [
            Tangents(problem.matrix, leakage) for leakage in problem.leakages
        ]
        self.touched = 0
        # The search over the tangents so far; None after new ones until it is needed again.
        self._kernel: LeakageSearch | None = None
        self._pairs: PairSearch | None = None
        if problem.has_pairs:
            self._pairs = PairSearch(problem)
        self.has_descents = self._pairs is None
        # Decides which mixtures local searches begin with.
        self._turn = 0

    def next_turn(self) -> None:
        """Let the next local search begin with other mixtures."""
        self._turn += 1

    def descend(self, charge: Charge, seconds: float) -> Points:
        """Columns of descents from unit vectors mixed with P(x)."""
        # With `enough=0` the tree is never touched: any number of columns is enough.
        result = self._charged_kernel(charge.multipliers).run(
            charge.prices,
            cutoff=-math.inf,
            tolerance=charge.aim,
            slack=0.0,
            column_cutoff=-COLUMN_SHARE * charge.aim,
            center=self._problem.point,
            mix=MIXES[self._turn % len(MIXES)],
            turn=self._turn,
            enough=0,
            time_limit=seconds,
        )
        return result.points

    def search_tree(self, charge: Charge, seconds: float) -> SearchResult:
        """Branch and bound, which proves a bound of the cost of all posteriors."""
        if self._pairs is not None:
            self._pairs.charge(charge.multipliers)
            search = self._pairs
        else:
            search = self._charged_kernel(charge.multipliers)
        return search.run(
            charge.prices,
            cutoff=-CUTOFF_SHARE * charge.aim,
            tolerance=TREE_SHARE * charge.aim,
            slack=TREE_SLACK,
            column_cutoff=-COLUMN_SHARE * charge.aim,
            columns=max(TREE_COLUMNS, len(charge.prices)),
            time_limit=seconds,
        )

    def _charged_kernel(self, multipliers: Array) -> LeakageSearch:
        """The search over all tangents, in which the leakages cost the multipliers."""
        if self._kernel is None:
            self._kernel = LeakageSearch(self._problem, self._tangents)
        self._kernel.charge(multipliers)
        return self._kernel

    def touch(self, points: Points, charge: Charge) -> None:
        """Add tangents of every leakage where they lie too low at these points."""
        touched = 0
        # Each leakage may miss its share of the aim, in nats; its multiplier converts nats.
        aim = TANGENT_SHARE * charge.aim / len(self._tangents)
        pairs = zip(self._tangents, charge.multipliers, strict=True)
        for tangents, multiplier in pairs:
            room = aim / max(multiplier, LEAST_MULTIPLIER)
            touched += tangents.touch(points, room)
        if touched:
            self.touched += touched
            self._kernel = None
