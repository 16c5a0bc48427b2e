"""Plans over the rows of a table by one dense linear program, written out entry by entry."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.optimize import linprog


def least_cost(
    counts,
    costs,
    *,
    lower=math.inf,
    upper=math.inf,
    ratio=math.inf,
    budgets=None,
    secrets=None,
    strata=None,
    relative=False,
    forbidden=(),
    stay=0.0,
    keep_law=True,
    before=None,
):
    """The least cost of a plan F(x, y), or None where there is none.

    Parameters
    ----------
    counts : (S, n) records of every secret and row
    costs : (n, n) array
    lower, upper, ratio : budgets in nats
    budgets : mapping of a place in S to (lower, upper), for some of them
    secrets : list of (S', n) arrays, each of which keeps the budgets; the counts by default
    strata : (n,) stratum of every row; rows move within theirs
    relative : True to measure against P(s | stratum)
    before : list of (n,) arrays W(z | x), one for each output z of an earlier release
    """
    counts = np.array(counts, dtype=float)
    n = counts.shape[1]
    strata = [0] * n if strata is None else list(strata)
    masses = counts.sum(axis=0)
    pairs = [
        (x, y)
        for x, y in product(range(n), range(n))
        if strata[x] == strata[y] and (x, y) not in set(forbidden)
    ]
    place = {pair: k for k, pair in enumerate(pairs)}
    equal, equals = [], []
    for x in range(n):
        row = np.zeros(len(pairs))
        for y in range(n):
            if (x, y) in place:
                row[place[x, y]] = 1.0
        equal.append(row)
        equals.append(masses[x])
    if keep_law:
        for y in range(n):
            row = np.zeros(len(pairs))
            for x in range(n):
                if (x, y) in place:
                    row[place[x, y]] = 1.0
            equal.append(row)
            equals.append(masses[y])
    limits = []

    def limit(y, coefficients):
        row = np.zeros(len(pairs))
        for x in range(n):
            if (x, y) in place:
                row[place[x, y]] = coefficients[x]
        limits.append(row)

    for table in secrets or [counts]:
        table = np.array(table, dtype=float)
        for left in before or [np.ones(n)]:
            for y in range(n):
                inside = [x for x in range(n) if strata[x] == strata[y]]
                whole = inside if relative else list(range(n))
                prior = table[:, whole].sum(axis=1) / masses[whole].sum()
                # P(s, y) and P(y) in units of what x gives to y.
                both = table * left / masses
                for s in range(len(table)):
                    if not prior[s]:
                        continue
                    low, high = (budgets or {}).get(s, (lower, upper))
                    if math.isfinite(high):
                        limit(y, both[s] - math.exp(high) * prior[s] * left)
                    if math.isfinite(low):
                        limit(y, math.exp(-low) * prior[s] * left - both[s])
                    for t in range(len(table)):
                        if math.isfinite(ratio) and prior[t]:
                            limit(
                                y,
                                both[s] / prior[s]
                                - math.exp(ratio) * both[t] / prior[t],
                            )
    least = [(stay * masses[x] if x == y else 0.0, None) for x, y in pairs]
    total = masses.sum()
    result = linprog(
        [costs[x][y] / total for x, y in pairs],
        A_ub=np.array(limits) if limits else None,
        b_ub=np.zeros(len(limits)) if limits else None,
        A_eq=np.array(equal),
        b_eq=np.array(equals),
        bounds=least,
    )
    return result.fun if result.status == 0 else None


def changed_cells(symbols, weights=None):
    """The weighted share of cells in which two rows differ."""
    width = len(symbols[0])
    shares = weights or [1.0] * width
    total = sum(shares)
    return [
        [
            sum(w for w, a, b in zip(shares, left, right, strict=True) if a != b)
            / total
            for right in symbols
        ]
        for left in symbols
    ]
