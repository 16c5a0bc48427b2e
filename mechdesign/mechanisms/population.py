"""The rules of a promise that holds for every population that the counts do not contradict.

A mechanism asks `Rules` what a promise allows, and need not know what the promise is about.
`PopulationRules` answers the same questions for a confidence set of the counts
(`tables.confidence`) in place of the table. So the optimum, merging and channels of least cost are
designed for the population by the same code. That is right because the posteriors that are private
for the whole set again form a convex set with P_X in it (docs/explanation/population.md,
Proposition 3): envelope, bound and repair by mixing hold as they stand.

The set has an interval for every P(x|s). With P(x|s) in [0.4, 0.6] and P(x|t) in [0.3, 0.5], an
output that only x leads to may have the quotient P(y|s) / P(y|t) = 0.6 / 0.3 = 2. With the middles
of the intervals it is 1.25.

`by_rules` makes the rules for a request with a confidence level. `PopulationRules` overrides

    asked for         of                          answered here by
    `solver`          the search                  the envelope over `uncertain_set`
    `margins`                                     shares of what is to spare in that set
    `reduced`                                     no classes: each symbol has its own intervals
    `has_faces`                                   no, where symbols of no record are protected
    `sets`            merging                     `PopulationLifts`
    `verdict`         rounding                    the exact audit of the whole set
    `failing`                                     the same, output by output
    `needed`                                      weights of repair for the set's inequalities
    `tightened`       the certificate             the table's own optimum, as a second bound

and two shares of the time limit, as the search takes longer, and time is kept for that bound and
for the advice (`confident`). Rounding itself and the certificate stay as they are.

*The last step* of a design with confidence: its set in the record, and advice where little is kept.
`by_rules` calls `confident` with the verified design. It writes the confidence set into the record
of the channel. A channel that keeps nearly nothing is no fault of the search: the intervals of few
records are wide. So a message says about how many records would be enough (`records_needed`):

1. The goal is half of what the optimum of the table alone keeps.
2. All counts are doubled, again and again. The table stays the same, only the intervals shrink.
3. The first number of records is named at which the optimum over the confidence set reaches the
   goal.

For example, a table alone would keep 0.6, and a channel private for the set of its 300 records
keeps 0.04. With 600, 1,200 and 2,400 records like these it would be 0.09, 0.17 and 0.31. So 2,400
are named, the first number that reaches 0.3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing import population as auditing
from mechdesign.auditing.lifts import allowed_sides
from mechdesign.auditing.population import lift_limits
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CostProof
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms.classes import Classes
from mechdesign.mechanisms.cut_sets import CutSet, PopulationCuts
from mechdesign.mechanisms.merged_sets import MergedSets, Risk
from mechdesign.mechanisms.optimal import optimal
from mechdesign.mechanisms.population_posteriors import (
    PopulationFunction,
    PopulationLifts,
    uncertain_set,
    within_reach,
)
from mechdesign.mechanisms.result import Certificate, Design
from mechdesign.mechanisms.rounding import UNIT, columns_of
from mechdesign.mechanisms.rules import Rules, better_of, sides_of_table
from mechdesign.mechanisms.search_options import (
    Search,
    Solve,
    utility_entropy,
)
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set
from mechdesign.tables.joint import Joint
from solvers import (
    Array,
    ConvexSet,
    CoveredSet,
    Envelope,
    EnvelopeStatus,
    OutsidePolytope,
    UncertainSet,
    convex_envelope,
    robust_envelope,
)
from solvers.pricing.sides import least_sides, rows_for_all_tables

# -------------------------------------------------------------------------------- rules

MARGINS = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
"""Margins tried in turn, as shares of what the inequalities have to spare at P_X; see
`rules.MARGINS`."""

TABLE_SHARE = 0.1
"""Share of the time limit for a bound from the table's own optimum, where the search did not end.
"""

TABLE_SECONDS = 10.0
"""Seconds for that bound where there is no time limit."""

TABLE_GAP = 1e-2
"""Gap of that optimum, in units of H(X)."""

ESTIMATE_SHARE = 0.1
"""Share of the time limit that is kept for the estimate of needed records (`records_needed`);
without time left there is none."""

UNIFORM_SHARE = 0.25
"""Share of the time limit for each of the sets with the same budgets for all symbols."""

UNIFORM_SECONDS = 10.0
"""Most seconds for each of them."""

COARSER = 10.0
"""Factor by which the gap grows after a search that rounding stopped."""

COARSEST_GAP = 0.1
"""Largest gap of such a search, as a share of the entropy of the point."""


@dataclass(frozen=True)
class PopulationRules(Rules):
    """A notion for every population of a set; see `Rules` for the order in which it is asked."""

    populations: ConfidenceSet = field(kw_only=True)
    # What the search leaves is for the bound of the table and the estimate, which come after it.
    search_share: ClassVar[float] = 1.0 - TABLE_SHARE - ESTIMATE_SHARE
    response_share: ClassVar[float] = 0.3
    # Outputs of few symbols are seldom private for a population.
    merges_late: ClassVar[bool] = False

    @cached_property
    def uncertain(self) -> UncertainSet:
        """The posteriors that are private for the whole set."""
        return uncertain_set(self.joint, self.notion, self.populations)

    def uncertain_within(self, reach: float) -> UncertainSet:
        """The same set with budgets of at most `reach` nats, for solutions alone."""
        return within_reach(self.uncertain, reach)

    @cached_property
    def reduced(self) -> Classes:
        """Every symbol is a class of its own, for each has an interval of its own."""
        return Classes.of_symbols(self.joint)

    @property
    def is_inside(self) -> Callable[[Array], NDArray[np.bool_]]:
        """As of `Rules`: over a set of populations every output has all symbols."""
        margin = self.margins[0]
        return lambda posteriors: self.uncertain.excess(posteriors) <= -margin

    @property
    def margins(self) -> tuple[float, ...]:
        """Shares of what the inequalities have to spare at P_X."""
        return tuple(share * self.uncertain.room for share in MARGINS)

    def solver(self, margin: float, search: Search, end: float) -> Solve:
        """The envelope over the set, or on a face of it, until `end`."""
        if not self.uncertain.is_uniform:
            return self._solver_by_cuts(margin, search, end)

        def solve(members: NDArray[np.intp] | None = None, **options: Any) -> Envelope:
            # Bounds are for the set itself; only columns keep the margin.
            uncertain = self.uncertain
            if members is not None:
                # The face on which only the members have mass, at P(X | T)
                # (Zarrabian et al. 2023, eq. (25)).
                uncertain = uncertain.face(members)
                if not uncertain.excess(uncertain.point)[0] < -margin:
                    raise OutsidePolytope("the merged set lies in the margin")
            options |= search.options(self.joint, end)
            envelope = robust_envelope(uncertain, margin=margin, **options)
            return _unstalled(envelope, uncertain, margin, options, end)

        return solve

    def _solver_by_cuts(self, margin: float, search: Search, end: float) -> Solve:
        """The envelope where budgets differ from symbol to symbol, which the compiled search does
        not have.

        A part of the time is for two sets that it has: with the smallest budgets for all symbols,
        whose columns are members, and with the largest ones, whose bound holds.
        """
        uncertain = self.uncertain
        allowed = self.members
        smallest = replace(
            uncertain,
            most=float(uncertain.mosts.min()),
            least=float(uncertain.leasts.max()),
        )
        largest = replace(
            uncertain,
            most=float(uncertain.mosts.max()),
            least=float(uncertain.leasts.min()),
        )

        def solve(members: NDArray[np.intp] | None = None, **options: Any) -> Envelope:
            options |= search.options(self.joint, end)
            relative = margin / uncertain.room
            if members is not None:
                point = uncertain.point[members]
                return convex_envelope(
                    allowed.restrict(members),
                    point / point.sum(),
                    margin=relative,
                    **options,
                )
            seconds = UNIFORM_SECONDS
            limit = options["time_limit"]
            if limit is not None:
                seconds = min(seconds, UNIFORM_SHARE * limit)
                options["time_limit"] = limit - 2.0 * seconds
            inner = robust_envelope(
                smallest, margin=margin, gap=options["gap"], time_limit=seconds
            )
            outer = robust_envelope(largest, gap=options["gap"], time_limit=seconds)
            options["start"] = inner.points
            best = convex_envelope(allowed, uncertain.point, margin=relative, **options)
            if inner.value < best.value:
                best = replace(best, weights=inner.weights, points=inner.points)
                best = replace(best, value=inner.value)
            if outer.bound > best.bound:
                best = replace(best, bound=outer.bound, dual=outer.dual)
            return best

        return solve

    @cached_property
    def members(self) -> ConvexSet | CoveredSet:
        """The set as one of convex functions."""
        uncertain = self.uncertain
        return ConvexSet(
            np.diag(1.0 / uncertain.point), [PopulationFunction(uncertain)]
        )

    @cached_property
    def cuts(self) -> CutSet:
        """The set, approached by cuts."""
        return PopulationCuts(self.uncertain)

    def least_sides(
        self, proof: CostProof, end: float = math.inf, law: Array | None = None
    ) -> list[float] | None:
        """Lower bounds of the sides of a proof over the set; None without them.

        `law` are the shares of the symbols that the proof is about, by default those of the table.

        Raises
        ------
        OutOfTime
            If `end`, a moment of `time.process_time`, comes before all of them are found.
        """
        if proof.sides is None:
            return None
        sides = sides_of_table(proof, self.joint)
        uncertain = self.uncertain
        if law is not None:
            # Which outputs are allowed does not depend on it.
            uncertain = replace(uncertain, point=law)
        rows_at = partial(rows_for_all_tables, uncertain)
        return least_sides(rows_at, sides, end=end).tolist()

    @property
    def has_table(self) -> bool:
        """Whether the table itself is in the set; known shares may differ from those of it."""
        needs_shares = auditing.lift_limits(self.notion).need_shares
        return not (needs_shares and self.populations.shares_are_known)

    @property
    def has_faces(self) -> bool:
        """Not where outputs are released for symbols of no record, too (`UncertainSet.face`)."""
        return not self.populations.rest

    def sets(self, joint: Joint, risk: Risk = "auto") -> MergedSets:
        """Merged sets of symbols; the risk is always that of the worst quotient."""
        return PopulationLifts(
            joint,
            auditing.lift_limits(self.notion),
            self.populations,
            allowed_sides(joint.sensitive, self.notion),
        )

    def verdict(self, channel: Channel) -> Audit:
        """The audit of the table, with the verdict and the worst cell of the set."""
        return auditing.audit_with_confidence(
            channel, self.joint, self.notion, population=self.populations
        )

    def failing(self, channel: Channel) -> tuple[int, ...]:
        """Outputs that violate the notion for some population."""
        return auditing.failing_outputs(
            channel, self.joint, self.notion, self.populations
        )

    def needed(self, rows: IntegerRows, failing: tuple[int, ...]) -> Array:
        """A weight for each failing output that brings it inside, as for a table.

        For each s let h be the largest and g the smallest P(y|s) over the set
        (`population_posteriors`). Mixing a into a column moves h, g and their means by a. So an
        inequality that fails by e and has c to spare at a constant column holds again from
        a = e / c on.
        """
        uncertain = self.uncertain
        w = columns_of(rows, failing).T
        # Integers move P(y|s) by a unit at most and doubles by a few units of its size; the other
        # side of a limit moves by its factor as much.
        largest = uncertain.largest_factor
        masses = w @ uncertain.point
        posteriors = w * uncertain.point / masses[:, None]
        excess = np.maximum(uncertain.excess(posteriors), 0.0) * masses
        rounding = UNIT * (1.0 + largest) * (2.0 + 16.0 * w.max(axis=1))
        return np.maximum(2.0 * UNIT, (excess + rounding) / uncertain.room)

    def tightened(self, proof: Certificate, nmi: float, search: Search) -> Certificate:
        """The certificate, or the bound of the table's own optimum where that is smaller and the
        table in the set: a channel that is private for the whole set is private for the table.
        """
        bound = proof.upper_bound_nmi
        gap = proof.gap_nmi
        if gap is None or bound is None or gap <= search.gap:
            return proof
        if not self.has_table:
            return proof
        table = self._table_certificate(search)
        if table is None or table.upper_bound_nmi is None or table.scope != proof.scope:
            return proof
        if table.upper_bound_nmi >= bound:
            return proof
        sharper = replace(
            proof, upper_bound_nmi=table.upper_bound_nmi, prices=table.prices
        )
        return sharper.at(nmi)

    def _table_certificate(self, search: Search) -> Certificate | None:
        """The certificate of the table's own optimum, in a share of the time; None without one.

        It is the optimum over a polytope, which is found far sooner than one over the set.
        """
        left = search.left()
        seconds = TABLE_SECONDS
        if left is not None and search.time_limit is not None:
            seconds = min(left, TABLE_SHARE * search.time_limit)
        if seconds <= 0.0:
            return None
        search = replace(
            search,
            start=None,
            progress=None,
            gap=max(TABLE_GAP, search.gap),
            time_limit=seconds,
            since=None,
        )
        try:
            return optimal(Rules(self.joint, self.notion), search).certificate
        except SolverFailure:
            return None


def _unstalled(
    envelope: Envelope,
    uncertain: UncertainSet,
    margin: float,
    options: Mapping[str, Any],
    end: float,
) -> Envelope:
    """The best of an envelope and of searches with larger gaps, where rounding stopped the first.

    With masses of very different sizes, columns that gain no more than rounding end a search. Which
    columns a search meets first depends on its gap, so a smaller gap could answer worse. Every
    further search begins with all columns so far, and each of the bounds is proven: the result is
    never worse than any of them.
    """
    point = uncertain.point
    entropy = -math.fsum((point * np.log(point)).tolist())
    gap = float(options["gap"])
    best = envelope
    while envelope.status is EnvelopeStatus.STALLED:
        gap *= COARSER
        # Enough is proven, nothing coarser is worth a search, or the time is over.
        seconds = end - time.process_time()
        is_closed = best.value - best.bound <= options["gap"]
        if is_closed or gap > COARSEST_GAP * entropy or seconds <= 0.0:
            break
        further = dict(options)
        further["gap"] = gap
        further["start"] = best.pool
        # The prices of the caller belong to the columns of the caller's start.
        further["dual"] = None
        if math.isfinite(end):
            further["time_limit"] = seconds
        envelope = robust_envelope(uncertain, margin=margin, **further)
        # The pool of the last search has all columns of the ones before.
        better = better_of(best, envelope)
        best = replace(better, pool=envelope.pool, status=best.status)
    return best


# ------------------------------------------------------------------------------- advice

LITTLE = 0.05
"""A channel that keeps less of H(X) than this is worth a word on how many records would be needed.
"""

GOAL = 0.5
"""Share of what the table alone would allow that the estimate of needed records aims at."""

MOST_DOUBLINGS = 30
"""Doublings of the records up to which that estimate goes: a thousand million times the records."""

ESTIMATE_GAP = 0.02
"""Gap, in units of H(X), of the designs behind that estimate."""

ESTIMATE_SECONDS = 5.0
"""Longest that the estimate may take in all."""


def confident(
    design: Design,
    rules: PopulationRules,
    started: float,
    time_limit: float | None = None,
) -> Design:
    """The design with its set in the record, and with advice on how many records would be needed.

    The advice costs an estimate, which ends when `time_limit` seconds have passed since `started`.
    """
    messages = design.messages
    # A design of least cost may keep little because its restrictions ask for that.
    is_little = design.nmi < LITTLE and design.least is None
    if is_little and not design.was_interrupted:
        end = time.process_time() + ESTIMATE_SECONDS
        if time_limit is not None:
            end = min(end, started + time_limit)
        messages = (*messages, _advice(design, rules, end))
    record = replace(design.channel.record, confidence=rules.populations.to_record())
    return replace(
        design,
        channel=design.channel.with_record(record),
        confidence=rules.populations,
        messages=messages,
        seconds=time.process_time() - started,
    )


def _advice(design: Design, rules: PopulationRules, end: float) -> str:
    """The sentence for a channel that keeps little; the estimate in it ends at `end`."""
    needed = records_needed(rules.joint, rules.notion, rules.populations, end=end)
    way_out = "merge symbols, or choose a lower level or a larger budget"
    if needed is not None:
        way_out = (
            f"about {needed} records like these would keep half of what the table "
            "alone allows (an estimate), merging symbols or a lower level ask for "
            "fewer"
        )
    return (
        f"{rules.joint.total} records say so little of their population that a channel "
        f"private for all of the set keeps only {design.nmi:.2g} of H(X); {way_out}"
    )


def records_needed(
    joint: Joint,
    notion: Notion,
    populations: ConfidenceSet,
    *,
    end: float | None = None,
) -> int | None:
    """About how many records (2, 4, 8, .. times these) keep half of what the table alone allows.

    None where the estimate did not end until `end`, a moment of `time.process_time`, or no number
    was enough. All counts are multiplied alike, so the table stays the same and only the intervals
    shrink.
    """
    if end is None:
        end = time.process_time() + ESTIMATE_SECONDS
    if time.process_time() >= end:
        return None
    search = Search(gap=ESTIMATE_GAP)

    def kept(rules: Rules) -> float:
        # The optimum in floating point is enough for an estimate: no channel comes of it.
        envelope = rules.solver(0.0, search, end)()
        return 1.0 - envelope.value / utility_entropy(joint)

    goal = GOAL * kept(Rules(joint, notion))
    # Known shares stay known: more records do not change them.
    shares = None
    if populations.shares_are_known:
        shares = dict(
            zip(joint.sensitive.symbols, populations.share_lower, strict=True)
        )
    for k in range(1, MOST_DOUBLINGS + 1):
        counts: list[tuple[int, ...]] = []
        for row in joint.counts:
            counts.append(tuple(count << k for count in row))
        larger = replace(joint, counts=tuple(counts))
        if time.process_time() > end:
            return None
        larger_set = confidence_set(
            larger,
            populations.level,
            shares=shares,
            estimate_shares=lift_limits(notion).need_shares,
            unseen=populations.unseen,
        )
        if kept(PopulationRules(larger, notion, populations=larger_set)) >= goal:
            return larger.total
    return None
