"""Channels whose promise holds for every population that the counts do not contradict.

The posteriors of the table that are private for a whole confidence set form a convex set with P_X
in it, so the optimum is again the lower envelope of the entropy at P_X (Zarrabian et al. 2023, eq.
(26)), now over an uncertain set; rounding, repair and certificate stay as they are, and the exact
verdict is that on the set.

The set has an interval for every P(x|s), and for the shares P(s) where they count. For an output
with the column w(x) = W(y|x), let h_s and g_s be the largest and the smallest P(y|s) over the set.
Every limit is an inequality between these (docs/explanation/population.md, Propositions 1 to 3).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing import population as auditing
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import quotient_above
from mechdesign.core.binomial import SCALE
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.core.limits import LiftLimits
from mechdesign.mechanisms.classes import Classes
from mechdesign.mechanisms.merged_sets import MergedSets, Risk, rounding_slack
from mechdesign.mechanisms.optimal import optimal
from mechdesign.mechanisms.posteriors import OUTWARDS, high_bound
from mechdesign.mechanisms.result import Certificate, Design
from mechdesign.mechanisms.rounding import UNIT, columns_of
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, Solve, utility_entropy
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set
from mechdesign.tables.joint import Joint
from solvers import (
    Array,
    Envelope,
    EnvelopeStatus,
    OutsidePolytope,
    UncertainSet,
    robust_envelope,
)
from solvers.uncertain import extreme_means

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

ESTIMATE_SHARE = 0.1
"""Share of the time limit that is kept for the estimate; without time left there is none."""

COARSER = 10.0
"""Factor by which the gap grows after a search that rounding stopped."""

COARSEST_GAP = 0.1
"""Largest gap of such a search, as a share of the entropy of the point."""


def uncertain_set(
    joint: Joint, notion: Notion, populations: ConfidenceSet
) -> UncertainSet:
    """The posteriors of the table that are private for the whole set, all bounds moved outwards by
    rounding.
    """
    limits = auditing.lift_limits(notion)
    lower = [[_below(end, SCALE) for end in row] for row in populations.lower]
    upper = [[quotient_above(end, SCALE) for end in row] for row in populations.upper]
    if populations.rest:
        # Unseen symbols are released with P(y), which is w = 1 for the posterior: the last column.
        for low, high, rest in zip(lower, upper, populations.rest, strict=True):
            low.append(_below(0, SCALE))
            high.append(quotient_above(rest, SCALE))
    share_lower = [
        _below(*share.as_integer_ratio()) for share in populations.share_lower
    ]
    share_upper = [
        quotient_above(*share.as_integer_ratio()) for share in populations.share_upper
    ]
    return UncertainSet(
        joint.p_x,
        np.array(lower),
        np.array(upper),
        np.array(share_lower),
        np.array(share_upper),
        ratio=high_bound(limits.ratio, 0.0),
        most=high_bound(limits.upper, 0.0),
        least=math.exp(-limits.lower) * (1.0 - OUTWARDS),
    )


def _below(numerator: int, denominator: int) -> float:
    return -quotient_above(-numerator, denominator)


def _floats(ends: Sequence[Sequence[int]]) -> Array:
    """Ends over `SCALE` as doubles."""
    rows: list[list[float]] = []
    for row in ends:
        rows.append([end / SCALE for end in row])
    return np.array(rows)


class PopulationLifts(MergedSets):
    """Merged sets of symbols judged by their extreme lifts over a confidence set.

    Without unseen symbols P(T|s) lies between max(lower(T), 1 - upper(others)) and min(upper(T), 1
    - lower(others)) with the sums of the ends, so `given_s` holds both sums, (2 |S|, n), and
    merging adds them as it adds probabilities.
    """

    def __init__(
        self, joint: Joint, limits: LiftLimits, populations: ConfidenceSet
    ) -> None:
        lower = _floats(populations.lower)
        upper = _floats(populations.upper)
        self.p_x = joint.p_x
        self.given_s = np.vstack([lower, upper])
        self._totals = lower.sum(axis=1)[:, None], upper.sum(axis=1)[:, None]
        self._rest = np.array(
            [end / SCALE for end in populations.rest] or [0.0] * len(lower)
        )[:, None]
        self._limits = limits
        self.slack = 4.0 * rounding_slack((2 * len(lower), len(self.p_x)))
        share_lower = np.array(populations.share_lower, np.float64)
        share_upper = np.array(populations.share_upper, np.float64)
        self._shares = share_lower, share_upper

    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """Private for the whole set."""
        return self.omega(given_s, mass) <= -safety * self.slack

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The largest log lift (or quotient) minus its budget, (k,).

        Free mass lies on T, then on unseen symbols, whose w is P(T), then elsewhere; for the least
        the other way.
        """
        size = len(given_s) // 2
        limits = self._limits
        lower = given_s[:size]
        width = given_s[size:] - lower
        low, high = self._totals
        # Proposition 1: h_s and g_s of the indicator of T. Free mass is what the lower ends leave
        # of 1.
        free = 1.0 - low
        on_set = np.minimum(width, free)
        on_rest = np.minimum(self._rest, free - on_set)
        most = (lower + on_set + mass * on_rest).T
        # For the least, T gets only what the other symbols cannot take.
        left = np.maximum(free - (high - low - width), 0.0)
        least_rest = np.minimum(self._rest, left)
        least = (lower + left - least_rest + mass * least_rest).T
        # Proposition 2: quotients h_s / g_t, and lifts at the worst shares.
        worst = np.full(len(most), -np.inf)
        with np.errstate(divide="ignore"):
            if math.isfinite(limits.ratio) and size > 1:
                for s in range(size):
                    others = np.delete(least, s, axis=1).min(axis=1)
                    worst = np.maximum(
                        worst, np.log(most[:, s] / others) - limits.ratio
                    )
            if math.isfinite(limits.upper):
                lifts = most / extreme_means(least, most, 1, *self._shares)
                worst = np.maximum(worst, np.log(lifts).max(axis=1) - limits.upper)
            if math.isfinite(limits.lower):
                inverse = extreme_means(most, least, -1, *self._shares) / least
                worst = np.maximum(worst, np.log(inverse).max(axis=1) - limits.lower)
        return worst


