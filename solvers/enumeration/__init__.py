"""All vertices of a polytope: one algorithm a file, one call."""

from __future__ import annotations

import math
import time

from solvers.enumeration import pivot
from solvers.enumeration.cdd import EXACT, FLOAT, by_cdd
from solvers.enumeration.pivot import Estimate, estimate, explicit_rows, few_vertices
from solvers.enumeration.result import (
    DEFAULT_MAX_VERTICES,
    DEFAULT_MEMORY_LIMIT,
    ListingLimits,
    Vertices,
)
from solvers.errors import BackendFailure, InvalidOption, TooManyVertices
from solvers.polytope import Polytope

__all__ = [
    "METHODS",
    "Estimate",
    "Vertices",
    "estimate",
    "explicit_rows",
    "few_vertices",
    "vertices",
]

AUTO = "auto"

METHODS = (AUTO, pivot.PIVOT, FLOAT, EXACT)

TRIAL, WORTH_TRYING = 10 * pivot.WORK, 100
"""Work, about 20 ms, for which it is quicker to try than to estimate first, if it is for at least so many bases."""

BASES_PER_VERTEX = 16
"""Bases visited at most for every vertex allowed: degenerate vertices have several (on the 30 pairwise
rows of six quantities up to 6); with more the walk is stuck in ties."""

MOST_BY_CDD = 5000
"""Vertices up to which cddlib, which no time limit stops, answers where pivoting cannot."""

DOUBT = 2.0
"""An estimate must exceed a limit by this factor before anything is refused for its sake: it is rarely
wrong by more, and the limit holds during the enumeration, too."""


def vertices(
    polytope: Polytope,
    method: str = AUTO,
    *,
    max_vertices: int = DEFAULT_MAX_VERTICES,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    time_limit: float | None = None,
) -> Vertices:
    """Enumerate all vertices of a polytope.

    Parameters
    ----------
    polytope : Polytope
        Auxiliary variables are eliminated first.
    method : {"auto", "pivot", "cdd", "cdd-exact"}
        "auto" pivots, and falls back on cddlib in doubles where rounding defeats pivoting on a small polytope;
        `Vertices.method` says what it chose.
    max_vertices, memory_limit : int
        Number of vertices, and bytes, that must not be exceeded.
    time_limit : float, optional
        Seconds; cddlib cannot be stopped by it.

    Raises
    ------
    InvalidOption
        If the method is not known or a limit is not a positive whole number.
    EmptyPolytope
        If no point satisfies the constraints.
    OutOfTime
        If the time limit is reached.
    TooManyVertices
        If an estimate says that a limit would be exceeded, before the enumeration is tried; or as soon as
        the enumeration exceeds it.
    BackendFailure
        If the back-end is not installed, or rounding defeats it.
    """
    if method not in METHODS:
        raise InvalidOption(
            f"method {method!r} is not known; use one of {', '.join(METHODS)}"
        )
    end = math.inf if time_limit is None else time.monotonic() + time_limit
    limits = ListingLimits(
        max_vertices=max_vertices, memory_limit=memory_limit, end=end
    )
    rows = explicit_rows(polytope)
    if rows > pivot.MOST_ROWS:
        raise TooManyVertices(
            f"without its auxiliary variables the polytope has more than {pivot.MOST_ROWS} rows, too many to enumerate "
            'its vertices; use method="columns", which needs no enumeration'
        )
    try:
        if method in (AUTO, pivot.PIVOT):
            return _by_pivoting(polytope, rows, limits)
    except BackendFailure:
        if method != AUTO or estimate(polytope).vertices > MOST_BY_CDD:
            raise
        method = FLOAT
    _refuse_if_too_large(polytope, limits)
    found = by_cdd(polytope, method)
    if len(found) > limits.max_vertices:
        raise TooManyVertices(_too_many(f"{len(found)} vertices", limits))
    return found


def _by_pivoting(polytope: Polytope, rows: int, limits: ListingLimits) -> Vertices:
    """All vertices, by pivoting; TooManyVertices as soon as the walk exceeds a limit."""
    p, most = polytope.explicit, limits.max_vertices
    affordable = limits.memory_limit // (pivot.bytes_per_basis(p.n, p.m) + 8 * p.n)
    trial = TRIAL // pivot.work_per_basis(polytope.n, rows)
    found, bases = None, max(1, min(BASES_PER_VERTEX * most, affordable))
    if trial >= WORTH_TRYING:
        found, _ = pivot.attempt(
            polytope, most_bases=trial, most_points=most, seconds=limits.left()
        )
        limits.check_time()
    if found is None:
        _refuse_if_too_large(polytope, limits)
        found, seen = pivot.attempt(
            polytope, most_bases=bases, most_points=most, seconds=limits.left()
        )
        if found is None:
            limits.check_time()
            raise TooManyVertices(
                f"the enumeration exceeded its budget after {seen.bases} bases (max_vertices={most}, memory_limit="
                f'{limits.memory_limit}); use method="columns", which needs no enumeration, or raise the limit'
            )
    if len(found) > most or found.points.nbytes > limits.memory_limit:
        raise TooManyVertices(_too_many(f"{len(found)} vertices", limits))
    return found


def _refuse_if_too_large(polytope: Polytope, limits: ListingLimits) -> None:
    size = estimate(polytope)
    if (
        size.vertices > DOUBT * limits.max_vertices
        or size.memory > DOUBT * limits.memory_limit
    ):
        raise TooManyVertices(_too_many(f"about {size.vertices:.2g} vertices", limits))


def _too_many(count: str, limits: ListingLimits) -> str:
    return (
        f"the polytope has {count}, too many for max_vertices={limits.max_vertices} or "
        f'memory_limit={limits.memory_limit} bytes; use method="columns", which needs no enumeration, '
        "or raise the limit"
    )
