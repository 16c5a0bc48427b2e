"""Branch and bound over a polytope of many cuts, taken into programs where they are violated.

`ConcaveSearch` has all rows in every linear program, and hundreds of cuts would make each pivot
slow. Here the kernel begins with the row sum v = 1 alone, and takes a cut from a list once the
solution of a program violates it (`_listed_rows.h`). Only the constructor differs.

All cuts of the list have the end 1. A row a.v <= b becomes (a + 1 - b).v <= 1, with 1 - b added to
every entry, because sum v = 1. For example, (1.72, 0.28).v <= 1.36 becomes (1.36, -0.08).v <= 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvers.pricing.concave import (
    FEWEST_BOXES,
    MEMORY_LIMIT,
    ConcaveSearch,
    check_limits,
    thread_pool,
)
from solvers.pricing.kernel_rows import identical_columns
from solvers.sets.polytope import Polytope

ROUNDING = 8.0 * np.finfo(np.float64).eps
"""Relative error of the entries of a row that was moved to the common end."""


class CutSearch(ConcaveSearch):
    """`ConcaveSearch` over {v >= 0, sum v = 1, rows v <= upper}; see there.

    Lower ends of the polytope are not used.
    """

    def __init__(self, polytope: Polytope, *, workers: int = 1) -> None:
        from solvers._kernel import Search

        check_limits(workers, MEMORY_LIMIT)
        self.n = polytope.n
        ends = polytope.upper[:, None]
        size = 1.0 + np.abs(ends) + np.abs(polytope.rows)
        # The sums are rounded. Lower entries make a wider set, for v is not negative, so what is
        # proven over it holds for the polytope.
        cuts = polytope.rows + (1.0 - ends) - ROUNDING * size
        self._members, self._first = identical_columns(cuts)
        distinct = len(self._first)
        cuts = np.ascontiguousarray(cuts[:, self._first])
        one = np.ones(1)
        self._kernels: list[Any] = []
        for _ in range(workers):
            kernel = Search(
                np.ones((1, distinct)),
                one,
                one,
                one,
                one,
                np.ones(distinct),
                distinct,
                cuts=cuts,
                count=len(cuts),
            )
            self._kernels.append(kernel)
        # A box holds two 4-byte ends and a 2-byte rank for each coordinate, and its cuts.
        box_bytes = 20 * distinct + 64
        self._box_limit = max(FEWEST_BOXES, MEMORY_LIMIT // box_bytes // workers)
        self._pool = thread_pool(workers)
