"""The lower convex envelope, at a point, of a separable concave function over a polytope.

    minimise sum_k w_k cost(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in Pi

(Zarrabian et al. 2023, eq. (26), for the entropy). One loop serves every method: a master program
over the columns so far, priced until the proven gap is closed (`solvers.generation`). 'vertices'
begins with all enumerated vertices, so that pricing only has to confirm them; 'columns' begins with
next to nothing.

Invariants: every column is a member of the polytope, the value is the cost of a decomposition of
the point, and the bound holds for the relaxation, whatever the limits, HiGHS and the enumeration
do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers import errors
from solvers.concave import (
    MEMORY_LIMIT,
    ConcaveSearch,
    RobustSearch,
    check_limits,
    check_prices,
)
from solvers.enumeration import (
    Vertices,
    estimate,
    explicit_rows,
    few_vertices,
    vertices,
)
from solvers.generation import Generation
from solvers.line import LineSearch, leading_row
from solvers.line_levels import at_mean, first_columns
from solvers.plane import plane_search
from solvers.points import Array, Points
from solvers.polytope import MEMBERSHIP_TOLERANCE, Polytope
from solvers.programs.highs import HighsMaster
from solvers.results import Envelope, EnvelopeStatus, Pricer, Progress
from solvers.uncertain import UncertainSet

TIGHTENING_SHARE = 0.2
"""Share of the time limit that upper bounds of the coordinates may take; they only speed the search
up."""

ROBUST_TIGHTENING_SHARE = 0.1
"""The same over an uncertain set, where each of them takes longer."""

FIRST_SECONDS = 10.0
"""What the master over the first columns may take; it needs far less."""

MEMBER = 1e-11
"""Excess up to which a column of another run counts as a member."""

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

MOST_STARS = 1000
"""Coordinates up to which dense columns, one for each, are no burden for the master."""

HALVINGS = 40
"""Bisections of the way from the point to a unit vector."""

METHODS = ("auto", "vertices", "columns")

Incumbents: TypeAlias = Callable[[], Sequence[tuple[ArrayLike, Points]]]
"""The source of known decompositions, as (weights, points)."""

MOST_ROWS = 300
"""Rows, once auxiliary variables are eliminated, up to which vertices are enumerated at all."""

FEW_VERTICES = 1500
"""Estimated number of vertices up to which 'auto' enumerates them: beyond it column generation was
faster on every table measured (tests/benchmarks/test_grids.py prints the ratio)."""


def lower_envelope(
    polytope: Polytope,
    point: ArrayLike,
    *,
    relaxation: Polytope | None = None,
    method: str = "auto",
    enumeration: str = "auto",
    gap: float = 1e-6,
    time_limit: float | None = None,
    memory_limit: int = MEMORY_LIMIT,
    workers: int = 1,
    start: Points | None = None,
    incumbents: Incumbents = tuple,
    dual: ArrayLike | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Envelope:
    """Decompose `point` into members of the polytope at least cost, with a proven bound.

    Parameters
    ----------
    polytope : Polytope
    point : (n,) array
        A member of the polytope.
    relaxation : Polytope, optional
        A set with the same rows that contains the polytope; the bound holds for it. Give the true
        set here where `polytope` is a slightly shrunk one.
    method : {"auto", "vertices", "columns"}
    enumeration : str
        The enumeration of `solvers.vertices`; "auto" unless the method is "vertices".
    gap : float
        Stop once ``value - bound`` is at most this (absolute, in units of the cost).
    time_limit : float, optional
        Seconds; the best decomposition so far and its valid bound are returned. Ctrl-C does the
        same.
    start, dual : optional
        Columns and prices of a neighbouring problem. Columns outside the polytope are left out.
    incumbents : callable
        Decompositions of the point that are known, as (weights, points); asked for unless all
        vertices are listed and no limit can come before their best combination. Those that are
        decompositions into members count from the start, so the value is never above theirs,
        whatever the limits and HiGHS do; of the others the members are columns.

    Raises
    ------
    InvalidPolytope, InvalidOption
        On NaN, wrong shapes or options out of range.
    EmptyPolytope, OutsidePolytope
        If there is no member at all, or the point is none; the latter carries a separating
        inequality.
    BackendFailure
        If the master program cannot be solved even once.
    """
    started = time.monotonic()
    end = deadline(started, gap, time_limit)
    _check_method(method, enumeration)
    outer = relaxation
    if outer is None:
        outer = polytope
    check_limits(workers, memory_limit)
    polytope.check_relaxation(outer)
    p = _check_point(polytope, point)
    if start is not None:
        _check_length(start, polytope.n)
    guess = _checked_prices(dual, polytope.n)
    preparation = _Preparation(polytope, p)
    resources = _Resources(workers, memory_limit, time_limit)
    try:
        preparation.make_pricer(outer, resources)
        if method != "vertices":
            preparation.add_columns_of_line(gap, end)
        preparation.list_vertices(method, enumeration, end)
    except errors.OutOfTime:
        end = -math.inf
    except KeyboardInterrupt:
        preparation.interrupted = True
        end = -math.inf
    preparation.add_start(start)
    if preparation.vertices is None or end < math.inf:
        # Where all vertices are listed and no limit can come first, nothing else is needed.
        preparation.add_incumbents(incumbents())
    columns, weights = preparation.columns()
    run = Generation(
        p,
        preparation.pricer,
        columns,
        gap,
        end - time.monotonic(),
        weights,
        stabilise=preparation.method == "columns",
        guess=guess,
        completion=_completion(polytope, p),
        progress=progress,
    )
    return concluded(
        run,
        started,
        preparation.method,
        preparation.interrupted,
        preparation.vertices,
    )


@dataclass(frozen=True)
class _Resources:
    """What a pricer may use: threads, bytes, and the seconds of the whole run."""

    workers: int
    memory_limit: int
    time_limit: float | None

    def share_of_time(self, share: float) -> float:
        """Seconds; without a limit there is no end."""
        if self.time_limit is None:
            return math.inf
        return share * self.time_limit


def _checked_prices(dual: ArrayLike | None, n: int) -> Array | None:
    """Prices of a neighbouring problem, if there are any; InvalidOption unless they are n."""
    if dual is None:
        return None
    return check_prices("dual", dual, n)


def _check_method(method: str, enumeration: str) -> None:
    if method not in METHODS:
        raise errors.InvalidOption(
            f"method {method!r} is not known; use one of {', '.join(METHODS)}"
        )
    if enumeration != "auto" and method != "vertices":
        raise errors.InvalidOption(
            f"enumeration {enumeration!r} needs method='vertices'"
        )


class _Preparation:
    """The pricer and the first columns of a run.

    Any step may be cut short by Ctrl-C or the clock: what is there then is used as it is. A pricer
    that is missing is never called, because no time is left.
    """

    def __init__(self, polytope: Polytope, point: Array) -> None:
        self.pricer: Pricer | None = None
        self.vertices: Vertices | None = None
        self.interrupted = False
        self._polytope = polytope
        self._point = point
        # The row whose values order all symbols, where every row is a function of it.
        self._leading_row = leading_row(polytope)
        self._line: LineSearch | None = None
        self._decompositions: list[tuple[ArrayLike, Points]] = []
        # Unit vectors inside the polytope cost nothing.
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

    def make_pricer(self, outer: Polytope, resources: _Resources) -> None:
        """All pairs where the rows see one number; else branch and bound, or all triples."""
        if self._leading_row is None:
            self.pricer = _tree_pricer(self._polytope, outer, resources)
        else:
            self._line = LineSearch(self._polytope, outer, self._leading_row)
            self.pricer = self._line.run

    def add_columns_of_line(self, gap: float, end: float) -> None:
        """Where the rows see one number, its cheapest pairs, and a first decomposition."""
        if self._line is None:
            return
        self._decompositions.append(at_mean(self._line, self._point))
        self._columns.append(first_columns(self._line, self._point, gap, end))

    def list_vertices(self, method: str, enumeration: str, end: float) -> None:
        """All vertices, where the method asks for them or they are few."""
        if self._leading_row is None or method == "vertices":
            self.vertices = _vertices(self._polytope, method, enumeration, end)

    def add_start(self, start: Points | None) -> None:
        """Columns of a neighbouring problem that are members here, after the vertices."""
        if self.vertices is not None:
            self._columns.append(Points.from_dense(self.vertices.points))
        if start is not None and len(start):
            inside = _members(self._polytope, start, ROUNDING)
            self._columns.append(start.take(inside))

    def add_incumbents(self, incumbents: Sequence[tuple[ArrayLike, Points]]) -> None:
        """Decompositions from elsewhere, before that of the line."""
        self._decompositions = [*incumbents, *self._decompositions]
        for _, points in self._decompositions:
            _check_length(points, self._polytope.n)

    def columns(self) -> tuple[Points, Array]:
        """All columns, and the weights of the best decomposition among those known."""
        return _with_incumbents(
            self._polytope, self._point, self._columns, self._decompositions
        )


def _tree_pricer(polytope: Polytope, outer: Polytope, resources: _Resources) -> Pricer:
    """Branch and bound; or all vertices, where there are many symbols and the rows see two
    numbers.
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
            return plane.run
    return tree.run


