"""Slow, obvious and exact answers, sharing no code with the package."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import ArrayLike, NDArray

TOGETHER = 1e-9
"""Exact vertices closer than this are counted once: the enumerations promise no more."""


def rational(x: float) -> fmpq:
    """The number that a double stands for."""
    return fmpq(*float(x).as_integer_ratio())


def exact_vertices(
    rows: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> NDArray[np.float64]:
    """Vertices of {v >= 0, sum v = 1, lower <= rows v <= upper}, by trying everything in rationals.

    Every set of k columns with every choice of k - 1 rows, each at either of its bounds, is solved
    exactly, and kept if it violates nothing. Only for a handful of rows and columns.
    """
    matrix = np.asarray(rows, dtype=float)
    m, n = matrix.shape
    a = [[rational(x) for x in row] for row in matrix]
    low = [rational(x) if np.isfinite(x) else None for x in np.asarray(lower)]
    high = [rational(x) if np.isfinite(x) else None for x in np.asarray(upper)]
    sides = [
        list(dict.fromkeys(s for s in pair if s is not None))
        for pair in zip(low, high, strict=True)
    ]
    found: dict[tuple[tuple[int, int], ...], None] = {}
    for k in range(1, min(n, m + 1) + 1):
        for columns, tight in product(
            combinations(range(n), k), combinations(range(m), k - 1)
        ):
            system = fmpq_mat(
                [[a[i][j] for j in columns] for i in tight] + [[fmpq(1)] * k]
            )
            if system.det() == 0:
                continue
            inverse = system.inv()
            for bounds in product(*(sides[i] for i in tight)):
                solution = inverse * fmpq_mat([[b] for b in bounds] + [[fmpq(1)]])
                point = [fmpq(0)] * n
                for i, j in enumerate(columns):
                    point[j] = solution[i, 0]
                if _member(a, low, high, point):
                    found[tuple((int(x.p), int(x.q)) for x in point)] = None
    return distinct(
        np.array([[p / q for p, q in point] for point in found]).reshape(-1, n)
    )


def _member(
    a: list[list[fmpq]], low: list[fmpq | None], high: list[fmpq | None], v: list[fmpq]
) -> bool:
    if any(x < 0 for x in v):
        return False
    for row, least, most in zip(a, low, high, strict=True):
        w = sum((r * x for r, x in zip(row, v, strict=True)), fmpq(0))
        if (least is not None and w < least) or (most is not None and w > most):
            return False
    return True


def distinct(
    points: NDArray[np.float64], tolerance: float = TOGETHER
) -> NDArray[np.float64]:
    """Points without those that repeat an earlier one up to `tolerance` in every coordinate."""
    kept: list[int] = []
    for i in range(len(points)):
        if all(np.abs(points[i] - points[j]).max() > tolerance for j in kept):
            kept.append(i)
    return points[kept]


def same_points(
    first: NDArray[np.float64], second: NDArray[np.float64], tolerance: float = 1e-8
) -> bool:
    """Whether two lists hold the same points, one to one, in any order."""
    if len(first) != len(second):
        return False
    if len(first) == 0:
        return True
    near = [
        np.flatnonzero(np.abs(second - point).max(axis=1) <= tolerance)
        for point in first
    ]
    return all(len(i) == 1 for i in near) and len({int(i[0]) for i in near}) == len(
        second
    )
