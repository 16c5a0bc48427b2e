"""Channels whose promise holds for every population that the counts do not contradict.

The posteriors of the table that are private for a whole confidence set form a convex set with P_X in it, so the
optimum is again the lower envelope of the entropy at P_X (Zarrabian et al. 2023, eq. (26)), now over an uncertain
set; rounding, repair and certificate stay as they are, and the exact verdict is that on the set.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing import population as auditing
from mechdesign.auditing.utility import utility
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.core.binomial import SCALE
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms.optimal import (
    GAP_SHARE,
    LEAST_GAP,
    Search,
    float_posteriors,
    proven,
    search_messages,
    shown_progress,
    utility_entropy,
)
from mechdesign.mechanisms.partitions import MergedSets, Merging, merge_all, merge_subsets, rounding_slack
from mechdesign.mechanisms.posteriors import OUTWARDS
from mechdesign.mechanisms.responding import respond
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import UNIT, Rounded, RoundingFailure, partition_channel, round_channel
from mechdesign.notions import LiftLimits, Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set
from mechdesign.tables.joint import Joint
from solvers import Envelope, Points, SolverError, UncertainSet, robust_envelope
from solvers.uncertain import extreme_means

Array = NDArray[np.float64]

OPTIMAL, RESPONSE, SUBSETS, COMPLETE = "optimal", "subset-response", "subset-merging", "complete-merging"

MARGINS = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
"""Margins tried in turn, as shares of what the inequalities have to spare at P_X; see `optimal.MARGINS`."""

LITTLE = 0.05
"""A channel that keeps less of H(X) than this is worth a word on how many records would be needed."""

WANTED = 0.5
"""Share of what the table alone would allow that the estimate of needed records aims at."""

MOST_DOUBLINGS = 30
"""How far the estimate looks: a thousand million times the records."""

ESTIMATE_GAP = 0.02
"""Gap, in units of H(X), of the designs behind that estimate."""

ESTIMATE_SECONDS = 5.0
"""Time that the estimate may take in all."""


def uncertain_set(joint: Joint, notion: Notion, chosen: ConfidenceSet) -> UncertainSet:
    """The posteriors of the table that are private for the whole set, all bounds moved outwards by rounding."""
    limits = auditing.lift_limits(notion)
    # Unseen symbols are released with P(y), which is w = 1 for the posterior: the last column.
    rest = [(end,) for end in chosen.rest] or [()] * len(chosen.lower)
    nothing = (0,) * len(rest[0])
    return UncertainSet(
        joint.p_x,
        np.array([[_below(end, SCALE) for end in (*row, *nothing)] for row in chosen.lower]),
        np.array(
            [
                [_above(end, SCALE) for end in (*row, *more)]
                for row, more in zip(chosen.upper, rest, strict=True)
            ]
        ),
        np.array([_below(end.numerator, end.denominator) for end in chosen.share_lower]),
        np.array([_above(end.numerator, end.denominator) for end in chosen.share_upper]),
        ratio=_factor(limits.ratio),
        most=_factor(limits.upper),
        least=math.exp(-limits.lower) * (1.0 - OUTWARDS),
    )


def _below(numerator: int, denominator: int) -> float:
    value = numerator / denominator
    return value if Fraction(value) <= Fraction(numerator, denominator) else math.nextafter(value, -1.0)


def _above(numerator: int, denominator: int) -> float:
    value = numerator / denominator
    return value if Fraction(value) >= Fraction(numerator, denominator) else math.nextafter(value, 2.0)


def _factor(budget: float) -> float:
    return math.exp(budget) * (1.0 + OUTWARDS) if math.isfinite(budget) else math.inf


def room_at_the_table(uncertain: UncertainSet) -> float:
    """What the inequalities have to spare at P_X, where every lift is 1."""
    sides = (
        uncertain.ratio - 1.0,
        uncertain.most - 1.0,
        1.0 - uncertain.least if uncertain.least > 0.0 else math.inf,
    )
    return min(sides)


@dataclass(frozen=True)
class PopulationJudge:
    """What rounding asks of a channel: the verdict on the whole set. See `rounding.Judge`."""

    joint: Joint
    notion: Notion
    chosen: ConfidenceSet

    def verdict(self, channel: Channel) -> Audit:
        """The audit of the table, with the verdict and the worst cell of the set."""
        return auditing.audit(channel, self.joint, self.notion, population=self.chosen)

    def failing(self, channel: Channel) -> tuple[int, ...]:
        """Outputs that violate the notion for some population."""
        return auditing.failing_outputs(channel, self.joint, self.notion, self.chosen)

    def needed(self, rows: IntegerRows, failing: tuple[int, ...]) -> Array:
        """A weight for each failing output that brings it inside; `rounding._needed_mixing` for the set.

        Mixing a into a column moves h, g and their means by a, so an inequality that fails by e and has c to spare
        at a constant column holds again from a = e / c on.
        """
        uncertain = uncertain_set(self.joint, self.notion, self.chosen)
        w = np.zeros((len(failing), rows.shape[0]))
        for k, y in enumerate(failing):
            at, values = rows.columns[y]
            w[k, list(at)] = np.array(values) * UNIT
        factors = [f for f in (uncertain.ratio, uncertain.most, 1.0) if math.isfinite(f)]
        masses = w @ uncertain.point
        excess = np.maximum(uncertain.excess(w * uncertain.point / masses[:, None]), 0.0) * masses
        rounding = UNIT * (1.0 + max(factors)) * (2.0 + 16.0 * w.max(axis=1))
        return np.maximum(2.0 * UNIT, (excess + rounding) / room_at_the_table(uncertain))


class PopulationLifts(MergedSets):
    """Merged sets of symbols judged by their extreme lifts over a confidence set.

    Without unseen symbols P(T|s) lies between max(lower(T), 1 - upper(others)) and min(upper(T), 1 - lower(others))
    with the sums of the ends, so `given_s` holds both sums, (2 |S|, n), and merging adds them as it adds
    probabilities.
    """

    def __init__(self, joint: Joint, limits: LiftLimits, chosen: ConfidenceSet) -> None:
        lower = np.array([[end / SCALE for end in row] for row in chosen.lower])
        upper = np.array([[end / SCALE for end in row] for row in chosen.upper])
        self.p_x = joint.p_x
        self.given_s = np.vstack([lower, upper])
        self._totals = lower.sum(axis=1)[:, None], upper.sum(axis=1)[:, None]
        self._rest = np.array([end / SCALE for end in chosen.rest] or [0.0] * len(lower))[:, None]
        self._limits, self._slack = limits, 4.0 * rounding_slack((2 * len(lower), len(self.p_x)))
        low, high = (
            np.array([float(end) for end in ends]) for ends in (chosen.share_lower, chosen.share_upper)
        )
        self._shares = low, high

    def within(self, given_s: Array, mass: Array) -> NDArray[np.bool_]:
        """Surely private for the whole set."""
        return self._used(given_s, mass) <= 0.0 - self._slack

    def nearly_within(self, given_s: Array, mass: Array) -> NDArray[np.bool_]:
        """Perhaps private for the whole set."""
        return self._used(given_s, mass) <= self._slack

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The logarithm of the worst lift or quotient beyond its budget; larger is worse."""
        return self._used(given_s, mass)

    def _used(self, given_s: Array, mass: Array) -> Array:
        """The largest log lift (or quotient) minus its budget, (k,).

        Free mass lies on T, then on unseen symbols, whose w is P(T), then elsewhere; for the least the other way.
        """
        size = len(given_s) // 2
        low, high = self._totals
        room, own = 1.0 - low, given_s[size:] - given_s[:size]
        on_set = np.minimum(own, room)
        on_rest = np.minimum(self._rest, room - on_set)
        most = (given_s[:size] + on_set + mass * on_rest).T
        left = np.maximum(room - (high - low - own), 0.0)
        least_rest = np.minimum(self._rest, left)
        least = (given_s[:size] + left - least_rest + mass * least_rest).T
        worst = np.full(len(most), -np.inf)
        limits = self._limits
        with np.errstate(divide="ignore"):
            if math.isfinite(limits.ratio) and size > 1:
                for s in range(size):
                    others = np.delete(least, s, axis=1).min(axis=1)
                    worst = np.maximum(worst, np.log(most[:, s] / others) - limits.ratio)
            if math.isfinite(limits.upper):
                lifts = most / extreme_means(least, most, 1, *self._shares)
                worst = np.maximum(worst, np.log(lifts).max(axis=1) - limits.upper)
            if math.isfinite(limits.lower):
                inverse = extreme_means(most, least, -1, *self._shares) / least
                worst = np.maximum(worst, np.log(inverse).max(axis=1) - limits.lower)
        return worst


