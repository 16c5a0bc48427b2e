"""A promise as designers see it: its limits on posteriors, on merged sets of symbols, on integers.

`Rules` have the same promise in three forms, which a mechanism asks for in the order of its work:

1. `sets` tests merged symbols, for merging;
2. `solver` finds the envelope over the private posteriors, a polytope (`posteriors`) or a convex
   set (`convex_means`), shrunk by each of the `margins` in turn. Posteriors are over `reduced`,
   classes of symbols that the promise cannot tell apart;
3. `rounded` makes integers of a float design. It asks for the exact `verdict` on a channel, for the
   `failing` outputs, and for the weight `needed` to bring one back.

For example, LIP(log 1.25) on the counts ((3, 1), (1, 3)) allows posteriors with v_1 in [0.3, 0.7],
merged sets with lifts from 0.8 to 1.25, and integers whose exact lifts lie there.

The promise is about one table, or about several (`Demand`): of several secrets, of the tables that
earlier releases leave, with budgets of single symbols. `table_rules` makes the rules for either.
`population` has the rules of a promise about a set of populations.

*Merged sets of several tables.* Heuristics merge symbols of X to a set T that is released as one
output (`merged_sets`). Beside earlier releases the promise must hold after whatever these may have
put out. Each case u of their outputs has a table P(s, x | u), and so has each of several secrets;
all tables have the same symbols x (`posteriors`). With

    L_s(T) = P(s, T | u) / P(s)   and   C(T) = P(T | u),

which add up over the members of T, the lift of s after u and T is L_s(T) / C(T). For example, with
L_s = (0.3, 0.1) and C = (0.2, 0.2) the single symbols have the lifts 1.5 and 0.5, and both together
0.4 / 0.4 = 1.

Each s of each table has a budget for log(L_s(T) / C(T)), above and below; LDP bounds the difference
of any two of these logarithms in one table. A set is as risky as the worst: `omega` says by how
many nats that is beyond its budget, and `within` whether it is not beyond it, rounding included. A
table in which T has no mass says nothing about T.

The sums of a set are one column: first L_s for every s of every table, then C for every table. For
two tables with two symbols s each it is (L_1, L_2, L_1', L_2', C, C').

There is one `StackedSets` for a table of symbols, or for one of classes.

*One method, and another one where the first gets stuck.* Listing vertices and generating columns
fail on different tables: rounding loses coordinates of probability 1e-9 in one and not in the
other. So a search that stalls, or a back end that gives up, is followed by the other method, and
the better channel and the better bound are kept. Both bounds are proven, so the larger one holds,
whichever method found the channel. For example, listing ends with the entropy 1.204 and the bound
1.190, and columns with 1.200 and 1.185: the answer is 1.200 with the bound 1.190.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import columns_on
from mechdesign.auditing.lifts import Demand, demands_of, extreme_lifts
from mechdesign.auditing.verdict import (
    Audit,
    audit_on_table,
    failing_outputs,
    is_stacked,
    verdict_of,
)
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CostProof
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.core.limits import MeanLimits
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.classes import Classes, classes, refuse_secret_identifier
from mechdesign.mechanisms.convex_means import allowed_set
from mechdesign.mechanisms.cut_sets import CutSet, MeanCuts, polytope_at, rows_broken
from mechdesign.mechanisms.merged_sets import (
    AT_ONCE,
    ZERO_LIFT_RISK,
    MergedSets,
    Risk,
    merged_sets,
    rounding_slack,
)
from mechdesign.mechanisms.posteriors import StackedRows, has_polytope, posteriors
from mechdesign.mechanisms.result import Certificate
from mechdesign.mechanisms.rounding import (
    LARGEST_MIXING,
    UNIT,
    Rounded,
    columns_of,
    round_channel,
)
from mechdesign.mechanisms.search_options import (
    ENUMERATIONS,
    Search,
    Solve,
)
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import added_columns
from solvers import (
    Array,
    ConvexSet,
    CoveredSet,
    Envelope,
    EnvelopeStatus,
    Points,
    Polytope,
    convex_envelope,
    covered_envelope,
    lower_envelope,
)
from solvers.errors import BackendFailure, TooManyVertices
from solvers.pricing.concave import MOST_ENTRIES
from solvers.pricing.sides import least_on_polytope, least_sides

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-5, 1e-3, 1e-1)
"""Margins tried in turn until the rounded channel passes the exact audit. The first is enough for
nearly every table. The last ones are a last resort: channels of clearly smaller budgets, which keep
less, as utility is steep in the budget where budgets are small."""

SPLITTING = 2e-15
"""Relative error, for each symbol, of an output that was split back from classes: its ends are
differences of sums over all members. Smaller margins would be tried in vain."""

MEANS_FIRST = 16.0 * UNIT
"""First weight of the repair of a failing output under a notion on averages."""

LARGEST_STACKED_MIXING = 1e-3
"""As `LARGEST_MIXING`, where there is no margin: earlier releases may have left little room, and
repair then costs more."""


@dataclass(frozen=True)
class Rules:
    """A notion on a table, or on the tables of the `Demand`s over its useful symbols.

    It is also the judge of channels (`rounding.Judge`). The optimum is searched over classes of
    symbols that the promise cannot tell apart, unless `by_symbol`.
    """

    joint: Joint
    notion: Notion
    demands: Sequence[Demand] | None = None
    by_symbol: bool = False
    search_share: ClassVar[float] = 1.0
    """Share of the time limit that the search may take."""
    response_share: ClassVar[float] = 0.15
    """Share of what is left of it for the best response within merged sets: where a limit is short,
    it is the better channel."""
    merges_late: ClassVar[bool] = True
    """Whether merging, with which the search begins, may take longer than a limit of less than a
    second: then its channel is the better one."""

    @property
    def responds_first(self) -> bool:
        """Whether the best response within merged sets comes before the search, whose start it is
        then, and not after a search that ran out of time: over polytopes it takes less time than
        the search.
        """
        limits = self.notion.limits
        return limits.mean is None or has_polytope(self.notion, self.joint)

    @property
    def has_faces(self) -> bool:
        """Whether the promise can be restricted to outputs of a set of symbols."""
        return True

    @property
    def is_inside(self) -> Callable[[Array], NDArray[np.bool_]] | None:
        """Whether posteriors over the symbols, (k, n), keep the promise with the first margin; None
        where that is not asked, because designs of many outputs have few symbols in each.
        """
        return None

    def verdict(self, channel: Channel) -> Audit:
        """The exact audit."""
        if self.demands is None:
            return audit_on_table(channel, self.joint, self.notion)
        lifts = extreme_lifts(columns_on(channel, self.joint), self.demands)
        return verdict_of(lifts, channel.outputs, self.notion)

    def failing(self, channel: Channel) -> tuple[int, ...]:
        """Outputs that violate the notion, decided exactly."""
        return failing_outputs(channel, self.joint, self.notion, self.demands)

    def needed(self, rows: IntegerRows, failing: tuple[int, ...]) -> Array:
        """A weight for each failing output that brings its lifts inside, in spite of rounding."""
        if self.notion.limits.mean is not None:
            # For averages there is no such formula: the next rounds of repair take ten times more.
            return np.full(len(failing), MEANS_FIRST)
        demands = self.demands or demands_of(self.joint, self.notion)
        return StackedRows(demands, self.joint).needed(columns_of(rows, failing), UNIT)

    @cached_property
    def reduced(self) -> Classes:
        """Classes of symbols that the promise cannot tell apart (proportional in all tables)."""
        if self.by_symbol:
            return Classes.of_symbols(self.joint)
        if not self.demands:
            return classes(self.joint, ())
        tables: list[Sequence[int]] = [self.joint.useful_counts]
        if not self.joint.sensitive.protects_columns:
            # The tables after an earlier release add up to this one, each times a number. So what
            # it tells apart they do, too, of which each is about a few symbols.
            tables += self.joint.counts
        for demand in self.demands:
            tables += demand.counts
        return classes(self.joint, tables)

    @cached_property
    def rows(self) -> StackedRows | None:
        """All rows over the classes, where there are several tables."""
        if self.demands is None:
            return None
        if not self.reduced.is_reduced:
            return StackedRows(self.demands, self.reduced.joint)
        group = self.reduced.group.tolist()
        merged: list[Demand] = []
        for demand in self.demands:
            counts = added_columns(demand.counts, group)
            merged.append(replace(demand, counts=counts))
        return StackedRows(merged, self.reduced.joint)

    @property
    def is_homogeneous(self) -> bool:
        """Whether some rows compare two functions of an output that may have no mass.

        Such rows have no margin.
        """
        return self.rows is not None and self.rows.is_homogeneous

    @property
    def margins(self) -> tuple[float, ...]:
        """Margins of the columns inside the polytope of the notion, to be tried in turn."""
        if self.is_homogeneous:
            return (0.0,)
        if not self.reduced.is_reduced:
            return MARGINS
        # The last margin stays in any case.
        least = min(SPLITTING * len(self.joint.useful), MARGINS[-1])
        return tuple(margin for margin in MARGINS if margin >= least)

    def polytope(self, margin: float = 0.0, reach: float = math.inf) -> Polytope:
        """Posteriors of the classes; see `posteriors`."""
        if self.rows is not None:
            return self.rows.polytope(margin, reach)
        return posteriors(self.reduced.joint, self.notion, margin=margin, reach=reach)

    @cached_property
    def relaxation(self) -> Polytope:
        """All posteriors of the classes, for which bounds hold."""
        return self.polytope()

    def solver(self, margin: float, search: Search, end: float) -> Solve:
        """The envelope over posteriors of the classes, or on a face of them, until `end`."""
        limits = self.notion.limits
        if limits.mean is None or has_polytope(self.notion, self.joint):
            return self._polytope_solver(margin, search, end)
        return self._convex_solver(margin, search, end)

    def _convex_solver(self, margin: float, search: Search, end: float) -> Solve:
        """The envelope over the convex set of a notion on averages."""
        if search.method == "vertices":
            raise InputError(
                f"method vertices needs a polytope, and {self.notion.name} has none: use auto or "
                "columns (--method columns)"
            )
        allowed = self.members
        p_x = self.reduced.joint.p_x

        def solve(members: NDArray[np.intp] | None = None, **options: Any) -> Envelope:
            options |= search.options(self.joint, end)
            inside = allowed
            point = p_x
            if members is not None:
                # Mass on the members only, at P(X | T): Zarrabian et al. 2023, eq. (25).
                point = p_x[members] / p_x[members].sum()
                inside = allowed.restrict(members)
            if isinstance(inside, CoveredSet):
                return covered_envelope(inside, point, margin=margin, **options)
            return convex_envelope(inside, point, margin=margin, **options)

        return solve

    def _check_number_of_rows(self) -> None:
        """Raise SolverFailure before more rows are made than a search takes."""
        if self.rows is None:
            return
        count = self.rows.number_of_homogeneous()
        if count + len(self.rows.p_x) > MOST_ENTRIES:
            raise SolverFailure(
                f"{count:,} rows of the promise after the earlier releases and "
                f"{len(self.rows.p_x):,} symbols are more than the {MOST_ENTRIES:,} that the "
                "search takes"
            )

    def _polytope_solver(self, margin: float, search: Search, end: float) -> Solve:
        """The envelope over a polytope."""
        # Columns lie in the polytope shrunk by the margin; the bound is for the one that is not
        # (docs/explanation/optimum-theory.md, 'A bound from prices').
        self._check_number_of_rows()
        outer = self.relaxation
        # Rows without a margin of their own are the same in both, and a copy of thousands is large.
        inner = outer
        if margin > 0.0 or self.rows is None:
            inner = self.polytope(margin)
        p_x = self.reduced.joint.p_x
        method = search.method
        if method == "auto" and self.is_homogeneous:
            # At a vertex far more homogeneous rows are tight than needed: pivoting meets ties.
            method = "columns"

        def solve(members: NDArray[np.intp] | None = None, **options: Any) -> Envelope:
            options |= search.options(self.joint, end)
            options["method"] = method
            options["enumeration"] = ENUMERATIONS[search.enumeration]
            if members is None:
                return envelope_by_any_method(inner, p_x, outer, options)
            # The face with mass on the members only, at P(X | T): Zarrabian et al. 2023, eq. (25).
            point = p_x[members] / p_x[members].sum()
            face = inner.restrict(members)
            relaxed_face = outer.restrict(members)
            return envelope_by_any_method(face, point, relaxed_face, options)

        return solve

    @cached_property
    def members(self) -> ConvexSet | CoveredSet:
        """The posteriors of the classes that a notion on averages allows."""
        limits = self.notion.limits
        assert isinstance(limits, MeanLimits)  # others allow polytopes
        return allowed_set(self.reduced.joint, limits)

    @cached_property
    def cuts(self) -> CutSet | None:
        """The posteriors as a set that is approached by cuts; None where they are a polytope."""
        limits = self.notion.limits
        if limits.mean is None or has_polytope(self.notion, self.joint):
            return None
        return MeanCuts(self.members, self.reduced.joint.p_x)

    def least_sides(
        self, proof: CostProof, end: float = math.inf
    ) -> list[float] | None:
        """Lower bounds of the sides of a proof of costs over all allowed posteriors; None without
        them, and for a promise on single lifts, whose proofs have multipliers of lifts.

        Raises
        ------
        InputError
            If the proof is of another table.
        OutOfTime
            If `end`, a moment of `time.process_time`, comes before all of them are found.
        """
        limits = self.notion.limits
        if proof.sides is None or not isinstance(limits, MeanLimits):
            return None
        sides = sides_of_table(proof, self.joint)
        by_symbol = replace(self, by_symbol=True)
        cuts = by_symbol.cuts
        if cuts is None:
            return least_on_polytope(by_symbol.relaxation, sides, end).tolist()
        touched = np.array(proof.touched or ()).reshape(-1, len(sides))
        first = polytope_at(cuts, touched).rows
        return least_sides(partial(rows_broken, cuts), sides, first, end).tolist()

    def tightened(self, proof: Certificate, nmi: float, search: Search) -> Certificate:
        """The certificate with a better bound, where the rules have one; here the same."""
        return proof

    def sets(self, joint: Joint, risk: Risk = "auto") -> MergedSets:
        """Merged sets of symbols, of the whole table or of the table of classes."""
        if self.demands is None or self.rows is None:
            return merged_sets(joint.p, self.notion.limits, risk)
        if joint is self.reduced.joint:
            return self._sets_of_classes
        return StackedSets(StackedRows(self.demands, joint), joint)

    @cached_property
    def _sets_of_classes(self) -> StackedSets:
        """Merged sets of classes, where there are several tables."""
        # Of one table there are no rows.
        assert self.rows is not None
        return StackedSets(self.rows, self.reduced.joint)

    def rounded(self, weights: Array, points: Points) -> Rounded:
        """The channel of integers of a float design, verified."""
        mixing = LARGEST_MIXING
        if self.is_homogeneous:
            mixing = LARGEST_STACKED_MIXING
        return round_channel(weights, points, self, largest_mixing=mixing)


def check_sensitive(joint: Joint) -> None:
    """Raise InputError for a table whose sensitive column has a single symbol, or names records."""
    refuse_secret_identifier(joint.sensitive, joint.records)
    if len(joint.sensitive) > 1:
        return
    raise InputError(
        f"the sensitive column {quoted(','.join(joint.sensitive.columns))} has a single symbol "
        f"({quoted(joint.sensitive.names[0])}): there is nothing to protect"
    )


def table_rules(
    joint: Joint,
    notion: Notion,
    *,
    whole: Joint | None = None,
    after: Sequence[Channel] = (),
) -> Rules:
    """The rules of a promise about a table itself, not about a population.

    `whole` is the table that also has the useful columns of the earlier channels in `after`.
    """
    table = whole
    if table is None:
        table = joint
    if not is_stacked(table, notion, after):
        return Rules(joint, notion)
    return Rules(joint, notion, demands_of(table, notion, after, joint))


class StackedSets(MergedSets):
    """Merged sets of symbols judged by all rows of a promise about several tables.

    `given_s` has a column of L and C for each symbol (module docstring); that of a set is the sum.
    The methods have the argument `mass`, P(T), as in `MergedSets`, and do not use it: the mass that
    counts is C, which is another one in each table.
    """

    def __init__(self, rows: StackedRows, joint: Joint) -> None:
        self._rows = rows
        self.p_x = joint.p_x
        self.given_s = np.vstack([rows.lift, rows.mass])
        # In place: of thousands of tables these are hundreds of megabytes.
        self.given_s *= joint.p_x
        self.slack = 2.0 * rounding_slack((len(self.given_s), len(joint.p_x)))

    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """Whether each set keeps all budgets, less the slack for rounding, as in `MergedSets`."""
        used, zeros = self._used(given_s)
        return (used <= -safety * self.slack) & (zeros == 0)

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The worst logarithm beyond its budget; larger is worse, most of all lifts of zero."""
        used, zeros = self._used(given_s)
        return used + ZERO_LIFT_RISK * zeros

    def _used(self, given_s: Array) -> tuple[Array, NDArray[np.intp]]:
        """The largest log lift minus its budget, (k,), and the number of forbidden zero lifts."""
        rows = self._rows
        tables = len(rows.starts) - 1
        used = np.full(given_s.shape[1], -math.inf)
        zeros = np.zeros(given_s.shape[1], dtype=np.intp)
        # The rows of L come first, then a row of C for each table.
        masses = given_s[len(rows.table_of) :]
        each = max(1, AT_ONCE // max(1, given_s.size // tables))
        for first in range(0, tables, each):
            some = slice(first, min(first + each, tables))
            part, missing = self._used_in(some, given_s, masses)
            used = np.maximum(used, part)
            zeros += missing
        return used, zeros

    def _used_in(
        self, tables: slice, given_s: Array, masses: Array
    ) -> tuple[Array, NDArray[np.intp]]:
        """`_used` for the rows of some tables that follow each other."""
        rows = self._rows
        starts = rows.starts[tables.start : tables.stop + 1]
        span = slice(int(starts[0]), int(starts[-1]))
        lift = given_s[span]
        # `table_of` repeats the rows of C, so that every row of L has that of its own table beside.
        mass = masses[rows.table_of[span]]
        lower, upper = rows.lower[span], rows.upper[span]
        occurs = mass > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(occurs, np.log(lift / mass), 0.0)
        # A lift of zero is forbidden where a side below or a quotient is bounded.
        bounded = np.isfinite(lower)[:, None] | math.isfinite(rows.ratio)
        zero = np.isinf(logs)
        zeros = (zero & bounded).sum(axis=0)
        logs = np.where(zero, 0.0, logs)
        above = (logs - upper[:, None]).max(axis=0)
        below = (-logs - lower[:, None]).max(axis=0)
        used = np.maximum(above, below)
        if math.isfinite(rows.ratio):
            # LDP compares the lifts of one table with each other, not those of different tables.
            places = starts[:-1] - starts[0]
            high = np.maximum.reduceat(logs, places)
            low = np.minimum.reduceat(logs, places)
            used = np.maximum(used, (high - low).max(axis=0) - rows.ratio)
        return used, zeros


def sides_of_table(proof: CostProof, joint: Joint) -> Array:
    """The sides of a proof, (n, n).

    Raises
    ------
    InputError
        If they are those of another table.
    """
    sides = np.array(proof.sides)
    n = len(joint.useful)
    if sides.shape != (n, n):
        raise InputError(f"the proof is of another table: its sides are not {n} x {n}")
    return sides


# ----------------------------------------------------------------------- another method

STUCK = (EnvelopeStatus.STALLED, EnvelopeStatus.BACKEND_FAILED)
"""Ends of a search that more time would not have avoided."""


def envelope_by_any_method(
    polytope: Polytope, point: Array, relaxation: Polytope, options: dict[str, Any]
) -> Envelope:
    """The envelope by the method of the options, rescued by the other method where that is stuck.

    Parameters
    ----------
    polytope : Polytope
        Whose points are decomposed.
    point : (n,) array
        The point to decompose, P_X.
    relaxation : Polytope
        The larger polytope that the bound is about.
    options : dict
        Keywords of `solvers.lower_envelope`; `method`, `gap` and `time_limit` must be among them.

    Raises
    ------
    SolverError
        The error of the first method, where the other one fails, too.
    """
    started = time.process_time()
    try:
        first = lower_envelope(polytope, point, relaxation=relaxation, **options)
    except BackendFailure:
        other = _by_other_method(
            polytope, point, relaxation, options, options["method"], started
        )
        if other is None:
            raise
        return other
    if first.status not in STUCK or first.gap <= options["gap"]:
        return first
    other = _by_other_method(
        polytope, point, relaxation, options, first.method, started
    )
    if other is None:
        return first
    best = better_of(first, other)
    if other.status is EnvelopeStatus.OPTIMAL:
        # The first one is stuck, so the proof is that of the other method.
        return replace(best, status=EnvelopeStatus.OPTIMAL)
    return best


def _by_other_method(
    polytope: Polytope,
    point: Array,
    relaxation: Polytope,
    options: dict[str, Any],
    tried: str,
    started: float,
) -> Envelope | None:
    """The envelope by the method that was not tried; None where there is none, or it fails."""
    method = "columns"
    if tried != "vertices":
        # Lists the vertices if they are few, and generates columns otherwise.
        method = "auto"
    if method == options["method"]:
        return None
    left = options["time_limit"]
    if left is not None:
        left = max(0.0, left - (time.process_time() - started))
    changed = options | {"method": method, "enumeration": "auto", "time_limit": left}
    try:
        return lower_envelope(polytope, point, relaxation=relaxation, **changed)
    except (BackendFailure, TooManyVertices):
        return None


def better_of(first: Envelope, second: Envelope) -> Envelope:
    """The cheaper decomposition with the higher bound; both bounds are proven."""
    cheaper = first
    if second.value < first.value:
        cheaper = second
    proof = first
    if second.bound > first.bound:
        proof = second
    return replace(cheaper, bound=proof.bound, dual=proof.dual)
