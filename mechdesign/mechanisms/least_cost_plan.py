"""The program of a channel of least cost on a table: solved, rounded to integers that pass the
audit, or refused.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.progress import Step
from mechdesign.core.wording import at_least, quoted
from mechdesign.mechanisms.population import PopulationRules
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search
from mechdesign.tables.joint import Joint
from solvers import Array, Polytope
from solvers.assignment import Assigned, Assignment, assign
from solvers.assignment_simplex import assign_uncertain
from solvers.errors import EmptyPolytope, SolverError

if TYPE_CHECKING:
    from mechdesign.mechanisms.least_cost_convex import ConvexProgram

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Margins tried in turn until the integers pass the exact audit; see `optimal.MARGINS`."""

LARGE_FROM, LARGE_MARGIN = 300, 1e-7
"""Symbols from which the first margin is that of an interior point solution: a second solve would
take minutes."""

LARGEST_DEVIATION = Fraction(1, 10**12)
"""How much an expected share may change where frequencies are kept: exact equality has no common
denominator."""

REACHES = (20.0, 15.0, 12.0, 10.0, 8.0, 5.0)
"""Nats beyond which a budget counts as so many, to be tried in turn: exp(-20) is more than the
simplex method leaves of a zero, but symbols of a share of 1e-7 need more. Bounds hold for the
budgets as they are."""

NOISE = 1e-11
"""Shares below this are what an interior point method leaves of a zero; they go to the largest of
their row."""

MOST_TRIED, BISECTIONS = 20, 20
"""Symbols looked at alone, and halvings of all shares, to say why none of the channels can stay as
asked."""

MIXES = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
"""Shares of the channel whose rows all are P(y), tried where integers miss a budget by a hair."""


@dataclass(frozen=True, eq=False)
class ChannelLimits:
    """What W(y|x) must keep to beside the notion: least shares W(x|x), pairs that may occur,
    frequencies.
    """

    stay: tuple[Fraction, ...]
    allowed: NDArray[np.bool_]
    keep: bool


