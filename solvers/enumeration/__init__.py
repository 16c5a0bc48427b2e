"""All vertices of a polytope: `vertices` chooses the algorithm and holds it to its limits.

1. The rows are counted as they are without auxiliary variables (`explicit_rows`): eliminating them
   may make exponentially many, and then nothing is listed.
   A staircase has one for each set of coordinates, and needs no search.
2. `pivot` walks from basis to basis, at first for some 20 ms only. Small polytopes are finished by
   then.
3. Larger ones are estimated (`estimate`), and refused at once where the estimate is twice a limit.
   Else the walk begins anew, with as many bases as the limits allow.
4. Where rounding defeats the walk, "auto" calls cddlib, if there are at most `MOST_BY_CDD`
   vertices.

For example, three coordinates with v_1 <= 0.5 leave of the triangle (1, 0, 0), (0, 1, 0), (0, 0, 1)
the vertices (0, 0, 1), (0, 1, 0), (0.5, 0, 0.5) and (0.5, 0.5, 0), in this order.

*cddlib* has the double description method, in doubles or in exact rationals:

1. `_inequalities` writes the polytope as rows [b, a] with b + a.v >= 0, of doubles or fractions;
   auxiliary variables are eliminated (Fourier and Motzkin).
2. cddlib turns them into generators [1, v], one for each vertex v (`_generators`). Whatever else it
   gives (rays, lines) is a failure, since a polytope has none.
3. They are sorted, near ones merged, and each is held against the original rows.

For example, v_1 <= 0.7 for two coordinates is [-1, 1, 1] (the sum, an equation), [0.7, -1, 0],
[0, 1, 0] and [0, 0, 1]; the generators are [1, 0.7, 0.3] and [1, 0, 1].

It is the reference for `solvers.enumeration.pivot`. In doubles cddlib gives up on near-tied tables,
or silently loses vertices (docs/explanation/optimum-theory.md, 'Near-ties that cddlib loses'). So
it is an independent check, and a way out where rounding defeats pivoting, but not the method of
choice.

The exact version needs the full `pycddlib` (with GMP); `pycddlib-standalone` has doubles only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from solvers.enumeration import pivot
from solvers.enumeration.pivot import (
    DEFAULT_MAX_VERTICES,
    DEFAULT_MEMORY_LIMIT,
    EMPTY,
    Estimate,
    ListingLimits,
    Vertices,
    estimate,
    explicit_rows,
    few_vertices,
    finished_vertices,
    ordered,
    walk,
)
from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption, TooManyVertices
from solvers.pace import end_of
from solvers.points import Array
from solvers.pricing.separate import staircase_vertices
from solvers.sets.polytope import Polytope

__all__ = [
    "METHODS",
    "Estimate",
    "Vertices",
    "estimate",
    "explicit_rows",
    "few_vertices",
    "vertices",
]


# ------------------------------------------------------------------------------- cddlib

FLOAT = "cdd"
EXACT = "cdd-exact"

ROUNDED = 1e-9
"""Entries below this in a vertex of cddlib's doubles are zeros: cddlib keeps no record of the
support."""

Number = float | Fraction

Inequality = list[Number]
"""[b, a_1, .., a_n] of b + a.v >= 0."""


def exact_available() -> bool:
    """Whether the full pycddlib, with exact arithmetic, is installed."""
    try:
        return find_spec("cdd.gmp") is not None
    except ModuleNotFoundError:
        return False


def by_cdd(polytope: Polytope, method: str) -> Vertices:
    """All vertices that cddlib finds, in doubles (it may lose some where data are near ties) or
    exactly.

    The exact ones are those of the polytope that the doubles describe; auxiliary variables are
    eliminated exactly, too. They are rounded to doubles at the end, and those that doubles can
    hardly tell apart are merged.
    """
    exact = method == EXACT
    if exact and not exact_available():
        raise BackendFailure(
            "exact enumeration by cddlib needs the full pycddlib with GMP, which is not installed: "
            "pip uninstall pycddlib-standalone, install Debian's libcdd-dev and "
            "libgmp-dev, pip install pycddlib; "
            'or choose the enumeration "pivot"'
        )
    if not exact and find_spec("cdd") is None:
        raise BackendFailure(
            "enumeration by cddlib needs pycddlib; install pycddlib-standalone, or choose the "
            'enumeration "pivot"'
        )
    if exact:
        # Not `polytope.explicit`, whose elimination in doubles rounds the rows.
        generators = _generators("cdd.gmp", polytope, Fraction, method)
    else:
        generators = _generators("cdd", polytope.explicit, float, method)
    if not generators:
        # cddlib in doubles may lose all vertices; pivoting decides whether there is any.
        if not exact and walk(polytope, most_bases=1).status != EMPTY:
            raise _inconsistent(
                method, "it finds no vertex of a polytope that has some"
            )
        raise EmptyPolytope("no point satisfies the constraints: the polytope is empty")
    points = np.array(generators, dtype=np.float64)
    if not exact:
        points[np.abs(points) < ROUNDED] = 0.0
        # The entries dropped, and cddlib's own rounding, leave sums that are nearly 1.
        points /= points.sum(axis=1, keepdims=True)
    return finished_vertices(ordered(points), polytope, method, exact=exact)


def _generators(
    package: str, polytope: Polytope, number: type[float] | type[Fraction], method: str
) -> list[Sequence[Number]]:
    """Vertices of {v : row[0] + row[1:] v >= 0}, where the first row holds with equality."""
    backend = import_module(package)
    rows = _inequalities(polytope, number)
    try:
        matrix = backend.matrix_from_array(
            rows, lin_set={0}, rep_type=backend.RepType.INEQUALITY
        )
        generators = backend.copy_generators(backend.polyhedron_from_matrix(matrix))
    except RuntimeError as error:
        raise _inconsistent(method, " ".join(str(error).split())) from error
    # A polytope has no rays (rows that begin with 0) and no lines; a float run may invent them.
    if generators.lin_set or any(row[0] != 1 for row in generators.array):
        raise _inconsistent(method, "it finds rays, and a polytope has none")
    return [row[1:] for row in generators.array]


def _inconsistent(method: str, reason: str) -> BackendFailure:
    return BackendFailure(
        f'cddlib gave up (enumeration "{method}": {reason}); choose the enumeration '
        '"pivot", or exact '
        'cddlib where the full pycddlib is installed; method="columns" needs no vertices'
    )


def _inequalities(
    p: Polytope, number: type[float] | type[Fraction]
) -> list[Inequality]:
    """Rows [b, a] with b + a v >= 0, without auxiliary variables; the first is sum v = 1."""
    rows, auxiliary, bounds = p.one_sided
    k = auxiliary.shape[1]
    # Changing the sign of a double rounds nothing.
    general = np.hstack([bounds[:, None], -rows, -auxiliary])
    at_least = _as_numbers(general, number)
    # No variable is negative: entry j of the row of signs is variable j.
    signs = np.hstack([np.zeros((p.n + k, 1)), np.eye(p.n + k)])
    at_least += _as_numbers(signs[p.n :], number)
    for _ in range(k):
        at_least = _without_last(at_least)
    # The signs of v come last: elimination need not combine them with anything.
    total = [number(-1), *([number(1)] * p.n)]
    return [total, *at_least, *_as_numbers(signs[: p.n, : p.n + 1], number)]


def _as_numbers(
    matrix: Array, number: type[float] | type[Fraction]
) -> list[Inequality]:
    """The rows of a matrix, every entry exactly as a number of this type."""
    return [[number(x) for x in row] for row in matrix.tolist()]


def _without_last(at_least: list[Inequality]) -> list[Inequality]:
    """Fourier-Motzkin: eliminate the last variable from inequalities b + a x >= 0."""
    remaining = [row[:-1] for row in at_least if row[-1] == 0]
    lower_ends = [row for row in at_least if row[-1] > 0]
    upper_ends = [row for row in at_least if row[-1] < 0]
    for low in lower_ends:
        for high in upper_ends:
            pairs = zip(low[:-1], high[:-1], strict=True)
            # Both multipliers are positive, so the sum of two inequalities is one; the last
            # entries cancel.
            row = [x * -high[-1] + y * low[-1] for x, y in pairs]
            # A row b >= 0 without variables says nothing, unless b is negative and the set empty.
            if any(row[1:]) or row[0] < 0:
                remaining.append(row)
    return remaining


# -------------------------------------------------------------- choice of the algorithm

AUTO = "auto"

STEPS = "sets at the upper step"
"""The method of a staircase (`solvers.pricing.separate`), whose vertices are known without any
search."""

METHODS = (AUTO, pivot.PIVOT, FLOAT, EXACT)

TRIAL = 10 * pivot.WORK
"""Work, about 20 ms, for which it is quicker to try than to estimate first."""

WORTH_TRYING = 100
"""Bases for which that work must be enough, or the trial is hopeless."""

BASES_PER_VERTEX = 16
"""Bases visited at most for every vertex allowed: degenerate vertices have several (on the 30
pairwise rows of six quantities up to 6); with more the walk is stuck in ties."""

MOST_BY_CDD = 5000
"""Vertices up to which cddlib, which no time limit stops, answers where pivoting cannot."""

DOUBT = 2.0
"""Factor by which an estimate must exceed a limit before an enumeration is refused for it. It is
rarely wrong by more, and the limit holds during the enumeration, too."""


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
        "auto" pivots, and falls back on cddlib in doubles where rounding defeats pivoting on a
        small polytope; `Vertices.method` names the one that listed them.
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
        If an estimate says that a limit would be exceeded, before the enumeration is tried; or as
        soon as the enumeration exceeds it.
    BackendFailure
        If the back-end is not installed, or rounding defeats it.
    """
    if method not in METHODS:
        raise InvalidOption(
            f"method {method!r} is not known; use one of {', '.join(METHODS)}"
        )
    end = end_of(time_limit)
    limits = ListingLimits(
        max_vertices=max_vertices, memory_limit=memory_limit, end=end
    )
    if method == AUTO:
        steps = staircase_vertices(polytope, max_vertices)
        if steps is not None:
            listed = np.ascontiguousarray(steps[np.lexsort(steps.T[::-1])])
            return finished_vertices(listed, polytope, STEPS)
    rows = _listable_rows(polytope)
    # Pivoting comes first: it can be stopped, and in doubles cddlib may lose vertices silently.
    try:
        if method in (AUTO, pivot.PIVOT):
            return _by_pivoting(polytope, rows, limits)
    except BackendFailure:
        # No time limit stops cddlib, so it may only replace pivoting where it is quick.
        if method != AUTO or estimate(polytope).vertices > MOST_BY_CDD:
            raise
        return _by_cdd_instead(polytope, limits)
    return _by_cdd(polytope, method, limits)


