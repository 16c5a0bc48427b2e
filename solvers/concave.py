"""Global minimum of a separable concave function over a polytope of probability vectors.

    min sum_j [phi(v_j) - prices_j v_j]   over   v in Pi,   phi(x) = -x log x or x (1 - x).

Spatial branch and bound in a compiled kernel (`_kernel.c`): on a box every concave term is replaced by
its chord, the linear program that is left is solved by a bounded dual simplex, and the bound that counts
is its Lagrangian re-evaluated in plain arithmetic with an allowance for rounding, so no tolerance of the
simplex can make it invalid. The root is split by the largest coordinate; nodes are then split where the
chord errs most, and their boxes tightened by reduced costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.costs import cost_named
from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption, InvalidPolytope
from solvers.points import Points
from solvers.polytope import Polytope

Array = NDArray[np.float64]

MEMORY_LIMIT = 2 << 30
"""Bytes that the open nodes of one search may take unless told otherwise."""

SLICE = 0.2
"""Seconds between two looks at the clock, at Ctrl-C and at the caller's progress."""

MAX_COLUMNS = 4000
"""Points that one search collects; more in one round slow the master down without helping it."""

SHARE = 0.99
"""Share of a tolerance that a search is given: the rest is for the rounding of ``value - bound``."""

MOST_STARTS = 1000
"""Local searches of one round; where there are more symbols they take turns."""

MOST_ENTRIES = 32767
"""Rows and columns that the kernel can number: its bases are kept in 16 bits."""

LEAST_SHARE = 2.0**-30
"""Least value of a row, as a share of its largest entry, that rows are scaled to: smaller ones are lost in
the rounding of the point itself."""

NATURAL_MARGIN = 1e-9
"""Slack, relative to the row's size, of the bounds that v >= 0, sum v = 1 imply for a row."""


_DONE = 0
_NO_LIMIT = 1 << 62


class SearchStatus(StrEnum):
    """How a search ended; its bound is valid whichever it is."""

    DONE = "finished: the bound is within the tolerance"
    COLUMNS = "enough columns found"
    TIME_LIMIT = "time limit reached: allow more seconds"
    NODE_LIMIT = "node limit reached: allow more nodes"
    PRECISION = "double precision proves no more: allow a larger tolerance"
    MEMORY_LIMIT = "memory limit reached: allow more memory or a larger tolerance"


_OUTCOMES = {2: SearchStatus.COLUMNS, 3: SearchStatus.MEMORY_LIMIT}
"""What the kernel's `run` returns, beside 0 (done) and 1 (its slice of time or nodes is over)."""


