"""Global minimum of a separable concave function over a polytope of probability vectors.

    min sum_j [phi(v_j) - prices_j v_j]   over   v in Pi,   phi(x) = -x log x.

This is the pricing problem of the envelope (docs/explanation/optimum-theory.md, 'By columns'). A
search, `ConcaveSearch.run`, has two parts in a compiled kernel:

1. Local searches, on request: descents replace the objective by its tangent and solve a linear
   program; walks go to ever cheaper neighbours of a vertex. They find points and prove nothing.
2. Spatial branch and bound (`_tree.h`): on a box every concave term is replaced by its chord, and
   the linear program that is left is solved by a bounded dual simplex. The root is split by the
   largest coordinate; nodes are then split where the chord errs most, and their boxes tightened by
   reduced costs. Boxes whose bound is not below the cut-off are dropped.

Here are the parts of a search that are not compiled: slices of time, threads (each kernel has its
share of the root's children), limits, and the collection of points. The rows that the
kernel sees of the polytope are `solvers.sets.polytope.KernelRows`.

For example, let v_0 and v_1 be at most 3/4, and both prices 0.6. On the box [0, 3/4]^2 the chord of
phi is 0.288 v_j, so the bound is 0.288 - 0.6 = -0.312. On [1/2, 3/4] x [1/4, 1/2] the chords meet
phi at (3/4, 1/4), and the bound is 0.562 - 0.6 = -0.038: that is the minimum.

Invariant: the bound of a node is the Lagrangian of its linear program, re-evaluated in plain
arithmetic with an allowance for rounding. So no tolerance of the simplex can make a bound invalid,
and the least bound of the open nodes is one for the whole polytope at any moment.
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
from solvers.sets.polytope import (
    Polytope,
    best_of_groups,
    identical_columns,
    kernel_rows,
)

MEMORY_LIMIT = 2 << 30
"""Bytes that the open nodes of one search may take by default."""

SLICE = 0.2
"""Seconds after which the kernel returns, so that clock, Ctrl-C and progress reports are served."""

MAX_COLUMNS = 4000
"""Points that one search collects; more in one round slow the master down without helping it."""

MOST_STARTS = 1000
"""Local searches of one round; where there are more symbols they take turns."""

MOST_ENTRIES = 32767
"""Rows and columns that the kernel can number: its bases are kept in 16 bits."""

FEWEST_BOXES = 1000
"""Open nodes that a search may keep however little memory it has: fewer would prove nothing."""

_DONE = 0
"""What the kernel's `run` returns when its tree is finished."""

_NO_LIMIT = 1 << 62
"""More nodes than any search visits; the kernel counts in 64 bits."""


class SearchStatus(StrEnum):
    """How a search ended; its bound is valid whichever it is."""

    DONE = "finished: the bound is within the tolerance"
    COLUMNS = "enough columns found"
    TIME_LIMIT = "time limit reached: allow more seconds"
    NODE_LIMIT = "node limit reached: allow more nodes"
    MEMORY_LIMIT = "memory limit reached: allow more memory or a larger tolerance"


_OUTCOMES = {2: SearchStatus.COLUMNS, 3: SearchStatus.MEMORY_LIMIT}
"""Further values that the kernel's `run` returns; 1 means that its slice of time or nodes is over.
"""


