"""Channels of least expected cost on the column's own symbols.

A program over W(y|x), with one output for every symbol (`solvers.assignment.assignment`), is
bounded from below, rounded to integers and audited exactly. Frequencies can be preserved in
expectation (invariant PRAM), shares W(x|x) bounded from below, pairs forbidden:
docs/how-to/least-cost.md has the mathematics. `least_cost` goes through these steps:

1. It reads the costs (`least_cost_objective`) and the limits (`least_cost_objective`).
2. `LeastCostProgram` finds a verified channel and a lower bound on the cost of every other one;
   with many symbols `least_cost_instead` does, which is faster.
3. If that fails, the answer is a constant channel (`cheapest_constant`), or a refusal with the
   reason (`least_cost_instead`).
4. The figures are computed from the integers of the channel.

For example, with the cost "truth", where an untrue record costs 1, a channel of cost 0.12 releases
88 % of the records as they are. If its bound is 0.119, no private channel releases more than 88.1 %
of them unchanged.

*Constant channels*: every record becomes one symbol. Its lifts are all 1, so no program has to be
solved for it. It is the last resort where the program of least cost fails in floating point.
`cheapest_constant` tries every symbol y as the only output. For example, of the symbols a, b and c
with 50, 30 and 20 records, all released as a, half of the records are untrue; with b and c it would
be 70 % and 80 %.

Where frequencies are kept one symbol cannot do. Then every record becomes a symbol that is drawn
with the frequencies of the table, whatever the record is; its lifts are 1, too. In the example 62 %
of the records are untrue then.

Forbidden pairs rule such channels out, but few of them change little. `nearly_constant` draws every
record anew among the symbols that are allowed for it, with frequencies that are fitted to those of
the table where they are kept. The exact audit decides whether that is private.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.proof import CostProof
from mechdesign.channel.record import AverageBudget, Objective
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import NotPrivate, SolverFailure
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows, Integers
from mechdesign.core.wording import quoted
from mechdesign.mechanisms import least_cost_instead
from mechdesign.mechanisms.averages import (
    achieved_averages,
    with_averages,
    with_own_lifts,
)
from mechdesign.mechanisms.least_cost_instead import refusal
from mechdesign.mechanisms.least_cost_objective import (
    COSTS,
    REACHES,
    ChannelLimits,
    Costs,
    LeastCostObjective,
    costs_of,
    limits_of,
)
from mechdesign.mechanisms.least_cost_program import LeastCostProgram
from mechdesign.mechanisms.least_cost_rounding import (
    candidates,
    deviation_of,
    square,
    truth_of,
)
from mechdesign.mechanisms.posteriors import check_optimum, check_polytope
from mechdesign.mechanisms.proofs import kept, texts_of
from mechdesign.mechanisms.result import Design, LeastCost, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import Search
from mechdesign.tables.joint import Joint
from solvers import SolverError
from solvers.assignment.assignment import LEAST_GAP, Assigned
from solvers.errors import EmptyPolytope

# -------------------------------------------------------------------- constant channels

MOST_SCALED = 100
"""Scalings of rows and columns. Each brings them nearer by the largest share that is forbidden."""

SYMBOLS_OF_PAIR = 100
"""Symbols for each forbidden pair from which the pairs are exchanged one by one: on fewer rows many
of them would have a lift of their own."""

SCALED = 1e-12
"""Relative miss of a column at which they end."""


def cheapest_constant(
    program: LeastCostProgram, costs: Costs
) -> tuple[Channel, Audit] | None:
    """The constant channel of least expected cost that keeps to the limits; None if none does.

    With kept frequencies it is the one whose rows are all P(y).
    """
    limits = program.limits
    if program.convex is not None:
        # Constraints of the user may rule it out.
        return None
    if limits.keep:
        return _redrawn(program)
    joint = program.joint
    n = len(joint.useful)
    rows = IntegerRows.repeated([DENOMINATOR], n)
    best: Channel | None = None
    least: Fraction | None = None
    for y, name in enumerate(joint.useful.names):
        # Every other symbol changes, so none of them may have a share to keep.
        others = (*limits.stay[:y], *limits.stay[y + 1 :])
        if any(others) or not limits.allowed[:, y].all():
            continue
        channel = Channel(joint.useful, (name,), rows, DENOMINATOR, joint)
        cost = costs.expected(channel, joint)
        if least is None or cost < least:
            best = channel
            least = cost
    if best is None:
        return None
    return _judged(program, best)


def _redrawn(program: LeastCostProgram) -> tuple[Channel, Audit] | None:
    """The channel that draws every record anew from the frequencies of the table."""
    limits = program.limits
    joint = program.joint
    counts = joint.useful_counts
    total = sum(counts)
    if any(limits.stay) or not limits.allowed.all() or total > LARGEST_INTEGER:
        return None
    rows = IntegerRows.repeated(counts, len(counts))
    return _judged(
        program, Channel(joint.useful, joint.useful.names, rows, total, joint)
    )


def nearly_constant(program: LeastCostProgram) -> tuple[Channel, Audit] | None:
    """The channel that draws every record anew among its allowed symbols; None if it breaks the
    promise or another limit, or nothing is forbidden.

    Few forbidden pairs of many symbols change a few rows (`_exchanged`). Else, with kept
    frequencies, rows and columns of p p^T without the forbidden pairs are scaled in turn until they
    have the sums p, as far as they go.
    """
    limits = program.limits
    if program.convex is not None or limits.allowed.all() or any(limits.stay):
        return None
    if not limits.allowed.any(axis=1).all():
        return None
    exchanged = _exchanged(program)
    if exchanged is not None:
        return exchanged
    p = program.joint.p_x
    masses = np.outer(p, p) * limits.allowed
    masses *= (p / masses.sum(axis=1))[:, None]
    if limits.keep:
        for _ in range(MOST_SCALED):
            columns = masses.sum(axis=0)
            if not columns.all() or np.abs(columns / p - 1.0).max() <= SCALED:
                break
            masses *= p / columns
            masses *= (p / masses.sum(axis=1))[:, None]
    rounded = candidates(
        masses / p[:, None], program.joint, limits, has_free_pairs=False
    )
    for channel in rounded:
        judged = _judged(program, channel)
        if judged is not None and program.keeps_limits(channel):
            return judged
    return None


def _exchanged(program: LeastCostProgram) -> tuple[Channel, Audit] | None:
    """The draw from the frequencies of the table, which it keeps, where few records change places;
    None where the forbidden pairs are too many for that, or it breaks the promise or another limit.

    What a symbol x may not become, y, becomes w instead, and of another symbol z as much becomes y
    that would have become w. All other rows remain those of the table: a channel of millions of
    integers is stored and verified as quickly as one whose rows are all the same.
    """
    joint = program.joint
    allowed = program.limits.allowed
    pairs = np.argwhere(~allowed)
    n = len(joint.useful)
    total = joint.total
    bits = DENOMINATOR.bit_length() - 1 - total.bit_length()
    if not program.limits.keep or SYMBOLS_OF_PAIR * len(pairs) > n or bits < 0:
        return None
    counts = joint.useful_counts
    drawn = np.array([count << bits for count in counts], dtype=np.int64)
    changed: dict[int, Integers] = {}
    for x, y in pairs.tolist():
        # Of the most frequent other symbol the fewest records change, in proportion.
        z = int(np.argmax(np.where(allowed[:, y], drawn, 0)))
        row = changed.setdefault(x, drawn.copy())
        back = changed.setdefault(z, drawn.copy())
        places = allowed[x] & allowed[z]
        places[y] = False
        w = int(np.argmax(np.where(places, back, 0)))
        moved = int(row[y])
        row[w] += moved
        row[y] = 0
        # The records of z are more or fewer than those of x.
        returned = round(Fraction(moved * counts[x], counts[z]))
        if returned > back[w]:
            return None
        back[y] += returned
        back[w] -= returned
    rows = IntegerRows.with_rows(drawn, n, changed)
    channel = Channel(joint.useful, joint.useful.names, rows, total << bits, joint)
    judged = _judged(program, channel)
    if judged is None or not program.keeps_limits(channel):
        return None
    return judged


def _judged(
    program: LeastCostProgram, channel: Channel
) -> tuple[Channel, Audit] | None:
    """A channel with its verdict; None if it does not keep the promise."""
    verdict = program.rules.verdict(channel)
    if not verdict.satisfied:
        # A promise about several tables may fail for a constant, too.
        return None
    return channel, verdict


# --------------------------------------------------------------------------- least cost

CONSTANT = "constant"
"""The method of a channel whose rows are all the same."""

NEARLY_CONSTANT = "redrawn"
"""The method of a channel whose rows are the same but for forbidden pairs."""

SIDES_ROUNDING = 1e-7
"""Share by which the bound for a set of populations is lowered: whoever proves it again solves a
program for every symbol, each to about 1e-9."""

if TYPE_CHECKING:
    from mechdesign.mechanisms.least_cost_convex import ConvexProgram


def least_cost(
    rules: Rules,
    objective: LeastCostObjective,
    search: Search,
    averages: Sequence[AverageBudget] = (),
    *,
    alone: bool = False,
) -> Design:
    """The channel of least expected cost for the notion, verified exactly.

    Its result has a lower bound on the cost of every other private channel.

    Parameters
    ----------
    averages : sequence of AverageBudget
        Budgets on averages over the outputs, besides the notion.
    alone : bool
        Whether no promise on single lifts was asked for, as in `averages.for_average`.

    Raises
    ------
    InputError
        If the objective or an option does not fit the table.
    NotPrivate
        If no private channel keeps to `stay` and `forbid`.
    SolverFailure
        If none was verified.
    """
    started = time.process_time()
    joint = rules.joint
    check_optimum(rules.notion, joint)
    costs = costs_of(objective, joint)
    limits = limits_of(objective, joint)
    convex = _convex_program(objective, costs, joint)
    if convex is not None:
        # That program has the rows of a polytope and no tangents.
        check_polytope(rules.notion, joint)
    program = LeastCostProgram(rules, costs.floats, limits, search, convex, averages)

    channel, verdict, lower_bound, proof, method = _found(program, costs)

    cost = _rounded_up(costs.expected(channel, joint))
    if proof is not None and proof.sides is not None:
        lower_bound -= SIDES_ROUNDING * max(1.0, abs(lower_bound))
    if convex is None:
        # Costs of a matrix are not negative.
        lower_bound = max(lower_bound, 0.0)
    elif callable(objective.objective):
        # A convex cost is an expression in doubles; that of a matrix above is exact.
        cost = convex.value(square(channel, joint))
    least = LeastCost(
        objective=_record(costs.record, limits, convex, joint),
        cost=cost,
        cost_lower_bound=lower_bound,
        # Rounded down by way of the negative. Subtracting from zero avoids -0.0.
        truth=0.0 - _rounded_up(-truth_of(channel, joint)),
        frequency_deviation=_rounded_up(deviation_of(channel, joint)),
    )
    rounded = Rounded(channel, verdict)
    if alone:
        rounded = with_own_lifts(rounded, joint)
    design = finish(
        rounded,
        joint,
        least.objective.name,
        method,
        started,
        messages=_messages(least, channel, program, search, method),
    )
    if averages:
        design = with_averages(design, achieved_averages(channel, joint, averages))
    design = _with_least(design, least)
    if proof is not None and least.objective.name == COSTS:
        proof = proof.model_copy(update={"costs": texts_of(costs.units, costs.unit)})
    if proof is not None and proof.sides is not None:
        # To prove it again takes programs for each symbol, which are left to the auditor.
        return replace(design, channel=design.channel.with_proof(proof))
    recorded = kept(design.channel, proof, lower_bound, rules.demands)
    return replace(design, channel=recorded)


class _Found(NamedTuple):
    """A verified channel, and what is known of the least cost."""

    channel: Channel
    verdict: Audit
    bound: float
    proof: CostProof | None
    method: str


def _found(program: LeastCostProgram, costs: Costs) -> _Found:
    """The channel of a plan, of the program, or the cheapest constant one where both fail.

    Raises
    ------
    NotPrivate
        If no private channel keeps to `stay` and `forbid`.
    SolverFailure
        If none was verified.
    """
    try:
        planned = _planned(program, costs)
        if planned is not None:
            return _Found(*planned, least_cost_instead.METHOD)
        channel, verdict, solution = _designed(program)
        return _Found(channel, verdict, solution.bound, program.proof, solution.method)
    except (SolverError, SolverFailure) as error:
        constant = cheapest_constant(program, costs)
        # Without time it is not known whether the program has another channel.
        if constant is None and program.is_late:
            drawn = nearly_constant(program)
            if drawn is not None:
                return _Found(*drawn, -math.inf, None, NEARLY_CONSTANT)
        if constant is None:
            _refuse(program, error)
            remedy = "; allow more time (--time-limit)" if program.is_late else ""
            raise SolverFailure(
                f"the channel of least cost could not be computed: {error}{remedy}"
            ) from error
        # No program was solved, so nothing is proven about other channels.
        return _Found(*constant, -math.inf, None, CONSTANT)


def _planned(
    program: LeastCostProgram, costs: Costs
) -> tuple[Channel, Audit, float, CostProof | None] | None:
    """The plan of many symbols with its verdict and its bound; None where none was found.

    Limits that are drawn in may leave nothing where there is a channel, so it is the dense program
    that says what cannot be.
    """
    if program.convex is not None or program.means is not None:
        return None
    if not least_cost_instead.has_plan(program.rules):
        return None
    try:
        return least_cost_instead.planned(
            program.rules, costs, program.limits, program.search
        )
    except (SolverError, SolverFailure):
        return None


def _with_least(design: Design, least: LeastCost) -> Design:
    """The design with its figures of least cost, which also go into the channel's record."""
    utility = {**(design.channel.record.utility or {}), **least.figures}
    record = replace(design.channel.record, objective=least.objective, utility=utility)
    channel = design.channel.with_record(record)
    return replace(design, channel=channel, least=least)


