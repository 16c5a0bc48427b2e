"""Every vertex of small sets of populations, in fractions: slow, obvious, and sharing no code with
the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

Row = tuple[Fraction, ...]


def vertices(lower: Sequence[Fraction], upper: Sequence[Fraction]) -> Iterator[Row]:
    """The vertices of {p : lower <= p <= upper, sum p = 1}: all but one coordinate at an end."""
    for free in range(len(lower)):
        others = [
            (0,) if x == free else (lower[x], upper[x]) for x in range(len(lower))
        ]
        for point in product(*others):
            rest = 1 - sum(point)
            if lower[free] <= rest <= upper[free]:
                yield tuple(
                    rest if x == free else Fraction(p) for x, p in enumerate(point)
                )


def lifts(
    rows: Sequence[tuple[Sequence[Fraction], Sequence[Fraction]]],
    shares: tuple[Sequence[Fraction], Sequence[Fraction]],
    w: Sequence[Fraction],
) -> Iterator[tuple[list[Fraction], Fraction]]:
    """P(y|s) for every s, and P(y), at every vertex of the product of all boxes."""
    # P(y|s) is all that counts of a vertex of P(.|s), and few of them differ.
    ends = [
        {
            sum((p * v for p, v in zip(point, w, strict=True)), Fraction(0))
            for point in vertices(*row)
        }
        for row in rows
    ]
    priors = set(vertices(*shares))
    for given in map(list, product(*ends)):
        for pi in priors:
            yield (
                given,
                sum((a * b for a, b in zip(pi, given, strict=True)), Fraction(0)),
            )
