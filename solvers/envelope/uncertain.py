"""The lower convex envelope at a point over a set whose inequalities have uncertain coefficients.

It is the program of `solvers.envelope.polytope`, over an `UncertainSet` in place of a polytope: the
posteriors that keep a promise for every population in a confidence set.

1. `RobustSearch` is the pricer: its branch and bound finds the violated inequalities by sorting.
2. The first columns are the point, the farthest member on the way to every unit vector, and those
   of the columns from elsewhere that are members (`_robust_columns`). The farthest members
   decompose the point by themselves (`_along_ways`). The master over all first columns has a better
   decomposition, and prices to begin with (`_first_solution`); without time for it the first
   decomposition stays.
3. `solvers.envelope.generation` runs the same loop as over a polytope.

For example, at p = (0.5, 0.5) the farthest members might be (0.8, 0.2) and (0.2, 0.8). Half of each
decomposes p at 0.500 nats, and their prices are (0.5, 0.5).

Columns are members with the margin, and the bound holds for the set without it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from solvers.envelope.generation import Generation
from solvers.envelope.polytope import checked_prices, concluded, deadline
from solvers.envelope.preparation import Incumbents, Resources, check_length
from solvers.points import Array, Points
from solvers.pricing.concave import MEMORY_LIMIT
from solvers.pricing.set_searches import RobustSearch
from solvers.programs.master import HighsMaster, MasterSolution
from solvers.results import Envelope, Pricer, Progress
from solvers.sets.uncertain import UncertainSet

TIGHTENING_SHARE = 0.1
"""Share of the time limit that upper bounds of the coordinates may take; half of that over a
polytope, for each of them takes longer here."""

FIRST_SECONDS = 10.0
"""Seconds that the master over the first columns may take; it needs far less."""

LEAST_REACH = 1e-9
"""Share of a way to a unit vector below which its end is the point, as well as weights can tell."""

MEMBER = 1e-11
"""Excess up to which a column of another run counts as a member: it lay on the boundary, as well as
doubles can tell."""


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

    Parameters and errors are those of `lower_envelope`, except that of incumbents only the points
    are used; `margin` is that of `RobustSearch`. Points are members with the margin, and the bound
    holds for the set without it.
    """
    started = time.process_time()
    end = deadline(started, gap, time_limit)
    guess = checked_prices(dual, uncertain.n)
    resources = Resources(workers, memory_limit, time_limit)
    # The search bounds the coordinates first, which takes a while and may be cut short.
    pricer: Pricer | None = None
    interrupted = False
    try:
        pricer = RobustSearch(
            uncertain,
            margin=margin,
            workers=workers,
            memory_limit=memory_limit,
            tightening=resources.share_of_time(TIGHTENING_SHARE),
        ).run
    except KeyboardInterrupt:
        # Without a pricer the run makes what it can of the first columns, in no time.
        interrupted = True
        end = -math.inf
    # Points that miss the margin are left out, and what is left of a known decomposition need not
    # be one. So its weights are of no use.
    candidates = [points for _, points in incumbents()]
    if start is not None:
        candidates.append(start)
    reach = uncertain.reach(margin, end)
    columns = _robust_columns(uncertain, margin, candidates, reach)
    first = _first_solution(uncertain.point, columns, end)
    if guess is None and first is not None:
        guess = first.dual
    run = Generation(
        uncertain.point,
        pricer,
        columns,
        gap,
        end - time.process_time(),
        incumbent=_along_ways(uncertain.point, reach, len(columns)),
        first=first,
        over_uncertain_set=True,
        guess=guess,
        progress=progress,
    )
    return concluded(run, started, "columns", interrupted)


def _robust_columns(
    uncertain: UncertainSet, margin: float, candidates: Sequence[Points], reach: Array
) -> Points:
    """The point, the farthest members towards the unit vectors, and the candidates inside."""
    # Columns begin with the point itself: the decomposition that is always there.
    ways = (1.0 - reach)[:, None] * uncertain.point + np.diag(reach)
    columns = [Points.from_dense(uncertain.point), Points.from_dense(ways)]
    for points in candidates:
        check_length(points, uncertain.n)
        inside = uncertain.excess_of(points) <= -margin + MEMBER
        columns.append(points.take(inside))
    return Points.concatenate(columns)


def _along_ways(point: Array, reach: Array, size: int) -> Array | None:
    """Weights of `size` columns, of which only those towards the unit vectors have any: they
    decompose the point. None where one of them is the point itself.

    With weights c p_x / r_x these columns add up to c sum_x p_x e_x and a multiple of the point, so
    c makes the weights sum to 1.
    """
    if not reach.min() > LEAST_REACH:
        return None
    weights = np.zeros(size)
    weights[1 : len(point) + 1] = point / reach
    return weights / weights.sum()


def _first_solution(point: Array, columns: Points, end: float) -> MasterSolution | None:
    """The best weights of these columns, and their prices; None if HiGHS fails, or has no time.

    The prices are the center of the first price box, so local searches begin near useful ones.
    """
    seconds = min(FIRST_SECONDS, end - time.process_time())
    if seconds <= 0.0:
        return None
    master = HighsMaster(point)
    master.add(columns, columns.entropies())
    solution = master.solve(seconds)
    if not solution.is_optimal:
        return None
    return solution
