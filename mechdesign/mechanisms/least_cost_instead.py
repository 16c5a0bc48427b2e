"""What takes the place of the dense program of least cost: a plan, or the reason of a refusal.

*A plan* for the own symbols of one column, where the program takes too long. The same problem as
that of `least_cost_program`, solved by `solvers.plans`, which prices pairs in place of listing
them. Few symbols, and many secrets, go to the dense program, which is faster there and draws its
limits in less, unless it is too large to end in time.

For example, a column of 500 occupations under the objective truth: the plan has some 1,500 pairs of
the 250,000, and a bound that holds for all of them.

What the solver of plans does not find may exist all the same: it draws the limits in, and a share
that stays exactly has no room for that. Then the dense program decides (`least_cost`).

*The reason* why no private channel keeps the user's limits, with the largest shares that work.
`refusal` solves the program with other limits and takes the first reason that it finds:

1. Without a share in `stay`, the forbidden pairs or the user's constraints are the reason.
2. For one symbol after the other, the largest share that it can keep alone (`_largest_share`). If
   less than it should: "--stay: no private channel releases 'a' as it is with probability 0.9; the
   largest value that works for it is 0.73".
3. If each works alone, the largest factor of all shares (`_largest_factor`, by bisection).

Each number is found with a margin, and is that much smaller, so that a design with it succeeds.
"""

from __future__ import annotations

import math
import time

import numpy as np

from mechdesign.auditing.lifts import demands_of
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.proof import CostProof
from mechdesign.core.errors import SolverFailure
from mechdesign.core.wording import at_least, quoted
from mechdesign.mechanisms.least_cost_objective import (
    BISECTIONS,
    LARGE_FROM,
    MOST_TRIED,
    REFUSAL_MARGIN,
    TRUTH,
    ChannelLimits,
    Costs,
)
from mechdesign.mechanisms.least_cost_program import LeastCostProgram
from mechdesign.mechanisms.least_cost_rounding import (
    keeps_stays,
    least_shares,
    plan_rows,
)
from mechdesign.mechanisms.plan_request import limits_of_demands
from mechdesign.mechanisms.proofs import of_plan
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import Search, cost_steps
from solvers.errors import EmptyPolytope
from solvers.plans import CellCosts, MatrixCosts, PlanProblem, PlanProof, solve_plan

# --------------------------------------------------------------------------------- plan

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


# ------------------------------------------------------------------------------- reason

FORBIDDEN = (
    "no private channel does without the forbidden pairs; forbid fewer, or use a larger "
    "budget"
)
FORBIDDEN_KEPT = (
    "no private channel that keeps the frequencies does without the forbidden pairs; forbid "
    "fewer, use a larger budget, or leave the frequencies open (--free-frequencies)"
)


def refusal(program: LeastCostProgram) -> str:
    """One sentence: the symbol whose share is too large with its largest one, or another reason."""
    limits = program.limits
    if program.convex is not None and program.convex.constraints:
        return (
            "no private channel keeps to the constraints (with stay, forbid and frequencies as "
            "asked)"
        )
    forbidden = FORBIDDEN_KEPT if limits.keep else FORBIDDEN
    if not any(limits.stay):
        return forbidden
    # Each symbol is a program to solve; the first ones are the likeliest reasons.
    for x in _demanding_symbols(program)[:MOST_TRIED]:
        try:
            share = _largest_share(program, x)
        except EmptyPolytope:
            # There is no channel even without any share: the forbidden pairs are the reason.
            return forbidden
        # Twice: the share is smaller by the margin, and the program was solved with one.
        if share < program.floor[x] - 2.0 * REFUSAL_MARGIN:
            symbol = _first_of_class(program, x)
            name = quoted(program.joint.useful.names[symbol])
            private = "no private channel"
            if limits.keep:
                private = "no private channel that keeps the frequencies"
            return (
                f"--stay: {private} releases {name} as it is with probability "
                f"{float(limits.stay[symbol]):g}; the largest value that works for it is "
                f"{at_least(max(share, 0.0))}"
            )
    return _refusal_of_all(program)


def _refusal_of_all(program: LeastCostProgram) -> str:
    """The reason where each share works alone: the largest factor with which all work together."""
    reason = "--stay: each of these shares works alone, but no private channel keeps all of them"
    if program.limits.keep:
        reason += " and the frequencies"
    factor = _largest_factor(program)
    if not factor:
        return reason
    x = _demanding_symbols(program)[0]
    share = at_least(factor * float(program.floor[x]))
    if len(set(program.limits.stay)) == 1:
        return f"{reason}; the largest value that works for all of them is {share}"
    name = quoted(program.joint.useful.names[_first_of_class(program, x)])
    return (
        f"{reason}; all of them times {at_least(factor)} work ({name} with {share}, "
        "for instance)"
    )


def _demanding_symbols(program: LeastCostProgram) -> list[int]:
    """Classes with a share to keep; first those whose unchanged release breaks the promise most."""
    # An output that only symbol x gives has the unit vector of x as its posterior.
    units = np.eye(len(program.table.useful))
    excess = program.excess(units)
    order = np.argsort(-excess).tolist()
    return [x for x in order if program.floor[x] > 0.0]


def _largest_share(program: LeastCostProgram, x: int) -> float:
    """The largest probability that a class stays, if it is the only one with a share to keep.

    A program whose only costs are those of row x minimises the probability that it changes.
    """
    cost = np.zeros_like(program.cost)
    cost[x] = 1.0
    cost[x, x] = 0.0
    changes = {"cost": cost, "floor": np.zeros_like(program.floor)}
    if program.floor[x] == 1.0:
        # The pairs are those of this share alone: one of 1 rules out all others of its row. Where
        # frequencies are kept nothing else becomes x then, which may be too much to ask.
        fixed = changes | {"allowed": program.allowed_pairs([x])}
        try:
            solution = program.solve(REFUSAL_MARGIN, fixed)
        except EmptyPolytope:
            pass
        else:
            return float(solution.shares[x, x]) - REFUSAL_MARGIN
    changes["allowed"] = program.allowed_pairs()
    solution = program.solve(REFUSAL_MARGIN, changes)
    return float(solution.shares[x, x]) - REFUSAL_MARGIN


def _largest_factor(program: LeastCostProgram) -> float:
    """The largest factor of all shares for which there is a channel, from below, by bisection.

    It is 0, for unknown, where the table is so large that bisection would take minutes.
    """
    low = 0.0
    high = 1.0
    if len(program.joint.useful.names) > LARGE_FROM:
        return low
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        changes = {
            "floor": middle * program.floor,
            "allowed": program.allowed_pairs(),
        }
        try:
            program.solve(REFUSAL_MARGIN, changes)
        except EmptyPolytope:
            high = middle
        else:
            low = middle
    return low


def _first_of_class(program: LeastCostProgram, x: int) -> int:
    """The first symbol of a class."""
    return int(np.flatnonzero(program.reduced.group == x)[0])
