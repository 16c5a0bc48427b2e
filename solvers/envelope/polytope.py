"""The lower convex envelope, at a point, of a separable concave function over a polytope.

    minimise sum_k w_k cost(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in Pi

(Zarrabian et al. 2023, eq. (26), for the entropy). For example, the polytope of all (v, 1 - v) with
0.2 <= v <= 0.8 has the vertices (0.2, 0.8) and (0.8, 0.2). At p = (0.5, 0.5) half of each costs
0.500 nats of entropy, where p itself costs 0.693.

`lower_envelope` works in four steps:

1. It checks its arguments; a point outside the polytope is refused with an inequality that
   separates it (`_check_point`).
2. `preparation` chooses the pricer, the fastest exact search for the shape of the polytope, and
   makes the first columns v_k. Method 'vertices' begins with all enumerated vertices, so that
   pricing only has to confirm them; 'columns' begins with next to nothing.
3. `generation` has the rounds (`solvers.results.Rounds`). A linear program over the columns so far
   gives the weights, hence a value, and prices y of the coordinates of p. Pricing searches the
   polytope for members of least cost(v) - y.v. Those below zero become columns, and a lower bound m
   of this minimum proves that the envelope is at least y.p + m. The rounds end when value and bound
   differ by at most the gap.
4. `concluded` makes the result of what the rounds have found, whatever ended them.

`solvers.envelope.other_sets` has the same rounds over a set whose inequalities have uncertain
coefficients.

Invariants: every column is a member of the polytope, the value is the cost of a decomposition of
the point, and the bound holds for the relaxation, whatever the limits, HiGHS and the enumeration
do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from solvers import errors
from solvers.enumeration import Vertices
from solvers.envelope.generation import Generation
from solvers.envelope.preparation import (
    Incumbents,
    Preparation,
    Resources,
    check_length,
)
from solvers.points import Array, Points
from solvers.pricing.concave import (
    MEMORY_LIMIT,
    ConcaveSearch,
    check_limits,
    check_prices,
)
from solvers.results import Envelope, EnvelopeStatus, Progress
from solvers.sets.polytope import MEMBERSHIP_TOLERANCE, Polytope, towards_units

MOST_STARS = 1000
"""Coordinates up to which dense columns, one for each, are no burden for the master."""

HALVINGS = 40
"""Bisections of the way from the point to a unit vector; a column a little shorter than it could be
costs nothing but a little weight."""

MOST_FOR_HALVES = 50
"""Symbols for each row of the polytope up to which large trees cut every interval in two: with 1
and 13 that takes a half and a third of the time, with 200 it takes 2.5 times as long."""

METHODS = ("auto", "vertices", "columns")


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
    started = time.process_time()

    # Every argument is checked before any of the time is spent.
    end = deadline(started, gap, time_limit)
    _check_method(method, enumeration)
    outer = relaxation
    if outer is None:
        outer = polytope
    check_limits(workers, memory_limit)
    polytope.check_relaxation(outer)
    p = _check_point(polytope, point)
    if start is not None:
        check_length(start, polytope.n)
    guess = checked_prices(dual, polytope.n)

    # The pricer and the first columns, as far as the time goes.
    preparation = Preparation(polytope, p)
    end = preparation.run(
        outer,
        Resources(workers, memory_limit, time_limit),
        method=method,
        enumeration=enumeration,
        gap=gap,
        end=end,
    )
    preparation.add_start(start)
    # The best combination of all vertices is optimal, so known decompositions add nothing to them,
    # unless a limit comes first. Asking for them may cost time, too.
    if preparation.vertices is None or end < math.inf:
        preparation.add_incumbents(incumbents())
    columns, weights = preparation.columns()

    # The rounds. Local searches in a price box are for columns that have to be found: vertices are
    # all listed, and the pairs of a line are all priced in every round.
    run = Generation(
        p,
        preparation.pricer,
        columns,
        gap,
        end - time.process_time(),
        weights,
        stabilise=preparation.method == "columns",
        guess=guess,
        completion=_completion(polytope, p),
        by_levels=preparation.is_tree,
        halves=polytope.n <= MOST_FOR_HALVES * polytope.m,
        progress=progress,
    )
    return concluded(
        run,
        started,
        preparation.method,
        preparation.interrupted,
        preparation.vertices,
    )


def checked_prices(dual: ArrayLike | None, n: int) -> Array | None:
    """Prices of a neighbouring problem, if there are any; InvalidOption unless they are n."""
    if dual is None:
        return None
    return check_prices("dual", dual, n)


def _check_method(method: str, enumeration: str) -> None:
    """Raise InvalidOption unless the method is known and the enumeration is one that it uses."""
    if method not in METHODS:
        raise errors.InvalidOption(
            f"method {method!r} is not known; use one of {', '.join(METHODS)}"
        )
    if enumeration != "auto" and method != "vertices":
        raise errors.InvalidOption(
            f"enumeration {enumeration!r} needs method='vertices'"
        )


def deadline(started: float, gap: float, time_limit: float | None) -> float:
    """End of a run on the clock of `time.process_time`; InvalidOption on a bad gap or limit."""
    # Written so that NaN is refused, too.
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
    """Run the generation and return its result; `listed` are all vertices, where listed."""
    status = run.run()
    # The time of such a run was over before it began, which would read as a time limit.
    if interrupted:
        status = EnvelopeStatus.INTERRUPTED
    if status is EnvelopeStatus.BACKEND_FAILED and run.rounds == 0:
        raise errors.BackendFailure(
            "HiGHS failed on the first master program; try method='vertices' or a larger gap"
        )
    # Columns added last have no weights yet, and most others a weight of zero.
    used = np.flatnonzero(run.pool.weights > 0.0)
    enumeration: str | None = None
    count = 0
    if listed is not None:
        enumeration = listed.method
        count = len(listed)
    return Envelope(
        status=status,
        weights=run.pool.weights[used],
        points=run.pool.points.take(used),
        value=run.value,
        bound=run.bound,
        dual=run.dual,
        method=method,
        pool=run.pool.points,
        enumeration=enumeration,
        vertices=count,
        rounds=run.rounds,
        columns=run.columns,
        counts=run.counts,
        seconds=time.process_time() - started,
        seconds_pricing=run.seconds_pricing,
    )


def _check_point(polytope: Polytope, point: ArrayLike) -> Array:
    """The point as an array, if it is a member: only members have a decomposition.

    Raises
    ------
    InvalidPolytope
        If it is no probability vector.
    EmptyPolytope
        If there is no member at all.
    OutsidePolytope
        With an inequality that all members satisfy and the point does not.
    """
    p = np.ascontiguousarray(point, dtype=np.float64)
    if p.shape != (polytope.n,) or not np.isfinite(p).all():
        raise errors.InvalidPolytope(f"point must be {polytope.n} finite numbers")
    if polytope.residual(p)[0] <= MEMBERSHIP_TOLERANCE:
        return p
    # Where the polytope is empty, that is the clearer error: the search for any point raises it.
    ConcaveSearch(polytope, tightening=0.0).linear(np.zeros(polytope.n))
    if p.min() < -MEMBERSHIP_TOLERANCE or abs(p.sum() - 1.0) > MEMBERSHIP_TOLERANCE:
        raise errors.InvalidPolytope("point must be non-negative and sum to 1")
    # With auxiliary variables no single row excludes the point, but a combination of rows does.
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
    # Without auxiliary variables every row is an inequality of v alone.
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
    """The source of columns that complete others; None where they would burden the master."""
    if polytope.n > MOST_STARS:
        return None
    return partial(_stars, polytope, p)


def _stars(polytope: Polytope, p: Array) -> Points:
    """Members that complete any other columns to a decomposition of the point, with little weight.

    For every coordinate it is the farthest member on the way from the point to the unit vector.
    Without them one rare coordinate that the columns miss would leave the trivial decomposition as
    the only one: no mixture of columns that are zero there is the point.
    """
    reach = polytope.reaches(p, HALVINGS)
    # Of zero it would be the point, which is a column already.
    return Points.from_dense(towards_units(p, reach)[reach > 0.0])
