"""The exact verdict for a whole confidence set: what a channel promises for every population in it.

For an output with the column w(x) = W(y|x), P(y|s) = sum_x P(x|s) w(x) is largest over the box of P(.|s) when its
free mass lies on the largest w, and smallest when it lies on the smallest: one sort for each output. Lifts follow,

    largest l(s, y) = h_s / min over P(S) of [P(s) h_s + sum over t != s of P(t) g_t],

and the smallest with h and g exchanged, because a lift grows with P(y|s) and falls with every other P(y|t); P(S)
is again chosen in a box. All this in integers, compared with enclosures of exp like the verdict on a table; nothing
here is shared with the search that designs channels for such sets.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from heapq import nlargest, nsmallest
from itertools import accumulate, product
from operator import mul
from typing import NamedTuple

from mechdesign.auditing import verdict
from mechdesign.auditing.demands import (
    Entries,
    Extreme,
    columns_on,
    log_upper,
    released_part,
)
from mechdesign.auditing.verdict import Achieved, Audit, is_stacked
from mechdesign.channel.channel import Channel
from mechdesign.core.binomial import SCALE
from mechdesign.core.errors import InputError
from mechdesign.notions import LiftLimits, Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set, set_of_record
from mechdesign.tables.joint import Joint

NOT_STACKED = "confidence is not built with protect-each, budgets of symbols, or after other releases"


class Bound(NamedTuple):
    """An extreme of one output over the set: ``above / below``, reached by symbol `s` (against `t` for a quotient)."""

    above: int
    below: int
    s: int
    y: int
    t: int | None = None


class Extremes(NamedTuple):
    """The largest lift, the largest inverse of a lift and the largest quotient of two lifts of one output."""

    high: Bound
    low: Bound
    ratio: Bound

    def usage(self, limits: LiftLimits) -> float:
        """The largest share of its budget that one of them uses, in floating point."""
        sides = zip(self, (limits.upper, limits.lower, limits.ratio), strict=True)
        finite = [(bound, limit) for bound, limit in sides if math.isfinite(limit)]
        return max(
            math.log(b.above / b.below) / limit if b.below else math.inf
            for b, limit in finite
        )


class Population:
    """A confidence set prepared for many outputs; columns are integers over one common denominator."""

    def __init__(
        self, chosen: ConfidenceSet, weights: Sequence[int] | None = None
    ) -> None:
        if weights is not None and len(weights) != len(chosen.lower[0]):
            raise InputError(
                "the set of populations is that of another table than the channel's own columns"
            )
        self._lower = [[*row] for row in chosen.lower]
        rows = zip(chosen.lower, chosen.upper, strict=True)
        self._spread = [
            [b - a for a, b in zip(low, high, strict=True)] for low, high in rows
        ]
        self._weights: list[int] = []
        if chosen.rest:
            if weights is None:
                raise InputError(
                    "a set with unseen symbols needs the counts of the others"
                )
            self._weights = [*weights]
            for s, end in enumerate(chosen.rest):
                self._lower[s].append(0)
                self._spread[s].append(end)
        self._room = [SCALE - sum(row) for row in self._lower]
        self._spreads = [sum(row) for row in self._spread]
        ends = (*chosen.share_lower, *chosen.share_upper)
        self._unit = math.lcm(*(end.denominator for end in ends))
        scaled = [end.numerator * (self._unit // end.denominator) for end in ends]
        size = len(self._lower)
        self._share_lower = scaled[:size]
        self._share_spread = [
            b - a for a, b in zip(scaled[:size], scaled[size:], strict=True)
        ]
        self._share_room = self._unit - sum(self._share_lower)

    def output(self, column: Entries) -> tuple[list[int], list[int]]:
        """2**60 times the largest and the smallest P(y|s) for every s, in units of the column's denominator."""
        at, values = self._with_rest(column)
        order = sorted(range(len(at)), key=values.__getitem__, reverse=True)
        where, w = [at[i] for i in order], [values[i] for i in order]
        most: list[int] = []
        least: list[int] = []
        sets = zip(self._lower, self._spread, self._room, self._spreads, strict=True)
        for lower, spread, room, total in sets:
            free = [spread[x] for x in where]
            base = sum(map(mul, [lower[x] for x in where], w))
            masses = list(accumulate(free, initial=0))
            worth = list(accumulate(map(mul, free, w), initial=0))
            most.append(base + _on_the_first(min(room, masses[-1]), masses, worth, w))
            # The symbols that never give this output take what they can; what is left fills the support
            # from its end, which is to leave out the first.
            left_out = min(masses[-1], total - room)
            least.append(base + worth[-1] - _on_the_first(left_out, masses, worth, w))
        return most, least

    def _with_rest(self, column: Entries) -> Entries:
        """The column with the entry of unseen symbols, P(y) on the table, last; all times the number of records."""
        if not self._weights:
            return column
        at, values = column
        total = sum(self._weights)
        mean = sum(
            self._weights[x] * value for x, value in zip(at, values, strict=True)
        )
        return (*at, len(self._weights)), (*(total * value for value in values), mean)

    def extremes(self, column: Entries, y: int = 0) -> Extremes:
        """The extreme lifts of one output over the set."""
        most, least = self.output(column)
        every = range(len(most))
        above = (
            (most[k] * self._unit, self._mean(least, k, most[k], 1)) for k in every
        )
        below = (
            (self._mean(most, k, least[k], -1), least[k] * self._unit) for k in every
        )
        pairs = product(
            nlargest(2, every, most.__getitem__), nsmallest(2, every, least.__getitem__)
        )
        ratios = [Bound(most[s], least[t], s, y, t) for s, t in pairs if s != t]
        return Extremes(
            _largest([Bound(*ends, k, y) for k, ends in enumerate(above)]),
            _largest([Bound(*ends, k, y) for k, ends in enumerate(below)]),
            _largest(ratios or [Bound(1, 1, 0, y, 0)]),
        )

    def worst(self, columns: Sequence[Entries]) -> Extremes:
        """The extremes of all outputs together (of equal ones the first), exactly."""
        found = [self.extremes(column, y) for y, column in enumerate(columns)]
        return Extremes(*map(_largest, zip(*found, strict=True)))

    def _mean(self, values: list[int], s: int, own: int, sign: int) -> int:
        """The least (sign 1) or largest (sign -1) sum_t P(t) values_t over the shares, with `own` for s."""
        c = [own if t == s else value for t, value in enumerate(values)]
        mean = sum(map(mul, self._share_lower, c))
        room = self._share_room
        if room:
            for t in sorted(range(len(c)), key=lambda t: sign * c[t]):
                taken = min(room, self._share_spread[t])
                mean += taken * c[t]
                room -= taken
        return mean


