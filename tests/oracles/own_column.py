"""The optimum where the released column itself is protected, by listing every extreme posterior.

With P(x) = p_x and no other secret the lift of x at an output with posterior v is v_x / p_x.

- Local differential privacy: every v_x / p_x is one of two numbers with the ratio e^epsilon, so
  there is one extreme posterior for each set of symbols.
- Bounds on lifts: all coordinates but at most one stand at an end of [low p_x, high p_x].

The least H(X|Y) is a linear program over the weights of all of them.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


def staircase_posteriors(p: Array, epsilon: float) -> Array:
    """One posterior for each set of symbols at the upper step, (2^n, n)."""
    rows: list[Array] = []
    for steps in itertools.product((1.0, np.exp(epsilon)), repeat=len(p)):
        v = np.array(steps) * p
        rows.append(v / v.sum())
    return np.array(rows)


def box_posteriors(p: Array, low: float, high: float) -> Array:
    """All points of the box with the sum 1 at which all but one coordinate are at an end."""
    rows: list[Array] = []
    n = len(p)
    for between in range(n):
        others = [x for x in range(n) if x != between]
        for factors in itertools.product((low, high), repeat=n - 1):
            v = np.zeros(n)
            v[others] = np.array(factors) * p[others]
            v[between] = 1.0 - v.sum()
            if low * p[between] - 1e-12 <= v[between] <= high * p[between] + 1e-12:
                rows.append(v)
    return np.array(rows)


def least_uncertainty(p: Array, posteriors: Array) -> float:
    """The least H(X|Y) in nats of a channel whose outputs have these posteriors."""
    logs = np.log(np.where(posteriors > 1e-15, posteriors, 1.0))
    entropies = -(posteriors * logs).sum(axis=1)
    answer = linprog(entropies, A_eq=posteriors.T, b_eq=p, method="highs")
    assert answer.success
    return float(answer.fun)


def uncertainty_at_few_nats(p: Array, epsilon: float) -> float:
    """H(X|Y) of the best channel with v_x <= e^epsilon p_x, where e^epsilon (1 - min p) <= 1.

    Then at most one coordinate of a posterior is below its end, so there are n extreme ones, and
    that of x has the weight p_x (the high-privacy regime of arXiv 2310.07381).
    """
    total = 0.0
    for x in range(len(p)):
        v = np.exp(epsilon) * p
        v[x] = 0.0
        v[x] = 1.0 - v.sum()
        positive = v[v > 0.0]
        total += p[x] * float(-(positive * np.log(positive)).sum())
    return total