@dataclass(frozen=True)
class PopulationRules(Rules):
    """A notion for every population of a set; see `Rules`."""

    populations: ConfidenceSet = field(kw_only=True)
    search_share: ClassVar[float] = 1.0 - TABLE_SHARE - ESTIMATE_SHARE
    response_share: ClassVar[float] = 0.3

    @cached_property
    def uncertain(self) -> UncertainSet:
        """The posteriors that are private for the whole set."""
        return uncertain_set(self.joint, self.notion, self.populations)

    def within(self, reach: float) -> UncertainSet:
        """The same with at most `reach` nats below and for quotients, and with what larger budgets
        allow as `slack`.
        """
        uncertain = self.uncertain
        factor = math.exp(reach)
        ratio = uncertain.ratio
        if math.isfinite(ratio):
            ratio = min(ratio, factor)
        least = uncertain.least
        if least:
            least = max(least, 1.0 / factor)
        most = uncertain.most
        if least and most > 1.0 / uncertain.share_lower.min():
            # No lift is above 1 / P(s), so beside a lower side an upper one beyond that changes
            # nothing.
            most = math.inf
        slack = 0.0
        if ratio < uncertain.ratio:
            slack = 1.0
        elif least > uncertain.least:
            slack = 2.0 / factor
        return replace(uncertain, ratio=ratio, least=least, most=most, slack=slack)

    @property
    def has_faces(self) -> bool:
        """Not where outputs are released for symbols of no record, too."""
        return not self.populations.rest

    def verdict(self, channel: Channel) -> Audit:
        """The audit of the table, with the verdict and the worst cell of the set."""
        return auditing.audit(
            channel, self.joint, self.notion, population=self.populations
        )

    def failing(self, channel: Channel) -> tuple[int, ...]:
        """Outputs that violate the notion for some population."""
        return auditing.failing_outputs(
            channel, self.joint, self.notion, self.populations
        )

    def needed(self, rows: IntegerRows, failing: tuple[int, ...]) -> Array:
        """A weight for each failing output that brings it inside, as for a table.

        Mixing a into a column moves h, g and their means by a, so an inequality that fails by e and
        has c to spare at a constant column holds again from a = e / c on.
        """
        uncertain = self.uncertain
        w = columns_of(rows, failing).T
        largest = 1.0
        for factor in (uncertain.ratio, uncertain.most):
            if math.isfinite(factor):
                largest = max(largest, factor)
        masses = w @ uncertain.point
        posteriors = w * uncertain.point / masses[:, None]
        excess = np.maximum(uncertain.excess(posteriors), 0.0) * masses
        rounding = UNIT * (1.0 + largest) * (2.0 + 16.0 * w.max(axis=1))
        return np.maximum(2.0 * UNIT, (excess + rounding) / uncertain.room)

    @cached_property
    def reduced(self) -> Classes:
        """Every symbol is a class of its own, for each has an interval of its own."""
        return Classes.of_symbols(self.joint)

    @property
    def margins(self) -> tuple[float, ...]:
        """Shares of what the inequalities have to spare at P_X."""
        return tuple(share * self.uncertain.room for share in MARGINS)

    def solver(self, margin: float, search: Search, end: float) -> Solve:
        """The envelope over the set, or on a face of it, until `end`."""

        def solve(members: NDArray[np.intp] | None = None, **options: Any) -> Envelope:
            uncertain = self.uncertain
            if members is not None:
                uncertain = uncertain.face(members)
                if not uncertain.excess(uncertain.point)[0] < -margin:
                    raise OutsidePolytope("the merged set lies in the margin")
            options |= search.options(self.joint, end)
            envelope = robust_envelope(uncertain, margin=margin, **options)
            return _unstalled(envelope, uncertain, margin, options, end)

        return solve

    def tightened(self, proof: Certificate, nmi: float, search: Search) -> Certificate:
        """The certificate, or the bound of the table's own optimum where that is smaller and the
        table in the set.
        """
        bound = proof.upper_bound_nmi
        gap = proof.gap_nmi
        if gap is None or bound is None or gap <= search.gap:
            return proof
        needs_shares = auditing.lift_limits(self.notion).need_shares
        if needs_shares and self.populations.shares_are_known:
            # Known shares may differ from those of the table, which then is not in the set.
            return proof
        seconds = TABLE_SECONDS
        if search.time_limit is not None:
            seconds = TABLE_SHARE * search.time_limit
        search = replace(
            search,
            start=None,
            progress=None,
            gap=max(TABLE_GAP, search.gap),
            time_limit=seconds,
        )
        try:
            table = optimal(Rules(self.joint, self.notion), search).certificate
        except SolverFailure:
            return proof
        if table.upper_bound_nmi is None or table.scope != proof.scope:
            return proof
        if table.upper_bound_nmi >= bound:
            return proof
        return replace(proof, upper_bound_nmi=table.upper_bound_nmi).at(nmi)

    def sets(self, joint: Joint, risk: Risk = "auto") -> MergedSets:
        """Merged sets of symbols; the risk is always that of the worst quotient."""
        return PopulationLifts(
            joint, auditing.lift_limits(self.notion), self.populations
        )


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
        seconds = end - time.perf_counter()
        is_closed = best.value - best.bound <= options["gap"]
        if is_closed or gap > COARSEST_GAP * entropy or seconds <= 0.0:
            break
        further = dict(options)
        further["gap"] = gap
        further["start"] = best.pool
        further["dual"] = None
        if math.isfinite(end):
            further["time_limit"] = seconds
        envelope = robust_envelope(uncertain, margin=margin, **further)
        best = _better(best, envelope)
    return best