def deadline(started: float, gap: float, time_limit: float | None) -> float:
    """When a run has to end, on the clock of `time.monotonic`; InvalidOption if gap or limit are
    out of range.
    """
    if not gap > 0.0:
        raise errors.InvalidOption(f"gap ({gap}) must be a positive number")
    if time_limit is not None and not time_limit >= 0.0:
        raise errors.InvalidOption(
            f"time_limit ({time_limit}) must be zero or more seconds"
        )
    if time_limit is None:
        return math.inf
    return started + time_limit


def concluded(
    run: Generation,
    started: float,
    method: str,
    interrupted: bool,
    listed: Vertices | None = None,
) -> Envelope:
    """Let the generation run, and return its result; `listed` are all vertices, where these were
    the columns.
    """
    status = run.run()
    if interrupted:
        status = EnvelopeStatus.INTERRUPTED
    if status is EnvelopeStatus.BACKEND_FAILED and run.rounds == 0:
        raise errors.BackendFailure(
            "HiGHS failed on the first master program; try method='vertices' or a larger gap"
        )
    used = np.flatnonzero(run.weights > 0.0)
    enumeration: str | None = None
    count = 0
    if listed is not None:
        enumeration = listed.method
        count = len(listed)
    return Envelope(
        status=status,
        weights=run.weights[used],
        points=run.pool.take(used),
        value=run.value,
        bound=run.bound,
        dual=run.dual,
        method=method,
        pool=run.pool,
        enumeration=enumeration,
        vertices=count,
        rounds=run.rounds,
        columns=len(run.pool),
        counts=run.counts,
        seconds=time.monotonic() - started,
        seconds_pricing=run.seconds_pricing,
    )


