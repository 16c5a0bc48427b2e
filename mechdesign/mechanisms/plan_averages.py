"""A budget on an average over released rows: the plan of least cost within it, with a proven bound.

Three averages are the largest of linear forms of what goes to a row y, summed over the rows. With
P(s, y) = sum over x of P(s|x) F(x, y) and q_y = sum over x of F(x, y):

    tv               sum over y, s of  |P(s, y) - P(s) q_y| / 2
    guess            sum over y of     max over s of P(s, y)
    maximal-leakage  sum over y of     max over s of P(s, y) / P(s),    of which it is the logarithm

So the solver takes them as a penalty (`solvers.plans.PlanPenalty`). With a price p on the average,

    L(p) = min over F of  cost(F) + p average(F),      cost(F) >= L(p) - p budget   for every F
    within the budget.

The search goes from price to price. Of two plans, one above the budget and one within it, the next
price makes both equally dear. If no plan is cheaper at that price, a mixture of the two that has
the budget is the optimum: both are optima of L, and an average of a mixture is at most the mixture
of the averages.

For example, at the price 0 a plan changes 5 % of the cells and has a total variation of .12, at the
price 2 it changes 10 % and has .07. For the budget .08 the next price is (.10 - .05) / (.12 - .07),
which is 1. If L(1) = .17, which both plans cost, then one fifth of the first plan and four fifths
of the second one make the optimum, .09.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import NotPrivate
from mechdesign.tables.joint import Joint
from solvers import Array
from solvers.plans import Plan, PlanPenalty, PlanProblem

LINEAR = ("tv", "guess", "maximal-leakage")
"""The averages that are sums of largest linear forms."""

FIRST_PRICE = 1.0
"""In units of cost for one unit of the average: both are at most about 1."""

DEARER = 8.0
"""Factor of the next price where the average is still above the budget."""

LARGEST_PRICE = 1e6
"""A plan whose average is above the budget at this price has the least average of all, up to the
tolerance of the programs."""

ROUNDS = 16
"""Prices that are tried at most, after the first ones; five to ten are usual."""

CLOSE = 1e-9
"""Two plans whose averages differ by less are one, up to the tolerance of the programs."""

Solve = Callable[[PlanProblem, int], Plan]
"""Solves a problem; the number says how many further ones may follow."""


@dataclass(frozen=True, eq=False)
class _Point:
    """A plan for some price: its own cost, its average, and the bound of its price."""

    price: float
    plan: Plan
    cost: float
    average: float

    def worth(self, price: float) -> float:
        """What the plan costs at a price."""
        return self.cost + price * self.average


def penalty_of(measure: str, joint: Joint) -> PlanPenalty:
    """The forms whose largest ones sum to an average, for the price 0."""
    present = np.array([count > 0 for count in joint.sensitive_counts])
    posteriors: Array = (joint.p / joint.p_x)[present]
    shares = joint.p.sum(axis=1)[present][:, None]
    numbers = np.zeros(len(posteriors), np.int64)
    if measure == "tv":
        half = (posteriors - shares) / 2.0
        forms = np.vstack([half, -half])
        numbers = np.tile(np.arange(len(half)), 2)
    elif measure == "guess":
        forms = posteriors
    else:
        forms = posteriors / shares
    return PlanPenalty(forms=forms, groups=numbers, price=0.0)


def budget_of_sum(budget: AverageBudget) -> float:
    """The budget in the unit of the sum over the rows."""
    if budget.measure == "maximal-leakage":
        return math.exp(budget.budget)
    return budget.budget


def plan_within(
    problem: PlanProblem, penalty: PlanPenalty, budget: float, solve: Solve
) -> Plan:
    """The plan of least cost whose average is at most a budget.

    Its cost is without the penalty, and `lower_bound` holds for every plan within the budget.

    Raises
    ------
    NotPrivate
        If no plan has so small an average.
    """

    def at(price: float, further: int) -> _Point:
        priced = replace(penalty, price=price)
        plan = solve(replace(problem, penalty=priced), further)
        average = penalty.of(plan.rows, plan.columns, plan.flows)
        return _Point(price, plan, plan.cost - price * average, average)

    above = at(0.0, ROUNDS)
    points = [above]
    within = above
    price = FIRST_PRICE
    while within.average > budget:
        if price > LARGEST_PRICE:
            raise NotPrivate(
                "no plan has so small an average with these given columns and restrictions (stay, "
                "forbid): give a larger budget (--average), or relax them"
            )
        above = within
        within = at(price, ROUNDS)
        points.append(within)
        price *= DEARER
    if within is above:
        return within.plan
    for tried in range(ROUNDS):
        if above.average - within.average <= CLOSE:
            break
        price = (within.cost - above.cost) / (above.average - within.average)
        found = at(price, ROUNDS - tried)
        points.append(found)
        known = within.worth(price)
        if found.worth(price) >= known - CLOSE * max(known, 1.0):
            break
        if found.average > budget:
            above = found
        else:
            within = found
    bound = max(point.plan.lower_bound - point.price * budget for point in points)
    return _mixed(above, within, budget, bound, problem.size)


def _mixed(
    above: _Point, within: _Point, budget: float, bound: float, size: int
) -> Plan:
    """The mixture of two plans that has the budget."""
    share = (budget - within.average) / (above.average - within.average)
    share = min(max(share, 0.0), 1.0)
    keys = np.concatenate(
        [one.plan.rows * size + one.plan.columns for one in (above, within)]
    )
    masses = [share * above.plan.flows, (1.0 - share) * within.plan.flows]
    pairs, places = np.unique(keys, return_inverse=True)
    flows = np.bincount(places, np.concatenate(masses)).astype(np.float64)
    used = flows > 0.0
    rows, columns = np.divmod(pairs[used], size)
    return replace(
        within.plan,
        rows=rows,
        columns=columns,
        flows=flows[used],
        cost=share * above.cost + (1.0 - share) * within.cost,
        lower_bound=max(bound, 0.0),
        # That of one price alone would prove less.
        proof=None,
        ended_early=above.plan.ended_early or within.plan.ended_early,
    )
