"""The least share of changed cells of a plan whose average leakages are within budgets: one dense
convex program.
"""

from __future__ import annotations

import math
from fractions import Fraction

import cvxpy as cp
import numpy as np

from tests.oracles import released_rows


def least_cost(
    counts,
    costs,
    budgets,
    *,
    gains=None,
    epsilon=math.inf,
    strata=None,
    relative=False,
):
    """The optimum over F(x, y) that keep the law; `budgets` by the names of the averages, of the
    whole table; `epsilon` bounds lifts, against the stratum of y if `relative`.
    """
    p = np.array(counts, float)
    p /= p.sum()
    q, shares = p.sum(axis=0), p.sum(axis=1)
    n = len(q)
    flows = cp.Variable((n, n), nonneg=True)
    joint = (p / q) @ flows
    blind = np.outer(shares, q)
    sums = {
        "tv": cp.sum(cp.abs(joint - blind)) / 2,
        "guess": cp.sum(cp.max(joint, axis=0)),
        "maximal-leakage": cp.sum(cp.max(joint / shares[:, None], axis=0)),
        "mi": cp.sum(cp.rel_entr(joint, blind)),
        "chi2": cp.sum(cp.square(joint) / blind) - 1,
    }
    if gains is not None:
        sums["gain"] = cp.sum(cp.max(np.array(gains, float) @ joint, axis=0))
    rules = [cp.sum(flows, axis=1) == q, cp.sum(flows, axis=0) == q]
    for measure, budget in budgets.items():
        most = math.exp(budget) if measure == "maximal-leakage" else budget
        rules.append(sums[measure] <= most)
    if math.isfinite(epsilon):
        expected = blind
        if relative:
            together = np.equal.outer(strata, strata)
            expected = (p @ together) / (q @ together) * q
        rules.append(joint <= math.exp(epsilon) * expected)
        rules.append(joint >= math.exp(-epsilon) * expected)
    if strata is not None:
        apart = np.not_equal.outer(strata, strata)
        rules.append(cp.multiply(apart.astype(float), flows) == 0)
    program = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(np.array(costs, float), flows))), rules
    )
    program.solve(solver=cp.CLARABEL)
    assert program.status == cp.OPTIMAL, program.status
    return float(program.value)


def average(law, measure, gains=None):
    """An average over the released rows of a joint law of (secret, true row, released row); gains
    are those of every guess for the secrets in order.
    """
    both = released_rows.summed(law, lambda entry: (entry[0], entry[2]))
    rows = released_rows.summed(law, lambda entry: entry[2])
    secrets = released_rows.summed(law, lambda entry: entry[0])
    total = 0
    for y, mass in rows.items():
        joint = {s: both.get((s, y), Fraction(0)) for s in secrets}
        if measure == "tv":
            total += sum(abs(joint[s] - secrets[s] * mass) for s in secrets) / 2
        elif measure == "guess":
            total += max(joint.values())
        elif measure == "gain":
            masses = [joint[s] for s in sorted(secrets)]
            total += max(
                sum(
                    Fraction(gain) * mass
                    for gain, mass in zip(row, masses, strict=True)
                )
                for row in gains
            )
        elif measure == "chi2":
            total += sum(
                (joint[s] - secrets[s] * mass) ** 2 / (secrets[s] * mass)
                for s in secrets
            )
        elif measure == "mi":
            total += sum(
                float(joint[s]) * math.log(joint[s] / (secrets[s] * mass))
                for s in secrets
                if joint[s]
            )
        else:
            total += max(joint[s] / secrets[s] for s in secrets)
    return total
