"""The lower convex envelope over an uncertain set: pricing by branch and bound with rows found by sorting."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.concave import MEMORY_LIMIT, ConcaveSearch
from solvers.envelope import concluded, deadline, pulled_units
from solvers.formulation import check_limits, check_prices
from solvers.generation import Generation
from solvers.points import Points
from solvers.programs.highs import HighsMaster
from solvers.results import Envelope, NoPricer, Pricer, Progress
from solvers.uncertain import UncertainSet

Array = NDArray[np.float64]

TIGHTENING_SHARE = 0.1
"""Share of the time limit that upper bounds of the coordinates may take; they only speed the search up."""

FIRST_SECONDS = 10.0
"""What the master over the first columns may take; it needs far less."""

DEAR = 3000.0
"""Pivots for each new column from which on local searches wait for the next tree, which finds one for 500."""

MEMBER = 1e-11
"""Excess up to which a column of another run counts as a member."""


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
        arguments: list[Any] = [*map(np.ascontiguousarray, (*uncertain.boxes, scale, low, wide))]
        arguments += [max(1.0 - float(low.sum()), 0.0), uncertain.ratio, uncertain.most, uncertain.least]
        arguments += [margin, allowance, uncertain.rest]
        self._kernels = [Search(*arguments, top=np.ones(self.n))]
        top = self._tighten(tightening)
        self._kernels += [Search(*arguments, top=top) for _ in range(workers - 1)]
        self._pool = ThreadPoolExecutor(max_workers=workers) if workers > 1 else None
        # A box holds its intervals and one row and one member of the basis for each tight row.
        self._box_limit = max(1000, memory_limit // (8 * self.n + 6 * (self.n + 1) + 192) // workers)


def robust_envelope(
    uncertain: UncertainSet,
    *,
    margin: float = 0.0,
    gap: float = 1e-6,
    time_limit: float | None = None,
    memory_limit: int = MEMORY_LIMIT,
    workers: int = 1,
    start: Points | None = None,
    dual: ArrayLike | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Envelope:
    """Decompose ``uncertain.point`` into members of the set at least cost, with a proven bound.

    Parameters and errors are those of `lower_envelope`; `margin` is that of `RobustSearch`. The bound holds for
    the set itself, whose points are members of it with the margin.
    """
    started = time.monotonic()
    end = deadline(started, gap, time_limit)
    guess = None if dual is None else check_prices("dual", dual, uncertain.n)
    pricer: Pricer = NoPricer()
    interrupted = False
    try:
        pricer = RobustSearch(
            uncertain,
            margin=margin,
            workers=workers,
            memory_limit=memory_limit,
            tightening=math.inf if time_limit is None else TIGHTENING_SHARE * time_limit,
        )
    except KeyboardInterrupt:
        interrupted, end = True, -math.inf
    pulled = pulled_units(uncertain.point, lambda points: uncertain.excess(points) <= -margin)[1]
    initial = [Points.from_dense(uncertain.point), Points.from_dense(pulled)]
    if start is not None and len(start):
        initial.append(start.take(uncertain.excess_of(start) <= -margin + MEMBER))
    columns = Points.concatenate(initial)
    if guess is None:
        master = HighsMaster(uncertain.point)
        master.add(columns, columns.entropies())
        first = master.solve(FIRST_SECONDS)
        guess = first.dual if first.is_optimal else None
    run = Generation(
        target=uncertain.point,
        pricer=pricer,
        initial=columns,
        gap=gap,
        time_limit=end - time.monotonic(),
        guess=guess,
        dear=DEAR,
        progress=progress,
    )
    return concluded(run, started, interrupted=interrupted, method="columns")
