"""Optima under stacked limits by exact vertices and scipy's linprog; shares no code with the
package.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from tests.oracles.vertices import exact_vertices


def rows_of(table, prior, lower, upper, ratio=math.inf):
    """Rows r with r.v <= 0 of posteriors v = P(x|y): `table` is P(s, x) or P(s, x, earlier
    outputs), (|S|, n).

    `prior` is P(s); `lower` and `upper` are the budgets of each symbol.
    """
    given = np.asarray(table) / np.asarray(prior)[:, None]
    total = np.asarray(table).sum(axis=0)
    rows = [
        g - math.exp(u) * total
        for g, u in zip(given, upper, strict=True)
        if math.isfinite(u)
    ]
    rows += [
        math.exp(-low) * total - g
        for g, low in zip(given, lower, strict=True)
        if math.isfinite(low)
    ]
    if math.isfinite(ratio):
        rows += [a - math.exp(ratio) * b for a in given for b in given if a is not b]
    return rows


def optimum(p_x, rows):
    """I(X;Y)/H(X) of the best channel whose columns w = v / P(x) keep r.w <= 0 for every row r."""
    matrix = np.array(rows) / p_x
    points = exact_vertices(
        matrix, np.full(len(matrix), -np.inf), np.full(len(matrix), 1e-12)
    )
    solved = linprog(entropy(points), A_eq=points.T, b_eq=p_x, method="highs")
    assert solved.status == 0, solved.message
    return 1.0 - solved.fun / float(entropy(p_x[None, :])[0])


def entropy(points):
    return -np.where(
        points > 0.0, points * np.log(np.where(points > 0.0, points, 1.0)), 0.0
    ).sum(axis=1)
