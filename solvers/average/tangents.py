"""Averages priced by branch and bound: chords lie below the entropy, tangents below the leakage.

The kernel of `ConcaveSearch` minimises a concave function over a polytope, but a leakage L(v) =
sum_s P(s) f(w_s) is convex. So L becomes sum_i r_i, with auxiliary variables r_i >= 0 that cost the
multiplier of L and lie above tangents, rows that are linear in the lifts w = A v:

    mi, chi2          P(s) (f(t) + f'(t) (w_s - t)) <= r_s   for touching lifts t
    tv                P(s) (w_s - 1) <= r_s     (positive parts: half of sum_s P(s) |w_s - 1|)
    maximal-leakage   w_s - 1 <= r              (one r for all s)
    guess             P(s) w_s - P(t) w_t <= r  (one r for all s; t is the likeliest secret)
    gain              the same for every guess, with what it gains in the place of P(s) w_s

On a box the kernel replaces the entropy by its chords, and what is left is a linear program. Its
value bounds H + sum_j beta_j L_j - y.v from below, because L lies above its tangents. (beta_j is
the multiplier of the leakage L_j, and y are the prices of the symbols.) For mi and chi2 the
tangents begin at `FIRST_TANGENTS`; `Tangents.touch` adds more where columns were found, which stay
for all later rounds. `LeakageSearch` puts all rows into one kernel.

For example, chi2 with P(s) = 0.5 and t = 1.5 has f(t) = 0.25 and f'(t) = 1, which gives the row
0.5 w_s - 0.625 <= r_s. At w_s = 1.6 it asks for r_s >= 0.175, where the term itself is 0.18.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvers.average.problem import (
    FEW_ULP,
    LEAST_TANGENT,
    AverageProblem,
    Leakage,
    Measure,
)
from solvers.points import Array, Points
from solvers.pricing.concave import (
    FEWEST_BOXES,
    MEMORY_LIMIT,
    ConcaveSearch,
)
from solvers.sets.polytope import KernelRows, identical_columns, kernel_rows

FIRST_TANGENTS = (
    1e-4,
    0.02,
    0.1,
    0.25,
    0.5,
    0.75,
    1.25,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
)
"""Lifts at which the first tangents touch."""


class Tangents:
    """Rows ``slope w_s - offset <= r_i`` below the terms of one leakage, with r_i the i-th term.

    Attributes
    ----------
    top : (i,) array
        Upper bounds of the r_i.
    """

    def __init__(self, matrix: Array, leakage: Leakage) -> None:
        self._matrix = matrix
        self._leakage = leakage
        secrets = leakage.secrets
        count = len(secrets)
        self._secret: list[int] = []
        self._slope: list[float] = []
        self._offset: list[float] = []
        largest = matrix.max(axis=1)
        guesses = leakage.guesses
        if guesses is not None:
            # Rows of differences of what guesses gain, in the place of lifts.
            without = leakage.best(guesses)
            gained = guesses @ matrix
            self._matrix = gained - gained[without]
            for guess in range(len(guesses)):
                if guess != without:
                    self._append(guess, 1.0, 0.0, float(gained.max()))
            top = np.array([float(self._matrix.max())])
        elif leakage.measure is Measure.MAXIMAL_LEAKAGE:
            self._add_kinks(np.ones(count))
            top = np.array([float(largest.max()) - 1.0])
        elif leakage.measure is Measure.TOTAL_VARIATION:
            self._add_kinks(secrets)
            top = secrets * (largest - 1.0)
        else:
            # f is convex, so it is largest at an end of the lifts that occur.
            ends = np.stack([np.zeros(count), largest])
            top = secrets * leakage.term(ends).max(axis=0)
            for s in range(count):
                for touch in FIRST_TANGENTS:
                    if touch < largest[s]:
                        self._add_touching(s, touch)
        # No term of a member is larger; some room for rounding.
        self.top = np.maximum(top, 0.0) * (1.0 + 1e-6) + 1e-9

    def _add_kinks(self, sizes: Array) -> None:
        """The single rows ``size (w_s - 1) <= r`` of a measure with a kink at 1."""
        for s, size in enumerate(sizes.tolist()):
            self._append(s, size, size, size)

    def _add_touching(self, s: int, touch: float) -> None:
        """The tangent of P(s) f at one lift."""
        weight = float(self._leakage.secrets[s])
        at = np.array([touch])
        value = weight * float(self._leakage.term(at)[0])
        slope = weight * float(self._leakage.slope(at)[0])
        self._append(s, slope, slope * touch - value, weight * (1.0 + touch))

    def _append(self, s: int, slope: float, offset: float, size: float) -> None:
        """One row, moved down by what rounding can have added anywhere on the simplex."""
        largest = float(np.abs(self._matrix[s]).max())
        room = FEW_ULP * (size + abs(offset) + abs(slope) * (largest + 1.0))
        self._secret.append(s)
        self._slope.append(slope)
        self._offset.append(offset + room)

    def touch(self, points: Points, room: float) -> int:
        """Add tangents where a term lies more than its part of `room` above those; how many."""
        # Tangents of a measure with a kink are exact.
        if not self._leakage.is_smooth or not len(points):
            return 0
        before = len(self._secret)
        lifts = points.images(self._matrix)
        secrets = self._leakage.secrets
        true = self._leakage.term(lifts) * secrets
        # A term each: if none is further from its tangents, the sum is within the room.
        room /= len(secrets)
        for k in range(len(points)):
            for s in range(len(secrets)):
                lift = float(lifts[k, s])
                if true[k, s] > self._height(s, lift) + room:
                    self._add_touching(s, max(lift, LEAST_TANGENT))
        return len(self._secret) - before

    def _height(self, s: int, lift: float) -> float:
        """The highest tangent of a term at a lift; at least 0, as r_s is."""
        height = 0.0
        for secret, slope, offset in zip(
            self._secret, self._slope, self._offset, strict=True
        ):
            if secret == s:
                height = max(height, slope * lift - offset)
        return height

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """``slope w_s - r_i <= offset``: the columns of v (m, n) and r (m, i), and ends (m,)."""
        secret = np.array(self._secret)
        slope = np.array(self._slope)
        of_points = slope[:, None] * self._matrix[secret]
        of_terms = np.zeros((len(secret), len(self.top)))
        if len(self.top) == 1:
            of_terms[:, 0] = -1.0
        else:
            of_terms[np.arange(len(secret)), secret] = -1.0
        return of_points, of_terms, np.array(self._offset)


class LeakageSearch(ConcaveSearch):
    """`ConcaveSearch` for H(v) + sum_j beta_j L_j(v) - y.v, each L_j above its tangents alone.

    Variables are v, the auxiliary variables of the polytope, then the r_i of each leakage in turn.
    Rows are those of the polytope, the tangents of each leakage, and last sum v = 1.
    """

    def __init__(self, problem: AverageProblem, leakages: Sequence[Tangents]) -> None:
        from solvers._kernel import Search

        self.n = len(problem.point)
        polytope = _polytope_rows(problem)
        self._auxiliaries = len(polytope.top) - self.n
        self._terms = [len(tangents.top) for tangents in leakages]
        matrix, lower, upper = _tangent_rows(leakages, self._auxiliaries)
        no_terms = np.zeros((len(polytope.matrix), sum(self._terms)))
        polytope_rows = np.hstack([polytope.matrix, no_terms])

        def joined(polytope_part: Array, tangent_part: Array) -> Array:
            # The kernel wants the row of ones last.
            return np.concatenate(
                [polytope_part[:-1], tangent_part, polytope_part[-1:]]
            )

        matrix = joined(polytope_rows, matrix)
        # Symbols that no row tells apart are one coordinate, as in `ConcaveSearch`.
        self._members, self._first = identical_columns(matrix[:, : self.n])
        distinct = len(self._first)
        columns = np.concatenate(
            [self._first, np.arange(self.n, matrix.shape[1])]
        ).astype(np.intp)
        top = np.concatenate([polytope.top, *[tangents.top for tangents in leakages]])
        self._kernels: list[Any] = [
            Search(
                np.ascontiguousarray(matrix[:, columns]),
                joined(polytope.outer_lower, lower),
                joined(polytope.outer_upper, upper),
                joined(polytope.inner_lower, lower),
                joined(polytope.inner_upper, upper),
                np.ascontiguousarray(top[columns]),
                distinct,
            )
        ]
        # As in `ConcaveSearch`: the bytes of one box.
        box_bytes = 10 * distinct + 2 * matrix.shape[0] + 64
        self._box_limit = max(FEWEST_BOXES, MEMORY_LIMIT // box_bytes)
        self._pool = None

    def charge(self, multipliers: Array) -> None:
        """Set what a unit of each leakage costs."""
        # Each r_i costs what its leakage does; the auxiliary variables of the polytope are free.
        of_terms = np.repeat(multipliers, self._terms)
        self._auxiliary_costs = np.concatenate([np.zeros(self._auxiliaries), of_terms])


def _tangent_rows(
    leakages: Sequence[Tangents], auxiliaries: int
) -> tuple[Array, Array, Array]:
    """The tangents of all leakages over all variables, and both ends of every row.

    `auxiliaries` is the number of variables between v and the first r_i.
    """
    rows: list[Array] = []
    lower_ends: list[Array] = []
    upper_ends: list[Array] = []
    width = auxiliaries + sum(len(tangents.top) for tangents in leakages)
    before = auxiliaries
    for tangents in leakages:
        of_points, of_terms, upper = tangents.rows
        # Tolerances of the kernel are absolute, so large rows are scaled, by powers of two.
        size = np.abs(of_points).max(axis=1)
        scale = np.exp2(-np.ceil(np.log2(np.maximum(size, 1.0))))
        # The kernel needs finite ends: on the simplex no row is less than this.
        lower = of_points.min(axis=1) - tangents.top.max() - 1.0
        terms = np.zeros((len(upper), width))
        terms[:, before : before + of_terms.shape[1]] = of_terms
        before += of_terms.shape[1]
        rows.append(np.hstack([of_points, terms]) * scale[:, None])
        lower_ends.append(lower * scale)
        upper_ends.append(upper * scale)
    return np.vstack(rows), np.concatenate(lower_ends), np.concatenate(upper_ends)


def _polytope_rows(problem: AverageProblem) -> KernelRows:
    """The rows of the polytopes; without any, the row of ones alone."""
    if problem.inner is not None and problem.outer is not None:
        return kernel_rows(problem.inner, problem.outer)
    n = len(problem.point)
    one = np.ones(1)
    return KernelRows(
        matrix=np.ones((1, n)),
        inner_lower=one,
        inner_upper=one,
        outer_lower=one,
        outer_upper=one,
        top=np.ones(n),
    )