class Plan:
    """The linear program of a table, over classes of symbols where the costs cannot tell them
    apart.
    """

    def __init__(
        self,
        rules: Rules,
        cost: Array,
        limits: ChannelLimits,
        search: Search,
        convex: ConvexProgram | None,
    ) -> None:
        is_truth = np.array_equal(cost, ~np.eye(len(cost), dtype=np.bool_))
        self.joint = rules.joint
        self.limits = limits
        self.search = search
        self.convex = convex
        # Classes serve only where costs and limits cannot tell their members apart.
        alike = (
            convex is None
            and is_truth
            and limits.allowed.all()
            and len(set(limits.stay)) == 1
        )
        self.rules = rules
        if not alike:
            self.rules = replace(rules, by_symbol=True)
        self.uncertain = None
        self._reach = math.inf
        self._within(REACHES[0])
        self.reduced = self.rules.reduced
        self.table = self.reduced.joint
        n = len(self.table.useful)
        self.cost = cost
        if self.reduced.is_reduced:
            self.cost = 1.0 - np.eye(n)
        self.floor = np.array([float(share) for share in limits.stay[:n]])
        self.allowed = self._allowed(
            [x for x, share in enumerate(limits.stay) if share == 1]
        )
        constant = np.tile(self.table.p_x, (n, 1))
        self.spread = (
            self.problem(0.0).spread()
            if convex is None
            else abs(convex.value(constant))
        )
        self._end = math.inf
        if search.time_limit is not None:
            self._end = time.monotonic() + search.time_limit

    def _within(self, reach: float) -> None:
        self._reach = reach
        if isinstance(self.rules, PopulationRules):
            self.uncertain = self.rules.within(reach)

    def _allowed(self, always: Sequence[int] = ()) -> NDArray[np.bool_] | None:
        """The pairs that are possible, None for all: symbols that `always` stay become no others,
        and no output lacks a sensitive symbol none of whose lifts may be zero.
        """
        limits = self.rules.notion.limits
        allowed = self.limits.allowed.copy()
        if allowed.all() and not always:
            return None
        allowed[always] &= np.eye(len(allowed), dtype=np.bool_)[always]
        bounded = limits.mean is None and min(limits.lower, limits.ratio) < math.inf
        if bounded and self.uncertain is None and self.rules.rows is None:
            allowed &= ((self.joint.p > 0.0) @ allowed).all(axis=0)
        return allowed

    def problem(self, margin: float, **changes: Any) -> Assignment:
        """The program for a polytope that is smaller by a margin; at 0 the one that bounds hold
        for.
        """
        if margin:
            floor = np.minimum(self.floor * (1.0 + margin), 1.0)
        else:
            floor = self.floor * (1.0 - 1e-15)  # downwards, for the bound
        n = len(self.table.useful)
        polytope = Polytope(np.zeros((0, n)), np.zeros(0), np.zeros(0))
        if self.uncertain is None:
            polytope = self.rules.polytope(margin, self._reach)
        assignment = Assignment(
            self.cost, self.table.p_x, polytope, self.limits.keep, floor, self.allowed
        )
        return replace(assignment, **changes)

    def _assigned(
        self, margin: float, changes: Mapping[str, Any] | None = None, **options: Any
    ) -> Assigned:
        """The solution of the program that is smaller by a margin, with the bound for the one that
        is not.

        `changes` are other fields of the program, `options` those of the solver.
        """
        changes = changes or {}
        problem = self.problem(margin, **changes)
        proof = self.problem(0.0, **changes)
        if self.uncertain is None:
            return assign(problem, proof=proof, **options)
        return assign_uncertain(
            problem,
            self.uncertain,
            margin=margin * self.uncertain.room,
            proof=proof,
            **options,
        )

    def designed(self) -> tuple[Channel, Audit, Assigned]:
        """The channel, its verdict, and the solution with its bound; `EmptyPolytope` only where
        there is no channel.
        """
        try:
            return self._searched(REACHES)
        except (EmptyPolytope, SolverFailure):
            notion = self.rules.notion
            budgets = [getattr(notion, name) for name in notion.budgets()]
            budgets += [side for _, *sides in notion.own for side in sides]
            self.problem(0.0).check()  # no budget helps where pairs are missing
            if not self.is_restricted or not any(
                REACHES[0] < budget < math.inf for budget in budgets
            ):
                raise
        try:
            return self._searched((math.inf,))
        except (SolverError, SolverFailure):
            self._within(REACHES[0])
            known = (
                f"of budgets of at most {REACHES[0]:g} nats is known: {self.why_not()}"
            )
            raise SolverFailure(f"no channel was found; {known}") from None

    def _searched(self, reaches: Sequence[float]) -> tuple[Channel, Audit, Assigned]:
        """Solve with growing margins until the integers pass."""
        many = len(self.table.useful) >= LARGE_FROM or self.uncertain is not None
        first = LARGE_MARGIN if many else 0.0
        last, bound = None, -math.inf
        for reach, margin in itertools.product(reaches, MARGINS):
            if margin < first:
                continue
            self._within(reach)
            try:
                found = self._solved(margin)
            except EmptyPolytope:
                if last is None:
                    raise
                continue  # what is left out by a margin, or by a smaller budget, may exist
            bound = max(bound, found.bound)
            for channel in self._candidates(self._expanded(found.shares)):
                last = self.rules.verdict(channel)
                if last.satisfied and self._kept_by(channel):
                    return channel, last, replace(found, bound=bound)
        raise SolverFailure(
            "no verified channel came out of the program of least cost"
            + (
                ""
                if last is None
                else f" (output {quoted(last.worst.output)}, lift {last.worst.lift:.17g})"
            )
            + "; use a larger budget"
        )

    def _solved(self, margin: float) -> Assigned:
        left = None if self._end == math.inf else max(self._end - time.monotonic(), 0.0)
        if self.convex is not None:
            both = self.problem(margin), self.problem(0.0)
            return self.convex.solve(*both, self.uncertain, margin, self._end)
        gap = min(self.search.gap, 1e-6) if left is None else self.search.gap
        return self._assigned(margin, gap=gap, time_limit=left, progress=self._shown())

    def square(self, channel: Channel) -> Array:
        """W(y|x) with a column for every symbol."""
        whole = np.zeros((len(self.joint.useful),) * 2)
        whole[
            :, [self.joint.useful.names.index(label) for label in channel.outputs]
        ] = channel.matrix
        return whole

    def _kept_by(self, channel: Channel) -> bool:
        if self.limits.keep and deviation_of(channel, self.joint) > LARGEST_DEVIATION:
            return False
        if self.convex is None:
            return True
        return self.convex.is_kept_by(self.square(channel))

    def _shown(self) -> Callable[[float, float, int], None] | None:
        report = self.search.progress
        if report is None:
            return None

        def show(cost: float, bound: float, steps: int) -> None:
            figures = {"cost": cost, "cost_lower_bound": bound, "steps": steps}
            report(
                Step(f"cost {cost:.5g}, at least {bound:.5g} ({steps} steps)", figures)
            )

        return show

    def _expanded(self, shares: Array) -> Array:
        """Shares of the symbols from those of their classes: a symbol is kept, or becomes one of
        the other class.
        """
        if not self.reduced.is_reduced:
            return shares
        group, p = self.reduced.group, self.joint.p_x
        whole = shares[np.ix_(group, group)] * (p / self.table.p_x[group])
        same = group[:, None] == group[None, :]
        whole[same] = 0.0
        np.fill_diagonal(whole, np.diagonal(shares)[group])
        return whole

    def _candidates(self, shares: Array) -> Iterator[Channel]:
        """What the shares may be rounded to, best first."""
        p, whole = self.joint.p_x, shares
        shares = np.where(whole < NOISE * whole.max(axis=1)[:, None], 0.0, whole)
        if self.limits.keep:
            shares = _balanced(shares, p)
        for denominator in (DENOMINATOR, LARGEST_INTEGER):
            yield self._rounded(shares, denominator)
        yield self._rounded(
            whole, LARGEST_INTEGER
        )  # rare symbols hang on as little as noise
        if self.allowed is None and not any(
            self.limits.stay
        ):  # then any private channel will do
            masses = p if self.limits.keep else p @ shares
            for mix in MIXES:
                yield self._rounded(
                    (1.0 - mix) * shares + mix * masses, LARGEST_INTEGER
                )

    def _rounded(self, shares: Array, denominator: int) -> Channel:
        rows = np.rint(
            shares / shares.sum(axis=1)[:, None] * float(denominator)
        ).astype(np.int64)
        n = len(rows)
        first = np.argmax(rows, axis=1)
        rows[np.arange(n), first] = 0
        rows[np.arange(n), first] = denominator - rows.sum(axis=1)
        for x, share in enumerate(self.limits.stay):
            short = math.ceil(share * denominator) - int(rows[x, x])
            while short > 0:  # rounding, or the tolerance of the program
                y = int(np.argmax(np.where(np.arange(n) == x, -1, rows[x])))
                moved = min(short, int(rows[x, y]))
                rows[x, [x, y]] += [moved, -moved]
                short -= moved
        used = np.flatnonzero(rows.any(axis=0))
        labels = tuple(self.joint.useful.names[y] for y in used)
        integers = IntegerRows.from_array(rows[:, used])
        return Channel(self.joint.useful, labels, integers, denominator, self.joint)

    @property
    def is_restricted(self) -> bool:
        """Whether a constant output of the shares of the symbols, which is private, may be ruled
        out.
        """
        return (
            self.allowed is not None or any(self.limits.stay) or self.convex is not None
        )

    def why_not(self) -> str:
        """Which symbol cannot stay as asked, and how often it can; or that the forbidden pairs
        leave nothing.
        """
        names, limits = self.joint.useful.names, self.limits
        if self.convex is not None and self.convex.constraints:
            return "no private channel keeps to the constraints (with stay, forbid and frequencies as asked)"
        nothing = "no private channel does without the forbidden pairs; forbid fewer, or use a larger budget"
        if not any(limits.stay):
            return nothing
        margin = 1e-9
        units = np.eye(len(self.table.useful))
        polytope = (
            self.problem(0.0).columns if self.uncertain is None else self.uncertain
        )
        residual = polytope.excess(units)
        demanded = [x for x in np.argsort(-residual).tolist() if self.floor[x] > 0.0]
        none = np.zeros_like(self.floor)
        for x in demanded[:MOST_TRIED]:
            cost = np.zeros_like(self.cost)
            cost[x] = 1.0
            cost[x, x] = 0.0
            try:
                allowed = self._allowed([x] if self.floor[x] == 1.0 else [])
                found = self._assigned(
                    margin, {"cost": cost, "floor": none, "allowed": allowed}
                )
            except EmptyPolytope:
                return nothing
            most = float(found.shares[x, x]) - margin
            if most < self.floor[x] - 2.0 * margin:
                symbol = int(np.flatnonzero(self.reduced.group == x)[0])
                return (
                    f"stay: no private channel releases {quoted(names[symbol])} as it "
                    "is with probability "
                    f"{float(limits.stay[symbol]):g}; the largest value that works for "
                    f"it is {at_least(max(most, 0.0))}"
                )
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS if len(names) <= LARGE_FROM else 0):
            middle = 0.5 * (low + high)
            try:
                self._assigned(
                    margin, {"floor": middle * self.floor, "allowed": self._allowed()}
                )
                low = middle
            except EmptyPolytope:
                high = middle
        symbol = int(np.flatnonzero(self.reduced.group == demanded[0])[0])
        said = "stay: each of these shares works alone, but no private channel keeps all of them"
        if not low:
            return said
        share = at_least(low * float(self.floor[demanded[0]]))
        if len(set(limits.stay)) == 1:
            return f"{said}; the largest value that works for all of them is {share}"
        return f"{said}; all of them times {at_least(low)} work ({quoted(names[symbol])} with {share}, for instance)"