def _on_the_first(mass: int, masses: list[int], worth: list[int], w: list[int]) -> int:
    """The sum of the largest w under `mass`, which fills the free places in their order."""
    i = bisect_left(masses, mass, 1) - 1
    return worth[i] + (mass - masses[i]) * w[i]


def audit_population(
    channel: Channel, joint: Joint, notion: Notion, chosen: ConfidenceSet
) -> Audit:
    """Decide exactly whether `channel` satisfies `notion` for every population of a set, which is all it speaks of."""
    limits, joint = lift_limits(notion), released_part(channel, joint)
    worst = Population(chosen, joint.useful_counts).worst(columns_on(channel, joint))
    return verdict.verdict_of(
        _sides(worst, joint.sensitive.names, limits), channel.outputs, notion
    )


def audit(
    channel: Channel,
    joint: Joint,
    notion: Notion,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit:
    """Decide exactly whether `channel` keeps `notion`: on `joint`, and for the population if it was designed so.

    A channel that was designed with confidence is judged on every population in the set of the counts of `joint`, at
    the level of its design: `satisfied` and `worst` are those of the set, `achieved` is that of the table.

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
        Earlier releases of the same record, drawn independently: all together must keep the notion. The table has the
        useful columns of all of them.

    Raises
    ------
    InputError
        If the useful symbols of channel and joint differ, or the rows are no probabilities; with a set of populations,
        if the intervals in the channel file are not those of its table, or the notion is none on single lifts.
    """
    found = verdict.audit(channel, joint, notion, after=after)
    if is_stacked(joint, notion, after):
        if population is not None or channel.record.confidence is not None:
            raise InputError(NOT_STACKED)
        return found
    chosen = set_behind(channel, joint) if population is None else population
    if chosen is None:
        return found
    there = audit_population(channel, joint, notion, chosen)
    return replace(found, satisfied=there.satisfied, worst=there.worst)


def failing_outputs(
    channel: Channel, joint: Joint, notion: Notion, chosen: ConfidenceSet
) -> tuple[int, ...]:
    """Positions of the outputs that violate `notion` for some population of the set, decided exactly."""
    limits, joint = lift_limits(notion), released_part(channel, joint)
    extremes, columns = (
        Population(chosen, joint.useful_counts).extremes,
        columns_on(channel, joint),
    )
    sides = (
        _sides(extremes(column), joint.sensitive.names, limits) for column in columns
    )
    return tuple(
        y for y, both in enumerate(sides) if not all(each.kept for each in both)
    )


def _sides(found: Extremes, names: Sequence[str], limits: LiftLimits) -> list[Extreme]:
    """The extremes of outputs as the verdict on a table has them."""
    high, low, ratio = found
    return [
        Extreme("eps_u", limits.upper, high[:2], high[:2], names[high.s], high.y),
        Extreme(
            "eps_l", limits.lower, low[:2], (low.below, low.above), names[low.s], low.y
        ),
        Extreme(
            "eps_ldp",
            limits.ratio,
            ratio[:2],
            ratio[:2],
            names[ratio.s],
            ratio.y,
            names[ratio.t or 0],
        ),
    ]


def achieved_of(found: Extremes) -> Achieved:
    """The smallest doubles that bound the extremes."""
    return Achieved(
        *(
            log_upper(each.above, each.below)
            for each in (found.low, found.high, found.ratio)
        )
    )


def lift_limits(notion: Notion) -> LiftLimits:
    """The bounds on every lift alike, or InputError for notions on averages or with budgets of single symbols."""
    limits = notion.limits
    if limits.mean is None and not limits.own:
        return limits
    if limits.mean is None:
        raise InputError(NOT_STACKED)
    raise InputError(
        f"{notion.name} bounds averages over the sensitive symbols, for which confidence is not built; use alip, lip, "
        "ldp, max-lift or min-lift"
    )


def _largest(bounds: Sequence[Bound]) -> Bound:
    best = bounds[0]
    for bound in bounds[1:]:
        if (
            bound.above * best.below > best.above * bound.below
        ):  # a zero below means infinity
            best = bound
    return best


def set_behind(channel: Channel, joint: Joint) -> ConfidenceSet | None:
    """The set of populations that a channel was designed for, computed from counts; None for a promise about the table.

    On the channel's own table the intervals must be those in its file.
    """
    record = channel.record.confidence
    if record is None:
        return None
    own, joint = channel.joint, released_part(channel, joint)
    if own and all(
        getattr(own, k) == getattr(joint, k) for k in ("sensitive", "useful", "counts")
    ):
        return set_of_record(record, joint)
    if record.get("shares") == "known":
        raise InputError(
            "the channel was designed with known shares, which a public file and another table do not have: audit the "
            "internal channel file on its own table"
        )
    estimated = record.get("shares") == "estimated"
    return confidence_set(
        joint,
        record["level"],
        estimate_shares=estimated,
        unseen=record.get("unseen", 0),
    )
