"""How many vertices a polytope has, estimated in a few milliseconds.

A vertex depends on the columns of its support only: it is a vertex of the polytope if and only if it is
one of the face spanned by any set of columns that contains its support. Count the vertices with k positive
entries on the faces of random sets of q columns; the mean count times C(n, k) / C(q, k) is an unbiased
estimate for all n columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from solvers.enumeration.pivot import LIMIT, Walk, bytes_per_basis, walk
from solvers.polytope import Polytope

FIRST_SAMPLE = 12
"""Columns of the first random face: enough for supports of every size on tables of up to six rows."""

ENOUGH = 150
"""Vertices on a face from which one face alone says something about the whole."""

WORK = 1_000_000
"""Entries of ratio tests to spend on one estimate, about 2 ms."""

SHARE = 6
"""No single face takes more than one part in so many of the work."""

LEAST_FACES, MOST_FACES = 4, 16
"""Random faces, however much or little work each is: fewer say nothing of the error, which shrinks only
with the square root of their number."""

ROUGH = 0.5
"""Relative error from which the estimate is no better than the vertices met on faces left unfinished."""

SECONDS_PER_ENTRY = 2e-9
"""Time of one entry of a ratio test, seen on a 2.6 GHz core; only a guide."""

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
    seconds, memory : float
        What pivoting would take, in seconds and bytes.
    """

    vertices: float
    spread: float
    at_least: bool
    seconds: float
    memory: float


def work_per_basis(n: int, m: int) -> int:
    """Entries of the ratio tests of one basis."""
    return (n + 5 + min(2 * m, OVERHEAD)) * (m + 5)


def explicit_rows(polytope: Polytope) -> int:
    """Rows of ``polytope.explicit``, at most, without the work of forming them; MOST_ROWS + 1 if more."""
    if polytope.auxiliary is None:
        return polytope.m
    a = np.vstack([polytope.one_sided[1], -np.eye(polytope.auxiliary.shape[1])])
    while a.shape[1]:
        c = a[:, -1]
        up, down, free = a[c > 0], a[c < 0], a[c == 0]
        if len(free) + len(up) * len(down) > MOST_ROWS:
            return MOST_ROWS + 1
        pairs = up[:, None, :-1] * -down[None, :, -1:] + down[None, :, :-1] * up[:, None, -1:]
        a = np.vstack([free[:, :-1], pairs.reshape(len(up) * len(down), a.shape[1] - 1)])
    return len(a)


class _Sample:
    """Random faces of one polytope, and what was found on them."""

    def __init__(self, polytope: Polytope, rows: int) -> None:
        self.polytope = polytope
        self.n, self.m = polytope.n, rows
        self.rng = np.random.default_rng(0)
        self.totals: list[float] = []
        self.unfinished = 0.0
        self.vertices = self.bases = self.largest = 0

    def scaled(self, sizes: list[int], q: int) -> float:
        n = self.n
        return sum(count * (math.comb(n, k) / math.comb(q, k)) for k, count in enumerate(sizes) if count)

    def visit(self, q: int, work: int) -> Walk:
        """Walk over a random face of q columns, or as far as the work goes."""
        face = self.polytope
        if q < self.n:
            face = face.restrict(self.rng.choice(self.n, q, replace=False, shuffle=False))
        found = walk(face, most_bases=max(1, work // work_per_basis(q, self.m)))
        if found.status == LIMIT:
            self.unfinished = max(self.unfinished, self.scaled(found.sizes, q))
        return found

    def keep(self, found: Walk, q: int) -> None:
        self.totals.append(self.scaled(found.sizes, q))
        self.vertices += sum(found.sizes)
        self.bases += found.bases
        self.largest = max(self.largest, max((k for k, c in enumerate(found.sizes) if c), default=0))


def _choose_size(sample: _Sample, q: int) -> int:
    """Columns for the faces: few enough to finish each, enough to see something."""
    n, m = sample.n, sample.m
    while 1 < q < n:
        found = sample.visit(q, WORK // SHARE)
        if found.status == LIMIT:
            return max(1, q * 3 // 4)
        if sum(found.sizes) >= ENOUGH:
            return q
        larger = min(n, q + (q + 1) // 2)
        if found.bases * work_per_basis(larger, m) > WORK // SHARE:
            return q
        q = larger
    return q


def estimate(polytope: Polytope) -> Estimate:
    """Estimate the number of vertices, and what pivoting over them would cost.

    Small polytopes are counted. The random choices are fixed, so the answer is reproducible. Where auxiliary
    variables cannot be eliminated in reasonably many rows everything is infinite.
    """
    rows = explicit_rows(polytope)
    if rows > MOST_ROWS:
        return Estimate(math.inf, 1.0, True, math.inf, math.inf)
    sample = _Sample(polytope, rows)
    n, m = sample.n, sample.m
    q = n if n <= 2 * FIRST_SAMPLE else _choose_size(sample, FIRST_SAMPLE)
    faces, work = 1, WORK if q == n else WORK // LEAST_FACES
    while len(sample.totals) < faces:
        found = sample.visit(q, work)
        if found.status == LIMIT and q > 1:
            q, work = max(1, q * 3 // 4), WORK // SHARE
            sample.totals.clear()
            continue
        sample.keep(found, q)
        if q == n:
            break
        cost = (found.bases + 1) * work_per_basis(q, m)
        faces = min(MOST_FACES, max(LEAST_FACES, faces, WORK // cost))
    return _summary(sample, q)


def _summary(sample: _Sample, q: int) -> Estimate:
    n, m = sample.n, sample.m
    counted = q == n
    mean = float(np.mean(sample.totals))
    error = 0.0 if counted else float(np.std(sample.totals, ddof=1)) / math.sqrt(len(sample.totals))
    spread = error / mean if mean > 0.0 else float(not counted)
    blind = not counted and sample.largest == q
    total = max(mean, sample.unfinished) if blind or spread > ROUGH else mean
    repeats = sample.bases / sample.vertices if sample.vertices else 1.0
    return Estimate(
        vertices=total,
        spread=spread,
        at_least=blind or total > mean,
        seconds=total * repeats * SECONDS_PER_ENTRY * work_per_basis(n, m),
        memory=total * (8 * n + repeats * bytes_per_basis(n, m)),
    )
