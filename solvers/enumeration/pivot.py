"""Vertices by walking from basis to basis (compiled: `_pivot`), and estimates of their number.

*Walk* (`walk`, `attempt`). A basis is a support of k symbols and k - 1 rows that are tight on it;
these equations and sum v = 1 have one solution, a vertex. A neighbour has one symbol or tight row
more or less. So a vertex costs one solve of size k and its neighbours one ratio test each, and
whoever visits the unknown neighbours of every basis meets all vertices
(docs/explanation/optimum-theory.md, 'By vertices'). Ties are broken by a symbolic push of the
bounds; see `_pivot.h`.

*Estimate* (`estimate`, `_FaceSample`), in a few milliseconds. A vertex depends on the columns of
its support only: it is a vertex of the polytope if and only if it is one of the face spanned by any
set of columns that contains its support. Count the vertices with k positive entries on the faces of
random sets of q columns; the mean count times C(n, k) / C(q, k) is an unbiased estimate for all n
columns. For example, of n = 40 columns let faces of q = 12 have 30 vertices with k = 2 on average.
C(40, 2) / C(12, 2) = 780 / 66, so the polytope has about 355 of them.

*Limits and result*, and the last steps that all algorithms share. `ListingLimits` are checked
numbers and an end; `Vertices` is the result. An algorithm lists points in any order, with
repetitions. The last steps are the same for all:

1. `ordered` sorts them and drops the repeated ones: of (0.5, 0.5, 0) and (0.5, 0.5 - 1e-13, 1e-13)
   the first stays, which has fewer positive entries. (The walk of `pivot` does so itself.)
2. `finished_vertices` holds every point against the original rows before it is called a vertex.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvers import _pivot
from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption, OutOfTime
from solvers.points import Array
from solvers.sets.polytope import MEMBERSHIP_TOLERANCE, Polytope

# -------------------------------------------------------------------- limits and result

MERGE_TOLERANCE = 1e-10
"""Points that differ by no more than this in every coordinate are one vertex: a hundred times the
error of a vertex solved in doubles on an ordinary table, far below a difference that changes a
cost."""

DEFAULT_MAX_VERTICES = 2_000_000
"""About half a minute of pivoting on a table of 200 symbols, and 3 GB of points."""

DEFAULT_MEMORY_LIMIT = 8 << 30
"""Bytes; a third of a machine with 24 GB, so that a program over the vertices still fits."""

_CHECK_ROWS = 1 << 16
"""Points checked at a time, so that the check needs little memory beside the points."""


@dataclass(frozen=True, kw_only=True)
class ListingLimits:
    """How large an enumeration may become."""

    max_vertices: int = DEFAULT_MAX_VERTICES
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    end: float = math.inf
    """On the clock of `time.process_time`."""

    def left(self) -> float:
        """Seconds until the end."""
        return self.end - time.process_time()

    def check_time(self) -> None:
        """Raise OutOfTime if the end has come."""
        if self.left() <= 0.0:
            raise OutOfTime(
                "the vertices were not enumerated in time; allow more seconds, or use "
                'method="columns"'
            )

    def __post_init__(self) -> None:
        _check_whole("max_vertices", self.max_vertices, "vertices")
        _check_whole("memory_limit", self.memory_limit, "bytes")


def _check_whole(name: str, value: object, unit: str) -> None:
    """Raise InvalidOption unless the value is a whole number, at least 1."""
    whole = 0
    # In Python a boolean is an integer, too.
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        whole = int(value)
    if whole < 1:
        raise InvalidOption(
            f"{name} ({value!r}) must be a whole number of {unit}, at least 1"
        )


@dataclass(frozen=True, eq=False)
class Vertices:
    """The vertices of a polytope.

    Attributes
    ----------
    points : (k, n) array
        One vertex per row, in lexicographic order of the rows; read-only.
    method : str
        The algorithm that found them: "pivot", "cdd" or "cdd-exact".
    exact : bool
        True only if they were enumerated in exact arithmetic; a float enumeration is no proof that
        none is missing.
    bases : int or None
        Bases that were visited, where the algorithm visits bases. More than k where some vertices
        belong to several.
    degenerate : int or None
        Vertices at which more constraints are tight than needed, up to rounding; None if not known.
    """

    points: Array
    method: str
    exact: bool
    bases: int | None = None
    degenerate: int | None = None

    def __len__(self) -> int:
        return self.points.shape[0]


def finished_vertices(
    points: Array,
    polytope: Polytope,
    method: str,
    *,
    exact: bool = False,
    **counts: int,
) -> Vertices:
    """Check ordered, distinct points against the original rows and seal them.

    `counts` are `bases` and `degenerate` of the result, where the algorithm has them.
    """
    explicit = polytope.explicit
    # A row is only as accurate as its largest entry.
    size = np.abs(explicit.rows).max(axis=1, initial=0.0)
    slack = MEMBERSHIP_TOLERANCE * np.where(size > 0.0, size, 1.0)
    lower = explicit.lower - slack
    upper = explicit.upper + slack
    for start in range(0, len(points), _CHECK_ROWS):
        part = points[start : start + _CHECK_ROWS]
        w = part @ explicit.rows.T
        inside = ((w >= lower) & (w <= upper)).all() and part.min() >= 0.0
        if not inside or np.abs(part.sum(axis=1) - 1.0).max() > MEMBERSHIP_TOLERANCE:
            raise BackendFailure(
                f'enumeration by "{method}" returned a point outside the polytope: the '
                "data are too close to a tie for it; use exact cddlib (pycddlib with "
                "GMP), or "
                'method="columns", which needs no vertices'
            )
    points.setflags(write=False)
    return Vertices(points, method, exact, **counts)


def ordered(points: Array) -> Array:
    """Distinct rows in lexicographic order.

    Of rows within `MERGE_TOLERANCE` the one with the fewest positive entries stays. Close points
    are neighbours along a fixed generic direction: their keys differ by less than a window, so few
    pairs are compared.
    """
    if len(points) == 0:
        return points
    direction = np.random.default_rng(0).random(points.shape[1])
    key = points @ direction
    order = np.argsort(key, kind="stable")
    points = points[order]
    key = key[order]
    support = np.count_nonzero(points, axis=1)
    dropped = np.zeros(len(points), dtype=bool)
    # Entries of the direction are at most 1, so the keys differ by n tolerances at most.
    window = points.shape[1] * MERGE_TOLERANCE
    for i in np.flatnonzero(np.diff(key) <= window).tolist():
        if dropped[i]:
            continue
        last = int(np.searchsorted(key, key[i] + window, side="right"))
        for j in range(i + 1, last):
            apart = np.abs(points[i] - points[j]).max()
            if dropped[j] or apart > MERGE_TOLERANCE:
                continue
            dropped[j] = True
            # Zeros are exact where an algorithm finds them: an entry of 1e-13 is its rounding.
            if support[j] < support[i]:
                points[i] = points[j]
                support[i] = support[j]
    points = points[~dropped]
    # lexsort takes its last key first.
    return np.ascontiguousarray(points[np.lexsort(points.T[::-1])])


# -------------------------------------------------------------------- walk and estimate

PIVOT = "pivot"

DONE = 0
"""Status of a walk that met every vertex."""

EMPTY = 1
"""Status of a walk over a polytope without points."""

LIMIT = 2
"""Status of a walk that a limit stopped; any other status is a contradiction between its decisions.
"""

FIRST_SAMPLE = 12
"""Columns of the first random face: enough for supports of every size on tables of up to six rows.
"""

ENOUGH = 150
"""Vertices on a face from which the face alone gives a useful estimate of the whole."""

WORK = 1_000_000
"""Entries of ratio tests to spend on one estimate, about 2 ms."""

SHARE = 6
"""No face takes more than one part in so many of that work."""

LEAST_FACES = 4
"""Random faces, however much work each is: fewer do not show the error."""

MOST_FACES = 16
"""Random faces, however little work each is: the error shrinks only with the square root of their
number."""

ROUGH = 0.5
"""Relative error from which the estimate is no better than the count on unfinished faces."""

MOST_ROWS = 4096
"""Rows in which a polytope may be written without its auxiliary variables; eliminating them can
take exponentially many, and nearly all of those are redundant."""

OVERHEAD = 60
"""What solving a basis and breaking its ties cost at most, in columns of its ratio tests; seen, two
columns for each row of a small table, and no more for larger ones."""


class Walk(NamedTuple):
    """What the kernel reports; `sizes[k]` is the number of vertices with k positive entries."""

    status: int
    points: bytearray
    sizes: list[int]
    bases: int
    degenerate: int
    failures: int


def walk(
    polytope: Polytope,
    *,
    most_bases: int,
    most_points: int | None = None,
    points: bool = False,
    seconds: float = math.inf,
) -> Walk:
    """Visit the bases of a polytope; vertices are returned only if `points` asks for them.

    Where a limit stops a walk without points, `sizes` are those of the vertices met so far.
    """
    explicit = polytope.explicit
    # Every basis has one vertex, so this is no limit of its own.
    if most_points is None:
        most_points = most_bases
    report = _pivot.enumerate_vertices(
        explicit.rows,
        polytope.magnitude,
        explicit.lower,
        explicit.upper,
        explicit.n,
        most_bases,
        most_points,
        MERGE_TOLERANCE,
        points,
        seconds,
    )
    return Walk(*report)


def bytes_per_basis(n: int, m: int) -> int:
    """Memory of the walk for one basis: its record, its hash and its vertex, with room to grow."""
    return 150 + 30 * (min(n, m) + 1)


def attempt(
    polytope: Polytope, *, most_bases: int, most_points: int, seconds: float = math.inf
) -> tuple[Vertices | None, Walk]:
    """All vertices and the report; None for the vertices where a limit stopped the walk."""
    report = walk(
        polytope,
        most_bases=most_bases,
        most_points=most_points,
        points=True,
        seconds=seconds,
    )
    if report.status == LIMIT:
        return None, report
    if report.status == EMPTY:
        raise EmptyPolytope("no point satisfies the constraints: the polytope is empty")
    if report.status != DONE:
        raise BackendFailure(
            f"pivoting met {report.failures} decisions that rounding makes contradictory; "
            'use exact cddlib (pycddlib with GMP), or method="columns", which needs no vertices'
        )
    points = np.frombuffer(report.points, dtype=np.float64)
    listed = finished_vertices(
        points.reshape(-1, polytope.n),
        polytope,
        PIVOT,
        bases=report.bases,
        degenerate=report.degenerate,
    )
    return listed, report


@dataclass(frozen=True)
class Estimate:
    """How large an enumeration would be.

    Attributes
    ----------
    vertices : float
        Estimated number of vertices.
    spread : float
        Standard error of `vertices` relative to it; 0 if they were counted.
    at_least : bool
        Whether there are probably more: the faces were left unfinished, or too small for the
        largest supports.
    memory : float
        What pivoting would take, in bytes.
    """

    vertices: float
    spread: float
    at_least: bool
    memory: float


def work_per_basis(n: int, m: int) -> int:
    """Entries of the ratio tests of one basis: all columns and the overhead, in every row.

    It only divides budgets of work by the size of a table, so a rough count will do.
    """
    return (n + 5 + min(2 * m, OVERHEAD)) * (m + 5)


def explicit_rows(polytope: Polytope, most: int = MOST_ROWS) -> int:
    """Upper bound of the rows of ``polytope.explicit``; `most` + 1 if it is larger.

    Only the columns of the auxiliary variables decide how many rows their elimination leaves, so
    these alone are eliminated here (as in `Polytope.explicit`).
    """
    if polytope.auxiliary is None:
        return polytope.m
    # r >= 0 is a row like any other.
    signs = -np.eye(polytope.auxiliary.shape[1])
    weights = np.vstack([polytope.one_sided[1], signs])
    while weights.shape[1]:
        last = weights[:, -1]
        positive = weights[last > 0]
        negative = weights[last < 0]
        free = weights[last == 0]
        # Each pair of opposite bounds becomes a row. Stopping here keeps the pairs in memory few,
        # for the number of rows can be squared each time.
        if len(free) + len(positive) * len(negative) > most:
            return most + 1
        pairs = (
            positive[:, None, :-1] * -negative[None, :, -1:]
            + negative[None, :, :-1] * positive[:, None, -1:]
        )
        flat = pairs.reshape(len(positive) * len(negative), weights.shape[1] - 1)
        weights = np.vstack([free[:, :-1], flat])
    # An upper bound: rows that say nothing about v count here, and are dropped there.
    return len(weights)


def few_vertices(polytope: Polytope, most: int) -> Vertices | None:
    """All vertices of a polytope so small that counting them takes as much work; else None."""
    rows = explicit_rows(polytope)
    if rows > MOST_ROWS or polytope.n > 2 * FIRST_SAMPLE:
        return None
    bases = max(1, WORK // work_per_basis(polytope.n, rows))
    try:
        listed, _ = attempt(polytope, most_bases=bases, most_points=most)
    except BackendFailure:
        # A list that rounding defeats is not needed: the caller has other methods.
        return None
    return listed


def estimate(polytope: Polytope, end: float = math.inf) -> Estimate:
    """Estimate the number of vertices, and the memory that pivoting over them would take.

    Small polytopes are counted. The random choices are fixed, so the answer is reproducible. Where
    auxiliary variables cannot be eliminated in reasonably many rows everything is infinite, and so
    it is where the faces were not walked until `end`, a moment of `time.process_time`.
    """
    rows = explicit_rows(polytope)
    if rows > MOST_ROWS:
        return Estimate(math.inf, 1.0, True, math.inf)
    sample = _FaceSample(polytope, rows)
    if not sample.draw(end):
        return Estimate(math.inf, 1.0, True, math.inf)
    return sample.estimate()


class _FaceSample:
    """Random faces of a polytope, each small enough to be finished with its share of the work."""

    def __init__(self, polytope: Polytope, rows: int) -> None:
        self._polytope = polytope
        self._rows = rows
        self._n = polytope.n
        # q of the module's text; with q = n the polytope itself is the only face.
        self._columns = self._n
        if self._n > 2 * FIRST_SAMPLE:
            self._columns = FIRST_SAMPLE
        self._walks: list[Walk] = []
        # The largest estimate from an unfinished face: there are at least about so many vertices.
        self._unfinished = 0.0
        self._random = np.random.default_rng(0)

    def draw(self, end: float) -> bool:
        """Find the number of columns of a face, and walk enough faces of that size; False where
        that is not done until `end`.
        """
        growing = self._columns < self._n
        wanted = 1
        while len(self._walks) < wanted:
            if time.process_time() >= end:
                return False
            face = self._walk()
            if face.status == LIMIT:
                self._unfinished = max(self._unfinished, self._scaled(face))
                # Unfinished counts are too small, and faces of different sizes do not mix: begin
                # anew with smaller ones. They never grow again, or this might not end.
                if self._columns > 1:
                    self._columns = max(1, self._columns * 3 // 4)
                    growing = False
                    self._walks.clear()
                    continue
            # The number of columns depends on the faces seen so far, so these must not count:
            # the estimate would be biased.
            if growing:
                growing = self._grow(face)
                continue
            self._walks.append(face)
            wanted = self._wanted(face, wanted)
        return True

    def _walk(self) -> Walk:
        """Walk the whole polytope, or a random face of it, as far as its share of the work goes."""
        if self._columns == self._n:
            face = self._polytope
        else:
            columns = self._random.choice(
                self._n, self._columns, replace=False, shuffle=False
            )
            face = self._polytope.restrict(columns)
        work = WORK // SHARE
        # The whole polytope needs one walk only, so that one may take all the work.
        if self._columns == self._n and not self._unfinished:
            work = WORK
        return walk(face, most_bases=max(1, work // self._work_per_basis()))

    def _work_per_basis(self) -> int:
        """Entries of the ratio tests of one basis of a face."""
        return work_per_basis(self._columns, self._rows)

    def _grow(self, face: Walk) -> bool:
        """Take half as many columns again, unless the face shows enough or it is too much work."""
        larger = min(self._n, self._columns + (self._columns + 1) // 2)
        # A larger face has more bases, too, so this is the least that it costs; one that turns out
        # too large is given up in `draw`.
        fits = face.bases * work_per_basis(larger, self._rows) <= WORK // SHARE
        if sum(face.sizes) >= ENOUGH or not fits or self._columns == self._n:
            return False
        self._columns = larger
        return True

    def _wanted(self, face: Walk, before: int) -> int:
        """How many faces there should be, judged by the work of the last one."""
        if self._columns == self._n:
            return 1
        cost = (face.bases + 1) * self._work_per_basis()
        return min(MOST_FACES, max(LEAST_FACES, before, WORK // cost))

    def _scaled(self, face: Walk) -> float:
        """The estimate from one face: C(n, k) / C(q, k) times its vertices of each size k."""
        total = 0.0
        for k, count in enumerate(face.sizes):
            if count:
                total += count * (math.comb(self._n, k) / math.comb(self._columns, k))
        return total

    def estimate(self) -> Estimate:
        """The mean over the faces, its standard error, and the memory of so many vertices."""
        counted = self._columns == self._n
        totals = [self._scaled(face) for face in self._walks]
        mean = float(np.mean(totals))
        error = 0.0
        if not counted:
            error = float(np.std(totals, ddof=1)) / math.sqrt(len(totals))
        # Where faces show no vertex, the error is as large as the estimate.
        spread = float(not counted)
        if mean > 0.0:
            spread = error / mean
        # Where vertices use all columns of a face, there may be larger supports, which no face
        # can show.
        largest = [
            face.sizes[-1] for face in self._walks if len(face.sizes) > self._columns
        ]
        misses_sizes = not counted and any(largest)
        total = mean
        # What an unfinished face has shown is no unbiased count, but better than a mean that
        # cannot be trusted.
        if misses_sizes or spread > ROUGH:
            total = max(mean, self._unfinished)
        memory = total * (8 * self._n + self._bases_per_vertex() * self._basis_bytes())
        return Estimate(total, spread, misses_sizes or total > mean, memory)

    def _bases_per_vertex(self) -> float:
        """Above 1 where vertices are degenerate; as on the faces."""
        vertices = sum(sum(face.sizes) for face in self._walks)
        bases = sum(face.bases for face in self._walks)
        if not vertices:
            return 1.0
        return bases / vertices

    def _basis_bytes(self) -> int:
        """Memory of the walk over the whole polytope for one basis."""
        return bytes_per_basis(self._n, self._rows)