def _refuse(program: LeastCostProgram, error: Exception) -> None:
    """Raise NotPrivate where there is no channel, or the failure itself if it has a remedy."""
    if isinstance(error, EmptyPolytope) and program.is_restricted:
        raise NotPrivate(refusal(program)) from None
    if isinstance(error, SolverFailure):
        raise error


def _designed(program: LeastCostProgram) -> tuple[Channel, Audit, Assigned]:
    """The channel, its verdict, and the solution with its bound.

    Raises
    ------
    EmptyPolytope
        Only where there is no channel.
    SolverFailure
        If none was verified.
    """
    try:
        return program.verified_channel(REACHES)
    except (EmptyPolytope, SolverFailure):
        # Where pairs are missing no larger reach helps, and this check raises.
        program.problem(0.0).check()
        if not program.is_restricted or not program.has_larger_budget:
            raise
    # The reach may have ruled out what the budgets allow: once more without it.
    try:
        return program.verified_channel((math.inf,))
    except (SolverError, SolverFailure):
        program.set_reach(REACHES[0])
        raise SolverFailure(
            f"no channel was found; of budgets of at most {REACHES[0]:g} nats is known: "
            f"{refusal(program)}"
        ) from None


def _rounded_up(value: Fraction) -> float:
    """The least double that is not below an exact figure."""
    return quotient_above(*value.as_integer_ratio())


