"""A plan for the own symbols of one column, where the dense program of least cost takes too long.

The same problem as that of `least_cost_program`, solved by `solvers.plans`, which prices pairs in
place of listing them. Few symbols, and many secrets, go to the dense program, which is faster there
and draws its limits in less, unless it is too large to end in time.

For example, a column of 500 occupations under the objective truth: the plan has some 1,500 pairs of
the 250,000, and a bound that holds for all of them.

What the solver of plans does not find may exist all the same: it draws the limits in, and a share
that stays exactly has no room for that. Then the dense program decides (`least_cost`).
"""

from __future__ import annotations

import math
import time

import numpy as np

from mechdesign.auditing.demands import demands_of
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.proof import CostProof
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.least_cost_limits import ChannelLimits
from mechdesign.mechanisms.least_cost_objective import TRUTH, Costs
from mechdesign.mechanisms.plan_integers import (
    keeps_stays,
    least_shares,
    plan_rows,
)
from mechdesign.mechanisms.plan_limits import limits_of_demands
from mechdesign.mechanisms.proofs import of_plan
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, cost_steps
from solvers.plans import (
    CellCosts,
    MatrixCosts,
    PlanProblem,
    PlanProof,
    solve_plan,
)

MANY_SYMBOLS = 150
"""Symbols from which the solver of plans is the faster one."""

MOST_SECRETS = 6
"""Sensitive symbols up to which it is, counted over all tables. With 2 and 300 symbols it takes a
tenth of the time of the dense program; with 15 and 160 symbols under LDP five times as long."""

MOST_DENSE = 5_000_000
"""Pairs of symbols times secrets up to which the dense program ends in its time limit. With 300
symbols and 20 secrets (1.8 million) it ends in 2 s; with 500 and 60 (15 million) it had no channel
after 40 s of a limit of 5, where a plan took 19."""

MARGINS = (1e-7, 1e-6, 1e-5)
"""Relative margins of the limits, tried in turn until the integers pass the exact audit."""

LEAST_TIME = 1e-3
"""Seconds for a plan where the time is over: a first one is found in any case."""

METHOD = "plan"


def has_plan(rules: Rules) -> bool:
    """Whether a promise is one that plans take: budgets of single lifts on known tables."""
    if type(rules) is not Rules or rules.notion.limits.mean is not None:
        return False
    n = len(rules.joint.useful)
    if n < MANY_SYMBOLS:
        return False
    demands = rules.demands or demands_of(rules.joint, rules.notion)
    secrets = sum(len(demand.sums) for demand in demands)
    if secrets > MOST_SECRETS and n * n * secrets <= MOST_DENSE:
        return False
    # After earlier releases a limit on the quotient of two lifts is not built for plans.
    return not any(math.isfinite(demand.ratio) for demand in rules.demands or ())


def planned(
    rules: Rules, costs: Costs, limits: ChannelLimits, search: Search
) -> tuple[Channel, Audit, float, CostProof | None]:
    """A verified channel of least cost, its verdict, a lower bound on every other one's cost, and
    what proves it.

    Raises
    ------
    SolverFailure
        If no plan passed the exact audit.
    PlanError
        If no plan was found.
    """
    joint = rules.joint
    problem = _problem(rules, costs, limits)
    started = time.process_time()
    bound = -math.inf
    proof: PlanProof | None = None
    for margin in MARGINS:
        left: float | None = None
        if search.time_limit is not None:
            left = max(search.end(started) - time.process_time(), LEAST_TIME)
        plan = solve_plan(
            problem,
            time_limit=left,
            gap=search.gap,
            margin=margin,
            progress=cost_steps(search.progress),
        )
        # Bounds are for the limits as they are asked, whatever the margin.
        if plan.lower_bound > bound:
            bound, proof = plan.lower_bound, plan.proof
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
        if verdict.satisfied and keeps_stays(channel, limits.stay):
            demands = rules.demands or demands_of(joint, rules.notion)
            kept = of_plan(proof, rules.notion.limits, demands, joint.useful_counts)
            return channel, verdict, bound, kept
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
    rows, columns = np.nonzero(~limits.allowed)
    return PlanProblem(
        masses=joint.p_x,
        targets=joint.p_x if limits.keep else None,
        costs=cost,
        limits=limits_of_demands([demands], [0] * n, joint.useful_counts),
        forbidden=(rows, columns) if len(rows) else None,
        stay=least_shares(limits.stay),
    )