def _balanced(shares: Array, p: Array) -> Array:
    """Shares whose columns have the masses p, by factors near 1 for rows and columns (Newton steps
    of Sinkhorn's).
    """
    for _ in range(2):
        masses = p @ shares
        if np.abs(masses - p).max() <= 1e-16:
            break
        q = p[:, None] * shares
        system = np.diag(masses) - q.T @ shares
        factor = np.linalg.lstsq(system, p - masses, rcond=1e-14)[0]
        shares = shares * np.maximum(1.0 - (shares @ factor)[:, None] + factor, 0.0)
        shares = shares / shares.sum(axis=1)[:, None]
    return shares


def truth_of(channel: Channel, joint: Joint) -> Fraction:
    """The expected share of records whose symbol is released as it is, exactly."""
    own = sum(map(mul, joint.useful_counts, channel.own_entries))
    return Fraction(own, joint.total * channel.denominator)


def deviation_of(channel: Channel, joint: Joint) -> Fraction:
    """The largest change of an expected share, exactly."""
    weight, d = joint.useful_counts, channel.denominator
    released = dict.fromkeys(joint.useful.names, 0)
    for label, (at, values) in zip(
        channel.outputs, channel.integers.columns, strict=True
    ):
        released[label] = sum(
            weight[x] * value for x, value in zip(at, values, strict=True)
        )
    changes = (
        abs(mass - w * d) for mass, w in zip(released.values(), weight, strict=True)
    )
    return Fraction(max(changes), joint.total * d)