def _listable_rows(polytope: Polytope) -> int:
    """The rows without auxiliary variables; TooManyVertices if they are too many to pivot on."""
    rows = explicit_rows(polytope)
    if rows > pivot.MOST_ROWS:
        raise TooManyVertices(
            "without its auxiliary variables the polytope has more than "
            f"{pivot.MOST_ROWS} rows, too many to enumerate "
            'its vertices; use method="columns", which needs no enumeration'
        )
    return rows


def _by_cdd(polytope: Polytope, method: str, limits: ListingLimits) -> Vertices:
    """All vertices, by cddlib; it cannot be stopped, so their number is estimated first."""
    _refuse_if_too_large(polytope, limits)
    listed = by_cdd(polytope, method)
    # The estimate may have been too low.
    if len(listed) > limits.max_vertices:
        raise TooManyVertices(_too_many(f"{len(listed)} vertices", limits))
    return listed


def _by_cdd_instead(polytope: Polytope, limits: ListingLimits) -> Vertices:
    """All vertices, by cddlib in doubles, where rounding has defeated pivoting already."""
    try:
        return _by_cdd(polytope, FLOAT, limits)
    except BackendFailure as error:
        raise BackendFailure(
            "rounding defeats the enumeration of vertices, by pivoting as well as by "
            "cddlib in doubles; "
            'use method="columns", which needs no enumeration, or exact cddlib where '
            f"the full pycddlib is installed ({error})"
        ) from error


