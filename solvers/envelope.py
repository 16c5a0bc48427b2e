"""The lower convex envelope, at a point, of a separable concave function over a polytope.

    minimise sum_k w_k cost(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in Pi

(Zarrabian et al. 2023, eq. (26), for the entropy). One loop serves every method: a master program over
the columns known, priced until the proven gap is closed. 'vertices' begins with all enumerated vertices,
so that pricing only has to confirm them; 'columns' begins with next to nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
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

TIGHTENING_SHARE, ROBUST_TIGHTENING_SHARE = 0.2, 0.1
"""Share of the time limit that upper bounds of the coordinates may take, over a polytope and over an uncertain
set; they only speed the search up."""

FIRST_SECONDS = 10.0
"""What the master over the first columns may take; it needs far less."""

MEMBER = 1e-11
"""Excess up to which a column of another run counts as a member."""

ROUNDING = 5e-13
"""Excess, relative to the terms of a row, up to which a column of another run counts as a member: columns
lie on the boundary, some of them outside by the tolerance of the kernel's simplex (2e-13 of 1 + the row)."""

INCUMBENT_ERROR = 1e-9
"""Relative miss of an entry of the point up to which a decomposition from elsewhere is taken as one."""

PLANE_FROM = 400
"""Symbols from which looking at all triples of a plane beats the tree (random tables, three sensitive values)."""

MOST_STARS = 1000
"""Coordinates up to which dense columns, one for each, are no burden for the master."""

HALVINGS = 40
"""Bisections of the way from the point to a unit vector."""

METHODS = ("auto", "vertices", "columns")

