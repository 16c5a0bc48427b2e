"""Exact pricing where every row of the polytope bounds a single coordinate.

Pricing looks for members v of least reduced cost sum_j [phi(v_j) - y_j v_j], phi(x) = -x log x,
where y are the prices of a master program. With rows of one coordinate each there are two sets:

    box         {v : sum v = 1, low_j <= v_j <= high_j}
    staircase   {v : sum v = 1, t w_j <= v_j <= factor t w_j for some t >= 0}

The *box*. On [low_j, high_j] the chord of a term lies below it, so the least sum of the chords
bounds the minimum. It is found by sorting: coordinates of the least slopes are filled first. All
but one of them stand at an end, where chords are exact, so the interval of that one is cut in two
at its value (`BoxSearch`).

The *staircase*. Its vertices are v_j = t w_j or factor t w_j, so they are the sets T of coordinates
at the upper step (docs/explanation/optimum-theory.md, 'The column itself'). With k = factor - 1, q
= w(T) and z = w(all) + k q the step is t = 1 / z, and the reduced cost is

    log z - (c + a(T)) / z,    c = sum_j w_j (log w_j + y_j),
                               a_j = w_j (k (log w_j + y_j) + factor log factor).

For given q it falls with a(T): a knapsack. Its relaxation, in which one coordinate may be taken in
part, is solved by sorting by a_j / w_j; it is exact wherever no coordinate is in part, else that
coordinate is decided both ways (`StaircaseSearch`).

For example, two coordinates with w = (1/2, 1/2), the factor 3 and prices 0 have c = -log 2 and a_j
= (3 log 3 - 2 log 2) / 2 = 0.955. T = {0} has z = 2 and the vertex (3/4, 1/4) of cost log 2 -
(0.955 - 0.693) / 2 = 0.562.

Invariant: bounds are for the relaxation and lowered by what rounding can have added; points are
members of the polytope.
"""

from __future__ import annotations

