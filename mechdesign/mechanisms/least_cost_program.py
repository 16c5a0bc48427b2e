"""The program of a channel of least cost, solved and rounded to integers that pass the exact audit.

    minimise  sum over x, y of P(x) W(y|x) d(x, y)

over the channels W that have one output y for every symbol (docs/how-to/least-cost.md, 'The
program'), where

- every posterior P(x|y) lies in the polytope of the notion;
- W(x|x) >= stay(x), and W(y|x) = 0 for forbidden pairs (`ChannelLimits`);
- on request, outputs are as frequent as the symbols of the same name, P(y) = P(x = y).

For example, let P(x) = (1/2, 1/2), let every wrong symbol cost 1, and let the notion ask that no
entry of a posterior exceeds 3/4. Then the optimum is W = ((3/4, 1/4), (1/4, 3/4)), of cost 1/4.

How it is solved:

1. `problem` is the program for a polytope that is smaller by a margin, so that integers near the
   solution are private, too. `solve` has its solution. The bound that comes with it is computed
   without the margin, so no private channel that keeps the limits costs less.
2. The solution is rounded in several ways (`least_cost_rounding`), and the first channel that
   passes the exact audit is the answer (`verified_channel`).
3. If none passes, the margin grows, from 1e-12 to 1e-6. Then the *reach* shrinks, from 20 nats:
   larger budgets are reduced to it. A budget of 30 nats asks for lifts of at least exp(-30), about
   1e-13. A solver whose zeros err by 1e-9 cannot tell these from 0, but it can tell exp(-20), which
   is 2e-9.

Four things change the program. It is over classes of symbols where neither the notion, nor the
costs, nor the limits tell their members apart. Where the notion must hold for a confidence set of
tables (`PopulationRules`), the rows of the polytope are too many to list, and `assign_uncertain`
finds those that matter. Limits on averages are no rows at all, and are cut by tangents (`means`).
Costs or constraints that are functions of W go to cvxpy (`convex`).

Invariant: whatever reach and margin were used, the bound holds for the budgets as they are.

*Limits on averages*: of the lifts of every output, or of all outputs together. A notion such as
chi2 allows posteriors in a convex set (`convex_means`), and a budget on the mutual information is a
total over all outputs. `ColumnLimits` has both for a table, and solves the program of least cost
with them by tangents (`solvers.average.assignment_convex`).

The set of l1 and chi2 with their inverses is not convex (`convex_means`). Then

- the bound is that of the convex set around it;
- channels are searched for in a convex part of it, one for each output. Above a lift of 1 the
  distance |1/w - 1| is concave, so it lies below its tangents, and these in its place make the set
  smaller and convex. Touched at the lifts of the last solution, they keep that solution inside: so
  a step never costs more than the one before.

For example, the tangent at 1 replaces 1 - 1/w by w - 1, which asks of a lift of 2 what the distance
asks of none: 1 in place of 1/2. If the first solution has the lift 1.5 there, the next tangent is
that at 1.5, (4 w - 3) / 9, which asks 5/9 of a lift of 2.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.averages import average_verdicts
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CostProof
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import SolverFailure
from mechdesign.core.limits import MeanLimits
from mechdesign.core.progress import Step
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.average_budgets import (
    GUESSES,
    NO_PROMISE,
    float_gains,
    in_solver_unit,
)
from mechdesign.mechanisms.convex_means import allowed_set, inside_covered
from mechdesign.mechanisms.least_cost_objective import (
    LARGE_FROM,
    LARGE_MARGIN,
    LARGEST_DEVIATION,
    MARGINS,
    REACHES,
    SHARPEST_GAP,
    TANGENT_MARGIN,
    ChannelLimits,
)
from mechdesign.mechanisms.least_cost_rounding import candidates, deviation_of, square
from mechdesign.mechanisms.population import PopulationRules
from mechdesign.mechanisms.posteriors import has_polytope
from mechdesign.mechanisms.proofs import (
    of_assignment,
    of_sides,
    plain_rows,
    with_charges,
)
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import Search
from mechdesign.tables.joint import Joint
from solvers import Array, ConvexSet, CoveredSet, Polytope, UncertainSet
from solvers.assignment.assigning import assign
from solvers.assignment.assignment import (
    Assigned,
    Assignment,
    Multipliers,
    sides_of,
)
from solvers.assignment.robust import assign_uncertain
from solvers.average.assignment_convex import Total, assign_convex
from solvers.average.problem import Leakage, measure_of
from solvers.errors import BackendFailure, EmptyPolytope, OutOfTime

if TYPE_CHECKING:
    from mechdesign.mechanisms.least_cost_convex import ConvexProgram


# ------------------------------------------------------------------- limits on averages

BOUND_SHARE = 0.3
"""Share of the time limit for the bound of a set that is not convex."""

MOST_STEPS = 8
"""Steps from one convex part to the next; the first two or three gain nearly everything."""

LEAST_GAIN = 1e-3
"""A step that lowers the cost by less than this share of its gap to the bound is the last."""

Report = Callable[[float, float, int], None]


@dataclass(frozen=True, eq=False)
class ColumnLimits:
    """The limits on averages of a program of least cost.

    `allowed` holds the posteriors of every output, None for all of them; `averages` are budgets
    for all outputs together, of a table.
    """

    joint: Joint
    allowed: ConvexSet | None
    averages: tuple[AverageBudget, ...]

    @classmethod
    def of(
        cls,
        joint: Joint,
        limits: MeanLimits | None,
        averages: Sequence[AverageBudget],
    ) -> ColumnLimits:
        """The limits of a notion on averages, None for another notion, and further budgets."""
        allowed = None
        if limits is not None:
            allowed = allowed_set(joint, limits)
        return cls(joint, allowed, tuple(averages))

    @property
    def totals(self) -> list[Total]:
        """The budgets as the solver takes them."""
        totals: list[Total] = []
        for budget in self.averages:
            gains = budget.exact_gains
            leakage = Leakage(
                measure_of(budget.measure), self.joint.p_s, float_gains(gains)
            )
            most = in_solver_unit(budget.measure, budget.budget, self.joint, gains)
            totals.append(Total(leakage, self.joint.lift, most))
        return totals

    def excess(self, posteriors: Array) -> Array:
        """By how much posteriors (k, n) break the limits on single outputs, (k,)."""
        if self.allowed is None:
            return np.zeros(len(posteriors))
        return self.allowed.excess_of(self.allowed.matrix @ posteriors.T, 0.0)

    def are_kept(self, channel: Channel, joint: Joint) -> bool:
        """Whether integers keep the budgets for all outputs together, decided exactly."""
        verdicts = average_verdicts(channel, joint, self.averages)
        return all(verdict.kept for verdict in verdicts)

    def solve(
        self,
        problem: Assignment,
        proof: Assignment,
        margin: float,
        *,
        gap: float = 1e-9,
        time_limit: float | None = None,
        progress: Report | None = None,
    ) -> Assigned:
        """The assignment of least cost, with a bound for all of them; see `assign_convex`."""
        totals = self.totals
        if isinstance(self.allowed, CoveredSet):
            return _by_parts(
                self.allowed, totals, problem, proof, margin, gap, time_limit, progress
            )
        sets = None
        if self.allowed is not None:
            sets = [self.allowed] * problem.n
        return assign_convex(
            problem,
            sets,
            totals,
            proof=proof,
            margin=margin,
            gap=gap,
            time_limit=time_limit,
            progress=progress,
        )


def _by_parts(
    allowed: CoveredSet,
    totals: Sequence[Total],
    problem: Assignment,
    proof: Assignment,
    margin: float,
    gap: float,
    time_limit: float | None,
    progress: Report | None,
) -> Assigned:
    """The best assignment in convex parts of a set, with the bound of the set around it."""
    end = math.inf
    seconds = None
    if time_limit is not None:
        end = time.process_time() + time_limit
        seconds = BOUND_SHARE * time_limit
    around, _ = allowed.around(allowed.low, allowed.high)
    n = problem.n
    # Where this is empty, so is the set.
    relaxed = assign_convex(
        problem,
        [around] * n,
        totals,
        proof=proof,
        gap=gap,
        margin=margin,
        time_limit=seconds,
    )
    touched = np.ones((len(allowed.matrix), n))
    best: Assigned | None = None
    for step in range(1, MOST_STEPS + 1):
        left = None
        if end < math.inf:
            left = max(end - time.process_time(), 0.0)
        sets = [inside_covered(allowed, touched[:, y]) for y in range(n)]
        try:
            found = assign_convex(
                problem, sets, totals, margin=margin, gap=gap, time_limit=left
            )
        except (BackendFailure, EmptyPolytope, OutOfTime):
            # A part may be empty where the set is not.
            break
        gained = math.inf
        if best is not None:
            gained = best.cost - found.cost
        if gained > 0.0:
            best = found
        assert best is not None  # the first step gains
        if progress is not None:
            progress(best.cost, relaxed.bound, step)
        is_late = time.process_time() >= end
        if is_late or gained <= LEAST_GAIN * max(best.cost - relaxed.bound, 0.0):
            break
        masses = problem.masses @ best.shares
        posteriors = best.shares * problem.masses[:, None]
        posteriors = posteriors / np.where(masses > 0.0, masses, 1.0)
        # An empty column has no lifts; its tangents touch at 1, as in the beginning.
        lifts = np.where(masses > 0.0, allowed.matrix @ posteriors, 1.0)
        touched = np.maximum(lifts, 1.0)
    if best is None:
        raise BackendFailure("no assignment was found in a convex part of the set")
    # What proves the bound is that of the set around.
    return replace(
        best,
        bound=relaxed.bound,
        multipliers=relaxed.multipliers,
        sides=relaxed.sides,
        touched=relaxed.touched,
        charges=relaxed.charges,
    )


# ------------------------------------------------------------------------------ program


class LeastCostProgram:
    """The program of a table.

    `least_cost` makes it and calls `verified_channel`. If there is no channel, `refusal` solves it
    with other limits (`solve`) to find the reason.

    Parameters
    ----------
    rules : Rules
        The table with its notion.
    cost : (n, n) array
        d(x, y), for the symbols of the table.
    limits : ChannelLimits
    search : Search
    convex : ConvexProgram or None
        The program in cvxpy, where costs or constraints are functions of W.
    averages : sequence of AverageBudget
        Budgets on averages over the outputs.
    """

    def __init__(
        self,
        rules: Rules,
        cost: Array,
        limits: ChannelLimits,
        search: Search,
        convex: ConvexProgram | None,
        averages: Sequence[AverageBudget] = (),
    ) -> None:
        self.joint = rules.joint
        self.limits = limits
        self.search = search
        self.convex = convex
        self.rules = rules
        # docs/how-to/least-cost.md, Theorem 2: classes stand for their symbols only with this cost.
        # Classes have merged secrets, which are guessed together and not one by one.
        are_guessed = any(average.measure in GUESSES for average in averages)
        if are_guessed or not _are_symbols_alike(cost, limits, convex):
            self.rules = replace(rules, by_symbol=True)
        self.uncertain: UncertainSet | None = None
        self._reach = math.inf
        self.set_reach(REACHES[0])
        # The table of classes, over which the program is; that of the symbols is `joint`.
        self.reduced = self.rules.reduced
        self.table = self.reduced.joint
        n = len(self.table.useful)
        self.means = _limits_on_averages(self.rules, averages)
        self.cost = cost
        if self.reduced.is_reduced:
            # There are classes only with the cost of truth, and between classes it is the same.
            self.cost = 1.0 - np.eye(n)
        self.floor = np.array([float(share) for share in limits.stay[:n]])
        fixed = [x for x, share in enumerate(limits.stay) if share == 1]
        self.allowed = self.allowed_pairs(fixed)
        # The cost of a constant output with the shares of the symbols: the unit of gaps.
        if convex is None:
            self.spread = self.problem(0.0).spread()
        else:
            constant = np.tile(self.table.p_x, (n, 1))
            self.spread = abs(convex.value(constant))
        # What proves the bound of the channel that was verified.
        self.proof: CostProof | None = None
        self._end = search.end(time.process_time())
        self._lacks_time = False

    @property
    def is_late(self) -> bool:
        """Whether the time limit is over, or a program would not fit into it."""
        return self._lacks_time or time.process_time() >= self._end

    @property
    def is_restricted(self) -> bool:
        """Whether limits may rule out the private channel whose rows are all P(x)."""
        if self.allowed is not None or self.convex is not None:
            return True
        return any(self.limits.stay)

    def verified_channel(
        self, reaches: Sequence[float]
    ) -> tuple[Channel, Audit, Assigned]:
        """The channel, its verdict, and the solution with its bound.

        Margins grow and reaches shrink until the integers pass.

        Raises
        ------
        EmptyPolytope
            If there is no channel within the first reach.
        SolverFailure
            If none was verified.
        """
        first = 0.0
        if len(self.table.useful) >= LARGE_FROM or self.uncertain is not None:
            first = LARGE_MARGIN
        if self.means is not None:
            first = TANGENT_MARGIN
        verdict: Audit | None = None
        bound = -math.inf
        multipliers: Multipliers | None = None
        for reach, margin in itertools.product(reaches, MARGINS):
            if margin < first:
                continue
            # All margins at the largest reach first: a smaller reach rules out more channels.
            self.set_reach(reach)
            try:
                solution = self._solution(margin)
            except EmptyPolytope:
                if verdict is None:
                    raise
                # A larger margin or a smaller reach rules channels out; others may still pass.
                continue
            # Every solution bounds the whole budgets from below, so the largest bound holds.
            if solution.bound > bound or multipliers is None:
                bound = solution.bound
                multipliers = solution.multipliers
                self.proof = self._proof(solution)
            shares = self._of_symbols(solution.shares)
            for channel in candidates(
                shares, self.joint, self.limits, has_free_pairs=self.allowed is None
            ):
                verdict = self.rules.verdict(channel)
                if verdict.satisfied and self.keeps_limits(channel):
                    return channel, verdict, replace(solution, bound=bound)
        worst = ""
        if verdict is not None:
            output = quoted(verdict.worst.output)
            worst = f" (output {output}, lift {verdict.worst.lift:.17g})"
        raise SolverFailure(
            "no verified channel came out of the program of least cost"
            f"{worst}; use a larger budget"
        )

    def _proof(self, solution: Assigned) -> CostProof | None:
        """What proves the bound of a solution, for the channel file."""
        multipliers = solution.multipliers
        if self.convex is not None:
            return None
        if self.uncertain is not None:
            if solution.sides is None:
                return None
            masses = multipliers.masses if self.limits.keep else None
            return of_sides(solution.sides, masses)
        if isinstance(self.rules.notion.limits, MeanLimits):
            return self._proof_by_sides(solution)
        polytope = self.problem(0.0).columns
        proof = of_assignment(self.rules, polytope, multipliers, keep=self.limits.keep)
        if proof is None or self.means is None:
            return proof
        return with_charges(proof, self.rules, self.means.averages, solution.charges)

    def _proof_by_sides(self, solution: Assigned) -> CostProof:
        """The same for a notion on averages, whose classes have the sides of each symbol."""
        sides = solution.sides
        if sides is None:
            # The promise is a polytope, whose rows were listed.
            sides = sides_of(self.problem(0.0), solution.multipliers)
        group = self.reduced.group
        masses = solution.multipliers.masses[group] if self.limits.keep else None
        proof = of_sides(sides[np.ix_(group, group)], masses)
        if solution.touched is None or not len(solution.touched):
            return proof
        # All symbols of a class have the same posterior, in proportion to their shares.
        shares = self.joint.p_x / self.table.p_x[group]
        touched = solution.touched[:, group] * shares
        return proof.model_copy(update={"touched": plain_rows(touched)})

    def set_reach(self, reach: float) -> None:
        """Reduce larger budgets to `reach` nats; see `REACHES`."""
        self._reach = reach
        if isinstance(self.rules, PopulationRules):
            self.uncertain = self.rules.uncertain_within(reach)

    def allowed_pairs(self, fixed: Sequence[int] = ()) -> NDArray[np.bool_] | None:
        """The pairs (x, y) that are possible, (n, n); None for all.

        Symbols in `fixed` never change. Where no lift may be zero, every output needs all sensitive
        symbols: outputs that cannot have them are ruled out in advance.
        """
        limits = self.rules.notion.limits
        allowed = self.limits.allowed.copy()
        if allowed.all() and not fixed:
            return None
        identity = np.eye(len(allowed), dtype=np.bool_)
        # A list: an empty tuple as index would mean the whole array.
        rows = list(fixed)
        allowed[rows] &= identity[rows]
        forbids_zeros = (
            limits.mean is None and min(limits.lower, limits.ratio) < math.inf
        )
        if forbids_zeros and self.uncertain is None and self.rules.rows is None:
            # (s, y): whether some symbol x with P(s, x) > 0 may be released as y.
            support = self.joint.p > 0.0
            allowed &= (support @ allowed).all(axis=0)
        return allowed

    def problem(self, margin: float, **changes: Any) -> Assignment:
        """The program for a polytope that is smaller by a margin; bounds are those of margin 0.

        `changes` are other values of its fields.
        """
        if margin:
            # Upwards, so that the integers keep the shares, too.
            floor = np.minimum(self.floor * (1.0 + margin), 1.0)
        else:
            # Downwards: the double of a share may lie above it, and the bound must not.
            floor = self.floor * (1.0 - 1e-15)
        if self.has_polytope:
            polytope = self.rules.polytope(margin, self._reach)
        else:
            # Rows of an uncertain or a convex set come one by one, from the solvers.
            n = len(self.table.useful)
            polytope = Polytope(np.zeros((0, n)), np.zeros(0), np.zeros(0))
        assignment = Assignment(
            self.cost, self.table.p_x, polytope, self.limits.keep, floor, self.allowed
        )
        return replace(assignment, **changes)

    def solve(
        self, margin: float, changes: Mapping[str, Any] | None = None, **options: Any
    ) -> Assigned:
        """The solution for a polytope smaller by a margin, with the bound for the whole one.

        `changes` are other values of the program's fields, `options` those of the solver.
        """
        if changes is None:
            changes = {}
        problem = self.problem(margin, **changes)
        proof = self.problem(0.0, **changes)
        if self.means is not None:
            return self.means.solve(
                problem, proof, max(margin, TANGENT_MARGIN), **options
            )
        if self.uncertain is None:
            return assign(problem, proof=proof, **options)
        return assign_uncertain(
            problem,
            self.uncertain,
            margin=margin * self.uncertain.room,
            proof=proof,
            **options,
        )

    @property
    def has_polytope(self) -> bool:
        """Whether the promise is a polytope of posteriors whose rows are listed."""
        if self.means is not None and self.means.allowed is not None:
            return False
        return self.uncertain is None and self.rules.notion != NO_PROMISE

    def excess(self, posteriors: Array) -> Array:
        """By how much posteriors (k, n) break the promise, (k,)."""
        if self.has_polytope:
            return self.problem(0.0).columns.excess(posteriors)
        if self.uncertain is not None:
            return self.uncertain.excess(posteriors)
        assert self.means is not None  # the last kind of promise
        return self.means.excess(posteriors)

    @property
    def has_larger_budget(self) -> bool:
        """Whether some budget is finite, and above the first reach."""
        notion = self.rules.notion
        if notion == NO_PROMISE:
            return False
        budgets = [getattr(notion, name) for name in notion.budgets()]
        for _, *sides in notion.symbol_budgets:
            budgets += sides
        return any(REACHES[0] < budget < math.inf for budget in budgets)

    def _solution(self, margin: float) -> Assigned:
        """The solution at a margin, by cvxpy or by the solvers, within the time limit."""
        if self.convex is not None:
            return self.convex.solve(
                self.problem(margin),
                self.problem(0.0),
                self.uncertain,
                margin,
                self._end,
            )
        # Without a time limit there is time to close the gap further than asked.
        if self._end == math.inf:
            gap = min(self.search.gap, SHARPEST_GAP)
            return self.solve(
                margin, gap=gap, time_limit=None, progress=self._progress()
            )
        seconds = max(self._end - time.process_time(), 0.0)
        try:
            return self.solve(
                margin,
                gap=self.search.gap,
                time_limit=seconds,
                progress=self._progress(),
            )
        except OutOfTime:
            self._lacks_time = True
            raise

    def keeps_limits(self, channel: Channel) -> bool:
        """Whether the integers keep the frequencies and the user's own constraints."""
        if self.limits.keep and deviation_of(channel, self.joint) > LARGEST_DEVIATION:
            return False
        if self.means is not None and not self.means.are_kept(channel, self.joint):
            return False
        if self.convex is None:
            return True
        return self.convex.is_kept_by(square(channel, self.joint))

    def _progress(self) -> Callable[[float, float, int], None] | None:
        """The caller's progress in the form of the solvers."""
        report = self.search.progress
        if report is None:
            return None

        def show(cost: float, bound: float, steps: int) -> None:
            text = f"cost {cost:.5g}, at least {bound:.5g} ({steps} steps)"
            figures = {"cost": cost, "cost_lower_bound": bound, "steps": steps}
            report(Step(text, figures))

        return show

    def _of_symbols(self, shares: Array) -> Array:
        """Shares W(y|x) of the symbols from those of their classes.

        A symbol stays with the share of its class and never becomes another one of it, which would
        only cost. The share of another class is divided among its members in proportion to their
        masses, so posteriors within a class stay the same.
        """
        if not self.reduced.is_reduced:
            return shares
        group = self.reduced.group
        proportion = self.joint.p_x / self.table.p_x[group]
        whole = shares[np.ix_(group, group)] * proportion
        is_same_class = group[:, None] == group[None, :]
        whole[is_same_class] = 0.0
        np.fill_diagonal(whole, np.diagonal(shares)[group])
        return whole


def _limits_on_averages(
    rules: Rules, averages: Sequence[AverageBudget]
) -> ColumnLimits | None:
    """The limits on averages; None where there are only limits on single lifts."""
    limits = rules.notion.limits
    mean: MeanLimits | None = None
    if limits.mean is not None and not has_polytope(rules.notion, rules.joint):
        mean = limits
    if mean is None and not averages:
        return None
    return ColumnLimits.of(rules.reduced.joint, mean, averages)


def _are_symbols_alike(
    cost: Array, limits: ChannelLimits, convex: ConvexProgram | None
) -> bool:
    """Whether neither costs nor limits tell the symbols of a class apart."""
    if convex is not None:
        return False
    is_truth = np.array_equal(cost, ~np.eye(len(cost), dtype=np.bool_))
    return is_truth and bool(limits.allowed.all()) and len(set(limits.stay)) == 1