Incumbents: TypeAlias = Callable[[], Sequence[tuple[ArrayLike, Points]]]
"""Where known decompositions come from."""

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
        A set with the same rows that contains the polytope; the bound holds for it. Give the true set
        here where `polytope` is a slightly shrunk one.
    method : {"auto", "vertices", "columns"}
    enumeration : str
        Who lists the vertices, as for `solvers.vertices`; "auto" alone unless the method is "vertices".
    gap : float
        Stop once ``value - bound`` is at most this (absolute, in units of the cost).
    time_limit : float, optional
        Seconds; the best decomposition so far and its valid bound are returned. Ctrl-C does the same.
    start, dual : optional
        Columns and prices of a neighbouring problem. Columns outside the polytope are left out.
    incumbents : callable
        Decompositions of the point that are known, as (weights, points); asked for unless all vertices are listed and
        no limit can come before their best combination. Those that are decompositions into members count from the
        start, so the value is never above theirs, whatever the limits and HiGHS do; of the others
        the members are columns.

    Raises
    ------
    InvalidPolytope, InvalidOption
        On NaN, wrong shapes or options out of range.
    EmptyPolytope, OutsidePolytope
        If there is no member at all, or the point is none; the latter carries a separating inequality.
    BackendFailure
        If the master program cannot be solved even once.
    """
    started = time.monotonic()
    end = deadline(started, gap, time_limit)
    if method not in METHODS:
        raise errors.InvalidOption(
            f"method {method!r} is not known; use one of {', '.join(METHODS)}"
        )
    if enumeration != "auto" and method != "vertices":
        raise errors.InvalidOption(
            f"enumeration {enumeration!r} needs method='vertices'"
        )
    outer = polytope if relaxation is None else relaxation
    check_limits(workers, memory_limit)
    polytope.check_relaxation(outer)
    p = _check_point(polytope, point)
    if start is not None:
        _check_length(start, polytope.n)
    known = None if dual is None else check_prices("dual", dual, polytope.n)
    lead = leading_row(polytope)
    pricer: Pricer | None = None
    listed, interrupted = None, False
    found: list[tuple[ArrayLike, Points]] = []
    units = Points.units(np.arange(polytope.n), polytope.n)  # those inside cost nothing
    initial = [Points.from_dense(p), units.take(_members(polytope, units))]
    try:
        if lead is None:
            tightening = (
                math.inf if time_limit is None else TIGHTENING_SHARE * time_limit
            )
            limits = {
                "workers": workers,
                "memory_limit": memory_limit,
                "tightening": tightening,
            }
            tree = ConcaveSearch(polytope, relaxation=outer, **limits)
            plane = (
                plane_search(polytope, outer, tree)
                if polytope.n >= PLANE_FROM
                else None
            )
            pricer = (plane or tree).run
        else:
            line = LineSearch(polytope, outer, lead)
            pricer = line.run
            if method != "vertices":
                found.append(at_mean(line, p))
                initial.append(first_columns(line, p, gap, end))
        if lead is None or method == "vertices":
            listed = _vertices(polytope, method, enumeration, end)
    except errors.OutOfTime:
        end = -math.inf
    except KeyboardInterrupt:
        interrupted, end = True, -math.inf

    if listed is not None:
        initial.append(Points.from_dense(listed.points))
    if start is not None and len(start):
        initial.append(start.take(_members(polytope, start, ROUNDING)))
    if listed is None or end < math.inf:
        found = [*incumbents(), *found]
        for _, points in found:
            _check_length(points, polytope.n)
    columns, best = _with_incumbents(polytope, p, initial, found)
    left, stabilise = end - time.monotonic(), listed is None and lead is None
    stars = (lambda: _stars(polytope, p)) if polytope.n <= MOST_STARS else None
    run = Generation(
        p,
        pricer,
        columns,
        gap,
        left,
        best,
        stabilise,
        guess=known,
        completion=stars,
        progress=progress,
    )
    used = "vertices" if listed is not None else ("columns" if lead is None else "line")
    return concluded(run, started, used, interrupted, listed)


def deadline(started: float, gap: float, time_limit: float | None) -> float:
    """When a run has to end, on the clock of `time.monotonic`; InvalidOption if gap or limit are out of range."""
    if not gap > 0.0:
        raise errors.InvalidOption(f"gap ({gap}) must be a positive number")
    if time_limit is not None and not time_limit >= 0.0:
        raise errors.InvalidOption(
            f"time_limit ({time_limit}) must be zero or more seconds"
        )
    return math.inf if time_limit is None else started + time_limit


def concluded(
    run: Generation,
    started: float,
    method: str,
    interrupted: bool,
    listed: Vertices | None = None,
) -> Envelope:
    """Let the generation run, and say what it found; `listed` are all vertices, where these were the columns."""
    status = run.run()
    if interrupted:
        status = EnvelopeStatus.INTERRUPTED
    if status is EnvelopeStatus.BACKEND_FAILED and run.rounds == 0:
        raise errors.BackendFailure(
            "HiGHS failed on the first master program; try method='vertices' or a larger gap"
        )
    used = np.flatnonzero(run.weights > 0.0)
    found = run.weights[used], run.pool.take(used), run.value, run.bound, run.dual
    enumerated = (None, 0) if listed is None else (listed.method, len(listed))
    effort = (
        run.rounds,
        len(run.pool),
        run.counts,
        time.monotonic() - started,
        run.seconds_pricing,
    )
    return Envelope(status, *found, method, run.pool, *enumerated, *effort)


def _check_length(given: Points, n: int) -> None:
    if given.shape[1] != n:
        raise errors.InvalidPolytope(
            f"start has points of length {given.shape[1]}, not {n}"
        )


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
        what, (normal, offset) = "a combination of rows", polytope.least.separation(p)
    else:
        rows, _, bounds = polytope.explicit.one_sided
        worst = int(np.argmax(rows @ p - bounds))
        normal, offset = rows[worst], float(bounds[worst])
        ends = polytope.explicit.upper, polytope.explicit.lower
        high, low = (np.flatnonzero(np.isfinite(end)) for end in ends)
        what = (
            f"row {high[worst]}"
            if worst < len(high)
            else f"minus row {low[worst - len(high)]}"
        )
    excess = f"{what} gives {float(normal @ p):.6g}, above {offset:.6g}"
    said = f"point is not in the polytope, so it has no decomposition: {excess}"
    raise errors.OutsidePolytope(said, normal, offset)


def _stars(polytope: Polytope, p: Array) -> Points:
    """Columns by a little of which any others can be completed to a decomposition of the point.

    Else one rare coordinate that the columns miss would leave the trivial decomposition as the only one.
    """
    low, high = (
        (polytope.excess(np.eye(len(p))) <= 0.0).astype(np.float64),
        np.ones(len(p)),
    )
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        fine = polytope.excess(_pulled(p, middle)) <= 0.0
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    return Points.from_dense(_pulled(p, low)[low > 0.0])


def _pulled(point: Array, shares: Array) -> Array:
    return (1.0 - shares)[:, None] * point + np.diag(shares)


def _with_incumbents(
    polytope: Polytope,
    target: Array,
    initial: list[Points],
    incumbents: Sequence[tuple[ArrayLike, Points]],
) -> tuple[Points, Array]:
    """All columns, the point itself first, and the weights of the best decomposition among those known."""
    columns = Points.concatenate(initial)
    parts, width = [columns], len(columns)
    best, least = (np.ones(1), 0), float(columns.take([0]).entropies()[0])
    for weights, points in incumbents:
        w = np.asarray(weights, dtype=np.float64)
        inside = _members(polytope, points, ROUNDING)
        missing = np.abs(points.combine(w) - target)
        value = float(w @ points.entropies())
        decomposes = (
            w.min(initial=0.0) >= 0.0 and (missing <= INCUMBENT_ERROR * target).all()
        )
        if decomposes and inside[w > 0.0].all() and value < least:
            best, least = (w[inside], width), value
        parts.append(points.take(inside))
        width += len(parts[-1])
    weights, first = best
    whole = np.concatenate(
        [np.zeros(first), weights, np.zeros(width - first - len(weights))]
    )
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
    slack = rounding * points.images(np.abs(explicit.rows)) if rounding > 0.0 else 0.0
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
            f"the polytope has more than {MOST_ROWS} rows without its auxiliary variables, too many to enumerate "
            'vertices; use method="columns"'
        )
    if method == "auto":
        if (small := few_vertices(polytope, FEW_VERTICES)) is not None:
            return small
        size = estimate(polytope)
        if size.at_least or size.vertices > FEW_VERTICES:
            return None
    left = None if math.isinf(end) else max(0.0, end - time.monotonic())
    try:
        return vertices(polytope, enumeration, time_limit=left)
    except errors.BackendFailure:
        if method == "auto":  # columns need no list
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

    Parameters and errors are those of `lower_envelope`, but that of incumbents the members alone count; `margin` is
    that of `RobustSearch`. The bound holds for the set itself, whose points are members of it with the margin.
    """
    started = time.monotonic()
    end = deadline(started, gap, time_limit)
    guess = None if dual is None else check_prices("dual", dual, uncertain.n)
    pricer: Pricer | None = None
    interrupted = False
    try:
        tightening = (
            math.inf if time_limit is None else ROBUST_TIGHTENING_SHARE * time_limit
        )
        limits = {
            "workers": workers,
            "memory_limit": memory_limit,
            "tightening": tightening,
        }
        pricer = RobustSearch(uncertain, margin=margin, **limits).run
    except KeyboardInterrupt:
        interrupted, end = True, -math.inf
    p = uncertain.point
    initial = [Points.from_dense(p), Points.from_dense(uncertain.pulled(margin))]
    for points in [
        *(points for _, points in incumbents()),
        *([] if start is None else [start]),
    ]:
        _check_length(points, uncertain.n)
        initial.append(points.take(uncertain.excess_of(points) <= -margin + MEMBER))
    columns = Points.concatenate(initial)
    if guess is None:
        master = HighsMaster(p)
        master.add(columns, columns.entropies())
        first = master.solve(FIRST_SECONDS)
        guess = first.dual if first.is_optimal else None
    left = end - time.monotonic()
    run = Generation(
        p, pricer, columns, gap, left, uncertain=True, guess=guess, progress=progress
    )
    return concluded(run, started, "columns", interrupted)
