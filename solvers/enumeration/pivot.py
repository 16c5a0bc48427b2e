"""Vertices by walking from basis to basis, in the compiled kernel `_pivot`.

A vertex has k positive entries and k - 1 tight rows, so it costs one solve of size k, and all its
neighbours one ratio test each. Ties are broken by a symbolic push of the bounds; see `_pivot_basis.c`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from solvers import _pivot
from solvers.enumeration.result import MERGE_TOLERANCE, Vertices, finished_vertices
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.polytope import Polytope

METHOD = "pivot"

DONE, EMPTY, LIMIT = 0, 1, 2
"""Status of a walk; anything else is a contradiction between its decisions."""


class Walk(NamedTuple):
    """What the kernel reports; `sizes[k]` is the number of vertices with k positive entries."""

    status: int
    points: bytearray
    sizes: list[int]
    bases: int
    degenerate: int
    failures: int


def walk(
    polytope: Polytope,
    *,
    most_bases: int,
    most_points: int | None = None,
    points: bool = False,
    seconds: float = math.inf,
) -> Walk:
    """Visit the bases of a polytope; `points` are filled in on request only.

    Where the limits stop the walk, `sizes` are those of the vertices met so far, unless points are wanted.
    """
    p = polytope.explicit
    most = most_bases if most_points is None else most_points
    data = (p.rows, polytope.magnitude, p.lower, p.upper, p.n)
    return Walk(*_pivot.enumerate_vertices(*data, most_bases, most, MERGE_TOLERANCE, points, seconds))


def bytes_per_basis(n: int, m: int) -> int:
    """Memory of the walk for one basis: its record, its hash and its vertex, with room to grow."""
    return 150 + 30 * (min(n, m) + 1)


def attempt(
    polytope: Polytope, *, most_bases: int, most_points: int, seconds: float = math.inf
) -> tuple[Vertices | None, Walk]:
    """All vertices, or None if there are more bases or vertices than allowed, or the seconds are over."""
    found = walk(polytope, most_bases=most_bases, most_points=most_points, points=True, seconds=seconds)
    if found.status == LIMIT:
        return None, found
    if found.status == EMPTY:
        raise EmptyPolytope("no point satisfies the constraints: the polytope is empty")
    if found.status != DONE:
        raise BackendFailure(
            f"pivoting met {found.failures} decisions that rounding makes contradictory; "
            'use method="cdd-exact" or method="columns"'
        )
    points = np.frombuffer(found.points, dtype=np.float64).reshape(-1, polytope.n)
    return finished_vertices(points, polytope, METHOD, bases=found.bases, degenerate=found.degenerate), found