def population_design(
    joint: Joint,
    notion: Notion,
    mechanism: str,
    search: Search,
    chosen: ConfidenceSet,
    *,
    fallback: bool = True,
) -> Design:
    """The channel of a mechanism, verified exactly for every population of the set."""
    run = _Run(joint, notion, search, PopulationJudge(joint, notion, chosen), time.perf_counter())
    made = run.design(mechanism, fallback=fallback)
    messages = made.messages
    if made.nmi < LITTLE:
        messages = (*messages, _too_wide(joint, notion, chosen, made.nmi))
    channel = made.channel.with_record(replace(made.channel.record, confidence=chosen.to_record()))
    seconds = time.perf_counter() - run.started
    return replace(made, channel=channel, confidence=chosen, messages=messages, seconds=seconds)


@dataclass(frozen=True)
class _Run:
    """One design on one set."""

    joint: Joint
    notion: Notion
    search: Search
    judge: PopulationJudge
    started: float

    def design(self, mechanism: str, *, fallback: bool) -> Design:
        lifts = PopulationLifts(self.joint, auditing.lift_limits(self.notion), self.judge.chosen)
        merging = (merge_all if mechanism == COMPLETE else merge_subsets)(lifts)
        merged = self._merged(merging, mechanism if mechanism != OPTIMAL else SUBSETS)
        if mechanism in (SUBSETS, COMPLETE):
            return merged
        if len(merging.groups) == len(self.joint.useful):
            proof = Certificate(upper_bound_nmi=1.0, gap_nmi=0.0, scope="proven")
            said = ("X itself satisfies the notion for the whole set and is published as it is.",)
            more = {"certificate": proof, "messages": said} if mechanism == OPTIMAL else {}
            return self._merged(merging, mechanism, "release", **more)
        if mechanism == RESPONSE:
            made = self._response(merging)
            if made is None or made.nmi < merged.nmi:
                return merged
            return replace(made, repaired=merging.repaired, borrowed=merged.borrowed)
        try:
            best = self._optimal(merging)
        except SolverFailure as error:
            if not fallback:
                raise
            said = f"the optimum failed ({error}); this is {SUBSETS}, verified"
            return replace(merged, fallback_from=OPTIMAL, messages=(*merged.messages, said))
        if fallback and merged.nmi > best.nmi:
            said = f"the search ended below {SUBSETS}, which is emitted, verified"
            proof = best.certificate.at(merged.nmi)
            return replace(merged, certificate=proof, fallback_from=OPTIMAL, messages=(*best.messages, said))
        return best

    def _made(self, rounded: Rounded, mechanism: str, method: str, **more: Any) -> Design:
        seconds = time.perf_counter() - self.started
        return finish(
            rounded.channel,
            self.joint,
            rounded.audit,
            mechanism=mechanism,
            method=method,
            seconds=seconds,
            **more,
        )

    def _merged(self, merging: Merging, mechanism: str, method: str = "partition", **more: Any) -> Design:
        try:
            rounded = partition_channel(merging.groups, self.joint, self.notion, judge=self.judge)
        except RoundingFailure:
            # As in `watchdog.watch`: cannot happen, and a constant is private whatever happens.
            everything = [range(len(self.joint.useful))]
            rounded = partition_channel(everything, self.joint, self.notion, judge=self.judge)
        borrowed = tuple(self.joint.useful.names[x] for x in merging.borrowed)
        return self._made(rounded, mechanism, method, repaired=merging.repaired, borrowed=borrowed, **more)

    def _rounded(self, weights: Array, points: Points) -> Rounded:
        return round_channel(weights, float_posteriors(points), self.joint, self.notion, judge=self.judge)

    def _solved(self, uncertain: UncertainSet, margin: float, **more: Any) -> Envelope:
        left = None
        if self.search.time_limit is not None:
            left = max(0.0, self.search.time_limit - (time.perf_counter() - self.started))
        try:
            return robust_envelope(
                uncertain,
                margin=margin,
                gap=max(GAP_SHARE * self.search.gap, LEAST_GAP) * utility_entropy(self.joint),
                time_limit=left,
                workers=self.search.workers,
                backend=self.search.backend,
                **more,
            )
        except SolverError as error:
            raise SolverFailure(f"the optimum could not be computed: {error}") from error

    def _response(self, merging: Merging) -> Design | None:
        """The best response within every merged set: the optimum where only its symbols have mass."""
        if self.judge.chosen.rest:
            raise InputError(
                f"{RESPONSE} with symbols of no record is not built: an output of a few symbols would be released for "
                "these, too, so that sets cannot be looked at one by one; use another mechanism"
            )
        whole, groups = uncertain_set(self.joint, self.notion, self.judge.chosen), merging.groups
        for share in MARGINS:
            margin = share * room_at_the_table(whole)

            def solve(members: NDArray[np.intp], _: Array, margin: float = margin) -> Envelope | None:
                face = whole.face(members)
                return self._solved(face, margin) if face.excess(face.point)[0] < -margin else None

            weights, points, _ = respond(solve, self.joint.p_x, groups)
            try:
                return self._made(self._rounded(weights, points), RESPONSE, "subsets")
            except RoundingFailure:
                continue
        return None

    def _optimal(self, merging: Merging) -> Design:
        """Solve with growing margins until the rounded channel passes."""
        uncertain = uncertain_set(self.joint, self.notion, self.judge.chosen)
        start, dual = Points.blocks(merging.groups, self.joint.p_x), None
        neighbour = self.search.start.envelope if self.search.start is not None else None
        if neighbour is not None and neighbour.points.shape[1] == len(self.joint.useful):
            start, dual = Points.concatenate([start, neighbour.pool]), neighbour.dual
        failure: RoundingFailure | None = None
        progress = shown_progress(self.joint, self.search)
        for share in MARGINS:
            margin = share * room_at_the_table(uncertain)
            found = self._solved(uncertain, margin, start=start, dual=dual, progress=progress)
            try:
                rounded = self._rounded(found.weights, found.points)
            except RoundingFailure as error:
                failure, start, dual = error, found.pool, found.dual
                continue
            proof = proven(found, utility_entropy(self.joint), utility(rounded.channel, self.joint).nmi)
            said = search_messages(found, proof, self.search)
            made = self._made(rounded, OPTIMAL, found.method, certificate=proof, messages=said)
            return made.with_envelope(found)
        raise SolverFailure(
            f"no verified channel came out of the optimum ({failure}); use --mechanism subset-merging or a larger "
            "budget"
        )