def _check_length(points: Points, n: int) -> None:
    length = points.shape[1]
    if length != n:
        raise errors.InvalidPolytope(f"start has points of length {length}, not {n}")


def _check_point(polytope: Polytope, point: ArrayLike) -> Array:
    p = np.ascontiguousarray(point, dtype=np.float64)
    if p.shape != (polytope.n,) or not np.isfinite(p).all():
        raise errors.InvalidPolytope(f"point must be {polytope.n} finite numbers")
    if polytope.residual(p)[0] <= MEMBERSHIP_TOLERANCE:
        return p
    # An empty polytope is the clearer error.
    ConcaveSearch(polytope, tightening=0.0).linear(np.zeros(polytope.n))
    if p.min() < -MEMBERSHIP_TOLERANCE or abs(p.sum() - 1.0) > MEMBERSHIP_TOLERANCE:
        raise errors.InvalidPolytope("point must be non-negative and sum to 1")
    if polytope.least is not None:
        row = "a combination of rows"
        normal, offset = polytope.least.separation(p)
    else:
        row, normal, offset = _worst_row(polytope.explicit, p)
    raise errors.OutsidePolytope(
        "point is not in the polytope, so it has no decomposition: "
        f"{row} gives {float(normal @ p):.6g}, above {offset:.6g}",
        normal,
        offset,
    )


def _worst_row(explicit: Polytope, p: Array) -> tuple[str, Array, float]:
    """The name of the row that the point violates most, and that row as ``normal v <= offset``."""
    rows, _, bounds = explicit.one_sided
    worst = int(np.argmax(rows @ p - bounds))
    # One-sided rows are those with an upper end first, then the negatives of those with a lower
    # one.
    with_upper = np.flatnonzero(np.isfinite(explicit.upper))
    with_lower = np.flatnonzero(np.isfinite(explicit.lower))
    if worst < len(with_upper):
        name = f"row {with_upper[worst]}"
    else:
        name = f"minus row {with_lower[worst - len(with_upper)]}"
    return name, rows[worst], float(bounds[worst])


def _completion(polytope: Polytope, p: Array) -> Callable[[], Points] | None:
    """The source of columns that complete others, where they are no burden for the master."""
    if polytope.n > MOST_STARS:
        return None
    return partial(_stars, polytope, p)


def _stars(polytope: Polytope, p: Array) -> Points:
    """Columns by a little of which any others can be completed to a decomposition of the point.

    Else one rare coordinate that the columns miss would leave the trivial decomposition as the only
    one.
    """
    units_inside = polytope.excess(np.eye(len(p))) <= 0.0
    low = units_inside.astype(np.float64)
    high = np.ones(len(p))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        inside = polytope.excess(_pulled(p, middle)) <= 0.0
        low = np.where(inside, middle, low)
        high = np.where(inside, high, middle)
    return Points.from_dense(_pulled(p, low)[low > 0.0])