@dataclass(frozen=True)
class SearchCounts:
    """Effort of a search: nodes, linear programs, simplex pivots, most boxes kept at once."""

    nodes: int = 0
    programs: int = 0
    pivots: int = 0
    boxes: int = 0

    def __add__(self, other: SearchCounts) -> SearchCounts:
        return SearchCounts(
            nodes=self.nodes + other.nodes,
            programs=self.programs + other.programs,
            pivots=self.pivots + other.pivots,
            boxes=max(self.boxes, other.boxes),
        )


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A valid lower bound of the minimum over the outer polytope, and points of the inner one.

    `points` (k, n) are those found below the column cut-off.
    """

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
        If the relaxation has other rows or does not contain the polytope, an auxiliary variable is
        not bounded, or there are too many coordinates for the kernel.
    EmptyPolytope
        If a row cannot reach its interval.
    InvalidOption
        On options out of range.
    """

    _auxiliary_costs: Array | None = None
    """What auxiliary variables cost, where they cost anything (`solvers.average.channels`)."""

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
        outer = relaxation
        if outer is None:
            outer = polytope
        polytope.check_relaxation(outer)
        self.n = polytope.n
        rows = kernel_rows(polytope, outer)
        # Identical columns are interchangeable for the rows; by concavity all of their mass
        # sits on the one with the best price, so the kernel sees each distinct column once.
        self._members, self._first = identical_columns(rows.matrix[:, : self.n])
        distinct = len(self._first)
        keep = np.concatenate([self._first, np.arange(self.n, rows.matrix.shape[1])])
        matrix = np.ascontiguousarray(rows.matrix[:, keep])
        if sum(matrix.shape) > MOST_ENTRIES:
            raise InvalidPolytope(
                f"{distinct} different columns and {matrix.shape[0]} rows are too many "
                f"for branch and bound, which takes {MOST_ENTRIES} together; merge "
                "coordinates with similar columns"
            )

        def kernel(top: Array) -> Any:
            return Search(
                matrix,
                rows.outer_lower,
                rows.outer_upper,
                rows.inner_lower,
                rows.inner_upper,
                top,
                distinct,
            )

        top = np.ascontiguousarray(rows.top[keep])
        self._make_kernels(kernel, top, workers, tightening)
        # A box holds two 4-byte ends and a 2-byte rank for each coordinate, and a basis of the
        # rows.
        box_bytes = 10 * distinct + 2 * matrix.shape[0] + 64
        self._box_limit = max(FEWEST_BOXES, memory_limit // box_bytes // workers)

    def _make_kernels(
        self,
        kernel: Callable[[Array], Any],
        top: Array,
        workers: int,
        tightening: float,
    ) -> None:
        """One kernel for each worker, made by `kernel` from the upper bounds of the variables."""
        # The first kernel tightens the bounds of the coordinates, and the others begin with them.
        self._kernels = [kernel(top)]
        tightened = self._tighten(tightening)
        self._kernels += [kernel(tightened) for _ in range(workers - 1)]
        self._pool = thread_pool(workers)

    def linear(self, direction: ArrayLike) -> Array:
        """A point of the outer polytope that minimises ``direction @ v``, (n,).

        Raises
        ------
        EmptyPolytope
            If there is no point at all.
        """
        d = check_prices("direction", direction, self.n)
        best_prices, best = self._grouped(-d)
        cost = np.ascontiguousarray(-best_prices)
        status, bound, raw = self._kernels[0].linear(cost)
        if bound == np.inf:
            raise EmptyPolytope(
                "no point satisfies v >= 0, sum v = 1 and the rows; check the bounds of the rows"
            )
        if status != 0:
            raise BackendFailure(
                "the simplex did not finish on a linear program; scale the rows to order one"
            )
        v = np.zeros(self.n)
        v[best] = np.frombuffer(raw)
        return v

    def least(self, direction: Array) -> float:
        """A lower bound of ``direction @ v`` over the outer polytope; -inf where none is proven."""
        best_prices, _ = self._grouped(-direction)
        _, bound, _ = self._kernels[0].linear(np.ascontiguousarray(-best_prices))
        return float(bound)

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
        halves: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> SearchResult:
        """Search for points cheaper than `column_cutoff`, and bound the minimum from below.

        The tree is worked on until nothing below ``min(cutoff, best - tolerance - slack |best|)``
        can be left, `columns` points are found, or a limit is met.

        With a `center`, local searches begin from mixtures of it with unit vectors (weight `mix`;
        at most `MOST_STARTS` of them, others each `turn`); those from the points of `walk` go to
        ever cheaper neighbours. If these alone find `enough` points, the tree is not touched and
        the bound is ``-inf``.

        With `halves` every interval is cut in two, which is faster where the cut-off is far below
        the best point.
        """
        left = np.inf
        if time_limit is not None:
            left = time_limit
        deadline = time.process_time() + left
        # Prices for the kernel's coordinates; `best` brings its points back to ours.
        grouped, best = self._grouped(prices)
        parts = len(self._kernels)
        starts: list[tuple[Any, ...]] = []
        for part in range(parts):
            # Each kernel has every `parts`-th child of the root, so together they have all.
            limits = (cutoff, tolerance, slack, column_cutoff)
            capacity = (MAX_COLUMNS, self._box_limit)
            place = (part, parts, self._auxiliary_costs)
            starts.append((grouped, *limits, *capacity, *place, halves, left))
        self._together("start", starts)
        if center is not None:
            self._descend(center, mix, turn, deadline)
        if walk is not None:
            self._walk(walk, deadline)
        if center is not None or walk is not None:
            points = self._collect(best)
            if enough is not None and len(points) >= enough:
                return SearchResult(
                    SearchStatus.COLUMNS, -np.inf, points, self._counts()
                )
        status = self._work(deadline, node_limit, columns, progress)
        return SearchResult(
            status, self._least_bound(), self._collect(best), self._counts()
        )

    # --------------------------------------------------------- local searches

    def _descend(self, center: Array, mix: float, turn: int, deadline: float) -> None:
        """Descents from mixtures of the center with unit vectors, at most `MOST_STARTS` of them."""
        middle = np.zeros(len(self._first))
        np.add.at(middle, self._members, center)
        # With 2,500 starts and one kernel every third begins: 0, 3, 6, .. at turn 0, 1, 4, 7, .. at
        # turn 1.
        every = -(-len(middle) // MOST_STARTS)
        first = len(self._kernels) * (turn % every)
        self._in_slices("descend", (middle, mix), len(middle), first, every, deadline)

    def _walk(self, walk: Points, deadline: float) -> None:
        """Walks along edges of the polytope, from each of the points to ever cheaper neighbours."""
        starts = np.zeros((len(walk), len(self._first)))
        np.add.at(starts, (walk.owner, self._members[walk.indices]), walk.data)
        self._in_slices("walk", (starts, len(walk)), len(walk), 0, 1, deadline)

    def _in_slices(
        self,
        method: str,
        arguments: tuple[Any, ...],
        count: int,
        first: int,
        step: int,
        end: float,
    ) -> None:
        """Call a local search of the kernels for the starts first, first + step, .. below `count`.

        The starts are dealt out to the kernels in turn; `end` stops all of them.
        """
        # A kernel returns the start that it would take next, for its slice may end before the last.
        parts = len(self._kernels)
        following = [part + first for part in range(parts)]
        while min(following) < count:
            seconds = min(SLICE, end - time.process_time())
            if seconds <= 0.0:
                return
            calls = [(*arguments, at, parts * step, seconds) for at in following]
            following = self._together(method, calls)

    # --------------------------------------------------------------- the tree

    def _tighten(self, seconds: float) -> Array:
        """Upper bounds of all variables, smaller ones of coordinates as far as the time goes."""
        end = time.process_time() + seconds
        following = 0
        while True:
            left = max(0.0, min(SLICE, end - time.process_time()))
            following, top = self._kernels[0].tighten(following, left)
            if following >= len(self._first) or time.process_time() >= end:
                return np.frombuffer(top)

    def _work(
        self,
        deadline: float,
        node_limit: int | None,
        columns: int,
        progress: Callable[[float], None] | None,
    ) -> SearchStatus:
        """Work on the trees of all kernels, in slices of time, until all end or a limit is met."""
        nodes = _NO_LIMIT
        if node_limit is not None:
            nodes = int(node_limit)
        while True:
            left = min(SLICE, deadline - time.process_time())
            if left <= 0.0:
                return SearchStatus.TIME_LIMIT
            # Of the nodes that are left, rounded up: none would never end.
            share = -(-(nodes - self._counts().nodes) // len(self._kernels))
            codes = self._together("run", [(share, left, columns)] * len(self._kernels))
            if all(code == _DONE for code in codes):
                return SearchStatus.DONE
            for code, status in _OUTCOMES.items():
                if code in codes:
                    return status
            if node_limit is not None and self._counts().nodes >= node_limit:
                return SearchStatus.NODE_LIMIT
            if progress is not None:
                progress(self._least_bound())

    def _least_bound(self) -> float:
        """The bound of the whole tree: the least of its parts."""
        return min(kernel.state()[0] for kernel in self._kernels)

    def _together(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every kernel with its arguments, in threads: kernels release the GIL."""
        calls: list[partial[Any]] = []
        for kernel, values in zip(self._kernels, arguments, strict=True):
            calls.append(partial(getattr(kernel, method), *values))
        if self._pool is None:
            return [calls[0]()]
        return list(self._pool.map(partial.__call__, calls))

    def _grouped(self, prices: Array) -> tuple[Array, NDArray[np.intp]]:
        """Best price of each group of identical columns, and the coordinate that has it."""
        if len(self._first) == self.n:
            return prices, self._first
        return best_of_groups(prices, self._members)

    def _collect(self, best: NDArray[np.intp]) -> Points:
        """The points that all kernels hold; `best` is the coordinate of each group of columns."""
        parts: list[Points] = []
        for kernel in self._kernels:
            _, indptr, indices, values, _ = kernel.columns()
            # The mass of a group goes to the coordinate with the best price.
            index = best[np.frombuffer(indices, np.int32)].astype(np.int32)
            sizes = np.diff(np.frombuffer(indptr, np.int32))
            parts.append(Points.of_sizes(sizes, index, np.frombuffer(values), self.n))
        return Points.concatenate(parts)

    def _counts(self) -> SearchCounts:
        total = SearchCounts()
        for kernel in self._kernels:
            total += SearchCounts(*kernel.state()[3:])
        return total


def thread_pool(workers: int) -> ThreadPoolExecutor | None:
    """Threads for several kernels; a single one is called directly."""
    if workers == 1:
        return None
    return ThreadPoolExecutor(max_workers=workers)
