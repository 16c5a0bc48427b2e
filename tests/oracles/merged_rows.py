"""Slow, obvious answers about rows that are merged: all flows listed, or one dense program."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog


def column_pairs(width):
    return list(combinations(range(width), 2)) or [(0, 0)]


def cost_of(before, after, moves, weights, worst, mean):
    """Changed cells, the largest and the average change of a two-way table, by counting.

    `before` and `after` are lists of rows, one a record; `moves` pairs of rows.
    """
    changed = sum(
        weight
        for old, new in moves
        for a, b, weight in zip(old, new, weights, strict=True)
        if a != b
    )
    variations = []
    for i, j in column_pairs(len(weights)):
        change = {}
        for rows, sign in ((before, -1), (after, 1)):
            for row in rows:
                cell = (row[i], row[j])
                change[cell] = change.get(cell, 0) + sign
        variations.append(sum(map(abs, change.values())) / 2)
    return changed + worst * max(variations) + mean * sum(variations) / len(variations)


def best_by_listing(items, amounts, targets, weights, worst, mean):
    """The least cost of all ways to send every unit to a target."""
    units = [tuple(i) for i, a in zip(items, amounts, strict=True) for _ in range(a)]
    places = [tuple(t) for t in targets]
    best = np.inf
    for chosen in product(places, repeat=len(units)):
        moves = list(zip(units, chosen, strict=True))
        best = min(best, cost_of(units, chosen, moves, weights, worst, mean))
    return best


def best_fraction(items, amounts, targets, weights, worst, mean):
    """The least cost of all flows, by one dense program over all pairs.

    Variables: the flows, the modulus of every cell's change, and the largest table's change.
    """
    n, m = len(items), len(targets)
    differ = (items[:, None, :] != targets[None, :, :]) @ weights
    tables = []
    for i, j in column_pairs(len(weights)):
        cells = {(a[i], a[j]) for a in [*items.tolist(), *targets.tolist()]}
        tables.append([(i, j, cell) for cell in sorted(cells)])
    every = [cell for table in tables for cell in table]
    size = n * m + len(every) + 1
    costs = np.concatenate(
        [differ.ravel(), np.full(len(every), mean / 2 / len(tables)), [worst]]
    )
    upper, limits = [], []
    for place, (i, j, cell) in enumerate(every):
        here = np.array([(t[i], t[j]) == cell for t in targets.tolist()], dtype=float)
        had = sum(
            a
            for row, a in zip(items.tolist(), amounts, strict=True)
            if (row[i], row[j]) == cell
        )
        for sign in (1, -1):
            row = np.zeros(size)
            row[: n * m] = sign * np.tile(here, n)
            row[n * m + place] = -1
            upper.append(row)
            limits.append(sign * had)
    place = 0
    for table in tables:
        row = np.zeros(size)
        row[n * m + place : n * m + place + len(table)] = 0.5
        row[-1] = -1
        place += len(table)
        upper.append(row)
        limits.append(0)
    equal = np.zeros((n, size))
    for x in range(n):
        equal[x, x * m : (x + 1) * m] = 1
    result = linprog(costs, np.array(upper), limits, equal, amounts)
    return result.fun
