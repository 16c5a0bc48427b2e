"""Most information within a budget on right guesses, by listing the extreme posteriors.

Let an output with posterior v have the best guess s, that of the largest (G v)_s with G[s, x] =
P(s|x). Where s is the best guess, the success of guessing is linear in v and the entropy is
concave, so the vertices of {v : (G v)_s >= (G v)_t for all t} are outputs enough. The optimum is a
linear program over the weights of all of them, for all s.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


def cell_vertices(given: Array, s: int) -> list[Array]:
    """Vertices of the posteriors at which the guess s gains most; `given` is what each guess gains
    at x, P(s|x) where right guesses are counted.
    """
    n = given.shape[1]
    others = [t for t in range(len(given)) if t != s]
    # All inequalities row.v >= 0: coordinates first, then the comparisons.
    rows = np.vstack([np.eye(n), given[s] - given[others]])
    found: list[Array] = []
    for tight in itertools.combinations(range(len(rows)), n - 1):
        system = np.vstack([rows[list(tight)], np.ones(n)])
        if abs(np.linalg.det(system)) < 1e-9:
            continue
        v = np.linalg.solve(system, np.append(np.zeros(n - 1), 1.0))
        if (rows @ v >= -1e-9).all():
            found.append(np.maximum(v, 0.0))
    return found


def vulnerability(prior: Array, channel: Array, gains: Array) -> float:
    """The posterior g-vulnerability sum_y max_w sum_x pi_x C_xy g(w, x) (Alvim et al. 2012).

    `channel` is C from secrets to outputs, as libqif has it.
    """
    best = 0.0
    for y in range(channel.shape[1]):
        best += max(
            sum(prior[x] * channel[x, y] * row[x] for x in range(len(prior)))
            for row in gains
        )
    return best


def most_information(joint: Array, success: float, gains: Array | None = None) -> float:
    """The largest I(X;Y) in nats with guesses right at most this often, or with at most this gain
    on average.
    """
    p = joint.sum(axis=0)
    given = joint / p
    if gains is not None:
        given = gains @ given
    vertices: list[Array] = []
    for s in range(len(given)):
        vertices += cell_vertices(given, s)
    v = np.array(vertices)
    logs = np.log(np.where(v > 1e-15, v, 1.0))
    right = (v @ given.T).max(axis=1)
    answer = linprog(
        -(v * logs).sum(axis=1),
        A_ub=right[None, :],
        b_ub=[success],
        A_eq=v.T,
        b_eq=p,
        method="highs",
    )
    assert answer.success
    return float(-(p * np.log(p)).sum() - answer.fun)


def least_cost(
    joint: Array, cost: Array, success: float, gains: Array, *, keep: bool
) -> float:
    """The least expected cost of a channel on the column's own symbols with at most this gain on
    average: a linear program with the gain of each output as a variable.
    """
    p = joint.sum(axis=0)
    n = len(p)
    gained = gains @ (joint / p)
    size = n * n + n
    equal: list[Array] = []
    sums: list[float] = []
    for x in range(n):
        row = np.zeros(size)
        row[x * n : (x + 1) * n] = 1.0
        equal.append(row)
        sums.append(p[x])
    for y in range(n if keep else 0):
        row = np.zeros(size)
        row[y : n * n : n] = 1.0
        equal.append(row)
        sums.append(p[y])
    below: list[Array] = []
    ends: list[float] = []
    for y in range(n):
        for of_guess in gained:
            row = np.zeros(size)
            row[y : n * n : n] = of_guess
            row[n * n + y] = -1.0
            below.append(row)
            ends.append(0.0)
    total = np.zeros(size)
    total[n * n :] = 1.0
    answer = linprog(
        np.concatenate([np.ravel(cost), np.zeros(n)]),
        A_ub=np.vstack([*below, total]),
        b_ub=[*ends, success],
        A_eq=np.array(equal),
        b_eq=sums,
        method="highs",
    )
    assert answer.success
    return float(answer.fun)
