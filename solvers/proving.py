"""A bound on a lower envelope that is proven again from its prices, by one exact pricing.

A search ends with prices y and a bound y.p + m, where m is below H(v) - y.v for all members v of
the set (`solvers.results.envelope_bound`). Whoever has the prices needs no search: one pricing of
the kind that the search made in every round finds m again.

For example, the members (v, 1 - v) with 0.2 <= v <= 0.8 have the vertices (0.2, 0.8) and (0.8,
0.2) of entropy 0.5004. With prices of (0.5004, 0.5004) both cost nothing and all others more: m is
0, and the bound at (0.5, 0.5) is 0.5004.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from solvers.concave import MEMORY_LIMIT, check_limits, check_prices
from solvers.points import Array
from solvers.polytope import Polytope
from solvers.preparation import Preparation, Resources
from solvers.results import envelope_bound

ROOM = 1e-11
"""Share of the largest term by which the wanted minimum is lowered: a search that ended a rounding
below it would else go on for nothing."""


def proven_bound(
    polytope: Polytope,
    point: Array,
    prices: ArrayLike,
    *,
    least: float,
    time_limit: float | None = None,
    memory_limit: int = MEMORY_LIMIT,
    workers: int = 1,
) -> float:
    """The bound on the envelope at `point` that these prices prove, rounded down.

    Parameters
    ----------
    polytope : Polytope
    point : (n,) array
    prices : (n,) array
    least : float
        The bound that is asked for: the pricing ends as soon as it is proven, or disproven.
    time_limit : float, optional
        Seconds; what is proven by then holds.

    Raises
    ------
    InvalidPolytope
        Unless there are n finite prices.
    EmptyPolytope
        If the set has no member.
    OutOfTime
        If the time was over before there was a pricer.
    """
    check_limits(workers, memory_limit)
    y = check_prices("prices", prices, polytope.n)
    preparation = Preparation(polytope, point)
    resources = Resources(workers, memory_limit, time_limit)
    preparation.make_pricer(polytope, resources)
    pricer = preparation.pricer
    assert pricer is not None  # `make_pricer` makes one
    terms = y * point
    size = float(np.abs(terms).sum()) + abs(least)
    # What is left for the minimum, if the bound is to be reached.
    wanted = least - math.fsum(terms) - ROOM * size
    result = pricer(
        y,
        cutoff=wanted,
        tolerance=0.0,
        slack=0.0,
        # No point is wanted: nothing costs so little.
        column_cutoff=-math.inf,
        time_limit=time_limit,
    )
    return envelope_bound(y, point, result.bound)
