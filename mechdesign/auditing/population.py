"""The exact verdict for a whole confidence set: the promise of a channel for every population in
it.

For an output with the column w(x) = W(y|x), P(y|s) = sum_x P(x|s) w(x) is largest over the box of
P(.|s) when its free mass lies on the largest w, and smallest when it lies on the smallest: one sort
for each output. With these extremes h_s and g_s,

    largest l(s, y) = h_s / min over P(S) of [P(s) h_s + sum over t != s of P(t) g_t],

and the smallest with h and g exchanged, because a lift grows with P(y|s) and falls with every other
P(y|t); P(S) is again chosen in a box. All this in integers: the ends of the boxes are integers over
2^60, rounded outwards when the set was made. The quotients are compared with budgets like those of
the verdict on a table (`extremes.log_upper`, rounded up). Nothing here is shared with the search
that designs channels for such sets.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from heapq import nlargest, nsmallest
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from mechdesign.auditing import verdict
from mechdesign.auditing.averages import average_verdicts
from mechdesign.auditing.columns import Entries, columns_on, released_part
from mechdesign.auditing.extremes import Achieved, Extreme, log_upper
from mechdesign.auditing.verdict import Audit, is_stacked
from mechdesign.channel.channel import Channel
from mechdesign.core.binomial import SCALE
from mechdesign.core.errors import InputError
from mechdesign.core.limits import LiftLimits
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set, set_of_record
from mechdesign.tables.joint import Joint

NOT_STACKED = (
    "confidence is not built with protect-each, budgets of symbols, or after other "
    "releases"
)


class Bound(NamedTuple):
    """An extreme of one output over the set: ``above / below``, reached by symbol `s` (against `t`
    for a quotient).
    """

    above: int
    below: int
    s: int
    y: int
    t: int | None = None

    @property
    def quotient(self) -> tuple[int, int]:
        """Numerator and denominator; a denominator of zero is infinity."""
        return self.above, self.below

    @property
    def inverse(self) -> tuple[int, int]:
        """Denominator and numerator."""
        return self.below, self.above


class Extremes(NamedTuple):
    """The largest lift, the largest inverse of a lift and the largest quotient of two lifts of one
    output.
    """

    high: Bound
    low: Bound
    ratio: Bound

    def usage(self, limits: LiftLimits) -> float:
        """The largest share of its budget that one of them uses, in floating point."""
        largest = -math.inf
        for bound, budget in (
            (self.high, limits.upper),
            (self.low, limits.lower),
            (self.ratio, limits.ratio),
        ):
            if not math.isfinite(budget):
                continue
            if not bound.below:
                return math.inf
            largest = max(largest, math.log(bound.above / bound.below) / budget)
        return largest


class Population:
    """A confidence set prepared for many outputs; columns are integers over one common denominator.

    Boxes are kept as lower ends and spreads: P(x|s) = (lower + part of the spread) / 2^60, and P(s)
    likewise over the common denominator of its ends. Their room is the mass that is left to
    distribute.
    """

    def __init__(
        self, confidence: ConfidenceSet, weights: Sequence[int] | None = None
    ) -> None:
        if weights is not None and len(weights) != len(confidence.lower[0]):
            raise InputError(
                "the set of populations is that of another table than the channel's own columns"
            )
        self._lower = [list(row) for row in confidence.lower]
        self._spread: list[list[int]] = []
        for low, high in zip(confidence.lower, confidence.upper, strict=True):
            self._spread.append([b - a for a, b in zip(low, high, strict=True)])
        self._weights: list[int] = []
        if confidence.rest:
            if weights is None:
                raise InputError(
                    "a set with unseen symbols needs the counts of the others"
                )
            # All unseen symbols together are one more, with the row of the marginal.
            self._weights = list(weights)
            for s, end in enumerate(confidence.rest):
                self._lower[s].append(0)
                self._spread[s].append(end)
        self._room = [SCALE - sum(row) for row in self._lower]
        self._total_spread = [sum(row) for row in self._spread]
        self._set_shares(confidence)

    def _set_shares(self, confidence: ConfidenceSet) -> None:
        """The box of P(S) in integers over the common denominator of its ends."""
        ends = (*confidence.share_lower, *confidence.share_upper)
        self._unit = math.lcm(*(end.denominator for end in ends))
        scaled = [end.numerator * (self._unit // end.denominator) for end in ends]
        size = len(self._lower)
        self._share_lower = scaled[:size]
        self._share_spread: list[int] = []
        for low, high in zip(scaled[:size], scaled[size:], strict=True):
            self._share_spread.append(high - low)
        self._share_room = self._unit - sum(self._share_lower)

    def output(self, column: Entries) -> tuple[list[int], list[int]]:
        """2**60 times the largest and the smallest P(y|s) for every s, in units of the column's
        denominator.
        """
        inputs, values = self._with_rest(column)
        # A fractional knapsack for every s. Each P(x|s) begins at its lower end, and the room that
        # is left to 1 is shared out: where P(y|x) is largest for the maximum, and where it is
        # smallest for the minimum. One order of the symbols serves all s.
        order = sorted(range(len(inputs)), key=values.__getitem__, reverse=True)
        where = [inputs[i] for i in order]
        w = [values[i] for i in order]
        most: list[int] = []
        least: list[int] = []
        for lower, spread, room, total_spread in zip(
            self._lower, self._spread, self._room, self._total_spread, strict=True
        ):
            free = [spread[x] for x in where]
            base = sum(map(mul, [lower[x] for x in where], w))
            # masses[i] and worth[i]: the mass that the first i symbols take, and what it adds.
            masses = list(accumulate(free, initial=0))
            worth = list(accumulate(map(mul, free, w), initial=0))
            mass = min(room, masses[-1])
            most.append(base + _on_the_first(mass, masses, worth, w))
            # The symbols that never give this output take what they can; what is left fills the
            # support from its end, which is to leave out the first.
            left_out = min(masses[-1], total_spread - room)
            least.append(base + worth[-1] - _on_the_first(left_out, masses, worth, w))
        return most, least

    def _with_rest(self, column: Entries) -> Entries:
        """The column with the entry of unseen symbols, P(y) on the table, last; all times the
        number of records.
        """
        if not self._weights:
            return column
        inputs, values = column
        total = sum(self._weights)
        mean = sum(
            self._weights[x] * value for x, value in zip(inputs, values, strict=True)
        )
        scaled = [total * value for value in values]
        return (*inputs, len(self._weights)), (*scaled, mean)

    def extremes(self, column: Entries, y: int = 0) -> Extremes:
        """The extreme lifts of one output over the set."""
        most, least = self.output(column)
        symbols = range(len(most))
        highs: list[Bound] = []
        lows: list[Bound] = []
        for s in symbols:
            # The lift of s is P(y|s) / sum_t P(t) P(y|t): largest with P(y|s) at its most, all
            # others at their least, and P(S) at the shares with the least mean.
            smallest_mean = self._mean(least, s, most[s], 1)
            highs.append(Bound(most[s] * self._unit, smallest_mean, s, y))
            largest_mean = self._mean(most, s, least[s], -1)
            lows.append(Bound(largest_mean, least[s] * self._unit, s, y))
        # The extreme quotient lies between two different symbols: one of the two largest and of the
        # two smallest.
        ratios: list[Bound] = []
        for s in nlargest(2, symbols, most.__getitem__):
            for t in nsmallest(2, symbols, least.__getitem__):
                if s != t:
                    ratios.append(Bound(most[s], least[t], s, y, t))
        if not ratios:
            ratios = [Bound(1, 1, 0, y, 0)]
        return Extremes(_largest(highs), _largest(lows), _largest(ratios))

    def worst(self, columns: Sequence[Entries]) -> Extremes:
        """The extremes of all outputs together (of equal ones the first), exactly."""
        extremes = [self.extremes(column, y) for y, column in enumerate(columns)]
        return Extremes(
            _largest([output.high for output in extremes]),
            _largest([output.low for output in extremes]),
            _largest([output.ratio for output in extremes]),
        )

    def _mean(self, values: list[int], s: int, own: int, sign: int) -> int:
        """The least (sign 1) or largest (sign -1) sum_t P(t) values_t over the shares, with `own`
        for s.
        """
        terms = list(values)
        terms[s] = own
        mean = sum(map(mul, self._share_lower, terms))
        # The same knapsack over the box of P(S): what is left of 1 goes to the best terms first.
        room = self._share_room
        if room:
            for t in sorted(range(len(terms)), key=lambda t: sign * terms[t]):
                taken = min(room, self._share_spread[t])
                mean += taken * terms[t]
                room -= taken
        return mean


def _on_the_first(mass: int, masses: list[int], worth: list[int], w: list[int]) -> int:
    """The sum of the largest w under `mass`, which fills the free places in their order."""
    i = bisect_left(masses, mass, 1) - 1
    return worth[i] + (mass - masses[i]) * w[i]


def audit_population(
    channel: Channel, joint: Joint, notion: Notion, confidence: ConfidenceSet
) -> Audit:
    """Decide exactly whether `channel` satisfies `notion` for every population of a set, which is
    all it speaks of.
    """
    limits = lift_limits(notion)
    joint = released_part(channel, joint)
    population = Population(confidence, joint.useful_counts)
    worst = population.worst(columns_on(channel, joint))
    sides = _sides(worst, joint.sensitive.names, limits)
    return verdict.verdict_of(sides, channel.outputs, notion)


def achieved_on_set(
    channel: Channel, joint: Joint, confidence: ConfidenceSet
) -> Achieved:
    """The smallest doubles that bound the log-lifts of a channel on every population of a set."""
    joint = released_part(channel, joint)
    population = Population(confidence, joint.useful_counts)
    return achieved_of(population.worst(columns_on(channel, joint)))


def audit(
    channel: Channel,
    joint: Joint,
    notion: Notion,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit:
    """Decide exactly whether `channel` keeps `notion`: on `joint`, and for the population if it was
    designed so.

    A channel that was designed with confidence is judged on every population in the set of the
    counts of `joint`, at the level of its design: `satisfied` and `worst` are those of the set,
    `achieved` is that of the table.

    Parameters
    ----------
    channel : Channel
        Its rows may stand in another order than the useful symbols of the joint.
    joint : Joint
        Not necessarily the table that the channel was designed for.
    notion : Notion
    population : ConfidenceSet, optional
        Judge any channel on this set.
    after : sequence of Channel
        Earlier releases of the same record, drawn independently: all together must keep the notion.
        The table has the useful columns of all of them.

    Raises
    ------
    InputError
        If the useful symbols of channel and joint differ, or the rows are no probabilities; with a
        set of populations, if the intervals in the channel file are not those of its table, or the
        notion is none on single lifts.
    """
    on_table = verdict.audit(channel, joint, notion, after=after)
    if channel.record.averages:
        averages = average_verdicts(channel, joint, channel.record.averages)
        kept = all(average.kept for average in averages)
        on_table = replace(
            on_table, satisfied=on_table.satisfied and kept, averages=averages
        )
    if is_stacked(joint, notion, after):
        if population is not None or channel.record.confidence is not None:
            raise InputError(NOT_STACKED)
        return on_table
    confidence = population
    if confidence is None:
        confidence = set_behind(channel, joint)
    if confidence is None:
        return on_table
    on_set = audit_population(channel, joint, notion, confidence)
    kept = all(average.kept for average in on_table.averages)
    return replace(on_table, satisfied=on_set.satisfied and kept, worst=on_set.worst)


def failing_outputs(
    channel: Channel, joint: Joint, notion: Notion, confidence: ConfidenceSet
) -> tuple[int, ...]:
    """Positions of the outputs that violate `notion` for some population of the set, decided
    exactly.
    """
    limits = lift_limits(notion)
    joint = released_part(channel, joint)
    population = Population(confidence, joint.useful_counts)
    failing: list[int] = []
    for y, column in enumerate(columns_on(channel, joint)):
        sides = _sides(population.extremes(column), joint.sensitive.names, limits)
        if not all(side.kept for side in sides):
            failing.append(y)
    return tuple(failing)


def _sides(
    extremes: Extremes, names: Sequence[str], limits: LiftLimits
) -> list[Extreme]:
    """The extremes of outputs as the verdict on a table has them."""
    high, low, ratio = extremes
    largest = Extreme(
        side="eps_u",
        budget=limits.upper,
        over=high.quotient,
        lift=high.quotient,
        sensitive=names[high.s],
        y=high.y,
    )
    smallest = Extreme(
        side="eps_l",
        budget=limits.lower,
        over=low.quotient,
        lift=low.inverse,
        sensitive=names[low.s],
        y=low.y,
    )
    quotient = Extreme(
        side="eps_ldp",
        budget=limits.ratio,
        over=ratio.quotient,
        lift=ratio.quotient,
        sensitive=names[ratio.s],
        y=ratio.y,
        against=names[ratio.t or 0],
    )
    return [largest, smallest, quotient]


def achieved_of(extremes: Extremes) -> Achieved:
    """The smallest doubles that bound the extremes."""
    return Achieved(
        eps_l=log_upper(*extremes.low.quotient),
        eps_u=log_upper(*extremes.high.quotient),
        eps_ldp=log_upper(*extremes.ratio.quotient),
    )


def lift_limits(notion: Notion) -> LiftLimits:
    """The bounds on every lift alike, or InputError for notions on averages or with budgets of
    single symbols.
    """
    limits = notion.limits
    if limits.mean is not None:
        raise InputError(
            f"{notion.name} bounds averages over the sensitive symbols, for which "
            "confidence is not built; use alip, lip, ldp, max-lift or min-lift"
        )
    if limits.symbol_budgets:
        raise InputError(NOT_STACKED)
    return limits


def _largest(bounds: Sequence[Bound]) -> Bound:
    """The first of the largest quotients, by products of integers; a denominator of zero is
    infinity.
    """
    best = bounds[0]
    for bound in bounds[1:]:
        if bound.above * best.below > best.above * bound.below:
            best = bound
    return best


def set_behind(channel: Channel, joint: Joint) -> ConfidenceSet | None:
    """The set of populations that a channel was designed for, computed from counts; None for a
    promise about the table.

    On the channel's own table the intervals must be those in its file.
    """
    record = channel.record.confidence
    if record is None:
        return None
    joint = released_part(channel, joint)
    if _is_own_table(channel, joint):
        return set_of_record(record, joint)
    if record.get("shares") == "known":
        raise InputError(
            "the channel was designed with known shares, which a public file and "
            "another table do not have: audit the internal channel file on its own "
            "table"
        )
    return confidence_set(
        joint,
        record["level"],
        estimate_shares=record.get("shares") == "estimated",
        unseen=record.get("unseen", 0),
    )


def _is_own_table(channel: Channel, joint: Joint) -> bool:
    """Whether the channel was designed for this table."""
    own = channel.joint
    if own is None:
        return False
    return (
        own.sensitive == joint.sensitive
        and own.useful == joint.useful
        and own.counts == joint.counts
    )
