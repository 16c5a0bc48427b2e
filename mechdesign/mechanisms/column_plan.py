"""A plan for the own symbols of one column, where the dense program of least cost takes too long.

The same problem as that of `least_cost_program`, solved by `solvers.plans`, which prices pairs in
place of listing them: with 300 symbols it takes 2 seconds in place of 30. Few symbols go to the
dense program, whose limits are drawn in less.

For example, a column of 500 occupations under the objective truth: the plan has some 1,500 pairs of
the 250,000, and a bound that holds for all of them.
"""

from __future__ import annotations

import numpy as np

from mechdesign.auditing.demands import demands_of
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.least_cost_limits import ChannelLimits
from mechdesign.mechanisms.least_cost_objective import TRUTH, Costs
from mechdesign.mechanisms.plan_integers import plan_rows
from mechdesign.mechanisms.plan_limits import limits_of_demands
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search
from solvers.plans import CellCosts, MatrixCosts, PlanProblem, solve_plan

MANY_SYMBOLS = 150
"""Symbols from which the solver of plans is the faster one."""

MARGINS = (1e-7, 1e-6, 1e-5)
"""Relative margins of the limits, tried in turn until the integers pass the exact audit."""

STAY_MARGIN = 1e-9
"""Added to the least shares that stay, which integers then keep as they are written."""

METHOD = "plan"


def has_plan(rules: Rules) -> bool:
    """Whether a promise is one that plans take: budgets of single lifts on known tables."""
    is_plain = type(rules) is Rules and rules.notion.limits.mean is None
    return is_plain and len(rules.joint.useful) >= MANY_SYMBOLS


def planned(
    rules: Rules, costs: Costs, limits: ChannelLimits, search: Search
) -> tuple[Channel, Audit, float]:
    """A verified channel of least cost, its verdict, and a lower bound on every other one's cost.

    Raises
    ------
    SolverFailure
        If no plan passed the exact audit.
    PlanError
        If there is no plan.
    """
    joint = rules.joint
    problem = _problem(rules, costs, limits)
    for margin in MARGINS:
        plan = solve_plan(
            problem, time_limit=search.time_limit, gap=search.gap, margin=margin
        )
        rows = plan_rows(
            plan, joint.useful_counts, joint.useful_counts if limits.keep else None
        )
        channel = Channel(
            useful=joint.useful,
            outputs=tuple(joint.useful.names[y] for y in rows.outputs.tolist()),
            rows=rows.integers,
            denominator=DENOMINATOR,
            joint=joint,
            totals=rows.totals,
        )
        verdict = rules.verdict(channel)
        if verdict.satisfied and _stays(channel, limits):
            return channel, verdict, plan.lower_bound
    raise SolverFailure("no plan passed the exact audit: give a larger budget")


def _problem(rules: Rules, costs: Costs, limits: ChannelLimits) -> PlanProblem:
    """The promise, the costs and the limits in the form of the solver."""
    joint = rules.joint
    n = len(joint.useful)
    demands = list(rules.demands or demands_of(joint, rules.notion))
    cost: CellCosts | MatrixCosts
    if costs.record.name == TRUTH:
        cost = CellCosts(
            codes=np.arange(n)[:, None], weights=np.ones(1), positions=(None,)
        )
    else:
        cost = MatrixCosts(costs.floats)
    stay = np.array([float(share) for share in limits.stay])
    rows, columns = np.nonzero(~limits.allowed)
    return PlanProblem(
        masses=joint.p_x,
        targets=joint.p_x if limits.keep else None,
        costs=cost,
        limits=limits_of_demands([demands], [0] * n, joint.useful_counts),
        forbidden=(rows, columns) if len(rows) else None,
        stay=np.minimum(stay + STAY_MARGIN, 1.0) * (stay > 0.0) if stay.any() else None,
    )


def _stays(channel: Channel, limits: ChannelLimits) -> bool:
    """Whether the integers keep the least shares exactly."""
    shares = zip(channel.own_entries, limits.stay, strict=True)
    return all(entry >= least * channel.denominator for entry, least in shares)