def _better(first: Envelope, second: Envelope) -> Envelope:
    """The cheaper decomposition of two, with the larger of their proven bounds."""
    cheaper = first
    if second.value < first.value:
        cheaper = second
    proof = first
    if second.bound > first.bound:
        proof = second
    return replace(
        cheaper,
        bound=proof.bound,
        dual=proof.dual,
        pool=second.pool,
        status=first.status,
    )


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
    if design.nmi < LITTLE and design.least is None:
        end = time.perf_counter() + ESTIMATE_SECONDS
        if time_limit is not None:
            end = min(end, started + time_limit)
        messages = (*messages, _advice(design, rules, end))
    record = replace(design.channel.record, confidence=rules.populations.to_record())
    return replace(
        design,
        channel=design.channel.with_record(record),
        confidence=rules.populations,
        messages=messages,
        seconds=time.perf_counter() - started,
    )


def _advice(design: Design, rules: PopulationRules, end: float) -> str:
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

    None if unknown.

    The estimate stops at `end`, a moment of `time.perf_counter`.
    """
    if end is None:
        end = time.perf_counter() + ESTIMATE_SECONDS
    if time.perf_counter() >= end:
        return None
    search = Search(gap=ESTIMATE_GAP)

    def kept(rules: Rules) -> float:
        envelope = rules.solver(0.0, search, end)()
        return 1.0 - envelope.value / utility_entropy(joint)

    goal = GOAL * kept(Rules(joint, notion))
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
        if time.perf_counter() > end:
            return None
        larger_set = confidence_set(
            larger,
            populations.level,
            shares=shares,
            estimate_shares=auditing.lift_limits(notion).need_shares,
            unseen=populations.unseen,
        )
        if kept(PopulationRules(larger, notion, populations=larger_set)) >= goal:
            return larger.total
    return None
