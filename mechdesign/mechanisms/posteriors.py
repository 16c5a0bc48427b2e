"""From a notion and a table to the set of posteriors P(X|y) that the notion allows, as a polytope.

The lift of an output with posterior v is linear in v: l(., y) = A v with A[s, x] = P(s|x)/P(s)
(Zarrabian et al. 2023, eq. (25) for ALIP).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import Polytope

Array = NDArray[np.float64]

OUTWARDS = 2.0**-49
"""Relative widening of the bounds of a relaxation, 16 units in the last place: the entries of A, the
exponentials and the products of a row are each wrong by at most a few."""


FEW_SENSITIVE = 3
"""Sensitive symbols up to which l1-lift is written without auxiliary variables, in 2^(|S|-1) - 1 rows;
from 5 on the auxiliary variables were faster on every table tried."""


def posteriors(joint: Joint, notion: Notion, *, margin: float = 0.0) -> Polytope:
    """The posteriors v that the notion allows: {v >= 0, sum v = 1, bounds on A v}."""
    limits = notion.limits
    if limits.mean is not None:
        check_polytope(notion)
        return _l1(joint, limits.upper, margin)
    lift = joint.lift
    count = lift.shape[0]
    rows: list[Array] = []
    lower: list[Array] = []
    upper: list[Array] = []
    auxiliary: list[Array] = []
    if math.isfinite(limits.lower) or math.isfinite(limits.upper):
        rows.append(lift)
        lower.append(np.full(count, _low(limits.lower, margin)))
        upper.append(np.full(count, _high(limits.upper, margin)))
        auxiliary.append(np.zeros(count))
    if math.isfinite(limits.ratio):
        # The two sets must share their rows, so the margin of the quotient is a distance between t and the
        # lifts: with t <= 1 (the lifts average 1), t + m <= (A v)_s makes every quotient smaller by 1 - m.
        ratio = _high(limits.ratio, 0.0)
        free = np.full(count, np.inf)
        rows += [lift, lift]
        lower += [np.full(count, min(margin, 0.5 * -math.expm1(-limits.ratio))), -free]
        upper += [free, np.zeros(count)]
        auxiliary += [np.full(count, -1.0), np.full(count, -ratio)]
    column = np.concatenate(auxiliary)[:, None] if math.isfinite(limits.ratio) else None
    return Polytope(np.vstack(rows), np.concatenate(lower), np.concatenate(upper), column)


def _low(budget: float, margin: float) -> float:
    """exp(-budget), moved up by `margin` or down by `OUTWARDS`; 0 (no bound) for an infinite budget."""
    if math.isinf(budget):
        return -math.inf
    bound = math.exp(-budget)
    return (
        bound + min(margin * bound, 0.5 * -math.expm1(-budget)) if margin > 0.0 else bound * (1.0 - OUTWARDS)
    )


def _high(budget: float, margin: float) -> float:
    """exp(budget), moved down by `margin` or up by `OUTWARDS`."""
    if math.isinf(budget):
        return math.inf
    bound = math.exp(budget)
    return bound - min(margin * bound, 0.5 * math.expm1(budget)) if margin > 0.0 else bound * (1.0 + OUTWARDS)


def check_polytope(notion: Notion) -> None:
    """Raise InputError unless the posteriors that the notion allows form a polytope."""
    if why := notion.limits.no_polytope:
        raise InputError(
            f"{why}, which optimal and subset-response need: use subset-merging or complete-merging"
        )


def _l1(joint: Joint, budget: float, margin: float) -> Polytope:
    """{v : sum_s P(s) |(A v)_s - 1| <= e^budget - 1}, which is twice the sum of the positive parts.

    With d_s = P(s) ((A v)_s - 1) = sum_x (P(s|x) - P(s)) v_x, whose sum over s is zero: for few s a row for each
    set of them (its complement gives the same row), -c/2 <= sum of its d_s <= c/2; else |S| auxiliary variables
    t_s >= d_s with sum t_s <= c/2.
    """
    given_x = joint.p / joint.p_x
    rows = given_x - joint.p_s[:, None]
    count = len(rows)
    bound = math.expm1(budget)
    half = 0.5 * (
        bound - min(margin * (1.0 + bound), 0.5 * bound) if margin > 0.0 else bound * (1.0 + OUTWARDS)
    )
    # Entries of the rows are wrong by a few units in the last place of P(s|x) and P(s).
    error = 0.0 if margin > 0.0 else OUTWARDS
    if count <= FEW_SENSITIVE:
        sets = (np.arange(1, 2 ** (count - 1))[:, None] >> np.arange(count - 1)) & 1
        rows = sets.astype(np.float64) @ rows[: count - 1]
        return Polytope(rows, np.full(len(rows), -half - error), np.full(len(rows), half + error))
    return Polytope(
        np.vstack([rows, np.zeros(joint.p.shape[1])]),
        np.full(count + 1, -np.inf),
        np.append(error * given_x.max(axis=1), half),
        np.vstack([-np.eye(count), np.ones(count)]),
    )
