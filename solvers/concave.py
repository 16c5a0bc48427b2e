"""Global minimum of a separable concave function over a polytope of probability vectors.

    min sum_j [phi(v_j) - prices_j v_j]   over   v in Pi,   phi(x) = -x log x.

Spatial branch and bound in a compiled kernel (`_kernel.h`): on a box every concave term is replaced by
its chord, the linear program that is left is solved by a bounded dual simplex, and the bound that counts
is its Lagrangian re-evaluated in plain arithmetic with an allowance for rounding, so no tolerance of the
simplex can make it invalid. The root is split by the largest coordinate; nodes are then split where the
chord errs most, and their boxes tightened by reduced costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption, InvalidPolytope
from solvers.points import Array, Points
from solvers.polytope import NATURAL_MARGIN, Polytope
from solvers.uncertain import UncertainSet

MEMORY_LIMIT = 2 << 30
"""Bytes that the open nodes of one search may take unless told otherwise."""

SLICE = 0.2
"""Seconds between two looks at the clock, at Ctrl-C and at the caller's progress."""

MAX_COLUMNS = 4000
"""Points that one search collects; more in one round slow the master down without helping it."""

MOST_STARTS = 1000
"""Local searches of one round; where there are more symbols they take turns."""

MOST_ENTRIES = 32767
"""Rows and columns that the kernel can number: its bases are kept in 16 bits."""

LEAST_SHARE = 2.0**-30
"""Least value of a row, as a share of its largest entry, that rows are scaled to: smaller ones are lost in
the rounding of the point itself."""

_DONE = 0
_NO_LIMIT = 1 << 62


class SearchStatus(StrEnum):
    """How a search ended; its bound is valid whichever it is."""

    DONE = "finished: the bound is within the tolerance"
    COLUMNS = "enough columns found"
    TIME_LIMIT = "time limit reached: allow more seconds"
    NODE_LIMIT = "node limit reached: allow more nodes"
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
        nodes, programs = self.nodes + other.nodes, self.programs + other.programs
        return SearchCounts(
            nodes, programs, self.pivots + other.pivots, max(self.boxes, other.boxes)
        )


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A valid lower bound of the minimum over the outer polytope, and points of the inner one."""

    status: SearchStatus
    bound: float
    points: Points
    counts: SearchCounts


def check_limits(workers: int, memory_limit: int) -> None:
    """Raise InvalidOption unless both are positive."""
    if workers < 1:
        raise InvalidOption(f"workers ({workers}) must be at least 1")
    if memory_limit <= 0:
        raise InvalidOption(
            f"memory_limit ({memory_limit}) must be a positive number of bytes"
        )


def check_prices(name: str, prices: ArrayLike, n: int) -> Array:
    """Return them as a float array; InvalidPolytope unless they are n finite numbers."""
    y = np.ascontiguousarray(prices, dtype=np.float64)
    if y.shape != (n,):
        raise InvalidPolytope(
            f"{name} must have one entry per coordinate ({n}), not shape {y.shape}"
        )
    finite = np.isfinite(y)
    if not finite.all():
        raise InvalidPolytope(
            f"{name} has a NaN or infinite entry at {int(finite.argmin())}"
        )
    return y


def identical_columns(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group of every column, and the first column of every group, groups in order of appearance."""
    _, first, group = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[group.ravel()], first[order]


def best_of_groups(
    prices: Array, group: NDArray[np.intp]
) -> tuple[Array, NDArray[np.intp]]:
    """Best price of each group of coordinates, and the coordinate that has it."""
    order = np.lexsort((prices, group))
    chosen = order[np.append(np.flatnonzero(np.diff(group[order])), len(prices) - 1)]
    return np.ascontiguousarray(prices[chosen]), chosen


