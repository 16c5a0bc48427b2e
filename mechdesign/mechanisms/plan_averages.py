"""Budgets on averages over released rows: the plan of least cost within them, with a proven bound.

With P(s, y) = sum over x of P(s|x) F(x, y), q_y = sum over x of F(x, y), and the lift
w_sy = P(s, y) / (P(s) q_y), the averages are sums over the rows y of

    tv               sum over s of  |P(s, y) - P(s) q_y| / 2
    guess            max over s of  P(s, y) - P(t, y)        t the likeliest secret
    gain             max over g of  sum over s of (G(g, s) - G(g', s)) P(s, y)    g' the best guess
    maximal-leakage  max over s of  P(s, y) / P(s) - q_y     it is the logarithm of 1 + the sum
    mi, chi2         sum over s of  P(s) q_y f(w_sy)         f(w) = w log w - w + 1, (w - 1)^2

in the units of `average_budgets.in_solver_unit`, in which a constant has 0. The first four are the
largest of linear forms of what goes to y, which the solver takes as a penalty
(`solvers.plans.PlanPenalty`). The last two are convex, and lie above their tangents,

    P(s) q_y f(w) >= P(s) q_y (f(t) + f'(t) (w - t))         for every lift t,

which are linear forms, too. The largest of a few of them is the penalty; where plans lie above
them, tangents are added there.

With prices p_j of the averages A_j, and L(p) = min over F of cost(F) + sum_j p_j A_j(F), every plan
within the budgets b_j costs at least L(p) - sum_j p_j b_j; tangents make L(p) smaller, never
larger. An average of a mixture of plans is at most the mixture of their averages. So of the plans
that were found, the cheapest mixture within the budgets is a plan within them. It is a small linear
program, and its multipliers are the next prices. The search ends where cost and bound meet.

For example, at the price 0 a plan changes 5 % of the cells and has a total variation of .12, at the
price 2 it changes 10 % and has .07. For the budget .08 the next price is (.10 - .05) / (.12 - .07),
which is 1. If L(1) = .17, which both plans cost, then one fifth of the first plan and four fifths
of the second one make the optimum, .09.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.proof import AverageCharge
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import NotPrivate, SolverFailure
from mechdesign.core.integers import Integers
from mechdesign.mechanisms.average_budgets import float_gains, in_solver_unit
from mechdesign.mechanisms.proofs import charge_of
from mechdesign.tables.joint import Joint
from solvers import Array
from solvers.errors import OutOfTime
from solvers.plans import (
    NoPlan,
    Plan,
    PlanLimits,
    PlanPenalty,
    PlanProblem,
    PlanProof,
)

SMOOTH = ("mi", "chi2")
"""The averages that are no largest of finitely many forms."""

WIDEST = 2.0
"""Logarithm of lifts whose plan is expected to exceed the budgets."""

NARROWER = 2.5
"""Factor from the widest lifts to those of the first plan."""

WITHIN = 0.9
"""The next lifts are narrower than those that are expected to meet the budgets by this factor."""

WIDTHS = 5
"""Plans of narrow lifts that are tried at most, until one is within all budgets: narrow lifts make
every average small."""

FREE_PART = 1 / 2
NARROW_PART = 1 / 8
PRICED_PART = 1 / 2
"""Parts of the time that is left which a plan may take: without a price, of narrow lifts, and at
a price. The costs and averages of the first two show the price."""

FIRST_PRICE = 1.0
"""In units of cost for one unit of the average: both are at most about 1."""

DEARER = 8.0
"""Factor of the next price where an average is still above its budget."""

LARGEST_PRICE = 1e6
"""A plan whose average is above the budget at this price has the least average of all, up to the
tolerance of the programs."""

ROUNDS = 16
"""Prices that are tried at most, after the first ones; five to ten are usual."""

CLOSE = 0.1
"""A plan that lowers the cost by less than this part of the gap asked is no cheaper."""

FIRST_TOUCHES = (0.5, 0.8, 1.25, 2.0)
"""Lifts at which the first tangents touch, beside 1."""

LEAST_TOUCH = 1e-4
"""Least lift at which a tangent touches: that of the mutual information is vertical at 0."""

MORE_TOUCHES = 4
"""Tangents that are added at most in a round, for each secret."""

MOST_TANGENTS = 32
"""Tangents of all secrets together, unless they are many: every one is a row of programs for every
released row."""

TOUCHED = 3e-4
"""Tangents are added where those of a secret miss more than this share of the budget."""

BOUND_ROUNDING = 2.0**-46
"""A bound is lowered by this share of its terms, each a sum of a few rounded products."""

BLIND_ROUNDING = 1e-9
"""Averages of strata that exceed a budget by less, relative, may be equal to it: sums of products
of doubles."""

TANGENT_ROUNDING = 2.0**-48
"""A tangent is a sum of three terms, each rounded a few times; it is moved down by this share of
their size, so that it stays below the average."""

Solve = Callable[[PlanProblem, float, Plan | None], Plan]
"""Solves a problem in a part of the time that is left, from a plan within its limits."""


class PlanAverage:
    """A budget on an average, and the forms of it that programs know so far.

    Parameters
    ----------
    average : AverageBudget
    joint : Joint
    margin : float
        Share of the budget that is left for the rounding to integers.
    """

    def __init__(self, average: AverageBudget, joint: Joint, margin: float) -> None:
        gains = average.exact_gains
        self.measure = average.measure
        self.asked = in_solver_unit(average.measure, average.budget, joint, gains)
        self.budget = self.asked * (1.0 - margin)
        # Averages of lifts near 1 grow with this power of the distance from it.
        self.order = 2 if self.measure in SMOOTH else 1
        present = np.array([count > 0 for count in joint.sensitive_counts])
        self._average = average
        self._present = present
        self._posteriors: Array = (joint.p / joint.p_x)[present]
        self._shares: Array = joint.p.sum(axis=1)[present]
        if self.measure in SMOOTH:
            # Of two secrets one lift says the other, and their tangents are one form.
            secrets = len(self._shares)
            self._parts = [[0, 1]] if secrets == 2 else [[s] for s in range(secrets)]
            self._touches = [[1.0, *FIRST_TOUCHES] for _ in self._parts]
            self.penalty = self._tangents()
        else:
            guesses = float_gains(gains)
            of_present = None if guesses is None else guesses[:, present]
            self.penalty = self._largest_forms(of_present)

    def charge(self, price: float, multipliers: Array) -> AverageCharge:
        """What the forms of the penalty, with multipliers (m, n), add to a proof of costs at a
        price.
        """
        slopes = price * self._coefficients().T @ multipliers
        if self.measure != "gain":
            of_all = np.zeros((len(self._present), slopes.shape[1]))
            of_all[self._present] = slopes
            slopes = of_all
        return charge_of(self._average, price, slopes)

    def _coefficients(self) -> Array:
        """Of every form (rows), up to a constant: of P(s|y), or of the guesses themselves."""
        forms = len(self.penalty.forms)
        if self.measure == "tv":
            half = np.eye(forms // 2) / 2.0
            return np.vstack([half, -half])
        if self.measure not in SMOOTH:
            return np.eye(forms)
        rows: list[Array] = []
        for members, touches in zip(self._parts, self._touches, strict=True):
            for touch in touches:
                row = np.zeros(len(self._shares))
                # The slopes.
                row[members] = self._tangent(self._touched(members, touch))[1]
                rows.append(row)
        return np.array(rows)

    def _largest_forms(self, gains: Array | None) -> PlanPenalty:
        """The forms of an average that is the largest of them."""
        posteriors, shares = self._posteriors, self._shares[:, None]
        if self.measure == "tv":
            half = (posteriors - shares) / 2.0
            numbers = np.tile(np.arange(len(half)), 2)
            return PlanPenalty(
                forms=np.vstack([half, -half]), groups=numbers, price=1.0
            )
        if self.measure == "maximal-leakage":
            forms = posteriors / shares - 1.0
        else:
            # Who guesses one secret gains 1 if it is right.
            rewards = np.eye(len(posteriors)) if gains is None else gains
            without = int((rewards @ self._shares).argmax())
            forms = (rewards - rewards[without]) @ posteriors
        return PlanPenalty(
            forms=forms, groups=np.zeros(len(forms), np.int64), price=1.0
        )

    def narrowed(self, problem: PlanProblem, width: float) -> PlanLimits:
        """The limits of a problem, and lifts within exp(-width) and exp(width), in each stratum
        against its own shares of the secrets: what the strata tell stays in any case.
        """
        limits = problem.limits
        count = len(self._shares)
        own = np.full(count, limits.groups.max(initial=0) + 1)
        values = self._posteriors.copy()
        for members in problem.strata_members():
            masses = problem.masses[members]
            shares = values[:, members] @ masses / masses.sum()
            # What a stratum has nothing of binds nothing there.
            values[:, members] /= np.where(shares > 0.0, shares, 1.0)[:, None]
        return PlanLimits(
            values=np.vstack([limits.values, values]),
            lower=np.append(limits.lower, np.full(count, math.exp(-width))),
            upper=np.append(limits.upper, np.full(count, math.exp(width))),
            groups=np.append(limits.groups, own),
            ratio=limits.ratio,
        )

    def of(self, rows: Integers, columns: Integers, flows: Array) -> float:
        """The average of a plan with these flows."""
        if self.measure not in SMOOTH:
            return self.penalty.of(rows, columns, flows)
        masses, lifts = self._lifts(rows, columns, flows)
        return float(masses @ (self._shares @ self._function(lifts)))

    def refine(self, plan: Plan) -> bool:
        """Add tangents where the average of a plan lies above those that are there."""
        if self.measure not in SMOOTH:
            return False
        masses, lifts = self._lifts(plan.rows, plan.columns, plan.flows)
        added = False
        for members, touches in zip(self._parts, self._touches, strict=True):
            shares = self._shares[members]
            above = shares @ self._function(lifts[members])
            missed = masses * (above - self._height(members, touches, lifts))
            if missed.sum() <= TOUCHED * self.budget / len(self._parts):
                continue
            added = True
            self._touch(touches, lifts[members[0]], masses, missed)
        if added:
            self.penalty = self._tangents()
        return added

    def _touch(
        self, touches: list[float], lifts: Array, masses: Array, missed: Array
    ) -> None:
        """Let tangents touch where most is missed; of those that are there, those beside most of
        the mass stay.
        """
        ordered = np.sort(touches)
        between = np.searchsorted(ordered, lifts)
        missing = np.bincount(between, missed, len(ordered) + 1)
        there = np.bincount(between, masses, len(ordered) + 1)
        means = np.bincount(between, missed * lifts, len(ordered) + 1)
        chosen = [1.0]
        for place in np.argsort(-missing)[:MORE_TOUCHES]:
            if missing[place] > 0.0:
                chosen.append(max(float(means[place] / missing[place]), LEAST_TOUCH))
        # A tangent is beside the lifts on both of its sides.
        for place in np.argsort(-(there[:-1] + there[1:])):
            if there[place] + there[place + 1] > 0.0:
                chosen.append(float(ordered[place]))
        most = max(MOST_TANGENTS // len(self._parts), MORE_TOUCHES + 2)
        touches[:] = list(dict.fromkeys(chosen))[:most]

    def _lifts(
        self, rows: Integers, columns: Integers, flows: Array
    ) -> tuple[Array, Array]:
        """q_y of the rows that a plan releases, and their lifts (s, y)."""
        used, places = np.unique(columns, return_inverse=True)
        masses: Array = np.bincount(places, flows).astype(np.float64)
        joint = np.array(
            [
                np.bincount(places, posterior[rows] * flows, len(used))
                for posterior in self._posteriors
            ]
        )
        return masses, joint / (self._shares[:, None] * masses)

    def _function(self, lifts: Array) -> Array:
        """f(w)."""
        if self.measure == "chi2":
            return (lifts - 1.0) ** 2
        logs = np.log(np.where(lifts > 0.0, lifts, 1.0))
        return lifts * logs - lifts + 1.0

    def _tangent(self, touch: Array) -> tuple[Array, Array]:
        """(a, b) of the tangent a + b w at some lifts."""
        if self.measure == "chi2":
            return 1.0 - touch**2, 2.0 * (touch - 1.0)
        return 1.0 - touch, np.log(touch)

    def _touched(self, members: Sequence[int], touch: float) -> Array:
        """The lifts of the secrets of a part where that of the first one is `touch`."""
        if len(members) == 1:
            return np.array([touch])
        first, second = self._shares
        return np.array([touch, max((1.0 - first * touch) / second, LEAST_TOUCH)])

    def _height(
        self, members: Sequence[int], touches: Sequence[float], lifts: Array
    ) -> Array:
        """The highest tangent of a part at the lifts (s, y), for a unit of mass."""
        shares = self._shares[members]
        height = np.zeros(lifts.shape[1])
        for touch in touches:
            offset, slope = self._tangent(self._touched(members, touch))
            below = shares @ (offset[:, None] + slope[:, None] * lifts[members])
            height = np.maximum(height, below)
        return height

    def _tangents(self) -> PlanPenalty:
        """The tangents so far."""
        forms: list[Array] = []
        numbers: list[int] = []
        for number, members in enumerate(self._parts):
            for touch in self._touches[number]:
                offset, slope = self._tangent(self._touched(members, touch))
                offset = offset * self._shares[members]
                terms = slope[:, None] * self._posteriors[members]
                size = np.abs(offset).sum() + np.abs(terms).sum(axis=0)
                form = offset.sum() + terms.sum(axis=0)
                forms.append(form - TANGENT_ROUNDING * size)
                numbers.append(number)
        return PlanPenalty(
            forms=np.array(forms), groups=np.array(numbers, np.int64), price=1.0
        )


@dataclass(frozen=True, eq=False)
class _Point:
    """A plan for some prices: its own cost, and its averages."""

    plan: Plan
    cost: float
    averages: Array


def plan_within(
    problem: PlanProblem,
    averages: Sequence[PlanAverage],
    solve: Solve,
    gap: float,
    is_over: Callable[[], bool],
) -> tuple[Plan, tuple[AverageCharge, ...]]:
    """The plan of least cost whose averages are at most their budgets.

    Its cost is without the penalties, and `lower_bound` holds for every plan within the budgets:
    its proof and what the averages add to it show that.

    Parameters
    ----------
    gap : float
        Relative difference of cost and bound at which the search ends.
    is_over : callable
        Whether the time is over; the search then ends with the plans that it has.

    Raises
    ------
    NotPrivate
        If no plan has so small averages.
    SolverFailure
        If the time was over before there was a plan within the budgets.
    """
    _check_strata(problem, averages)
    search = _Search(problem, averages, solve, gap, is_over)
    is_late = False
    try:
        search.run()
    except OutOfTime:
        is_late = True
    return search.best(is_late or is_over()), search.charges


def _check_strata(problem: PlanProblem, averages: Sequence[PlanAverage]) -> None:
    """Raise NotPrivate where the strata alone tell more than a budget: a blind draw in each of them
    tells the least of all plans, by the data processing inequality.
    """
    if problem.strata is None:
        return
    symbols = np.arange(problem.size)
    for average in averages:
        least = average.of(symbols, problem.strata, problem.masses)
        if least > average.asked * (1.0 + BLIND_ROUNDING):
            raise NotPrivate(
                f"the given columns alone exceed the budget of the average {average.measure}: give "
                "a larger one (--average), or release them (--release)"
            )


class _Search:
    """The plans that were found so far, and the best bound."""

    def __init__(
        self,
        problem: PlanProblem,
        averages: Sequence[PlanAverage],
        solve: Solve,
        gap: float,
        is_over: Callable[[], bool],
    ) -> None:
        self._problem = problem
        self._averages = averages
        self._budgets = np.array([average.budget for average in averages])
        self._asked = np.array([average.asked for average in averages])
        self._solve = solve
        self._gap = gap
        self._is_over = is_over
        self._points: list[_Point] = []
        self._bound = 0.0
        # What proves it.
        self._proof: PlanProof | None = None
        self.charges: tuple[AverageCharge, ...] = ()

    def run(self) -> None:
        """Find plans until the cheapest mixture meets the bound, or the time is over."""
        prices = np.zeros(len(self._averages))
        first = self._at(prices, FREE_PART)
        above = first.averages > self._budgets
        if not above.any():
            if first.plan.ended_early:
                self._at(prices, 1.0)
            return
        self._refine(first)
        self._narrow_plans(first)
        while (mixed := self._cheapest()) is None:
            prices = np.where(above, np.maximum(prices * DEARER, FIRST_PRICE), prices)
            if prices.max() > LARGEST_PRICE:
                raise NotPrivate(
                    "no plan has so small an average: give a larger budget (--average), or relax "
                    "the restrictions (--stay, --forbid)"
                )
            point = self._at(prices, PRICED_PART)
            above = point.averages > self._budgets
            self._refine(point)
        self._refine(self._points[-1])
        for _ in range(ROUNDS):
            shares, prices = mixed
            cost = float(shares @ [point.cost for point in self._points])
            if self._is_over() or cost - self._bound <= self._gap * max(
                cost, self._gap
            ):
                return
            found = self._at(prices, PRICED_PART)
            worth = found.cost + float(prices @ found.averages)
            most = cost + float(prices @ self._budgets) - CLOSE * self._gap * cost
            is_refined = self._refine(found)
            if worth >= most and (found.plan.ended_early or not is_refined):
                return
            mixed = self._cheapest() or mixed

    def best(self, is_over: bool) -> Plan:
        """The cheapest mixture of the plans so far."""
        mixed = self._cheapest()
        if mixed is None:
            raise SolverFailure(
                "the time limit was over before a plan was within the budgets on averages: allow "
                "more time (--time-limit), give larger budgets (--average), or release fewer "
                "columns"
            )
        plan = self._mixture(mixed[0])
        return replace(plan, ended_early=is_over or plan.ended_early)

    def _at(self, prices: Array, part: float) -> _Point:
        """The plan at some prices, from the best one so far; it may raise the bound."""
        penalty = _priced(self._averages, prices)
        start = None
        if (mixed := self._cheapest()) is not None:
            start = self._mixture(mixed[0])
        elif self._points:
            start = self._points[-1].plan
        plan = self._solve(replace(self._problem, penalty=penalty), part, start)
        # Plans may use all of the budgets that were asked, and not only what margins leave.
        worth = float(prices @ self._asked)
        rounding = BOUND_ROUNDING * (plan.lower_bound + worth)
        bound = plan.lower_bound - worth - rounding
        if bound > self._bound:
            self._bound = bound
            self._proof = plan.proof
            self.charges = self._charges(prices, plan.proof)
        paid = 0.0
        if penalty is not None:
            paid = penalty.of(plan.rows, plan.columns, plan.flows)
        return self._add(plan, plan.cost - paid)

    def _charges(
        self, prices: Array, proof: PlanProof | None
    ) -> tuple[AverageCharge, ...]:
        """What the averages add to the proof of a plan at these prices."""
        if proof is None:
            return ()
        found: list[AverageCharge] = []
        first = 0
        for average, price in zip(self._averages, prices.tolist(), strict=True):
            count = len(average.penalty.forms)
            multipliers = np.zeros((count, self._problem.size))
            # Averages that are free have no forms in the program.
            if price > 0.0:
                multipliers = proof.forms[first : first + count]
                first += count
            found.append(average.charge(price, multipliers))
        return tuple(found)

    def _add(self, plan: Plan, cost: float) -> _Point:
        """Keep a plan with its own cost."""
        flows = (plan.rows, plan.columns, plan.flows)
        found = np.array([average.of(*flows) for average in self._averages])
        self._points.append(_Point(plan, cost, found))
        return self._points[-1]

    def _refine(self, point: _Point) -> bool:
        """Add tangents to all averages where a plan lies above them."""
        added = [average.refine(point.plan) for average in self._averages]
        return any(added)

    def _narrow_plans(self, first: _Point) -> None:
        """Add plans of narrower and narrower lifts, until one is within all budgets."""
        width = WIDEST / NARROWER
        allowed = _widest(self._problem.limits)
        if allowed < WIDEST:
            width = allowed * WITHIN * self._fitting(first)
        for _ in range(WIDTHS):
            try:
                limits = self._averages[0].narrowed(self._problem, width)
                narrow = replace(self._problem, limits=limits)
                plan = self._solve(narrow, NARROW_PART, None)
            except NoPlan:
                return
            point = self._add(plan, plan.cost)
            if (point.averages <= self._budgets).all():
                return
            width *= WITHIN * self._fitting(point)

    def _fitting(self, point: _Point) -> float:
        """The factor of widths at which the averages of a plan would meet their budgets."""
        return min(
            (average.budget / found) ** (1.0 / average.order)
            for average, found in zip(
                self._averages, point.averages.tolist(), strict=True
            )
            if found > average.budget
        )

    def _cheapest(self) -> tuple[Array, Array] | None:
        """The shares of the plans in the cheapest mixture within the budgets, and the prices of
        these; None where no mixture is within them.
        """
        from scipy.optimize import linprog

        points = self._points
        if not points:
            return None
        used = np.array([point.averages for point in points]).T
        found = linprog(
            [point.cost for point in points],
            A_ub=used / self._budgets[:, None],
            b_ub=np.ones(len(self._budgets)),
            A_eq=np.ones((1, len(points))),
            b_eq=[1.0],
        )
        if found.status != 0:
            return None
        prices = np.maximum(-found.ineqlin.marginals, 0.0) / self._budgets
        return np.asarray(found.x), prices

    def _mixture(self, shares: Array) -> Plan:
        """The mixture of the plans so far with these shares."""
        size = self._problem.size
        used = [
            (float(shares[k]), self._points[k])
            for k in np.flatnonzero(shares > 0.0).tolist()
        ]
        keys = np.concatenate(
            [point.plan.rows * size + point.plan.columns for _, point in used]
        )
        masses = np.concatenate([share * point.plan.flows for share, point in used])
        pairs, places = np.unique(keys, return_inverse=True)
        flows = np.bincount(places, masses)
        rows, columns = np.divmod(pairs[flows > 0.0], size)
        return replace(
            used[0][1].plan,
            rows=rows,
            columns=columns,
            flows=flows[flows > 0.0],
            cost=sum(share * point.cost for share, point in used),
            lower_bound=self._bound,
            proof=self._proof,
            ended_early=any(point.plan.ended_early for _, point in used),
            prices=sum(share * point.plan.prices for share, point in used),
        )


def _widest(limits: PlanLimits) -> float:
    """The largest logarithm of a mean that limits allow."""
    ends = np.concatenate([limits.upper, 1.0 / limits.lower[limits.lower > 0.0]])
    allowed = ends[np.isfinite(ends)]
    return float(np.log(allowed).max()) if len(allowed) else math.inf


def _priced(averages: Sequence[PlanAverage], prices: Array) -> PlanPenalty | None:
    """What the averages cost together; None where all are free."""
    forms: list[Array] = []
    numbers: list[NDArray[np.int64]] = []
    count = 0
    for average, price in zip(averages, prices.tolist(), strict=True):
        if price > 0.0:
            forms.append(price * average.penalty.forms)
            numbers.append(count + average.penalty.groups)
            count += 1 + int(average.penalty.groups.max())
    if not forms:
        return None
    return PlanPenalty(
        forms=np.vstack(forms), groups=np.concatenate(numbers), price=1.0
    )