@dataclass(frozen=True)
class SearchCounts:
    """What a search cost: nodes, linear programs, simplex pivots, and the most boxes kept at once."""

    nodes: int = 0
    programs: int = 0
    pivots: int = 0
    boxes: int = 0

    def __add__(self, other: SearchCounts) -> SearchCounts:
        return SearchCounts(
            self.nodes + other.nodes,
            self.programs + other.programs,
            self.pivots + other.pivots,
            max(self.boxes, other.boxes),
        )


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A valid lower bound of the minimum over the outer polytope, and points of the inner one."""

    status: SearchStatus
    bound: float
    points: Points
    counts: SearchCounts


@dataclass(frozen=True, eq=False)
class ConcaveMinimum:
    """`value` is the cost at `point` (n,); no point of the polytope costs less than `bound`."""

    status: SearchStatus
    point: Array
    value: float
    bound: float
    counts: SearchCounts

    @property
    def gap(self) -> float:
        """``value - bound``; zero up to rounding where the minimum is proven exactly."""
        return self.value - self.bound

    def is_optimal(self, tolerance: float) -> bool:
        """Whether the gap is at most `tolerance`."""
        return self.gap <= tolerance


def concave_minimum(
    polytope: Polytope,
    prices: ArrayLike,
    *,
    cost: str = "entropy",
    tolerance: float = 1e-6,
    time_limit: float | None = None,
    node_limit: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
    workers: int = 1,
) -> ConcaveMinimum:
    """Minimise ``sum_j [phi(v_j) - prices_j v_j]`` over the polytope, to an absolute tolerance.

    Parameters
    ----------
    polytope : Polytope
    prices : (n,) array
    cost : {"entropy", "gini"}
        phi(x) = -x log x (nats) or x (1 - x).
    tolerance : float
        The search stops once ``value - bound`` is at most this.
    time_limit : float, optional
        Seconds. The bound is valid at any moment.
    workers : int
        Threads (the kernel releases the interpreter's lock).

    Raises
    ------
    InvalidPolytope, InvalidOption
        On NaN prices, wrong lengths or options out of range.
    EmptyPolytope
        If no point satisfies the constraints.
    """
    check_positive("tolerance", tolerance)
    search = ConcaveSearch(polytope, cost=cost, workers=workers, memory_limit=memory_limit)
    y = check_prices("prices", prices, polytope.n)
    first = search.linear(-y)
    result = search.run(
        y,
        cutoff=np.inf,
        tolerance=SHARE * tolerance,
        slack=0.0,
        column_cutoff=np.inf,
        time_limit=time_limit,
        node_limit=node_limit,
    )
    points = Points.concatenate([result.points, Points.from_dense(first)])
    values = search.cost.of(points) - points.dot(y)
    best = int(np.argmin(values))
    status = result.status
    if result.bound == np.inf:
        raise EmptyPolytope(
            "no point satisfies the rows exactly, though some do up to rounding; widen the bounds of the rows"
        )
    if status is SearchStatus.DONE and values[best] - result.bound > tolerance:
        status = SearchStatus.PRECISION
    return ConcaveMinimum(
        status, points.take([best]).toarray()[0], float(values[best]), result.bound, result.counts
    )


def check_positive(name: str, value: float) -> float:
    """Return `value` if it is a positive number, else raise InvalidOption."""
    if not value > 0.0:
        raise InvalidOption(f"{name} ({value}) must be a positive number")
    return value


def check_limits(workers: int, memory_limit: int) -> None:
    """Raise InvalidOption unless both are positive."""
    if workers < 1:
        raise InvalidOption(f"workers ({workers}) must be at least 1")
    if memory_limit <= 0:
        raise InvalidOption(f"memory_limit ({memory_limit}) must be a positive number of bytes")


def check_relaxation(polytope: Polytope, outer: Polytope) -> None:
    """Raise InvalidPolytope unless both have the same rows and the second contains the first."""
    # The kernel bounds and designs with one matrix: other rows would make its bounds those of another set.
    if not (
        np.array_equal(outer.rows, polytope.rows)
        and np.array_equal(_or_none(outer.auxiliary, polytope.m), _or_none(polytope.auxiliary, polytope.m))
    ):
        raise InvalidPolytope("relaxation must have the same rows and auxiliary columns as the polytope")
    if (outer.lower > polytope.lower).any() or (outer.upper < polytope.upper).any():
        raise InvalidPolytope("relaxation must contain the polytope: none of its bounds may be narrower")


def check_prices(name: str, prices: ArrayLike, n: int) -> Array:
    """Return them as a float array; InvalidPolytope unless they are n finite numbers."""
    y = np.ascontiguousarray(prices, dtype=np.float64)
    if y.shape != (n,):
        raise InvalidPolytope(f"{name} must have one entry per coordinate ({n}), not shape {y.shape}")
    if not np.isfinite(y).all():
        raise InvalidPolytope(
            f"{name} has a NaN or infinite entry at {int(np.flatnonzero(~np.isfinite(y))[0])}"
        )
    return y


class ConcaveSearch:
    """The search for one polytope, kept over many price vectors.

    Parameters
    ----------
    polytope : Polytope
        The set that points must lie in.
    relaxation : Polytope, optional
        A set with the same rows that contains it; bounds hold for this one. By default the same.
    cost : {"entropy", "gini"}
    workers : int
        Threads; each works on its own share of the root's children.
    memory_limit : int
        Bytes for open nodes.
    tightening : float
        Seconds that may go into upper bounds of the coordinates; they are valid wherever it stops.

    Raises
    ------
    InvalidPolytope
        If the relaxation has other rows or does not contain the polytope, an auxiliary variable is not
        bounded, or there are too many coordinates for the kernel.
    EmptyPolytope
        If a row cannot reach its interval.
    InvalidOption
        On options out of range.
    """

    def __init__(
        self,
        polytope: Polytope,
        *,
        relaxation: Polytope | None = None,
        cost: str = "entropy",
        workers: int = 1,
        memory_limit: int = MEMORY_LIMIT,
        tightening: float = np.inf,
    ) -> None:
        from solvers._kernel import Search

        self.cost = cost_named(cost)
        check_limits(workers, memory_limit)
        outer = polytope if relaxation is None else relaxation
        check_relaxation(polytope, outer)
        self.n = polytope.n
        full, inner_lo, inner_hi, outer_lo, outer_hi, top = _kernel_rows(polytope, outer)
        # Identical columns are interchangeable for the rows; by concavity all of their mass sits on the
        # one with the best price, so the kernel sees each distinct column once.
        self._members, self._first = _identical_columns(full[:, : self.n])
        keep = np.concatenate([self._first, np.arange(self.n, full.shape[1])])
        full, top = np.ascontiguousarray(full[:, keep]), np.ascontiguousarray(top[keep])
        distinct = len(self._first)
        if sum(full.shape) > MOST_ENTRIES:
            raise InvalidPolytope(
                f"{distinct} different columns and {full.shape[0]} rows are too many for branch and bound, which "
                f"takes {MOST_ENTRIES} together; merge coordinates with similar columns"
            )
        arguments = (full, outer_lo, outer_hi, inner_lo, inner_hi, top, distinct, self.cost.code)
        self._kernels = [Search(*arguments)]
        arguments = (*arguments[:5], self._tighten(tightening), *arguments[6:])
        self._kernels += [Search(*arguments) for _ in range(workers - 1)]
        self._pool = ThreadPoolExecutor(max_workers=workers) if workers > 1 else None
        box_bytes = 8 * distinct + 2 * full.shape[0] + 64 + 4 * 32
        self._box_limit = max(1000, memory_limit // box_bytes // workers)

    def linear(self, direction: ArrayLike) -> Array:
        """A point of the outer polytope that minimises ``direction @ v``, (n,).

        Raises
        ------
        EmptyPolytope
            If there is no point at all.
        """
        d = check_prices("direction", direction, self.n)
        group_cost, chosen = self._grouped(-d)
        status, bound, raw = self._kernels[0].linear(np.ascontiguousarray(-group_cost))
        if bound == np.inf:
            raise EmptyPolytope(
                "no point satisfies v >= 0, sum v = 1 and the rows; check the bounds of the rows"
            )
        if status != 0:
            raise BackendFailure(
                "the simplex did not finish on a linear program; scale the rows to order one"
            )
        v = np.zeros(self.n)
        v[chosen] = np.frombuffer(raw)
        return v

    def run(
        self,
        prices: Array,
        *,
        cutoff: float,
        tolerance: float,
        slack: float,
        column_cutoff: float,
        columns: int = MAX_COLUMNS,
        center: Array | None = None,
        mix: float = 0.5,
        turn: int = 0,
        enough: int | None = None,
        time_limit: float | None = None,
        node_limit: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> SearchResult:
        """Search for points cheaper than `column_cutoff`, and bound the minimum from below.

        The tree is worked on until nothing below ``min(cutoff, best - tolerance - slack |best|)`` can be
        left, `columns` points are found, or a limit is met. With a `center`, local searches begin from
        mixtures of it with unit vectors (weight `mix`; at most `MOST_STARTS` of them, others each `turn`).
        If these alone find `enough` points, the tree is not touched and the bound is ``-inf``.
        """
        deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        grouped, chosen = self._grouped(prices)
        parts = len(self._kernels)
        self._together(
            lambda k, part: k.start(
                grouped, cutoff, tolerance, slack, column_cutoff, MAX_COLUMNS, self._box_limit, part, parts
            )
        )
        if center is not None:
            middle = np.zeros(len(chosen))
            np.add.at(middle, self._members, center)
            self._descend(middle, mix, turn, deadline)
            found = self._collect(chosen)
            if enough is not None and len(found) >= enough:
                return SearchResult(SearchStatus.COLUMNS, -np.inf, found, self._counts())
        status = self._work(deadline, node_limit, columns, progress)
        bound = min(k.state()[0] for k in self._kernels)
        return SearchResult(status, bound, self._collect(chosen), self._counts())

    def _tighten(self, seconds: float) -> Array:
        """Upper bound of every coordinate, as far as the time goes."""
        end = time.monotonic() + seconds
        following = 0
        while True:
            following, top = self._kernels[0].tighten(following, max(0.0, min(SLICE, end - time.monotonic())))
            if following >= len(self._first) or time.monotonic() >= end:
                return np.frombuffer(top)

    def _descend(self, center: Array, mix: float, turn: int, deadline: float) -> None:
        """Local searches from mixtures with every unit vector, or every `every`-th of them in turn."""
        parts, every = len(self._kernels), -(-len(center) // MOST_STARTS)
        following = [part + parts * (turn % every) for part in range(parts)]
        while min(following) < len(center):
            left = min(SLICE, deadline - time.monotonic())
            if left <= 0.0:
                return
            first = following
            following = self._together(
                lambda k, part, j=first, seconds=left: k.descend(center, mix, j[part], parts * every, seconds)
            )

    def _work(
        self, deadline: float, node_limit: int | None, columns: int, progress: Callable[[float], None] | None
    ) -> SearchStatus:
        nodes = _NO_LIMIT if node_limit is None else int(node_limit)
        while True:
            left = min(SLICE, deadline - time.monotonic())
            if left <= 0.0:
                return SearchStatus.TIME_LIMIT
            share = -(-(nodes - self._counts().nodes) // len(self._kernels))
            done = self._together(lambda k, _, most=share, seconds=left: k.run(most, seconds, columns))
            if all(code == _DONE for code in done):
                return SearchStatus.DONE
            for code, status in _OUTCOMES.items():
                if code in done:
                    return status
            if node_limit is not None and self._counts().nodes >= node_limit:
                return SearchStatus.NODE_LIMIT
            if progress is not None:
                progress(min(k.state()[0] for k in self._kernels))

    def _together(self, work: Callable[..., Any]) -> list[Any]:
        """One call per kernel, in threads where there are several."""
        if self._pool is None:
            return [work(self._kernels[0], 0)]
        return list(self._pool.map(work, self._kernels, range(len(self._kernels))))

    def _grouped(self, prices: Array) -> tuple[Array, NDArray[np.intp]]:
        """Best price of each group of identical columns, and the coordinate that has it."""
        if len(self._first) == self.n:
            return prices, self._first
        order = np.lexsort((prices, self._members))
        last = np.append(np.flatnonzero(np.diff(self._members[order])), self.n - 1)
        chosen = order[last]
        return np.ascontiguousarray(prices[chosen]), chosen

    def _collect(self, chosen: NDArray[np.intp]) -> Points:
        parts: list[Points] = []
        for kernel in self._kernels:
            count, indptr, indices, values, _ = kernel.columns()
            index = chosen[np.frombuffer(indices, np.int32)].astype(np.int32)
            parts.append(
                Points(np.frombuffer(indptr, np.int32), index, np.frombuffer(values), (count, self.n))
            )
        return Points.concatenate(parts)

    def _counts(self) -> SearchCounts:
        total = SearchCounts()
        for kernel in self._kernels:
            _, _, _, nodes, programs, pivots, boxes = kernel.state()
            total += SearchCounts(nodes, programs, pivots, boxes)
        return total


def _or_none(auxiliary: Array | None, m: int) -> Array:
    return np.zeros((m, 0)) if auxiliary is None else auxiliary


def _identical_columns(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group of every column, and the first column of every group, groups in order of appearance."""
    _, first, group = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[group.ravel()], first[order]


def _kernel_rows(polytope: Polytope, outer: Polytope) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Rows with the sum row last, scaled by powers of two (exact), all bounds finite."""
    auxiliary = polytope.auxiliary if polytope.auxiliary is not None else np.zeros((polytope.m, 0))
    rows = np.hstack([polytope.rows, auxiliary])
    size = np.abs(rows).max(axis=1, initial=0.0)
    # What matters of a row is its value at points that satisfy it: tolerances of the simplex are absolute.
    ends = np.stack([polytope.lower, polytope.upper])
    ends = np.abs(np.where(np.isfinite(ends), ends, 0.0)).max(axis=0)
    natural = np.maximum(ends, np.abs(auxiliary).max(axis=1, initial=0.0))
    natural = np.clip(np.where(natural > 0.0, natural, size), LEAST_SHARE * size, size)
    natural = np.where(size > 0.0, natural, 1.0)
    scale = np.exp2(-np.round(np.log2(natural)))
    top = np.concatenate([np.ones(polytope.n), _auxiliary_bounds(outer)])
    reach_up = polytope.rows.max(axis=1) + np.maximum(auxiliary, 0.0) @ top[polytope.n :]
    reach_down = polytope.rows.min(axis=1) + np.minimum(auxiliary, 0.0) @ top[polytope.n :]
    margin = NATURAL_MARGIN * (1.0 + size)

    def finite(lower: Array, upper: Array) -> tuple[Array, Array]:
        low = np.append(np.maximum(lower, reach_down - margin) * scale, 1.0)
        high = np.append(np.minimum(upper, reach_up + margin) * scale, 1.0)
        # A row that no point can satisfy keeps an empty-looking interval; order it for the kernel,
        # which then proves emptiness from the far bound.
        empty = low > high
        if empty.any():
            i = int(np.flatnonzero(empty)[0])
            raise EmptyPolytope(
                f"row {i} cannot reach its interval [{lower[i]}, {upper[i]}] for any v in the simplex"
            )
        return low, high

    inner_lo, inner_hi = finite(polytope.lower, polytope.upper)
    outer_lo, outer_hi = finite(outer.lower, outer.upper)
    full = np.vstack([rows * scale[:, None], np.append(np.ones(polytope.n), np.zeros(auxiliary.shape[1]))])
    return np.ascontiguousarray(full), inner_lo, inner_hi, outer_lo, outer_hi, top


def _auxiliary_bounds(polytope: Polytope) -> Array:
    """Upper bound of every auxiliary variable from single rows, rounded up.

    A row bounds its variables from above where all of them have coefficients of one sign, for they are not
    negative.

    Raises
    ------
    InvalidPolytope
        If no such row bounds a variable.
    """
    if polytope.auxiliary is None:
        return np.zeros(0)
    matrix = polytope.auxiliary
    top = np.full(matrix.shape[1], np.inf)
    for sign, bound in ((1.0, polytope.upper), (-1.0, -polytope.lower)):
        signed = sign * matrix
        for i in np.flatnonzero((signed >= 0.0).all(axis=1) & np.isfinite(bound)):
            k = np.flatnonzero(signed[i])
            room = max(float(bound[i] - (sign * polytope.rows[i]).min()), 0.0)
            top[k] = np.minimum(top[k], room / signed[i, k])
    if not np.isfinite(top).all():
        raise InvalidPolytope(
            f"auxiliary variable {int(np.flatnonzero(~np.isfinite(top))[0])} is not bounded by any row"
        )
    return top * (1.0 + NATURAL_MARGIN) + NATURAL_MARGIN