def kernel_rows(
    polytope: Polytope, outer: Polytope
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Rows with the sum row last, scaled by powers of two (exact), all bounds finite."""
    auxiliary = polytope.auxiliary_columns
    rows = np.hstack([polytope.rows, auxiliary])
    size = np.abs(rows).max(axis=1, initial=0.0)
    # What matters of a row is its value at points that satisfy it: tolerances of the simplex are absolute.
    ends = np.stack([polytope.lower, polytope.upper])
    ends = np.abs(np.where(np.isfinite(ends), ends, 0.0)).max(axis=0)
    natural = np.maximum(ends, np.abs(auxiliary).max(axis=1, initial=0.0))
    natural = np.clip(np.where(natural > 0.0, natural, size), LEAST_SHARE * size, size)
    natural = np.where(size > 0.0, natural, 1.0)
    scale = np.exp2(-np.round(np.log2(natural)))
    top = np.concatenate([np.ones(polytope.n), outer.auxiliary_bounds])
    reach_up = (
        polytope.rows.max(axis=1) + np.maximum(auxiliary, 0.0) @ top[polytope.n :]
    )
    reach_down = (
        polytope.rows.min(axis=1) + np.minimum(auxiliary, 0.0) @ top[polytope.n :]
    )
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
    full = np.vstack(
        [
            rows * scale[:, None],
            np.append(np.ones(polytope.n), np.zeros(auxiliary.shape[1])),
        ]
    )
    return np.ascontiguousarray(full), inner_lo, inner_hi, outer_lo, outer_hi, top


class ConcaveSearch:
    """The search for one polytope, kept over many price vectors.

    Parameters
    ----------
    polytope : Polytope
        The set that points must lie in.
    relaxation : Polytope, optional
        A set with the same rows that contains it; bounds hold for this one. By default the same.
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
        workers: int = 1,
        memory_limit: int = MEMORY_LIMIT,
        tightening: float = np.inf,
    ) -> None:
        from solvers._kernel import Search

        check_limits(workers, memory_limit)
        outer = polytope if relaxation is None else relaxation
        polytope.check_relaxation(outer)
        self.n = polytope.n
        full, inner_lo, inner_hi, outer_lo, outer_hi, top = kernel_rows(polytope, outer)
        # Identical columns are interchangeable for the rows; by concavity all of their mass sits on the
        # one with the best price, so the kernel sees each distinct column once.
        self._members, self._first = identical_columns(full[:, : self.n])
        keep = np.concatenate([self._first, np.arange(self.n, full.shape[1])])
        full, top = np.ascontiguousarray(full[:, keep]), np.ascontiguousarray(top[keep])
        distinct = len(self._first)
        if sum(full.shape) > MOST_ENTRIES:
            raise InvalidPolytope(
                f"{distinct} different columns and {full.shape[0]} rows are too many for branch and bound, which "
                f"takes {MOST_ENTRIES} together; merge coordinates with similar columns"
            )
        arguments = (full, outer_lo, outer_hi, inner_lo, inner_hi, top, distinct)
        self._kernels = [Search(*arguments)]
        arguments = (*arguments[:5], self._tighten(tightening), *arguments[6:])
        self._kernels += [Search(*arguments) for _ in range(workers - 1)]
        self._pool = ThreadPoolExecutor(max_workers=workers) if workers > 1 else None
        box_bytes = 10 * distinct + 2 * full.shape[0] + 64  # intervals, ranks, basis
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
        walk: Points | None = None,
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
        mixtures of it with unit vectors (weight `mix`; at most `MOST_STARTS` of them, others each `turn`); those from
        the points of `walk` go to ever cheaper neighbours. If these alone find `enough` points, the tree is not
        touched and the bound is ``-inf``.
        """
        deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        grouped, chosen = self._grouped(prices)
        parts = len(self._kernels)
        ends = cutoff, tolerance, slack, column_cutoff, MAX_COLUMNS, self._box_limit
        self._together(
            "start", [(grouped, *ends, part, parts) for part in range(parts)]
        )
        if center is not None:
            middle = np.zeros(len(chosen))
            np.add.at(middle, self._members, center)
            every = -(-len(middle) // MOST_STARTS)
            first = parts * (turn % every)
            self._in_slices(
                "descend", (middle, mix), len(middle), first, every, deadline
            )
        if walk is not None:
            starts = np.zeros((len(walk), len(chosen)))
            np.add.at(starts, (walk.owner, self._members[walk.indices]), walk.data)
            self._in_slices("walk", (starts, len(walk)), len(walk), 0, 1, deadline)
        if center is not None or walk is not None:
            found = self._collect(chosen)
            if enough is not None and len(found) >= enough:
                return SearchResult(
                    SearchStatus.COLUMNS, -np.inf, found, self._counts()
                )
        status = self._work(deadline, node_limit, columns, progress)
        bound = min(k.state()[0] for k in self._kernels)
        return SearchResult(status, bound, self._collect(chosen), self._counts())

    def _tighten(self, seconds: float) -> Array:
        """Upper bound of every coordinate, as far as the time goes."""
        end = time.monotonic() + seconds
        following = 0
        while True:
            following, top = self._kernels[0].tighten(
                following, max(0.0, min(SLICE, end - time.monotonic()))
            )
            if following >= len(self._first) or time.monotonic() >= end:
                return np.frombuffer(top)

    def _in_slices(
        self,
        search: str,
        what: tuple[Any, ...],
        count: int,
        first: int,
        step: int,
        end: float,
    ) -> None:
        """Local searches (a method of the kernels) from the first, first + step, ... of `count` starts until `end`."""
        parts = len(self._kernels)
        following = [part + first for part in range(parts)]
        while (
            min(following) < count
            and (left := min(SLICE, end - time.monotonic())) > 0.0
        ):
            following = self._together(
                search, [(*what, at, parts * step, left) for at in following]
            )

    def _work(
        self,
        deadline: float,
        node_limit: int | None,
        columns: int,
        progress: Callable[[float], None] | None,
    ) -> SearchStatus:
        nodes = _NO_LIMIT if node_limit is None else int(node_limit)
        while True:
            left = min(SLICE, deadline - time.monotonic())
            if left <= 0.0:
                return SearchStatus.TIME_LIMIT
            share = -(-(nodes - self._counts().nodes) // len(self._kernels))
            done = self._together("run", [(share, left, columns)] * len(self._kernels))
            if all(code == _DONE for code in done):
                return SearchStatus.DONE
            for code, status in _OUTCOMES.items():
                if code in done:
                    return status
            if node_limit is not None and self._counts().nodes >= node_limit:
                return SearchStatus.NODE_LIMIT
            if progress is not None:
                progress(min(k.state()[0] for k in self._kernels))

    def _together(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of every kernel answers to its own arguments."""
        calls = [
            partial(getattr(k, method), *own)
            for k, own in zip(self._kernels, arguments, strict=True)
        ]
        return (
            [calls[0]()]
            if self._pool is None
            else list(self._pool.map(partial.__call__, calls))
        )

    def _grouped(self, prices: Array) -> tuple[Array, NDArray[np.intp]]:
        """Best price of each group of identical columns, and the coordinate that has it."""
        if len(self._first) == self.n:
            return prices, self._first
        return best_of_groups(prices, self._members)

    def _collect(self, chosen: NDArray[np.intp]) -> Points:
        parts: list[Points] = []
        for kernel in self._kernels:
            _, indptr, indices, values, _ = kernel.columns()
            index = chosen[np.frombuffer(indices, np.int32)].astype(np.int32)
            sizes = np.diff(np.frombuffer(indptr, np.int32))
            parts.append(Points.of_sizes(sizes, index, np.frombuffer(values), self.n))
        return Points.concatenate(parts)

    def _counts(self) -> SearchCounts:
        total = SearchCounts()
        for kernel in self._kernels:
            total += SearchCounts(*kernel.state()[3:])
        return total