def _pulled(point: Array, shares: Array) -> Array:
    """The points at these shares of the ways from the point to the unit vectors; (n, n)."""
    return (1.0 - shares)[:, None] * point + np.diag(shares)


def _with_incumbents(
    polytope: Polytope,
    target: Array,
    initial: list[Points],
    incumbents: Sequence[tuple[ArrayLike, Points]],
) -> tuple[Points, Array]:
    """All columns, the point itself first, and the weights of the best decomposition among those
    known.
    """
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
        decomposes = (
            w.min(initial=0.0) >= 0.0 and (missing <= INCUMBENT_ERROR * target).all()
        )
        value = float(w @ points.entropies())
        if decomposes and inside[w > 0.0].all() and value < least:
            best = w[inside]
            first = width
            least = value
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


def _vertices(
    polytope: Polytope, method: str, enumeration: str, end: float
) -> Vertices | None:
    """All vertices, where the method wants them."""
    if method == "columns":
        return None
    if (
        polytope.auxiliary is not None
        and explicit_rows(polytope, MOST_ROWS) > MOST_ROWS
    ):
        if method == "auto":
            return None
        raise errors.TooManyVertices(
            f"the polytope has more than {MOST_ROWS} rows without its auxiliary "
            "variables, too many to enumerate "
            'vertices; use method="columns"'
        )
    if method == "auto":
        small = few_vertices(polytope, FEW_VERTICES)
        if small is not None:
            return small
        size = estimate(polytope)
        if size.at_least or size.vertices > FEW_VERTICES:
            return None
    left: float | None = None
    if not math.isinf(end):
        left = max(0.0, end - time.monotonic())
    try:
        return vertices(polytope, enumeration, time_limit=left)
    except errors.BackendFailure:
        if method == "auto":
            # Columns need no list.
            return None
        raise


def robust_envelope(
    uncertain: UncertainSet,
    *,
    margin: float = 0.0,
    gap: float = 1e-6,
    time_limit: float | None = None,
    memory_limit: int = MEMORY_LIMIT,
    workers: int = 1,
    start: Points | None = None,
    incumbents: Incumbents = tuple,
    dual: ArrayLike | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Envelope:
    """Decompose ``uncertain.point`` into members of the set at least cost, with a proven bound.

    Parameters and errors are those of `lower_envelope`, but that of incumbents the members alone
    count; `margin` is that of `RobustSearch`. The bound holds for the set itself, whose points are
    members of it with the margin.
    """
    started = time.monotonic()
    end = deadline(started, gap, time_limit)
    guess = _checked_prices(dual, uncertain.n)
    resources = _Resources(workers, memory_limit, time_limit)
    pricer: Pricer | None = None
    interrupted = False
    try:
        pricer = RobustSearch(
            uncertain,
            margin=margin,
            workers=workers,
            memory_limit=memory_limit,
            tightening=resources.share_of_time(ROBUST_TIGHTENING_SHARE),
        ).run
    except KeyboardInterrupt:
        interrupted = True
        end = -math.inf
    p = uncertain.point
    candidates = [points for _, points in incumbents()]
    if start is not None:
        candidates.append(start)
    columns = _robust_columns(uncertain, margin, candidates)
    if guess is None:
        guess = _first_prices(p, columns)
    run = Generation(
        p,
        pricer,
        columns,
        gap,
        end - time.monotonic(),
        over_uncertain_set=True,
        guess=guess,
        progress=progress,
    )
    return concluded(run, started, "columns", interrupted)


def _robust_columns(
    uncertain: UncertainSet, margin: float, candidates: Sequence[Points]
) -> Points:
    """The point, the farthest members towards the unit vectors, and the candidates inside."""
    columns = [
        Points.from_dense(uncertain.point),
        Points.from_dense(uncertain.pulled(margin)),
    ]
    for points in candidates:
        _check_length(points, uncertain.n)
        inside = uncertain.excess_of(points) <= -margin + MEMBER
        columns.append(points.take(inside))
    return Points.concatenate(columns)


def _first_prices(point: Array, columns: Points) -> Array | None:
    """Prices of the master over these columns, which cover the point; None if HiGHS finds none."""
    master = HighsMaster(point)
    master.add(columns, columns.entropies())
    solution = master.solve(FIRST_SECONDS)
    if not solution.is_optimal:
        return None
    return solution.dual
