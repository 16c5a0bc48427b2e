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
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import UNIT, Rounded, RoundingFailure, partition_channel, round_channel
from mechdesign.notions import LiftLimits, Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set, needs_shares
from mechdesign.tables.joint import Joint
from solvers import Envelope, Points, SolverError, UncertainSet, robust_envelope

Array = NDArray[np.float64]

OPTIMAL, SUBSETS, COMPLETE = "optimal", "subset-merging", "complete-merging"

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
        return auditing.audit_for_set(channel, self.joint, self.notion, self.chosen)

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
                lifts = most / self._mean(least, most, 1)
                worst = np.maximum(worst, np.log(lifts).max(axis=1) - limits.upper)
            if math.isfinite(limits.lower):
                inverse = self._mean(most, least, -1) / least
                worst = np.maximum(worst, np.log(inverse).max(axis=1) - limits.lower)
        return worst

    def _mean(self, values: Array, own: Array, sign: int) -> Array:
        size = values.shape[1]
        c = np.repeat(values[:, None, :], size, axis=1)
        c[:, np.arange(size), np.arange(size)] = own
        low, high = self._shares
        order = np.argsort(sign * c, axis=2)
        free = (high - low)[order]
        filled = np.clip(1.0 - low.sum() - (np.cumsum(free, axis=2) - free), 0.0, free)
        return c @ low + (filled * np.take_along_axis(c, order, axis=2)).sum(axis=2)


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
    limits = auditing.lift_limits(notion)
    if mechanism not in (OPTIMAL, SUBSETS, COMPLETE):
        raise InputError(f"{mechanism} is not built with confidence; use {OPTIMAL}, {SUBSETS} or {COMPLETE}")
    started = time.perf_counter()
    judge = PopulationJudge(joint, notion, chosen)
    merging = (merge_all if mechanism == COMPLETE else merge_subsets)(PopulationLifts(joint, limits, chosen))
    merged = _merged(joint, notion, merging, judge, mechanism if mechanism != OPTIMAL else SUBSETS, started)
    if mechanism != OPTIMAL:
        return _finished(merged, joint, notion, chosen, started)
    try:
        best = _optimal(joint, notion, search, judge, merging, started)
    except SolverFailure as error:
        if not fallback:
            raise
        said = f"the optimum failed ({error}); this is {SUBSETS}, verified"
        merged = replace(merged, fallback_from=OPTIMAL, messages=(*merged.messages, said))
        return _finished(merged, joint, notion, chosen, started)
    if fallback and merged.nmi > best.nmi:
        said = f"the search ended below {SUBSETS}, which is emitted, verified"
        bounded = replace(merged, certificate=best.certificate.at(merged.nmi), fallback_from=OPTIMAL)
        return _finished(replace(bounded, messages=(*best.messages, said)), joint, notion, chosen, started)
    return _finished(best, joint, notion, chosen, started)


def _finished(result: Design, joint: Joint, notion: Notion, chosen: ConfidenceSet, started: float) -> Design:
    """The set goes with the channel; a channel that keeps hardly anything says what would be needed."""
    messages = result.messages
    if result.nmi < LITTLE:
        messages = (*messages, _too_wide(joint, notion, chosen, result.nmi))
    channel = result.channel.with_record(replace(result.channel.record, confidence=chosen.to_record()))
    seconds = time.perf_counter() - started
    return replace(result, channel=channel, confidence=chosen, messages=messages, seconds=seconds)


def _merged(
    joint: Joint, notion: Notion, merging: Merging, judge: PopulationJudge, mechanism: str, started: float
) -> Design:
    try:
        rounded = partition_channel(merging.groups, joint, notion, judge=judge)
    except RoundingFailure:
        # As in `watchdog.watch`: cannot happen, and a constant is private whatever happens.
        rounded = partition_channel([range(len(joint.useful))], joint, notion, judge=judge)
    names = tuple(joint.useful.names[x] for x in merging.borrowed)
    return finish(
        rounded.channel,
        joint,
        rounded.audit,
        mechanism=mechanism,
        method="partition",
        repaired=merging.repaired,
        borrowed=names,
        seconds=time.perf_counter() - started,
    )


def _optimal(
    joint: Joint, notion: Notion, search: Search, judge: PopulationJudge, merging: Merging, started: float
) -> Design:
    entropy = utility_entropy(joint)
    if len(merging.groups) == len(joint.useful):
        rounded = partition_channel(merging.groups, joint, notion, judge=judge)
        proof = Certificate(upper_bound_nmi=1.0, gap_nmi=0.0, scope="proven")
        said = ("X itself satisfies the notion for the whole set and is published as it is.",)
        return finish(
            rounded.channel,
            joint,
            rounded.audit,
            mechanism=OPTIMAL,
            method="release",
            certificate=proof,
            messages=said,
        )
    envelope, rounded = _designed(joint, notion, search, judge, merging, started)
    certificate = proven(envelope, entropy, utility(rounded.channel, joint).nmi)
    return finish(
        rounded.channel,
        joint,
        rounded.audit,
        mechanism=OPTIMAL,
        method=envelope.method,
        certificate=certificate,
        messages=search_messages(envelope, certificate, search),
        seconds=time.perf_counter() - started,
    ).with_envelope(envelope)


def _designed(
    joint: Joint, notion: Notion, search: Search, judge: PopulationJudge, merging: Merging, started: float
) -> tuple[Envelope, Rounded]:
    """Solve with growing margins until the rounded channel passes."""
    uncertain = uncertain_set(joint, notion, judge.chosen)
    start, dual = Points.blocks(merging.groups, joint.p_x), None
    neighbour = search.start.envelope if search.start is not None else None
    if neighbour is not None and neighbour.points.shape[1] == len(joint.useful):
        start, dual = Points.concatenate([start, neighbour.pool]), neighbour.dual
    failure: RoundingFailure | None = None
    for margin in MARGINS:
        left = None
        if search.time_limit is not None:
            left = max(0.0, search.time_limit - (time.perf_counter() - started))
        try:
            envelope = robust_envelope(
                uncertain,
                margin=margin * room_at_the_table(uncertain),
                gap=max(GAP_SHARE * search.gap, LEAST_GAP) * utility_entropy(joint),
                time_limit=left,
                workers=search.workers,
                backend=search.backend,
                start=start,
                dual=dual,
                progress=shown_progress(joint, search),
            )
        except SolverError as error:
            raise SolverFailure(f"the optimum could not be computed: {error}") from error
        try:
            return envelope, round_channel(
                envelope.weights, float_posteriors(envelope.points), joint, notion, judge=judge
            )
        except RoundingFailure as error:
            failure = error
            start, dual = envelope.pool, envelope.dual
    raise SolverFailure(
        f"no verified channel came out of the optimum ({failure}); use --mechanism subset-merging or a larger budget"
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
            larger, chosen.level, shares=shares, estimate_shares=needs_shares(notion), unseen=chosen.unseen
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
