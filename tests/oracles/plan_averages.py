"""The least share of changed cells of a plan whose average leakage is at most a budget: one dense
linear program, with an auxiliary variable for the largest form of every row.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from tests.oracles import released_rows


def least_cost(counts, costs, measure, budget, *, epsilon=math.inf, strata=None):
    """The optimum over F(x, y) that keep the law, None where there is none."""
    p = np.array(counts, float)
    p /= p.sum()
    shares, n = p.sum(axis=1), p.shape[1]
    strata = [0] * n if strata is None else strata
    posteriors = p / p.sum(axis=0)
    secrets = len(p)
    auxiliary = n * secrets if measure == "tv" else n
    size = n * n + auxiliary
    objective = np.concatenate([np.ravel(costs), np.zeros(auxiliary)])
    equal, right, below, most = [], [], [], []
    for x in range(n):
        row, column = np.zeros(size), np.zeros(size)
        for y in range(n):
            row[x * n + y] = column[y * n + x] = 1
        equal += [row, column]
        right += [p[:, x].sum()] * 2
    total = np.zeros(size)
    for y in range(n):
        for s in range(secrets):
            mass = np.zeros(size)
            mass[[x * n + y for x in range(n)]] = posteriors[s]
            expected = shares[s] * p[:, y].sum()
            if math.isfinite(epsilon):
                below += [mass, -mass]
                most += [expected * math.exp(epsilon), -expected * math.exp(-epsilon)]
            place = n * n + (y * secrets + s if measure == "tv" else y)
            if measure == "tv":
                for sign in (1, -1):
                    one = sign * mass
                    one[place] = -1
                    below.append(one)
                    most.append(sign * expected)
                total[place] = 0.5
                continue
            one = mass / shares[s] if measure == "maximal-leakage" else mass.copy()
            one[place] = -1
            below.append(one)
            most.append(0.0)
            total[place] = 1.0
    below.append(total)
    most.append(math.exp(budget) if measure == "maximal-leakage" else budget)
    bounds = [
        (0, None if strata[x] == strata[y] else 0) for x in range(n) for y in range(n)
    ]
    found = linprog(
        objective,
        A_ub=np.array(below),
        b_ub=most,
        A_eq=np.array(equal),
        b_eq=right,
        bounds=bounds + [(None, None)] * auxiliary,
    )
    if found.status == 2:
        return None
    assert found.status == 0, found.message
    return float(found.fun)


def average(law, measure):
    """An average over the released rows of a joint law of (secret, true row, released row)."""
    both = released_rows.summed(law, lambda entry: (entry[0], entry[2]))
    rows = released_rows.summed(law, lambda entry: entry[2])
    secrets = released_rows.summed(law, lambda entry: entry[0])
    total = Fraction(0)
    for y, mass in rows.items():
        joint = {s: both.get((s, y), Fraction(0)) for s in secrets}
        if measure == "tv":
            total += sum(abs(joint[s] - secrets[s] * mass) for s in secrets) / 2
        elif measure == "guess":
            total += max(joint.values())
        else:
            total += max(joint[s] / secrets[s] for s in secrets)
    return total
