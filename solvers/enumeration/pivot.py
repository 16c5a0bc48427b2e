"""Vertices by walking from basis to basis, in the compiled kernel `_pivot`.

A vertex has k positive entries and k - 1 tight rows, so it costs one solve of size k, and all its
neighbours one ratio test each. Ties are broken by a symbolic push of the bounds; see `_pivot_basis.c`.

Their number can be estimated in a few milliseconds. A vertex depends on the columns of its support only: it is a vertex
of the polytope if and only if it is one of the face spanned by any set of columns that contains its support. Count the
vertices with k positive entries on the faces of random sets of q columns; the mean count times C(n, k) / C(q, k) is an
unbiased estimate for all n columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvers import _pivot
from solvers.enumeration.result import MERGE_TOLERANCE, Vertices, finished_vertices
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.polytope import Polytope

PIVOT = "pivot"

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
    return Walk(
        *_pivot.enumerate_vertices(
            *data, most_bases, most, MERGE_TOLERANCE, points, seconds
        )
    )


def bytes_per_basis(n: int, m: int) -> int:
    """Memory of the walk for one basis: its record, its hash and its vertex, with room to grow."""
    return 150 + 30 * (min(n, m) + 1)


def attempt(
    polytope: Polytope, *, most_bases: int, most_points: int, seconds: float = math.inf
) -> tuple[Vertices | None, Walk]:
    """All vertices, or None if there are more bases or vertices than allowed, or the seconds are over."""
    found = walk(
        polytope,
        most_bases=most_bases,
        most_points=most_points,
        points=True,
        seconds=seconds,
    )
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
    return finished_vertices(
        points, polytope, PIVOT, bases=found.bases, degenerate=found.degenerate
    ), found


FIRST_SAMPLE = 12
"""Columns of the first random face: enough for supports of every size on tables of up to six rows."""

ENOUGH = 150
"""Vertices on a face from which one face alone says something about the whole."""

WORK, SHARE = 1_000_000, 6
"""Entries of ratio tests to spend on one estimate, about 2 ms; no face takes more than one part in so many of them."""

LEAST_FACES, MOST_FACES = 4, 16
"""Random faces, however much or little work each is: fewer say nothing of the error, which shrinks only
with the square root of their number."""

ROUGH = 0.5
"""Relative error from which the estimate is no better than the vertices met on faces left unfinished."""

MOST_ROWS = 4096
"""Rows in which a polytope may be written without its auxiliary variables; eliminating them can take
exponentially many, and nearly all of those are redundant."""

OVERHEAD = 60
"""What solving a basis and breaking its ties cost at most, in columns of its ratio tests; seen, two columns
for each row of a small table, and no more for larger ones."""


@dataclass(frozen=True)
class Estimate:
    """How large an enumeration would be.

    Attributes
    ----------
    vertices : float
        Estimated number of vertices.
    spread : float
        Standard error of `vertices` relative to it; 0 if they were counted.
    at_least : bool
        Whether there are probably more: the faces were left unfinished, or too small for the largest
        supports.
    memory : float
        What pivoting would take, in bytes.
    """

    vertices: float
    spread: float
    at_least: bool
    memory: float


def work_per_basis(n: int, m: int) -> int:
    """Entries of the ratio tests of one basis."""
    return (n + 5 + min(2 * m, OVERHEAD)) * (m + 5)


def explicit_rows(polytope: Polytope, most: int = MOST_ROWS) -> int:
    """Rows of ``polytope.explicit``, at most, without the work of forming them; `most` + 1 if more."""
    if polytope.auxiliary is None:
        return polytope.m
    a = np.vstack([polytope.one_sided[1], -np.eye(polytope.auxiliary.shape[1])])
    while a.shape[1]:
        c = a[:, -1]
        up, down, free = a[c > 0], a[c < 0], a[c == 0]
        if len(free) + len(up) * len(down) > most:
            return most + 1
        pairs = (
            up[:, None, :-1] * -down[None, :, -1:]
            + down[None, :, :-1] * up[:, None, -1:]
        )
        a = np.vstack(
            [free[:, :-1], pairs.reshape(len(up) * len(down), a.shape[1] - 1)]
        )
    return len(a)


def few_vertices(polytope: Polytope, most: int) -> Vertices | None:
    """All vertices of a polytope so small that counting them is as much work as listing them; else None."""
    m, n = explicit_rows(polytope), polytope.n
    if m > MOST_ROWS or n > 2 * FIRST_SAMPLE:
        return None
    try:
        return attempt(
            polytope, most_bases=max(1, WORK // work_per_basis(n, m)), most_points=most
        )[0]
    except BackendFailure:
        return None


def estimate(polytope: Polytope) -> Estimate:
    """Estimate the number of vertices, and the memory that pivoting over them would take.

    Small polytopes are counted. The random choices are fixed, so the answer is reproducible. Where auxiliary
    variables cannot be eliminated in reasonably many rows everything is infinite.
    """
    m, n = explicit_rows(polytope), polytope.n
    if m > MOST_ROWS:
        return Estimate(math.inf, 1.0, True, math.inf)
    rng = np.random.default_rng(0)
    q = n if n <= 2 * FIRST_SAMPLE else FIRST_SAMPLE
    growing, faces, unfinished, wanted = q < n, [], 0.0, 1
    while len(faces) < wanted:
        work = WORK if q == n and not unfinished else WORK // SHARE
        face = (
            polytope.restrict(rng.choice(n, q, replace=False, shuffle=False))
            if q < n
            else polytope
        )
        found = walk(face, most_bases=max(1, work // work_per_basis(q, m)))
        sizes = [(k, count) for k, count in enumerate(found.sizes) if count]
        scaled = sum(count * (math.comb(n, k) / math.comb(q, k)) for k, count in sizes)
        if found.status == LIMIT:
            unfinished = max(unfinished, scaled)
            if q > 1:
                q, growing = max(1, q * 3 // 4), False
                faces.clear()
                continue
        # Few enough columns to finish each face, enough to see something; these faces do not count.
        if growing:
            larger = min(n, q + (q + 1) // 2)
            fits = found.bases * work_per_basis(larger, m) <= WORK // SHARE
            growing = sum(found.sizes) < ENOUGH and fits and q < n
            q = larger if growing else q
            continue
        faces.append((scaled, found))
        cost = (found.bases + 1) * work_per_basis(q, m)
        wanted = (
            1 if q == n else min(MOST_FACES, max(LEAST_FACES, wanted, WORK // cost))
        )
    totals = [scaled for scaled, _ in faces]
    mean = float(np.mean(totals))
    error = 0.0 if q == n else float(np.std(totals, ddof=1)) / math.sqrt(len(totals))
    spread = error / mean if mean > 0.0 else float(q < n)
    blind = q < n and any(
        found.sizes[-1] if len(found.sizes) > q else 0 for _, found in faces
    )
    total = max(mean, unfinished) if blind or spread > ROUGH else mean
    vertices, bases = (
        sum(sum(found.sizes) for _, found in faces),
        sum(found.bases for _, found in faces),
    )
    memory = total * (
        8 * n + (bases / vertices if vertices else 1.0) * bytes_per_basis(n, m)
    )
    return Estimate(total, spread, blind or total > mean, memory)