def _by_pivoting(polytope: Polytope, rows: int, limits: ListingLimits) -> Vertices:
    """All vertices, by pivoting; TooManyVertices as soon as the walk exceeds a limit."""
    most = limits.max_vertices
    # Small polytopes are listed in the time that an estimate would take.
    trial = TRIAL // pivot.work_per_basis(polytope.n, rows)
    listed: Vertices | None = None
    if trial >= WORTH_TRYING:
        listed, _ = pivot.attempt(
            polytope, most_bases=trial, most_points=most, seconds=limits.left()
        )
        # A trial that the clock has stopped says nothing about the size.
        limits.check_time()
    if listed is None:
        _refuse_if_too_large(polytope, limits)
        listed, report = pivot.attempt(
            polytope,
            most_bases=_most_bases(polytope.explicit, limits),
            most_points=most,
            seconds=limits.left(),
        )
        if listed is None:
            # The kernel reports any limit alike, and the clock is an error of its own.
            limits.check_time()
            raise TooManyVertices(
                f"the enumeration exceeded its budget after {report.bases} bases "
                f"(max_vertices={most}, memory_limit="
                f'{limits.memory_limit}); use method="columns", which needs no '
                "enumeration, or raise the limit"
            )
    # The trial was given no limit of memory.
    if len(listed) > most or listed.points.nbytes > limits.memory_limit:
        raise TooManyVertices(_too_many(f"{len(listed)} vertices", limits))
    return listed


def _most_bases(explicit: Polytope, limits: ListingLimits) -> int:
    """Bases that a walk may visit: it remembers every one, so memory limits their number, too."""
    bytes_per_vertex = 8 * explicit.n
    bytes_per_basis = pivot.bytes_per_basis(explicit.n, explicit.m) + bytes_per_vertex
    affordable = limits.memory_limit // bytes_per_basis
    return max(1, min(BASES_PER_VERTEX * limits.max_vertices, affordable))


def _refuse_if_too_large(polytope: Polytope, limits: ListingLimits) -> None:
    """Raise TooManyVertices where an estimate exceeds a limit by more than its own error."""
    size = estimate(polytope)
    too_many = size.vertices > DOUBT * limits.max_vertices
    too_large = size.memory > DOUBT * limits.memory_limit
    if too_many or too_large:
        raise TooManyVertices(_too_many(f"about {size.vertices:.2g} vertices", limits))


def _too_many(count: str, limits: ListingLimits) -> str:
    """The message of a refusal, with a way out."""
    return (
        f"the polytope has {count}, too many for max_vertices={limits.max_vertices} or "
        f'memory_limit={limits.memory_limit} bytes; use method="columns", which needs '
        "no enumeration, or raise the limit"
    )