class RobustSearch(ConcaveSearch):
    """`ConcaveSearch` over an uncertain set; see there.

    Parameters
    ----------
    uncertain : UncertainSet
        Bounds hold for this set.
    margin : float
        Points lie in the smaller set whose inequalities hold with so much to spare; at the point itself there
        are at least ``min(ratio - 1, most - 1, 1 - least)``.
    """

    def __init__(
        self,
        uncertain: UncertainSet,
        *,
        margin: float = 0.0,
        workers: int = 1,
        memory_limit: int = MEMORY_LIMIT,
        tightening: float = np.inf,
    ) -> None:
        from solvers._robust import Search

        check_limits(workers, memory_limit)
        self.n = uncertain.n
        # No two coordinates are interchangeable here: each is a group of its own.
        self._members = self._first = np.arange(self.n)
        scale = 1.0 / uncertain.point
        allowance = uncertain.row_error * float(scale.max())
        low, wide = uncertain.share_lower, uncertain.share_upper - uncertain.share_lower
        arguments: list[Any] = [
            *map(np.ascontiguousarray, (*uncertain.boxes, scale, low, wide))
        ]
        arguments += [
            max(1.0 - float(low.sum()), 0.0),
            uncertain.ratio,
            uncertain.most,
            uncertain.least,
        ]
        arguments += [margin, allowance, uncertain.rest]
        self._kernels = [Search(*arguments, top=np.ones(self.n))]
        top = self._tighten(tightening)
        self._kernels += [Search(*arguments, top=top) for _ in range(workers - 1)]
        self._pool = ThreadPoolExecutor(max_workers=workers) if workers > 1 else None
        # A box holds its intervals and one row and one member of the basis for each tight row.
        self._box_limit = max(
            1000, memory_limit // (10 * self.n + 6 * (self.n + 1) + 208) // workers
        )