def _convex_program(
    objective: LeastCostObjective, costs: Costs, joint: Joint
) -> ConvexProgram | None:
    """The program in cvxpy, where costs or constraints are functions of W."""
    if objective.constraints is None and not callable(objective.objective):
        return None
    # Imported here because cvxpy is slow to import, and optional.
    from mechdesign.mechanisms.least_cost_convex import ConvexProgram

    if callable(objective.objective):
        return ConvexProgram(joint, objective.objective, objective.constraints)
    return ConvexProgram(joint, costs.floats, objective.constraints)


def _record(
    objective: Objective,
    limits: ChannelLimits,
    convex: ConvexProgram | None,
    joint: Joint,
) -> Objective:
    """The objective with its limits, as the channel file keeps it."""
    names = joint.useful.names
    stay: dict[str, str] = {}
    for name, share in zip(names, limits.stay, strict=True):
        if share:
            stay[name] = str(share)
    forbid: list[tuple[str, str]] = []
    for x, y in zip(*np.nonzero(~limits.allowed), strict=True):
        forbid.append((names[x], names[y]))
    constraints = 0
    if convex is not None:
        constraints = len(convex.constraints)
    return objective.model_copy(
        update={"stay": stay, "forbid": tuple(forbid), "constraints": constraints}
    )


