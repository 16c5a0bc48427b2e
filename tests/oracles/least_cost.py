"""The channel of least cost as a plain linear program for scipy, written down row by row from the
definitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linprog


def least_cost(
    counts: Any,
    cost: Any,
    *,
    lower: float = math.inf,
    upper: float = math.inf,
    ratio: float = math.inf,
    keep: bool = False,
    stay: Any = None,
    forbid: Any = (),
    populations: Any = None,
    columns: Any = (),
) -> float | None:
    """The optimum over W(y|x) for bounds (nats) on lifts and on their ratios; None where there is
    no channel.

    The bounds hold on the table, or on each of `populations`: rows P(.|s) with shares P(s).
    `columns` are further rows r with r.w <= 0 of every column w = W(y|.).
    """
    table = np.asarray(counts, dtype=float) / np.sum(counts)
    size, n = table.shape
    p_s = table.sum(axis=1)
    p_x = table.sum(axis=0)
    rows = []
    equal = []
    right = []

    def column(y: int, weights: Any) -> Any:
        row = np.zeros((n, n))
        row[:, y] = weights
        return row.ravel()

    every = [(table / p_s[:, None], p_s)] if populations is None else populations
    for y in range(n):
        for given, shares in every:
            mass = np.asarray(shares) @ given
            for s in range(size):
                if math.isfinite(upper):
                    rows.append(column(y, given[s] - math.exp(upper) * mass))
                if math.isfinite(lower):
                    rows.append(column(y, math.exp(-lower) * mass - given[s]))
                if math.isfinite(ratio):
                    rows += [
                        column(y, given[s] - math.exp(ratio) * given[t])
                        for t in range(size)
                        if t != s
                    ]
        rows += [column(y, row) for row in columns]
        if keep:
            equal.append(column(y, p_x))
            right.append(p_x[y])
    for x in range(n):
        row = np.zeros((n, n))
        row[x] = 1.0
        equal.append(row.ravel())
        right.append(1.0)
    bounds = [(0.0, 1.0)] * (n * n)
    for x, share in enumerate([] if stay is None else stay):
        bounds[x * n + x] = (float(share), 1.0)
    for x, y in forbid:
        bounds[x * n + y] = (0.0, 0.0)
    found = linprog(
        (p_x[:, None] * np.asarray(cost, dtype=float)).ravel(),
        A_ub=np.array(rows) if rows else None,
        b_ub=np.zeros(len(rows)) if rows else None,
        A_eq=np.array(equal),
        b_eq=np.array(right),
        bounds=bounds,
        method="highs-ds",
    )
    return float(found.fun) if found.status == 0 else None
