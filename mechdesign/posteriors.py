"""From a notion and a table to the set of posteriors P(X|y) that the notion allows, as a polytope.

The lift of an output with posterior v is linear in v: l(., y) = A v with A[s, x] = P(s|x)/P(s)
(Zarrabian et al. 2023, eq. (25) for ALIP).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.joint import Joint
from mechdesign.notions import Notion
from solvers import Polytope

Array = NDArray[np.float64]

OUTWARDS = 2.0**-49
"""Relative widening of the bounds of a relaxation, 16 units in the last place: the entries of A, the
exponentials and the products of a row are each wrong by at most a few."""


def posteriors(joint: Joint, notion: Notion, *, margin: float = 0.0) -> Polytope:
    """The posteriors v that the notion allows: {v >= 0, sum v = 1, bounds on A v}.

    Parameters
    ----------
    joint : Joint
    notion : Notion
        Its limits bound every lift from below and above, or the quotient of any two.
    margin : float
        Relative distance that every bound is moved inwards, but never so far that P_X (all lifts 1) is
        cut off. Zero moves the bounds outwards by `OUTWARDS`, so that the exact set is contained.

    Returns
    -------
    Polytope
        |S| rows for bounds on the lift; for a bound e^r on quotients 2|S| rows and one auxiliary
        variable t with t <= (A v)_s <= e^r t. A notion with both has both.
    """
    limits = notion.limits
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
        ratio = _high(limits.ratio, margin)
        free = np.full(count, np.inf)
        rows += [lift, lift]
        lower += [np.zeros(count), -free]
        upper += [free, np.zeros(count)]
        auxiliary += [np.full(count, -1.0), np.full(count, -ratio)]
    column = np.concatenate(auxiliary)[:, None] if math.isfinite(limits.ratio) else None
    return Polytope(np.vstack(rows), np.concatenate(lower), np.concatenate(upper), column)


def _low(budget: float, margin: float) -> float:
    """exp(-budget), moved up by `margin` or down by `OUTWARDS`; 0 (no bound) for an infinite budget."""
    if math.isinf(budget):
        return -math.inf
    bound = math.exp(-budget)
    return bound + min(margin * bound, 0.5 * -math.expm1(-budget)) if margin > 0.0 else bound * (1.0 - OUTWARDS)


def _high(budget: float, margin: float) -> float:
    """exp(budget), moved down by `margin` or up by `OUTWARDS`."""
    if math.isinf(budget):
        return math.inf
    bound = math.exp(budget)
    return bound - min(margin * bound, 0.5 * math.expm1(budget)) if margin > 0.0 else bound * (1.0 + OUTWARDS)
