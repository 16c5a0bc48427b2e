"""The pricer and the first columns of a lower envelope over a polytope.

`Preparation.run` makes the pricer, the fastest exact one for the shape of the polytope:

| the rows depend on        | pricer                                             |
|---------------------------|----------------------------------------------------|
| one coordinate each       | knapsacks, by sorting (`solvers.pricing.separate`) |
| one number                | all pairs of symbols (`solvers.pricing.line`)      |
| two numbers, many symbols | all pairs and triples (`solvers.pricing.plane`)    |
| more, or auxiliary ones   | branch and bound (`solvers.pricing.concave`)       |

`columns` are then, in this order: the point itself; the unit vectors inside, which cost nothing;
first columns of a line (`solvers.envelope.line_levels`); all vertices, where the method asks for
them or they are few; the members among columns of a neighbouring problem (`add_start`); and those
of known decompositions (`add_incumbents`). The cheapest of these decompositions that uses members
alone, or the point itself, is what the loop begins with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers import errors
from solvers.enumeration import (
    Vertices,
    estimate,
    explicit_rows,
    few_vertices,
    vertices,
)
from solvers.envelope.line_levels import at_mean, first_columns
from solvers.points import Array, Points
from solvers.pricing.concave import ConcaveSearch
from solvers.pricing.line import LineSearch, leading_row
from solvers.pricing.plane import plane_search
from solvers.pricing.separate import StaircaseSearch, separate_search
from solvers.results import Pricer
from solvers.sets.polytope import MEMBERSHIP_TOLERANCE, Polytope

ESTIMATE_SHARE = 0.1
"""Share of the time that is left for an estimate of the number of vertices. It takes long where
they are many, and then they are not listed.
"""

TIGHTENING_SHARE = 0.2
"""Share of the time limit that upper bounds of the coordinates may take; they only speed the search
up."""

ROUNDING = 5e-13
"""Excess, relative to the terms of a row, up to which a column of another run counts as a member:
columns lie on the boundary, some of them outside by the tolerance of the kernel's simplex (2e-13 of
1 + the row)."""

INCUMBENT_ERROR = 1e-9
"""Relative miss of an entry of the point up to which a decomposition from elsewhere is taken as
one."""

PLANE_FROM = 400
"""Classes of symbols from which pricing all triples of a plane beats the tree: 1.2 to 2.5 times on
tables of Adult with three sensitive values."""

MOST_ROWS = 300
"""Rows, once auxiliary variables are eliminated, up to which vertices are enumerated at all."""

FEW_VERTICES = 1500
"""Estimated number of vertices up to which 'auto' enumerates them: beyond it column generation was
faster on every table measured (tests/benchmarks/test_grids.py prints the ratio)."""

Incumbents: TypeAlias = Callable[[], Sequence[tuple[ArrayLike, Points]]]
"""The source of known decompositions, as (weights, points)."""


@dataclass(frozen=True)
class Resources:
    """What a pricer may use: threads, bytes, and the seconds of the whole run."""

    workers: int
    memory_limit: int
    time_limit: float | None

    def share_of_time(self, share: float) -> float:
        """Seconds; without a limit there is no end."""
        if self.time_limit is None:
            return math.inf
        return share * self.time_limit


class Preparation:
    """The pricer and the first columns of a run; first `run`, then the `add_` methods.

    Any step may be cut short by Ctrl-C or the clock, and the run uses what there is by then. A
    missing pricer is never called, because no time is left.

    Attributes
    ----------
    pricer : callable or None
    vertices : Vertices or None
        All vertices, where the method asks for them or they are few.
    interrupted : bool
        Whether Ctrl-C ended the preparation.
    """

    def __init__(self, polytope: Polytope, point: Array) -> None:
        self.pricer: Pricer | None = None
        self.vertices: Vertices | None = None
        self.interrupted = False
        self._polytope = polytope
        self._point = point
        # The row whose values order all symbols, where every row is a function of it.
        self._leading_row = leading_row(polytope)
        # Whether every row bounds one coordinate alone, and pricing is by sorting.
        self._is_separate = False
        # Whether the pricer is branch and bound.
        self.is_tree = False
        self._line: LineSearch | None = None
        self._decompositions: list[tuple[ArrayLike, Points]] = []
        # The trivial decomposition comes first. Unit vectors inside the polytope cost nothing.
        units = Points.units(np.arange(polytope.n), polytope.n)
        self._columns = [
            Points.from_dense(point),
            units.take(_members(polytope, units)),
        ]

    @property
    def method(self) -> str:
        """Where columns come from: a list of vertices, the pairs of a line, or local searches."""
        if self.vertices is not None:
            return "vertices"
        if self._leading_row is None:
            return "columns"
        return "line"

    def run(
        self,
        outer: Polytope,
        resources: Resources,
        *,
        method: str,
        enumeration: str,
        gap: float,
        end: float,
    ) -> float:
        """Make the pricer and list vertices, as far as the time goes; the end of the whole run.

        After Ctrl-C or the deadline this end has come already.
        """
        try:
            self.make_pricer(outer, resources)
            if method != "vertices":
                self._add_columns_of_line(gap, end)
            self._list_vertices(method, enumeration, end)
        except errors.OutOfTime:
            # What was made by then is used, in no further time.
            return -math.inf
        except KeyboardInterrupt:
            self.interrupted = True
            return -math.inf
        return end

    def make_pricer(self, outer: Polytope, resources: Resources) -> None:
        """All pairs where the rows depend on one number; else branch and bound, or all triples."""
        separate = None
        if self._leading_row is None:
            separate = separate_search(self._polytope, outer)
        if separate is not None:
            self._is_separate = True
            self.pricer = separate.run
            if isinstance(separate, StaircaseSearch):
                self._decompositions += separate.selections()
        elif self._leading_row is None:
            self.pricer, self.is_tree = _tree_pricer(self._polytope, outer, resources)
        else:
            self._line = LineSearch(self._polytope, outer, self._leading_row)
            self.pricer = self._line.run

    def _add_columns_of_line(self, gap: float, end: float) -> None:
        """Where the rows depend on one number, its cheapest pairs, and a first decomposition."""
        if self._line is None:
            return
        self._decompositions.append(at_mean(self._line, self._point))
        self._columns.append(first_columns(self._line, self._point, gap, end))

    def _list_vertices(self, method: str, enumeration: str, end: float) -> None:
        """All vertices, where the method asks for them or they are few."""
        # Pricing all pairs of a line lists its vertices anyway, and sorting needs no list.
        is_tree = self._leading_row is None and not self._is_separate
        if is_tree or method == "vertices":
            self.vertices = _listed_vertices(self._polytope, method, enumeration, end)

    def add_start(self, start: Points | None) -> None:
        """Columns of a neighbouring problem that are members here, after the vertices."""
        if self.vertices is not None:
            self._columns.append(Points.from_dense(self.vertices.points))
        if start is not None and len(start):
            inside = _members(self._polytope, start, ROUNDING)
            self._columns.append(start.take(inside))

    def add_incumbents(self, incumbents: Sequence[tuple[ArrayLike, Points]]) -> None:
        """Decompositions from elsewhere, before that of the line."""
        # Of equal values the first one stays: that from elsewhere.
        self._decompositions = [*incumbents, *self._decompositions]
        for _, points in self._decompositions:
            check_length(points, self._polytope.n)

    def columns(self) -> tuple[Points, Array]:
        """All columns, and the weights of the best decomposition among those known."""
        return _with_incumbents(
            self._polytope, self._point, self._columns, self._decompositions
        )


def _tree_pricer(
    polytope: Polytope, outer: Polytope, resources: Resources
) -> tuple[Pricer, bool]:
    """Branch and bound; or all triples, where there are many symbols on a plane. Whether it is the
    first.
    """
    tree = ConcaveSearch(
        polytope,
        relaxation=outer,
        workers=resources.workers,
        memory_limit=resources.memory_limit,
        tightening=resources.share_of_time(TIGHTENING_SHARE),
    )
    if polytope.n >= PLANE_FROM:
        plane = plane_search(polytope, outer, tree)
        if plane is not None:
            return plane.run, False
    return tree.run, True


def _listed_vertices(
    polytope: Polytope, method: str, enumeration: str, end: float
) -> Vertices | None:
    """All vertices, where the method asks for them; for "auto" only where they are few."""
    if method == "columns":
        return None
    # Counting rows is cheap, and eliminating the variables may not be.
    has_auxiliary = polytope.auxiliary is not None
    if has_auxiliary and explicit_rows(polytope, MOST_ROWS) > MOST_ROWS:
        if method == "auto":
            return None
        raise errors.TooManyVertices(
            f"the polytope has more than {MOST_ROWS} rows without its auxiliary "
            "variables, too many to enumerate "
            'vertices; use method="columns"'
        )
    if method == "auto":
        # Small polytopes are listed at once; for others an estimate comes first.
        small = few_vertices(polytope, FEW_VERTICES)
        if small is not None:
            return small
        now = time.process_time()
        size = estimate(polytope, now + ESTIMATE_SHARE * (end - now))
        if size.at_least or size.vertices > FEW_VERTICES:
            return None
    left: float | None = None
    if not math.isinf(end):
        left = max(0.0, end - time.process_time())
    try:
        return vertices(polytope, enumeration, time_limit=left)
    except errors.BackendFailure:
        if method == "auto":
            # Column generation needs no list.
            return None
        raise


def _with_incumbents(
    polytope: Polytope,
    target: Array,
    initial: list[Points],
    incumbents: Sequence[tuple[ArrayLike, Points]],
) -> tuple[Points, Array]:
    """All columns, the point itself first, and the weights of the best known decomposition."""
    columns = Points.concatenate(initial)
    parts = [columns]
    width = len(columns)
    # The trivial decomposition is the first column, the point itself.
    best = np.ones(1)
    first = 0
    least = float(columns.take([0]).entropies()[0])
    for weights, points in incumbents:
        w = np.asarray(weights, dtype=np.float64)
        inside = _members(polytope, points, ROUNDING)
        missing = np.abs(points.combine(w) - target)
        # Relative to each entry: a rare symbol must be met as well as a frequent one.
        meets_target = bool((missing <= INCUMBENT_ERROR * target).all())
        decomposes = meets_target and w.min(initial=0.0) >= 0.0
        uses_members = inside[w > 0.0].all()
        value = float(w @ points.entropies())
        if decomposes and uses_members and value < least:
            # Weights of points outside are zero here, so nothing is lost.
            best = w[inside]
            first = width
            least = value
        # Members of a decomposition that does not count are good columns all the same.
        parts.append(points.take(inside))
        width += len(parts[-1])
    whole = np.zeros(width)
    whole[first : first + len(best)] = best
    return Points.concatenate(parts), whole


def _members(
    polytope: Polytope, points: Points, rounding: float = 0.0
) -> NDArray[np.bool_]:
    """Which points are members, up to `rounding` relative to the terms of each row."""
    probability = np.abs(points.sums(points.data) - 1.0) <= MEMBERSHIP_TOLERANCE
    probability &= points.sums(np.minimum(points.data, 0.0)) == 0.0
    if polytope.least is not None:
        # Auxiliary variables at their least values decide membership without any elimination.
        excess = polytope.least.excess(points.images)
        slack = rounding * (1.0 + np.abs(polytope.least.bounds))
        return probability & np.logical_and.reduce(excess <= slack, axis=1)
    explicit = polytope.explicit
    images = points.images(explicit.rows)
    slack: Array | float = 0.0
    if rounding > 0.0:
        # Rounding of a sum is relative to the sum of the absolute values of its terms.
        slack = rounding * points.images(np.abs(explicit.rows))
    inside = (images >= explicit.lower - slack) & (images <= explicit.upper + slack)
    return probability & np.logical_and.reduce(inside, axis=1)


def check_length(points: Points, n: int) -> None:
    """Raise InvalidPolytope unless the points have n coordinates."""
    length = points.shape[1]
    if length != n:
        raise errors.InvalidPolytope(f"start has points of length {length}, not {n}")
