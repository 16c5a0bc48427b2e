"""Vertices by the double description method of cddlib, in doubles or in exact rationals.

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

from solvers.enumeration.pivot import EMPTY, Vertices, finished_vertices, ordered, walk
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.points import Array
from solvers.sets.polytope import Polytope

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