def _too_wide(joint: Joint, notion: Notion, chosen: ConfidenceSet, nmi: float) -> str:
    said = (
        f"{joint.total} records say so little of their population that a channel private for all of the set keeps "
        f"only {nmi:.2g} of H(X)"
    )
    needed = records_needed(joint, notion, chosen)
    if needed is None:
        return f"{said}; merge symbols, or choose a lower level or a larger budget"
    return (
        f"{said}; about {needed} records like these would keep half of what the table alone allows (an estimate), "
        "merging symbols or a lower level ask for fewer"
    )


def records_needed(joint: Joint, notion: Notion, chosen: ConfidenceSet) -> int | None:
    """About how many records in the same proportions would keep half of what the table alone allows.

    Tables with 2, 4, 8, ... times the counts are designed roughly; None if the time runs out or none is enough.
    """
    end = time.perf_counter() + ESTIMATE_SECONDS
    point = replace(
        chosen,
        lower=tuple(_exact_row(row) for row in joint.counts),
        upper=tuple(_exact_row(row) for row in joint.counts),
        unseen=0,
        rest=(),
    )
    goal = WANTED * _rough(joint, notion, point, end)
    shares = None
    if chosen.shares_are_known:
        shares = dict(zip(joint.sensitive.symbols, chosen.share_lower, strict=True))
    for k in range(1, MOST_DOUBLINGS + 1):
        if time.perf_counter() > end:
            return None
        counts = tuple(tuple(count << k for count in row) for row in joint.counts)
        larger = replace(joint, counts=counts)
        wider = confidence_set(
            larger,
            chosen.level,
            shares=shares,
            estimate_shares=auditing.lift_limits(notion).need_shares,
            unseen=chosen.unseen,
        )
        if _rough(larger, notion, wider, end) >= goal:
            return larger.total
    return None


def _exact_row(row: tuple[int, ...]) -> tuple[int, ...]:
    """P(.|s) of the table itself in units of 2**-60, up to a unit."""
    total = sum(row)
    cells = [count * SCALE // total for count in row]
    cells[cells.index(max(cells))] += SCALE - sum(cells)
    return tuple(cells)


def _rough(joint: Joint, notion: Notion, chosen: ConfidenceSet, end: float) -> float:
    """I(X;Y)/H(X) of a rough design in floating point."""
    entropy = utility_entropy(joint)
    left = max(0.0, end - time.perf_counter())
    found = robust_envelope(uncertain_set(joint, notion, chosen), gap=ESTIMATE_GAP * entropy, time_limit=left)
    return 1.0 - found.value / entropy
