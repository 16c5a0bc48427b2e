"""The plan of least cost as a plain linear program for scipy, one row after the other from the
definitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linprog


def least_cost_plan(
    masses: Any,
    targets: Any,
    cost: Any,
    values: Any,
    lower: Any,
    upper: Any,
    groups: Any,
    ratio: float = math.inf,
    *,
    strata: Any = None,
    forbidden: Any = (),
    stay: Any = None,
    penalty: Any = None,
) -> float | None:
    """The optimum over F(x, y); None where there is no plan.

    `penalty` is (forms (m, n), the group of each, a price): for every output and group the largest
    form costs the price.
    """
    n = len(masses)
    within = np.zeros(n) if strata is None else np.asarray(strata)
    equal, right, rows = [], [], []

    def row(entries: dict[tuple[int, int], float]) -> Any:
        one = np.zeros((n, n))
        for place, value in entries.items():
            one[place] += value
        return one.ravel()

    for x in range(n):
        equal.append(row({(x, y): 1.0 for y in range(n)}))
        right.append(masses[x])
    for y in range(n):
        if targets is not None:
            equal.append(row({(x, y): 1.0 for x in range(n)}))
            right.append(targets[y])
        here = within == within[y]
        means = {}
        for k in range(len(values)):
            if not values[k][here].any():
                continue
            means[k] = row({(x, y): values[k][x] for x in range(n)})
            total = row({(x, y): 1.0 for x in range(n)})
            if lower[k] > 0:
                rows.append(lower[k] * total - means[k])
            if math.isfinite(upper[k]):
                rows.append(means[k] - upper[k] * total)
        if math.isfinite(ratio):
            for i, one in means.items():
                for j, other in means.items():
                    if groups[i] == groups[j] and i != j:
                        rows.append(one - ratio * other)
    bounds = []
    for x in range(n):
        for y in range(n):
            open_ = within[x] == within[y] and (x, y) not in forbidden
            least = stay[x] * masses[x] if stay is not None and x == y else 0.0
            bounds.append((least, None if open_ else 0.0))
    costs = [np.asarray(cost).ravel()]
    unlimited = np.array(rows).reshape(len(rows), n * n)
    if penalty is not None:
        forms, numbers, price = penalty
        # A variable for the largest form of every output and group.
        places = [(y, g) for y in range(n) for g in sorted(set(numbers))]
        costs.append(np.full(len(places), price))
        bounds += [(None, None)] * len(places)
        equal = [np.concatenate([one, np.zeros(len(places))]) for one in equal]
        unlimited = np.hstack([unlimited, np.zeros((len(rows), len(places)))])
        below = []
        for p, (y, g) in enumerate(places):
            for form, number in zip(forms, numbers, strict=True):
                if number == g:
                    one = row({(x, y): form[x] for x in range(n)})
                    variables = np.zeros(len(places))
                    variables[p] = -1.0
                    below.append(np.concatenate([one, variables]))
        unlimited = np.vstack([unlimited, np.array(below)])
    found = linprog(
        np.concatenate(costs),
        A_ub=unlimited if len(unlimited) else None,
        b_ub=np.zeros(len(unlimited)) if len(unlimited) else None,
        A_eq=np.array(equal),
        b_eq=np.array(right),
        bounds=bounds,
    )
    if found.status == 2:
        return None
    assert found.status == 0, found.message
    return float(found.fun)