def _messages(
    least: LeastCost,
    channel: Channel,
    program: LeastCostProgram,
    search: Search,
    method: str,
) -> tuple[str, ...]:
    """Messages about a gap that is not closed, and about a channel that is constant."""
    messages: list[str] = []
    gap = least.cost - least.cost_lower_bound
    is_open = gap > max(search.gap, LEAST_GAP) * program.spread
    if is_open:
        messages.append(
            f"the search ended early: the cost is proven to be within {gap:.2g} of the least"
        )
    if program.convex is not None:
        messages.append(
            "the channel file keeps no proof of the bound: functions of your own are Python code, "
            "which no file has"
        )
    remedy = "give a larger budget, more records, or merge symbols"
    if is_open and program.is_late:
        remedy = "the time limit was over before anything else was found (--time-limit)"
    if len(channel.outputs) == 1:
        messages.append(
            f"every record is released as {quoted(channel.outputs[0])}, which tells nothing: "
            f"{remedy}"
        )
    elif method == CONSTANT:
        messages.append(
            "every record is drawn anew from the frequencies of the table, which tells nothing: "
            f"{remedy}"
        )
    elif method == NEARLY_CONSTANT:
        messages.append(
            "every record is drawn anew among the symbols that are not forbidden for it, which "
            f"tells next to nothing: {remedy}"
        )
    return tuple(messages)
