"""One call for the global minimum of a separable concave function, with its proven bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import EmptyPolytope, InvalidOption
from solvers.points import Points
from solvers.pricing.concave import (
    MEMORY_LIMIT,
    ConcaveSearch,
    SearchCounts,
    SearchStatus,
    check_prices,
)
from solvers.sets.polytope import Polytope

Array = NDArray[np.float64]

SHARE = 0.99
"""Share of a tolerance that a search is given: the rest is for the rounding of ``value - bound``."""

PRECISION = "double precision proves no more: allow a larger tolerance"
"""The status where the search was done, and the tolerance not met."""


@dataclass(frozen=True, eq=False)
class ConcaveMinimum:
    """`value` is the cost at `point` (n,); no point of the polytope costs less than `bound`."""

    status: SearchStatus | str
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
    if not tolerance > 0.0:
        raise InvalidOption(f"tolerance ({tolerance}) must be a positive number")
    search = ConcaveSearch(polytope, workers=workers, memory_limit=memory_limit)
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
    values = points.entropies() - points.dot(y)
    best = int(np.argmin(values))
    status = result.status
    if result.bound == np.inf:
        raise EmptyPolytope(
            "no point satisfies the rows exactly, though some do up to rounding; widen the bounds of the rows"
        )
    if status is SearchStatus.DONE and values[best] - result.bound > tolerance:
        status = PRECISION
    return ConcaveMinimum(
        status,
        points.take([best]).toarray()[0],
        float(values[best]),
        result.bound,
        result.counts,
    )