import heapq
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.pace import end_of
from solvers.points import Array, Points, entropy_terms
from solvers.pricing.concave import (
    MAX_COLUMNS,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.sets.polytope import Polytope

ROUNDING = 32.0 * float(np.finfo(np.float64).eps)
"""Error of one term of a bound relative to the sum of all moduli, generously."""

FEW_NODES = 64
"""Nodes between two looks at the clock."""

REPORT_SECONDS = 0.2
"""Time between two reports of the bound."""

LEAF_SHARE = 0.1
"""A node whose bound is closer to its own point than this share of the tolerance is not split."""

LEAST_FALL = 1e-12
"""A fall of the cost below this is rounding."""

SAME_POINT = 12
"""Digits of coordinates by which two columns are told apart."""


@dataclass(frozen=True, eq=False)
class Steps:
    """{v : sum v = 1, weights (t + shift) <= v <= weights (factor t + room) for some t >= 0}."""

    weights: Array
    factor: float
    shift: float
    room: float


@dataclass(frozen=True, eq=False)
class Ends:
    """{v : sum v = 1, low <= v <= high}."""

    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class _Node:
    """An open node: its bound, the point that goes with it, and how it would be split.

    `state` are both ends of every coordinate of a box, or what is decided on a staircase.
    """

    bound: float
    cost: float
    state: Any
    coordinate: int
    value: float


def separate_search(
    polytope: Polytope, relaxation: Polytope
) -> StaircaseSearch | BoxSearch | None:
    """The search where all rows bound one coordinate each; None for other polytopes."""
    if not polytope.may_be_separate:
        return None
    steps = _steps(polytope)
    outer_steps = _steps(relaxation)
    if steps is not None and outer_steps is not None:
        # The bound needs a cone, without any room beside the steps.
        if outer_steps.shift > 0.0 or outer_steps.room > 0.0 or steps.room > 0.0:
            return None
        return StaircaseSearch(steps, outer_steps)
    ends = _ends(polytope)
    outer_ends = _ends(relaxation)
    if ends is None or outer_ends is None:
        return None
    return BoxSearch(ends, outer_ends)


def staircase(polytope: Polytope) -> StaircaseSearch | None:
    """The staircase that a polytope is, with its vertices; None for other polytopes."""
    if not polytope.may_be_separate:
        return None
    steps = _steps(polytope)
    if steps is None or steps.room > 0.0:
        return None
    return StaircaseSearch(steps, steps)


def staircase_vertices(polytope: Polytope, most: int) -> Array | None:
    """All vertices of a staircase, one for each set of coordinates; None if these are more than
    `most`, or the polytope is no staircase.
    """
    n = polytope.n
    if (1 << n) - 2 > most:
        return None
    found = staircase(polytope)
    if found is None:
        return None
    numbers = np.arange(1, (1 << n) - 1)[:, None]
    return found.members((numbers >> np.arange(n)) & 1 == 1)


class _SeparateSearch(ABC):
    """Branch and bound over nodes whose relaxations are solved by sorting."""

    def __init__(self, n: int) -> None:
        self.n = n

    @abstractmethod
    def _root(self, prices: Array) -> _Node | None:
        """The whole set; None if there is no member."""

    @abstractmethod
    def _children(self, node: _Node, prices: Array) -> Sequence[_Node]:
        """Both halves of a node, without those that are empty."""

    @abstractmethod
    def _points(self, node: _Node, prices: Array) -> Array:
        """Members of the polytope near the point of the node, (k, n)."""

    @abstractmethod
    def _many_points(self, prices: Array, turn: int) -> Array:
        """Members of low reduced cost found without any tree, (k, n)."""

    def run(
        self,
        prices: Array,
        *,
        cutoff: float,
        tolerance: float,
        slack: float,
        column_cutoff: float,
        columns: int = MAX_COLUMNS,
        turn: int = 0,
        enough: int | None = None,
        time_limit: float | None = None,
        node_limit: int | None = None,
        progress: Callable[[float], None] | None = None,
        **start: Any,
    ) -> SearchResult:
        """Search for points cheaper than `column_cutoff`; the options of `ConcaveSearch.run`.

        `start`, where local searches of the tree begin, is not used: sorting needs no start.
        """
        found: list[Array] = []
        if start:
            points = self._cheap(self._many_points(prices, turn), prices, column_cutoff)
            if enough is not None and len(points) >= enough:
                return SearchResult(
                    SearchStatus.COLUMNS, -math.inf, points, SearchCounts()
                )
            found.append(points.toarray())
        end = end_of(time_limit)
        root = self._root(prices)
        heap: list[tuple[float, int, _Node]] = []
        if root is not None:
            heap.append((root.bound, 0, root))
        best = math.inf
        closed = math.inf
        nodes = 0
        count = 0
        status = SearchStatus.DONE
        next_report = time.process_time() + REPORT_SECONDS
        while heap:
            bound, _, node = heapq.heappop(heap)
            if bound > cutoff:
                # Every other open node has a larger bound still.
                heapq.heappush(heap, (bound, 0, node))
                break
            nodes += 1
            best = min(best, node.cost)
            cutoff = min(cutoff, best - tolerance - slack * abs(best))
            points = self._points(node, prices)
            if node.cost < column_cutoff:
                found.append(points)
                count += len(points)
            leaf = LEAF_SHARE * (tolerance + slack * abs(best))
            if node.coordinate < 0 or node.cost - bound <= leaf:
                closed = min(closed, bound)
            else:
                for child in self._children(node, prices):
                    heapq.heappush(heap, (child.bound, 2 * nodes + len(heap), child))
            if count >= columns:
                status = SearchStatus.COLUMNS
                break
            if node_limit is not None and nodes >= node_limit:
                status = SearchStatus.NODE_LIMIT
                break
            if nodes % FEW_NODES == 1:
                now = time.process_time()
                if now > end:
                    status = SearchStatus.TIME_LIMIT
                    break
                if progress is not None and now > next_report:
                    progress(min(_least(heap), closed, cutoff))
                    next_report = now + REPORT_SECONDS
        least = min(_least(heap), closed, cutoff)
        dense = np.zeros((0, self.n))
        if found:
            dense = np.vstack(found)
        return SearchResult(
            status,
            least,
            self._cheap(dense, prices, column_cutoff),
            SearchCounts(nodes=nodes, programs=nodes, pivots=nodes),
        )

    def _cheap(self, dense: Array, prices: Array, column_cutoff: float) -> Points:
        """Those of the points that cost less than the cut-off, each once."""
        cost = entropy_terms(dense).sum(axis=1) - dense @ prices
        dense = dense[cost < column_cutoff]
        _, first = np.unique(np.round(dense, SAME_POINT), axis=0, return_index=True)
        return Points.from_dense(dense[np.sort(first)][:MAX_COLUMNS])


def _least(heap: list[tuple[float, int, _Node]]) -> float:
    """The least bound of the open nodes."""
    if not heap:
        return math.inf
    return heap[0][0]


# --------------------------------------------------------------------- staircase

LOW = -1
FREE = 0
HIGH = 1


class StaircaseSearch(_SeparateSearch):
    """The search over the vertices of a staircase, which are sets at the upper step."""

    def __init__(self, inner: Steps, outer: Steps) -> None:
        super().__init__(len(outer.weights))
        self._inner = inner
        self._outer = outer
        self._whole = math.fsum(outer.weights.tolist())
        self._log = np.log(outer.weights)

    @property
    def factor(self) -> float:
        """Of the upper step."""
        return self._inner.factor

    def selections(self) -> list[tuple[Array, Points]]:
        """Known decompositions of the weights: sets of neighbours in a circle, all of one size.

        If every coordinate is in the same number of sets, the vertices with weights proportional to
        z have the mean w. The sets of one coordinate are randomised response; about n / (factor +
        1) coordinates are best where all weights are the same (Ye and Barg 2018).
        """
        found: list[tuple[Array, Points]] = []
        n = self.n
        best = round(n / (self._inner.factor + 1.0))
        sizes = sorted({1, min(max(best, 1), n - 1)})
        # Neighbours of equal weights, and of weights that have nothing to do with each other; a
        # fixed seed, because the same problem has the same columns.
        orders = (
            np.argsort(self._inner.weights, kind="stable"),
            np.random.default_rng(0).permutation(n),
        )
        for size in sizes:
            for order in orders:
                members = order[(np.arange(n)[:, None] + np.arange(size)) % n]
                sets = np.zeros((n, n), np.bool_)
                np.put_along_axis(sets, members, True, axis=1)
                points = self.members(sets)
                mass = (
                    self._whole
                    + (self._inner.factor - 1.0) * sets @ self._inner.weights
                )
                found.append((mass / mass.sum(), Points.from_dense(points)))
        return found

    def _gains(self, prices: Array) -> tuple[float, Array, float]:
        """c, a and an allowance for the rounding of a bound, see the module's text."""
        outer = self._outer
        single = outer.weights * (self._log + prices)
        step = outer.factor * math.log(outer.factor)
        gains = (outer.factor - 1.0) * single + step * outer.weights
        constant = math.fsum(single.tolist())
        moduli = outer.weights * (np.abs(self._log) + np.abs(prices))
        size = outer.factor * float(moduli.sum()) + step * self._whole
        # z is between w(all) and factor w(all), both of order one.
        size = size / self._whole + abs(math.log(self._whole)) + math.log(outer.factor)
        return constant, gains, ROUNDING * (self.n + 4) * (size + 1.0)

    def _root(self, prices: Array) -> _Node | None:
        return self._node(np.zeros(self.n, np.int8), prices)

    def _node(self, state: NDArray[np.int8], prices: Array) -> _Node:
        """The knapsack with some coordinates decided, relaxed and solved by sorting."""
        outer = self._outer
        constant, gains, allowance = self._gains(prices)
        k = outer.factor - 1.0
        order, taken, gained = self._prefixes(state, gains)
        z = self._whole + k * taken
        at_sets = np.log(z) - (constant + gained) / z
        first = int(np.argmin(at_sets))
        cost = float(at_sets[first])
        bound = cost
        coordinate = -1
        if len(order):
            # Between two sets a(q) is linear: the cost is log z - slope / k - rest / z.
            slope = gains[order] / outer.weights[order]
            rest = constant + gained[:-1] - slope * (taken[:-1] + self._whole / k)
            inside = (z[:-1] < -rest) & (-rest < z[1:])
            at_least = np.full(len(order), math.inf)
            lowest = np.log(np.where(inside, -rest, 1.0)) - slope / k + 1.0
            at_least[inside] = lowest[inside]
            worst = int(np.argmin(at_least))
            if at_least[worst] < bound:
                bound = float(at_least[worst])
                coordinate = int(order[worst])
        return _Node(bound - allowance, cost, state, coordinate, 0.0)

    def _prefixes(
        self, state: NDArray[np.int8], gains: Array
    ) -> tuple[NDArray[np.intp], Array, Array]:
        """The free coordinates by falling gain for their weight; w(T) and a(T) of each prefix."""
        weights = self._outer.weights
        free = np.flatnonzero(state == FREE)
        order = free[np.argsort(-gains[free] / weights[free], kind="stable")]
        high = state == HIGH
        taken = np.concatenate([[weights[high].sum()], weights[order]]).cumsum()
        gained = np.concatenate([[gains[high].sum()], gains[order]]).cumsum()
        return order, taken, gained

    def _children(self, node: _Node, prices: Array) -> Sequence[_Node]:
        children: list[_Node] = []
        for decision in (LOW, HIGH):
            state = node.state.copy()
            state[node.coordinate] = decision
            children.append(self._node(state, prices))
        return children

    def _points(self, node: _Node, prices: Array) -> Array:
        """The vertices of all prefixes of the node's order."""
        _, gains, _ = self._gains(prices)
        return self.members(self._sets(node.state, gains))

    def _many_points(self, prices: Array, turn: int) -> Array:
        """All prefixes, and the cheapest of them with one coordinate decided the other way."""
        _, gains, _ = self._gains(prices)
        sets = self._sets(np.zeros(self.n, np.int8), gains)
        vertices = self.members(sets)
        cost = entropy_terms(vertices).sum(axis=1) - vertices @ prices
        cheapest = sets[int(np.argmin(cost))]
        near = np.repeat(cheapest[None, :], self.n, axis=0)
        near[np.arange(self.n), np.arange(self.n)] ^= True
        return np.vstack([vertices, self.members(near)])

    def _sets(self, state: NDArray[np.int8], gains: Array) -> NDArray[np.bool_]:
        """The set of every prefix, (k, n)."""
        order, _, _ = self._prefixes(state, gains)
        sets = np.zeros((len(order) + 1, self.n), np.bool_)
        sets[:, state == HIGH] = True
        for place, coordinate in enumerate(order.tolist()):
            sets[place + 1 :, coordinate] = True
        return sets

    def members(self, sets: NDArray[np.bool_]) -> Array:
        """The members of the inner staircase with these sets (k, n) at the upper step; (k, n)."""
        inner = self._inner
        weights = inner.weights
        upper = np.where(sets, weights, 0.0).sum(axis=1)
        lower = np.where(sets, 0.0, weights).sum(axis=1)
        # t so that sum v = 1.
        step = (1.0 - inner.shift * lower) / (lower + inner.factor * upper)
        low = (step + inner.shift)[:, None] * weights
        high = (inner.factor * step)[:, None] * weights
        return np.where(sets, high, low)


# --------------------------------------------------------------------------- box


class BoxSearch(_SeparateSearch):
    """The search over a box, by chords."""

    def __init__(self, inner: Ends, outer: Ends) -> None:
        super().__init__(len(outer.low))
        self._inner = inner
        self._outer = outer

    def _root(self, prices: Array) -> _Node | None:
        return self._node(self._outer.low, self._outer.high, prices)

    def _node(self, low: Array, high: Array, prices: Array) -> _Node | None:
        """The box with its bound; None if no vector of it sums to one."""
        point, coordinate, price = _filled(low, high, _slopes(low, high, prices))
        if coordinate is None:
            return None
        # For any multiplier of the sum the Lagrangian is a bound; each term is least at an end.
        at_low = entropy_terms(low) - (prices + price) * low
        at_high = entropy_terms(high) - (prices + price) * high
        least = np.minimum(at_low, at_high)
        size = abs(price) + float((np.abs(prices) + abs(price) + 1.0) @ high)
        bound = price + math.fsum(least.tolist()) - ROUNDING * (self.n + 4) * size
        cost = float(entropy_terms(point).sum() - prices @ point)
        inside = low[coordinate] < point[coordinate] < high[coordinate]
        split = coordinate if inside else -1
        return _Node(bound, cost, (low, high), split, float(point[coordinate]))

    def _children(self, node: _Node, prices: Array) -> Sequence[_Node]:
        low, high = node.state
        cut = node.value
        below = high.copy()
        below[node.coordinate] = cut
        above = low.copy()
        above[node.coordinate] = cut
        children: list[_Node] = []
        for ends in ((low, below), (above, high)):
            child = self._node(*ends, prices)
            if child is not None:
                children.append(child)
        return children

    def _points(self, node: _Node, prices: Array) -> Array:
        """The vertex that the slopes at the node ask for, and where local search leads from it."""
        low, high = node.state
        return self._descended(_slopes(low, high, prices)[None, :], prices)

    def _many_points(self, prices: Array, turn: int) -> Array:
        """Local searches in which one coordinate each is filled first."""
        inner = self._inner
        slopes = np.repeat(
            _slopes(inner.low, inner.high, prices)[None, :], self.n, axis=0
        )
        slopes[np.arange(self.n), np.arange(self.n)] = -math.inf
        return self._descended(slopes, prices)

    def _descended(self, slopes: Array, prices: Array) -> Array:
        """Vertices of the inner box that no exchange at their own slopes makes cheaper."""
        points = self._vertices(slopes)
        cost = entropy_terms(points).sum(axis=1) - points @ prices
        for _ in range(self.n):
            tangent = -np.log(np.maximum(points, np.finfo(np.float64).tiny)) - prices
            moved = self._vertices(tangent)
            moved_cost = entropy_terms(moved).sum(axis=1) - moved @ prices
            falls = moved_cost < cost - LEAST_FALL
            if not falls.any():
                break
            points = np.where(falls[:, None], moved, points)
            cost = np.where(falls, moved_cost, cost)
        return points

    def _vertices(self, slopes: Array) -> Array:
        """The vertices of the inner box of the least slopes, (k, n): `_filled` for each line."""
        low, high = self._inner.low, self._inner.high
        order = np.argsort(slopes, axis=1, kind="stable")
        filled = np.cumsum((high - low)[order], axis=1)
        room = 1.0 - math.fsum(low.tolist())
        place = np.minimum((filled < room).sum(axis=1), self.n - 1)[:, None]
        is_full = np.arange(self.n) < place
        points = np.empty_like(slopes)
        np.put_along_axis(points, order, np.where(is_full, high[order], low[order]), 1)
        between = np.take_along_axis(order, place, axis=1)
        others = points.sum(axis=1, keepdims=True) - low[between]
        rest = np.clip(1.0 - others, low[between], high[between])
        np.put_along_axis(points, between, rest, 1)
        return points


def _slopes(low: Array, high: Array, prices: Array) -> Array:
    """Slopes of the chords of all terms."""
    width = high - low
    rise = entropy_terms(high) - entropy_terms(low)
    slope = np.divide(rise, width, out=np.zeros_like(rise), where=width > 0.0)
    return slope - prices


def _filled(low: Array, high: Array, slopes: Array) -> tuple[Array, int | None, float]:
    """The point of [low, high] with sum 1 of least slopes, its coordinate in between and that
    one's slope; None if the sum cannot be one.
    """
    point = low.copy()
    order = np.argsort(slopes, kind="stable")
    room = 1.0 - math.fsum(low.tolist())
    width = (high - low)[order]
    filled = np.cumsum(width)
    if room < -ROUNDING or filled[-1] < room - ROUNDING * len(low):
        return point, None, 0.0
    # The first coordinate that has no room to be filled completely.
    place = min(int(np.searchsorted(filled, room)), len(order) - 1)
    point[order[:place]] = high[order[:place]]
    between = int(order[place])
    rest = 1.0 - (math.fsum(point.tolist()) - float(low[between]))
    point[between] = min(max(rest, float(low[between])), float(high[between]))
    slope = float(slopes[between])
    return point, between, slope if math.isfinite(slope) else 0.0


# ------------------------------------------------------------------- recognition


def _ends(polytope: Polytope) -> Ends | None:
    """The ends of all coordinates, where every row bounds one of them and nothing else does."""
    if polytope.auxiliary is not None:
        return None
    if (np.count_nonzero(polytope.rows, axis=1) != 1).any():
        return None
    low = np.zeros(polytope.n)
    high = np.ones(polytope.n)
    for row, lower, upper in zip(
        polytope.rows, polytope.lower, polytope.upper, strict=True
    ):
        j = int(np.flatnonzero(row)[0])
        if not row[j] > 0.0:
            return None
        low[j] = max(low[j], lower / row[j])
        high[j] = min(high[j], upper / row[j])
    return Ends(low, high)


def _steps(polytope: Polytope) -> Steps | None:
    """The staircase that the rows describe with one auxiliary variable t, if they do.

    Its rows are shift <= v_j / w_j - t for every j, and v_j / w_j - factor t <= room.
    """
    auxiliary = polytope.auxiliary
    if auxiliary is None or auxiliary.shape[1] != 1 or polytope.m != 2 * polytope.n:
        return None
    n = polytope.n
    diagonal = np.diag(polytope.rows[:n])
    if not (diagonal > 0.0).all():
        return None
    halves = np.vstack([np.diag(diagonal), np.diag(diagonal)])
    if (polytope.rows != halves).any():
        return None
    of_lower = auxiliary[:n, 0]
    of_upper = auxiliary[n:, 0]
    lower = polytope.lower
    upper = polytope.upper
    one_sided = np.isinf(upper[:n]).all() and np.isinf(lower[n:]).all()
    is_even = np.ptp(of_upper) == 0.0 == np.ptp(lower[:n])
    is_even = is_even and np.ptp(upper[n:]) == 0.0 and (of_lower == -1.0).all()
    factor = -float(of_upper[0])
    if not one_sided or not is_even or not factor > 1.0:
        return None
    return Steps(1.0 / diagonal, factor, float(lower[0]), float(upper[n]))
