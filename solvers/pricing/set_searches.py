"""Branch and bound over other sets than polytopes of few rows; the tree is that of `concave`.

*Many cuts*, taken into programs where they are violated. `ConcaveSearch` has all rows in every
linear program, and hundreds of cuts would make each pivot slow. Here the kernel begins with the row
sum v = 1 alone, and takes a cut from a list once the solution of a program violates it
(`_listed_rows.h`). Only the constructor differs.

All cuts of the list have the end 1. A row a.v <= b becomes (a + 1 - b).v <= 1, with 1 - b added to
every entry, because sum v = 1. For example, (1.72, 0.28).v <= 1.36 becomes (1.36, -0.08).v <= 1.

*Uncertain sets.* Global minimum of the same concave function over an uncertain set.

    min sum_j [-v_j log v_j - prices_j v_j]   over   v in an `UncertainSet`

An `UncertainSet` has the posteriors that keep a promise for every table in a confidence set. It is
a polytope with far too many rows to list. The tree and the simplex method are those of
`solvers.pricing.concave`, and so are the prices, one number for each symbol. Only the rows differ:

1. The linear program of a box begins with the rows of its parent.
2. Where its solution v violates inequalities of the set, a sort of w = v / point finds the rows
   that it violates most (`_robust_rows.h`, as `UncertainSet.cuts` here).
3. These rows join, and the program is solved again.

A program with some of the rows has a value that is no larger, so the bound of a box holds whatever
rows are missing (docs/explanation/optimum-theory.md, 'Uncertain sets, with rows found by sorting').

For example, let the point be (1/2, 1/2), every row p of the table anywhere in 0.4 <= p <= 0.6, and
the ratio of p.w for two sensitive values at most 1.1. At w = (1.8, 0.2) the largest p.w is 1.16, by
p = (0.6, 0.4), and the smallest 0.84, by (0.4, 0.6). So this w violates

    0.6 w_0 + 0.4 w_1 <= 1.1 (0.4 w_0 + 0.6 w_1),

a row that leaves w_0 <= 1.238.

`RobustSearch.__init__` hands the set to the compiled kernels; all else is inherited.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvers.errors import InvalidPolytope
from solvers.points import Array
from solvers.pricing.concave import (
    FEWEST_BOXES,
    MEMORY_LIMIT,
    ConcaveSearch,
    check_limits,
    thread_pool,
)
from solvers.sets.polytope import Polytope, identical_columns
from solvers.sets.uncertain import UncertainSet

# ---------------------------------------------------------------------------- many cuts

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


# ----------------------------------------------------------------------- uncertain sets


class RobustSearch(ConcaveSearch):
    """`ConcaveSearch` over an uncertain set; see there.

    Parameters
    ----------
    uncertain : UncertainSet
        Bounds hold for this set.
    margin : float
        Points lie in the smaller set whose inequalities hold with so much to spare; at the point
        itself there are at least ``min(ratio - 1, most - 1, 1 - least)``.
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

        if not uncertain.is_uniform:
            raise InvalidPolytope("this search needs the same factors for all s")
        check_limits(workers, memory_limit)
        self.n = uncertain.n
        # No two coordinates are interchangeable here: each is a group of its own.
        self._members = np.arange(self.n)
        self._first = self._members
        lower, width, free_mass = uncertain.boxes
        scale = 1.0 / uncertain.point
        share_lower = uncertain.share_lower
        share_width = uncertain.share_upper - share_lower

        # All kernels have the same set; `top` are the upper bounds of the coordinates.
        def kernel(top: Array) -> Any:
            return Search(
                np.ascontiguousarray(lower),
                np.ascontiguousarray(width),
                np.ascontiguousarray(free_mass),
                np.ascontiguousarray(scale),
                np.ascontiguousarray(share_lower),
                np.ascontiguousarray(share_width),
                max(1.0 - float(share_lower.sum()), 0.0),
                uncertain.ratio,
                float(uncertain.most),
                float(uncertain.least),
                margin,
                # Rows of w become rows of v, and their errors with them.
                uncertain.row_error * float(scale.max()),
                uncertain.rest,
                top=top,
            )

        self._make_kernels(kernel, np.ones(self.n), workers, tightening)
        # A box holds its intervals, and one row and one member of the basis for each tight row.
        box_bytes = 10 * self.n + 6 * (self.n + 1) + 208
        self._box_limit = max(FEWEST_BOXES, memory_limit // box_bytes // workers)
