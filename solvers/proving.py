"""Bounds of searches that are proven again from their prices, by one exact pricing.

A search ends with prices y and a bound y.p + m, where m is below H(v) - y.v for all members v of
the set (`solvers.results.envelope_bound`). Whoever has the prices needs no search: one pricing of
the kind that the search made in every round finds m again.

For example, the members (v, 1 - v) with 0.2 <= v <= 0.8 have the vertices (0.2, 0.8) and (0.8,
0.2) of entropy 0.5004. With prices of (0.5004, 0.5004) both cost nothing and all others more: m is
0, and the bound at (0.5, 0.5) is 0.5004.

What is priced is the entropy over a polytope (`proven_bound`), over an uncertain set
(`proven_over_tables`), over a set that cuts approach (`proven_over_members`) or with charged
leakages (`proven_on_average`), the entropy of a task (`proven_task`), or the variance of queries
(`proven_variance`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from solvers.average.assignment_convex import Total
from solvers.average.goals import Charge
from solvers.average.pricing import AveragePricing
from solvers.average.problem import AverageProblem
from solvers.average.purposes import BOUND_ERROR as WITHIN_ERROR
from solvers.average.purposes import cell_vertices
from solvers.enumeration import vertices
from solvers.envelope.convex import EnvelopeSearch
from solvers.envelope.convex_pricing import Limits, OuterPolytope, OuterSet
from solvers.envelope.other_sets import OuterRegions
from solvers.envelope.preparation import Preparation, Resources
from solvers.errors import BackendFailure, OutOfTime, TooManyVertices
from solvers.pace import end_of
from solvers.points import Array, entropy_terms
from solvers.pricing.concave import (
    MEMORY_LIMIT,
    check_prices,
)
from solvers.pricing.set_searches import RobustSearch
from solvers.purposes.query_newton import BOUND_ERROR
from solvers.purposes.task import (
    LISTING_SHARE,
    MOST_VERTICES,
    VERTEX_ERROR,
    Branching,
    Listing,
    task_entropies,
)
from solvers.results import Pricer, envelope_bound
from solvers.sets.convex_set import ConvexSet, CoveredSet
from solvers.sets.polytope import Polytope
from solvers.sets.uncertain import UncertainSet

ROOM = 1e-11
"""Share of the largest term by which the wanted minimum is lowered: a search that ended a rounding
below it would else go on for nothing."""

LEAST_ROOM = 1e-14
"""The same where it is a share of an entropy that is small: a hundred roundings."""

MOST_TREES = 200
"""Trees between which tangents of leakages are added; tables of Adult take up to 20."""

MOST_OF_QUERIES = 100_000
"""Vertices up to which the variance of queries is proven, as it is designed."""

TREE_SECONDS = 3.0
"""Time of one of them, before tangents are added where it stands."""


def proven_bound(
    polytope: Polytope,
    point: Array,
    prices: ArrayLike,
    *,
    least: float,
    time_limit: float | None = None,
) -> float:
    """The bound on the envelope at `point` that these prices prove, rounded down.

    Parameters
    ----------
    polytope : Polytope
    point : (n,) array
    prices : (n,) array
    least : float
        The bound that is asked for: the pricing ends as soon as it is proven, or disproven.
    time_limit : float, optional
        Seconds; what is proven by then holds.

    Raises
    ------
    InvalidPolytope
        Unless there are n finite prices.
    EmptyPolytope
        If the set has no member.
    OutOfTime
        If the time was over before there was a pricer.
    """
    y = check_prices("prices", prices, polytope.n)
    preparation = Preparation(polytope, point)
    resources = Resources(1, MEMORY_LIMIT, time_limit)
    preparation.make_pricer(polytope, resources)
    pricer = preparation.pricer
    assert pricer is not None  # `make_pricer` makes one
    return _priced(pricer, y, point, least, time_limit)


def proven_over_tables(
    uncertain: UncertainSet,
    prices: ArrayLike,
    *,
    least: float,
    time_limit: float | None = None,
) -> float:
    """As `proven_bound`, over the posteriors that are allowed for every table of a set."""
    y = check_prices("prices", prices, uncertain.n)
    search = RobustSearch(uncertain)
    return _priced(search.run, y, uncertain.point, least, time_limit)


def proven_over_members(
    members: ConvexSet | CoveredSet,
    point: Array,
    prices: ArrayLike,
    *,
    least: float,
    time_limit: float | None = None,
) -> float:
    """As `proven_bound`, over a set that is no polytope: searches alternate with cuts that remove
    what they find outside.
    """
    y = check_prices("prices", prices, len(point))
    wanted = _wanted(y, point, least)
    # As in `proven_task`; only what costs less than nothing is cut off. A bound is told as a share
    # of the entropy, which may be far below a nat.
    size = 1.0 + float(np.abs(y).max())
    entropy = float(entropy_terms(point).sum())
    room = max(ROOM * min(entropy, 1.0), LEAST_ROOM) * size
    limits = Limits(room, end_of(time_limit), 1)
    outer: OuterSet = OuterPolytope(members, point)
    if isinstance(members, CoveredSet):
        outer = OuterRegions(members, point)
    search = EnvelopeSearch(members, outer, point, 0.0, limits, y + wanted, None)
    search.prepare()
    search.price_until(least - room)
    return search.bound


def _priced(
    pricer: Pricer, y: Array, point: Array, least: float, time_limit: float | None
) -> float:
    """The bound at these prices, as far as `least` and the time ask for it."""
    result = pricer(
        y,
        cutoff=_wanted(y, point, least),
        tolerance=0.0,
        slack=0.0,
        # No point is wanted: nothing costs so little.
        column_cutoff=-math.inf,
        time_limit=time_limit,
    )
    return envelope_bound(y, point, result.bound)


def _wanted(y: Array, point: Array, least: float) -> float:
    """What is left for the minimum, if the bound is to be reached."""
    terms = y * point
    size = float(np.abs(terms).sum()) + abs(least)
    return least - math.fsum(terms) - ROOM * size


def proven_task(
    polytope: Polytope,
    point: Array,
    task: Array,
    prices: ArrayLike,
    *,
    least: float,
    time_limit: float | None = None,
) -> float:
    """As `proven_bound`, of the expected entropy of ``task @ v`` (`solvers.purposes.task`)."""
    y = check_prices("prices", prices, polytope.n)
    wanted = _wanted(y, point, least)
    # Posteriors sum to 1: so all costs are lower by what is wanted, and none may be negative.
    shifted = y + wanted
    end = end_of(time_limit)
    pricing: Listing | Branching
    try:
        # Where they are too many, branching has the rest of the time.
        seconds = None if time_limit is None else LISTING_SHARE * time_limit
        listed = vertices(polytope, max_vertices=MOST_VERTICES, time_limit=seconds)
        pricing = Listing(polytope, task, listed.points, listed.points)
    except (TooManyVertices, OutOfTime, BackendFailure):
        pricing = Branching(polytope, polytope, task)
    minimum, _ = pricing.least(shifted, 0.0, end, 0)
    return envelope_bound(y, point, minimum + wanted)


def proven_on_average(
    problem: AverageProblem,
    prices: ArrayLike,
    multipliers: Array,
    *,
    least: float,
    time_limit: float | None = None,
) -> float:
    """As `proven_bound`, of the entropy with charged leakages: y.p + m, where H(v) + sum_j beta_j
    L_j(v) >= y.v + m (`solvers.average.goals`).
    """
    y = check_prices("prices", prices, len(problem.point))
    wanted = _wanted(y, problem.point, least)
    # As in `proven_task`.
    charge = Charge(y + wanted, multipliers, ROOM * (1.0 + float(np.abs(y).max())))
    pricing = AveragePricing(problem)
    end = end_of(time_limit)
    minimum = -math.inf
    for _ in range(MOST_TREES):
        seconds = max(min(TREE_SECONDS, end - time.process_time()), 0.0)
        result = pricing.search_tree(charge, seconds)
        minimum = max(minimum, result.bound)
        touched = pricing.touched
        if minimum >= -charge.aim or not len(result.points):
            break
        pricing.touch(result.points, charge)
        if pricing.touched == touched or time.process_time() >= end:
            break
    return envelope_bound(y, problem.point, minimum + wanted)


def proven_variance(
    polytope: Polytope,
    point: Array,
    gram: Array,
    prices: ArrayLike,
    inverse: Array,
    *,
    time_limit: float | None = None,
) -> float:
    """The bound on tr(G M^-1) of queries that prices and any matrix prove, rounded down.

    With the symmetric matrix W and S = W G W, no channel has less than tr(G W)^2 / (y.p + m) where
    y.v + m >= u^T S u for all members v, u = v / p: for tr(G M^-1) >= 2 c tr(G W) - c^2 tr(S M) for
    every c. The right side is convex in v, so its vertices decide.
    """
    y = check_prices("prices", prices, polytope.n)
    listed = vertices(
        polytope, max_vertices=MOST_OF_QUERIES, time_limit=time_limit
    ).points
    return variance_by_vertices(polytope, listed, point, gram, y, inverse)


def variance_by_vertices(
    polytope: Polytope,
    listed: Array,
    point: Array,
    gram: Array,
    y: Array,
    inverse: Array,
) -> float:
    """The bound of `proven_variance` from all vertices, (k, n), as they were listed."""
    w = 0.5 * (inverse + inverse.T)
    sandwich = w @ gram @ w
    u = listed / point
    slopes = u @ sandwich
    # A listed vertex may miss the true one by so much in every coordinate.
    error = float(max(polytope.residual(listed).max(), 0.0)) + VERTEX_ERROR
    missed = 2.0 * error * (np.abs(slopes) / point).sum(axis=1)
    missed += error * float(np.abs(y).sum())
    excess = (slopes * u).sum(axis=1) - listed @ y + missed
    paid = float(y @ point) + float(excess.max())
    if not paid > 0.0:
        # Only a matrix of zeros costs nothing, and it proves nothing.
        return 0.0
    return float(np.sum(gram * w)) ** 2 / paid * (1.0 - BOUND_ERROR)


def proven_task_within(
    total: Total,
    outer: Polytope | None,
    point: Array,
    task: Array,
    prices: ArrayLike,
    charge: float,
    touched: Array,
    *,
    time_limit: float | None = None,
) -> float:
    """As `proven_task`, with the leakage of `total` at a price: y.p + m - charge e, where h(B v) +
    charge L(v) >= y.v + m for all posteriors of `outer` (None: for all).

    `touched` (k, n) are posteriors, at which tangents touch the leakage from below.
    """
    y = check_prices("prices", prices, len(point))
    spent = charge * total.most
    minimum = _least_over_cells(
        lambda v: task_entropies(v, task) - v @ y,
        total,
        outer,
        charge,
        touched,
        end_of(time_limit),
    )
    bound = float(y @ point) - spent + minimum
    return bound - WITHIN_ERROR * (1.0 + abs(bound))


def proven_variance_within(
    total: Total,
    outer: Polytope | None,
    point: Array,
    gram: Array,
    prices: ArrayLike,
    inverse: Array,
    charge: float,
    touched: Array,
    *,
    time_limit: float | None = None,
) -> float:
    """As `proven_variance`, with the leakage of `total` at a price: tr(G W)^2 / (y.p + m + charge
    e), where y.v + charge L(v) + m >= u^T S u.
    """
    y = check_prices("prices", prices, len(point))
    w = 0.5 * (inverse + inverse.T)
    sandwich = w @ gram @ w

    def cost(v: Array) -> Array:
        u = v / point
        return v @ y - ((u @ sandwich) * u).sum(axis=1)

    spent = charge * total.most
    minimum = _least_over_cells(cost, total, outer, charge, touched, end_of(time_limit))
    paid = float(y @ point) + spent - minimum
    return float(np.sum(gram * w)) ** 2 / paid * (1.0 - WITHIN_ERROR)


def _least_over_cells(
    cost: Callable[[Array], Array],
    total: Total,
    outer: Polytope | None,
    charge: float,
    touched: Array,
    end: float,
) -> float:
    """The least cost(v) + charge L(v), from below: `cost` is concave, and L above its tangents.

    In a cell, where one tangent is the largest, vertices decide (`solvers.average.purposes`).
    """
    n = total.matrix.shape[1]
    tangents = [np.zeros(n), *(total.tangent(v) for v in touched)]
    # Without the cells nothing is proven, so their listing has all of the time.
    listed = cell_vertices(tangents, outer, n, end, share=1.0)
    known = np.max(listed @ np.array(tangents).T, axis=1)
    return float((cost(listed) + charge * known).min())
