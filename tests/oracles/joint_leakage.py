"""Joint leakage of independent releases by full enumeration in fractions; shares no code with the
package.
"""

from __future__ import annotations

import itertools
from fractions import Fraction


def every_tuple(counts, matrices, places=None):
    """(outputs, P(., outputs) / P(.) / P(outputs) as fractions) of every tuple of positive
    probability.

    `matrices` are rows of fractions; `places[k][x]` is the row of matrix k that the useful symbol x
    has.
    """
    total = sum(map(sum, counts))
    sums = [sum(row) for row in counts]
    places = places or [range(len(matrix)) for matrix in matrices]
    for outputs in itertools.product(*(range(len(matrix[0])) for matrix in matrices)):
        masses = [Fraction(0)] * len(counts)
        for s, row in enumerate(counts):
            for x, count in enumerate(row):
                term = Fraction(count)
                for matrix, place, y in zip(matrices, places, outputs, strict=True):
                    term *= matrix[place[x]][y]
                masses[s] += term
        if mass := sum(masses):
            yield (
                outputs,
                [m * total / (r * mass) for m, r in zip(masses, sums, strict=True)],
            )


def extremes(counts, matrices, places=None):
    """The largest lift, the smallest, and their largest quotient on one tuple (None for infinity)."""
    every = [lifts for _, lifts in every_tuple(counts, matrices, places)]
    quotients = [
        None if min(lifts) == 0 else max(lifts) / min(lifts) for lifts in every
    ]
    ratio = None if None in quotients else max(quotients)
    return max(map(max, every)), min(map(min, every)), ratio
