"""Vertices by support: every small set of columns with every choice of tight rows, in NumPy
batches.

A vertex has k positive entries, k at most the rank of the rows and the row of ones together, and k
- 1 tight rows that are independent on them. For each k every such k x k system is solved; solutions
that violate nothing are vertices. Slow, but it shares no code and no idea with pivoting or cddlib.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, islice, product

import numpy as np
from numpy.typing import NDArray

from solvers.enumeration.pivot import Array, ordered
from solvers.sets.polytope import Polytope

MOST_SYSTEMS = 30_000_000
"""Systems solved at most: about two minutes."""

FEASIBLE = 1e-12
"""Violation of an inequality that rounding may cause in a well-conditioned system with rows of size one."""

ILL_CONDITIONED = 1e9
"""Systems whose inverse is larger than this have nearly dependent columns: such columns share a vertex only
where the data are within rounding of a tie, and then a neighbouring support has the same vertex."""

_BATCH = 1 << 14


def count_systems(polytope: Polytope) -> int:
    """How many systems there are to solve."""
    p = polytope.explicit
    rank = _rank(polytope.explicit)
    both = int(
        (np.isfinite(p.lower) & np.isfinite(p.upper) & (p.lower < p.upper)).sum()
    )
    one = int((np.isfinite(p.lower) | np.isfinite(p.upper)).sum()) - both
    return sum(
        math.comb(p.n, k)
        * sum(math.comb(both, i) * 2**i * math.comb(one, k - 1 - i) for i in range(k))
        for k in range(1, rank + 1)
    )


def by_support(polytope: Polytope) -> Array:
    """All vertices, (k, n), by trying every support."""
    p = polytope.explicit
    assert count_systems(p) <= MOST_SYSTEMS
    # Rows of size one, so that one tolerance serves all; a power of two changes no digit.
    size = np.maximum(np.abs(p.rows).max(axis=1, initial=0.0), np.finfo(float).tiny)
    scale = np.exp2(-np.ceil(np.log2(size)))
    rows = p.rows * scale[:, None]
    lower = p.lower * scale
    upper = p.upper * scale
    found = [np.zeros((0, p.n))]
    for k in range(1, _rank(p) + 1):
        for tight in combinations(range(p.m), k - 1):
            found += _with_tight_rows(rows, lower, upper, list(tight))
    return ordered(np.concatenate(found))


def _rank(p: Polytope) -> int:
    """Largest possible support: the rank of the rows and the row of ones."""
    return int(np.linalg.matrix_rank(np.vstack([p.rows, np.ones(p.n)])))


def _supports(n: int, k: int) -> Iterator[NDArray[np.intp]]:
    every = combinations(range(n), k)
    while batch := list(islice(every, _BATCH)):
        yield np.array(batch, dtype=np.intp)


def _with_tight_rows(
    rows: Array, lower: Array, upper: Array, tight: list[int]
) -> Iterator[Array]:
    """Vertices with exactly these rows chosen tight, each at either bound; (j, n) arrays."""
    k = len(tight) + 1
    n = rows.shape[1]
    choices = [
        sorted({b for b in (lower[i], upper[i]) if np.isfinite(b)}) for i in tight
    ]
    bounds = np.array([[*sides, 1.0] for sides in product(*choices)])
    if len(bounds) == 0:
        return
    block = np.vstack([rows[tight], np.ones(n)])
    for columns in _supports(n, k):
        systems = block[:, columns].transpose(1, 0, 2)
        # An exactly singular system would stop the whole batch: shift it out of the way first.
        regular = np.abs(np.linalg.det(systems)) > 0.0
        columns = columns[regular]
        systems = systems[regular]
        inverse = np.linalg.inv(systems)
        sensible = np.abs(inverse).sum(axis=(1, 2)) < ILL_CONDITIONED
        columns = columns[sensible]
        inverse = inverse[sensible]
        values = np.einsum("bij,sj->bsi", inverse, bounds)
        which, side = np.nonzero((values >= -FEASIBLE).all(axis=2))
        if which.size == 0:
            continue
        points = np.zeros((which.size, n))
        np.put_along_axis(
            points,
            columns[which],
            np.where(values > FEASIBLE, values, 0.0)[which, side],
            axis=1,
        )
        w = points @ rows.T
        inside = ((w >= lower - FEASIBLE) & (w <= upper + FEASIBLE)).all(axis=1)
        if inside.any():
            yield points[inside]
