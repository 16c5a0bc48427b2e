"""The extreme lifts of an output over all populations of a confidence set, in integers.

The set (`tables.confidence`) is a box for every P(.|s), lower_s(x) <= P(x|s) <= upper_s(x), and one
for P(S). An output with the column w(x) = W(y|x) has P(y|s) = sum_x P(x|s) w(x), and the lift

    l(s, y) = P(y|s) / sum_t P(t) P(y|t).

It grows with P(y|s) and falls with every other P(y|t). So with h_s the largest and g_s the smallest
P(y|s) over the boxes

    largest l(s, y)  = h_s / min over P(S) of [P(s) h_s + sum over t != s of P(t) g_t],
    smallest l(s, y) = g_s / max over P(S) of [P(s) g_s + sum over t != s of P(t) h_t],
    largest l(s, y) / l(t, y) = h_s / g_t  for s != t.

(docs/explanation/population.md, proposition 2). h_s is the optimum of a fractional knapsack: begin
at the lower ends, and put the mass that is left to 1 where w is largest, up to the upper ends; g_s
puts it where w is smallest (proposition 1). One sort of the column serves all s. The extreme means
over P(S) are knapsacks alike.

Example: P(.|s) between (0.2, 0.3) and (0.6, 0.9), column (1, 0.5). The mass left is 0.5. For the
maximum 0.4 of it goes to the first symbol and 0.1 to the second, h_s = 0.6 + 0.4 * 0.5 = 0.8; for
the minimum all of it goes to the second, g_s = 0.2 + 0.8 * 0.5 = 0.6.

All this in integers: the ends of the boxes are integers over 2^60, rounded outwards when the set
was made. Nothing here is shared with the search that designs channels for such sets.

A `Population` is made once for a set. `output` computes h_s and g_s of one output, `extremes` its
three extremes from them, and `worst` the largest of all outputs.

*Few outputs are computed in integers*, because an output of 800 symbols takes ten milliseconds so.
Most outputs are far from the largest, which is all that a verdict asks for. `Screen.largest_lifts`
bounds the three quotients of an output from above, by the same knapsacks in floating point and with
what rounding may have changed on the safe side. An output whose bound is below a quotient that is
known exactly cannot have the largest one, so that `contenders` are few. Before that, outputs whose
entries are nearly equal are left out (`_steep`): a channel that draws nearly all records anew has
only a few others.

The outputs of an optimum all reach their limit up to a margin, some 1e-14 apart. Long doubles,
where a machine has them, tell these apart, too.

With u half of the distance of 1 to the next number, a sum of m nonnegative terms is wrong by m u of
its value. No spread is more than the room, which is at most 1. So the masses of a knapsack, up to
the symbol that fills it, are at most 2 and wrong by 2 (n + 2) u, and the place of that symbol is
wrong only among symbols where the mass is so near to the room. With w the largest entry among these
and d = `MARGIN` (n + S + 16) u, P(y|s) is wrong by less than d (P(y|s) + w), and a mean over S
shares by less than d times its largest value.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from heapq import nlargest, nsmallest
from itertools import accumulate
from operator import mul
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import Entries, first_of_constants
from mechdesign.auditing.lifts import Achieved, log_upper
from mechdesign.core.balls import SCALE
from mechdesign.core.errors import InputError
from mechdesign.core.limits import LiftLimits
from mechdesign.tables.confidence import ConfidenceSet

# ----------------------------------------------------------- bounds in floating point

Number = np.longdouble
Array = NDArray[Number]

MARGIN = 16.0
"""Units of rounding for every term of a sum. A knapsack adds and subtracts five sums, of terms that
are products of two rounded numbers: together less than that.
"""

FIRST = 64
"""Symbols of which the first are tried: wide intervals are filled after few of them. Where more
were needed once, as many are tried at the next output."""

UNIT = np.finfo(Number).eps / 2
"""Half of the distance of 1 to the next number: the relative error of one operation."""


class Largest(NamedTuple):
    """Upper bounds of the largest lift, inverse of a lift and quotient of lifts of an output."""

    high: Number
    low: Number
    ratio: Number


class Screen:
    """A confidence set in doubles: lower ends and spreads of every P(.|s), and those of P(S)."""

    def __init__(
        self,
        lower: Sequence[Sequence[int]],
        spread: Sequence[Sequence[int]],
        share_lower: Sequence[int],
        share_spread: Sequence[int],
        unit: int,
    ) -> None:
        # Ends are at most 2^60, and divided by a power of two.
        self._lower = np.array(lower, dtype=np.int64).astype(Number) / SCALE
        room = np.array([SCALE - sum(row) for row in lower], dtype=np.int64)
        self._room = room.astype(Number) / SCALE
        # No symbol takes more than the room, so that a cumulative sum of the first ones is small
        # where it decides.
        widths = np.array(spread, dtype=np.int64).astype(Number) / SCALE
        self._width = np.minimum(widths, self._room[:, None])
        self._share_lower = _shares(share_lower, unit)
        (self._share_room,) = _shares([unit - sum(share_lower)], unit)
        self._share_width = np.minimum(_shares(share_spread, unit), self._share_room)
        self._whole_width = self._width.sum(axis=1)
        terms = self._lower.shape[0] + self._lower.shape[1] + 16
        self._error = MARGIN * terms * UNIT
        self._first = FIRST

    def largest_lifts(self, inputs: Sequence[int], values: Sequence[int]) -> Largest:
        """Upper bounds for the output with the entries `values` at the symbols `inputs`."""
        own = None
        if len(inputs) == self._lower.shape[1]:
            own = _own_place(values)
        if own is None:
            most, least = self._extremes(inputs, values)
        else:
            most, least = self._extremes_of_own(values, own)
        error = self._error
        of_means = error * most.max()
        with np.errstate(divide="ignore"):
            smallest_means = self._least_means(least, most) - of_means
            largest_means = -self._least_means(-most, -least) + of_means
            high = np.where(smallest_means > 0.0, most / smallest_means, np.inf)
            low = largest_means / least
            ratio = _largest_quotient(most, least)
        widened = 1.0 + error
        return Largest(
            high.max() * widened,
            low.max() * widened,
            ratio * widened,
        )

    def _extremes_of_own(self, values: Sequence[int], own: int) -> tuple[Array, Array]:
        """`_extremes` of an output that all symbols but `own` have with one probability w, and that
        one with a larger one.

        P(y|s) is w, and the difference times P(own|s), for which there is mass up to the width of
        its interval, and no less than what all others together leave. No term is negative, so that
        the sum is wrong by a few units of its value.
        """
        common, special = _shares([values[own - 1], values[own]], max(values))
        width = self._width[:, own]
        left = self._room - (self._whole_width - width)
        # A sum of all widths is wrong by less than the error.
        at_most = self._lower[:, own] + width
        at_least = self._lower[:, own] + np.maximum(left - self._error, 0.0)
        ends = common + (special - common) * np.stack([at_least, at_most])
        return (
            ends.max(axis=0) * (1.0 + self._error),
            ends.min(axis=0) * (1.0 - self._error),
        )

    def _extremes(
        self, inputs: Sequence[int], values: Sequence[int]
    ) -> tuple[Array, Array]:
        """The largest and the smallest P(y|s) for every s, divided by the largest entry, with what
        rounding may have changed on the safe side.
        """
        w = np.zeros(self._lower.shape[1], dtype=Number)
        support = np.array(inputs, dtype=np.intp)
        w[support] = _shares(values, max(values))
        # Most outputs of long tables come from few symbols: what the others take adds nothing.
        falling = support[np.argsort(-w[support], kind="stable")]
        base = self._lower[:, falling] @ w[falling]
        error = self._error
        added, at_most = self._filled(w, np.append(falling, np.flatnonzero(w == 0)[:1]))
        most = base + added
        most += error * (most + at_most)
        if self._others_fill(support):
            added = at_most = np.zeros_like(base)
        else:
            added, at_most = self._filled(w, np.argsort(w, kind="stable"))
        least = base + added
        # A probability that may be zero gives no bound: the quotient is computed exactly.
        least = np.maximum(least - error * (least + at_most), 0.0)
        return most, least

    def _others_fill(self, support: NDArray[np.intp]) -> bool:
        """Whether the symbols outside of the support fill the room of every s for sure."""
        if len(support) == self._width.shape[1]:
            return False
        of_support = self._width[:, support].sum(axis=1)
        # Both sums are wrong by less than that share of them.
        at_least = (1.0 - self._error) * self._whole_width
        at_least -= (1.0 + self._error) * of_support
        return bool((at_least > self._room + self._error).all())

    def _filled(self, w: Array, order: NDArray[np.intp]) -> tuple[Array, Array]:
        """What the room of every s adds to P(y|s), if it fills the symbols in this order, and the
        largest entry that may be the one of the symbol that fills it.

        Where the order is not one of all symbols, the entry of the last one is 0, as are those of
        the symbols that follow.
        """
        nearly = self._room - self._error
        surely = self._room + self._error
        size = min(self._first, len(order))
        while True:
            first = order[:size]
            width = self._width[:, first]
            masses = np.cumsum(width, axis=1)
            if size == len(order) or (masses[:, -1] > surely).all():
                break
            size = min(2 * size, len(order))
        rows = np.arange(len(masses))
        last = _places(masses, self._room)
        last = np.minimum(last, size - 1)
        # The next output needs about as many.
        self._first = int(last.max()) + FIRST
        # All of the last symbol, but for the mass that it does not take.
        taken = np.where(np.arange(size) <= last[:, None], width, 0.0)
        reached = masses[rows, last]
        worth = taken @ w[first] - (reached - self._room) * w[first[last]]
        # The place is surely that one, or one of those between `begin` and `end`.
        begin = last.copy()
        end = last.copy()
        before = np.where(last > 0, masses[rows, last - 1], 0.0)
        unsure = np.flatnonzero((before >= nearly) | (reached <= surely))
        begin[unsure] = _places(masses[unsure], nearly[unsure])
        end[unsure] = _places(masses[unsure], surely[unsure], "right")
        # Entries fall or rise, so the largest one is at an end of the places in question.
        largest = np.maximum(
            w[first[np.minimum(begin, size - 1)]], w[first[np.minimum(end, size - 1)]]
        )
        return worth, largest

    def _least_means(self, values: Array, instead: Array) -> Array:
        """For every s the least mean of `values` over the box of P(S), with that of s in `instead`,
        which is not smaller.
        """
        order = np.argsort(values, kind="stable")
        ascending = values[order]
        width = self._share_width[order]
        masses = _cumulative(width)
        worth = _cumulative(width * ascending)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        # The others fill the room as if s were not there, and s comes behind the smaller ones.
        smaller: NDArray[np.intp] = np.searchsorted(ascending, instead)
        own_width = self._share_width
        mass_before = masses[smaller] - np.where(rank < smaller, own_width, 0.0)
        own = np.clip(self._share_room - mass_before, 0.0, own_width)
        mass = self._share_room - own
        # Beyond the place of s: with its width filled, too, and taken out again.
        is_beyond = mass > masses[rank]
        extra = np.where(is_beyond, own_width, 0.0)
        mass = np.minimum(mass + extra, masses[-1])
        before = cast("NDArray[np.intp]", np.searchsorted(masses, mass))
        last = np.clip(before - 1, 0, len(order) - 1)
        filled = worth[last] + (mass - masses[last]) * ascending[last]
        base = self._share_lower @ values
        raised = self._share_lower * (instead - values)
        return base + raised + filled - extra * values + own * instead


def _own_place(values: Sequence[int]) -> int | None:
    """The place of the largest entry where all others are equal; None where they are not."""
    if len(values) < 3 or values.count(min(values)) != len(values) - 1:
        return None
    return values.index(max(values))


def _shares(values: Sequence[int], unit: int) -> Array:
    """Integers over a unit, each rounded twice."""
    try:
        # By way of integers of 64 bits, which is five times as fast.
        integers = np.array(values, dtype=np.int64).astype(Number)
    except OverflowError:
        integers = np.array(values, dtype=Number)
    return integers / Number(unit)


def _places(
    ascending: Array, values: Array, side: Literal["left", "right"] = "left"
) -> NDArray[np.intp]:
    """The place of a value for every s in its ascending row, before or after what equals it."""
    places = np.zeros(len(values), dtype=np.intp)
    for s, row in enumerate(ascending):
        places[s] = row.searchsorted(values[s], side)
    return places


def _cumulative(values: Array) -> Array:
    """Sums of the first 0, 1, .. values."""
    sums = np.zeros(len(values) + 1, dtype=Number)
    np.cumsum(values, out=sums[1:])
    return sums


def _largest_quotient(most: Array, least: Array) -> Number:
    """The largest most[s] / least[t] of two different symbols; infinity where there is one only."""
    if len(most) == 1:
        return Number(np.inf)
    s = int(most.argmax())
    t = int(least.argmin())
    if s != t:
        return most[s] / least[t]
    # The symbol that has both meets the next one of the others.
    others = np.arange(len(most)) != s
    return max(most[s] / least[others].min(), most[others].max() / least[t])


# ------------------------------------------------------------------ extremes in integers


class Bound(NamedTuple):
    """An extreme of one output `y` over the set: ``above / below``, reached by symbol `s` (against
    `t` for a quotient).

    `high` and `ratio` of `SetExtremes` have the lift, or the quotient of lifts, as above / below;
    `low` has the inverse of the lift.
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


class OutOfTime(Exception):
    """A figure was not computed within its time."""


def check_time(end: float | None) -> None:
    """Raise OutOfTime from `end` on, a moment of `time.process_time`; None is no limit."""
    if end is not None and time.process_time() >= end:
        raise OutOfTime


class SetExtremes(NamedTuple):
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
            # An infinite quotient uses more than any budget, and has no logarithm in doubles.
            if not bound.below:
                return math.inf
            largest = max(largest, math.log(bound.above / bound.below) / budget)
        return largest


class OutputBounds(NamedTuple):
    """The largest lift and the largest inverse of a lift of every symbol at one output, and
    quotients of lifts with the largest one among them.
    """

    highs: list[Bound]
    lows: list[Bound]
    ratios: list[Bound]


def achieved_of(extremes: SetExtremes) -> Achieved:
    """The smallest doubles that bound the extremes."""
    return Achieved(
        eps_l=log_upper(*extremes.low.quotient),
        eps_u=log_upper(*extremes.high.quotient),
        eps_ldp=log_upper(*extremes.ratio.quotient),
    )


@lru_cache(maxsize=1)
def population_of(confidence: ConfidenceSet, weights: tuple[int, ...]) -> Population:
    """The last `Population` that was asked for: a design is judged, and its figures are computed,
    one after the other.
    """
    return Population(confidence, weights)


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
        self._symbols = len(confidence.lower[0])
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
        self.screen = Screen(
            self._lower,
            self._spread,
            self._share_lower,
            self._share_spread,
            self._unit,
        )
        # Those of the columns that were asked for, which a design needs more than once.
        self._known: dict[Entries, SetExtremes] = {}
        # The last columns with their contenders: a verdict and the figures after it have the same.
        self._last: tuple[Sequence[Entries], list[int]] = ([], [])

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
        """2**60 times the largest (h_s) and the smallest P(y|s) (g_s) for every s, in units of the
        column's denominator.
        """
        inputs, values = self._with_rest(column)
        # A fractional knapsack for every s. Each P(x|s) begins at its lower end, and the room that
        # is left to 1 is shared out: where P(y|x) is largest for the maximum, and where it is
        # smallest for the minimum. One order of the symbols, by falling P(y|x), serves all s.
        pairs = sorted(
            zip(values, inputs, strict=True), key=lambda pair: pair[0], reverse=True
        )
        w = [value for value, _ in pairs]
        where = [x for _, x in pairs]
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
            # The symbols that never give this output (w = 0) take what they can. What is left fills
            # the support from its end: all of the support's spread, but for the mass that stays
            # unused, which is left out at the first symbols.
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
        # N P(y) = sum over x of count(x) W(y|x): no division, so the column stays one of integers.
        mean = 0
        for x, value in zip(inputs, values, strict=True):
            mean += self._weights[x] * value
        scaled = [total * value for value in values]
        return (*inputs, len(self._weights)), (*scaled, mean)

    def extremes(self, column: Entries, y: int = 0) -> SetExtremes:
        """The extreme lifts of one output over the set."""
        key = (tuple(column[0]), tuple(column[1]))
        known = self._known.get(key)
        if known is None:
            bounds = self.bounds(column, y)
            known = SetExtremes(
                largest_bound(bounds.highs),
                largest_bound(bounds.lows),
                largest_bound(bounds.ratios),
            )
            self._known[key] = known
        return SetExtremes(*(bound._replace(y=y) for bound in known))

    def bounds(self, column: Entries, y: int = 0) -> OutputBounds:
        """The extreme lifts of every symbol at one output over the set."""
        most, least = self.output(column)
        symbols = range(len(most))
        # The lift of s is P(y|s) / sum_t P(t) P(y|t): largest with P(y|s) at its most, all others
        # at their least, and P(S) at the shares with the least mean. Means are in units of
        # 1 / `_unit` more than P(y|s).
        smallest_means = self._least_means(least, most)
        negative = self._least_means([-v for v in most], [-v for v in least])
        highs: list[Bound] = []
        lows: list[Bound] = []
        for s in symbols:
            highs.append(Bound(most[s] * self._unit, smallest_means[s], s, y))
            lows.append(Bound(-negative[s], least[s] * self._unit, s, y))
        # The extreme quotient lies between two different symbols: one of the two largest and of the
        # two smallest.
        ratios: list[Bound] = []
        for s in nlargest(2, symbols, most.__getitem__):
            for t in nsmallest(2, symbols, least.__getitem__):
                if s != t:
                    ratios.append(Bound(most[s], least[t], s, y, t))
        if not ratios:
            # With one sensitive symbol there is no quotient but that of its lift with itself.
            ratios = [Bound(1, 1, 0, y, 0)]
        return OutputBounds(highs, lows, ratios)

    def worst(
        self, columns: Sequence[Entries], end: float | None = None
    ) -> SetExtremes:
        """The extremes of all outputs together (of equal ones the first), exactly.

        Raises `OutOfTime` when that takes until `end`, a moment of `time.process_time`.
        """
        extremes: list[SetExtremes] = []
        for y in self.contenders(columns, end):
            extremes.append(self.extremes(columns[y], y))
        highs, lows, ratios = zip(*extremes, strict=True)
        return SetExtremes(
            largest_bound(highs), largest_bound(lows), largest_bound(ratios)
        )

    def contenders(
        self, columns: Sequence[Entries], end: float | None = None
    ) -> list[int]:
        """The outputs, ascending, that may have the largest of one of the three extremes: all that
        have it, and few others.

        For each extreme they are computed exactly by falling upper bounds, until the bound is below
        the largest so far. Raises `OutOfTime` as `worst` does.
        """
        if len(columns) == 1:
            return [0]
        if columns == self._last[0]:
            return self._last[1]
        chosen = first_of_constants(columns, self._symbols)
        chosen = self._steep(columns, chosen, end)
        bounds: list[Largest] = []
        for y in chosen:
            check_time(end)
            bounds.append(self.screen.largest_lifts(*self._with_rest(columns[y])))
        found: set[int] = set()
        for kind, of_outputs in enumerate(zip(*bounds, strict=True)):
            largest = Number(0.0)
            falling = sorted(range(len(chosen)), key=lambda place: -of_outputs[place])
            for place in falling:
                if of_outputs[place] < largest:
                    break
                check_time(end)
                y = chosen[place]
                found.add(y)
                bound = self.extremes(columns[y], y)[kind]
                largest = max(largest, _number_below(bound))
        self._last = (list(columns), sorted(found))
        return self._last[1]

    def _steep(
        self, columns: Sequence[Entries], chosen: list[int], end: float | None
    ) -> list[int]:
        """The chosen outputs without those whose entries are too equal for the largest extremes.

        No lift, no inverse of one and no quotient of two exceeds the largest entry of an output
        divided by the smallest one. The extremes of the steepest output are reached.
        """
        steepness: list[Number] = []
        for y in chosen:
            check_time(end)
            steepness.append(_steepness(columns[y], self._symbols))
        steepest = max(range(len(chosen)), key=steepness.__getitem__)
        y = chosen[steepest]
        reached = min(map(_number_below, self.extremes(columns[y], y)))
        kept: list[int] = []
        for place, y in enumerate(chosen):
            if place == steepest or steepness[place] >= reached:
                kept.append(y)
        return kept

    def _least_means(self, values: list[int], instead: list[int]) -> list[int]:
        """For every s the least sum_t P(t) values_t over the box of P(S), where s has its value of
        `instead`, which is not below that of `values`.
        """
        # The same knapsack: what is left of 1 goes to the smallest values first. One order serves
        # all s: the others fill it as if s were not there, and s comes behind the smaller ones.
        order = sorted(range(len(values)), key=values.__getitem__)
        ascending = [values[t] for t in order]
        free = [self._share_spread[t] for t in order]
        masses = list(accumulate(free, initial=0))
        worth = list(accumulate(map(mul, free, ascending), initial=0))
        base = sum(map(mul, self._share_lower, values))
        means = [0] * len(values)
        for rank, s in enumerate(order):
            value, spread = instead[s], free[rank]
            smaller = bisect_left(ascending, value)
            before = masses[smaller]
            if rank < smaller:
                before -= spread
            own = min(spread, max(0, self._share_room - before))
            mass = self._share_room - own
            rest = 0
            if mass > masses[rank]:
                # Beyond the place of s: with its spread filled, too, and taken out again.
                mass = min(mass + spread, masses[-1])
                rest = -spread * values[s]
            rest += _on_the_first(mass, masses, worth, ascending)
            raised = self._share_lower[s] * (value - values[s])
            means[s] = base + raised + rest + own * value
        return means


def _on_the_first(mass: int, masses: list[int], worth: list[int], w: list[int]) -> int:
    """What `mass` adds to P(y|s) if it fills the free places in their order, by falling w.

    It fills the first i symbols, which hold masses[i] and add worth[i], and a part of the next one.
    """
    # masses ascends from 0, and i is the place with masses[i] < mass <= masses[i + 1]; without mass
    # it is 0.
    i = bisect_left(masses, mass, 1) - 1
    return worth[i] + (mass - masses[i]) * w[i]


def _steepness(column: Entries, n: int) -> Number:
    """A number that is not below the largest entry of a column divided by the smallest one of all n
    symbols.
    """
    inputs, values = column
    if len(inputs) < n:
        return Number(math.inf)
    quotient = Number(max(values)) / Number(min(values))
    return quotient * (1.0 + 4.0 * UNIT)


def _number_below(bound: Bound) -> Number:
    """A floating point number that is not above the quotient."""
    if not bound.below:
        return Number(math.inf)
    rounded = Number(bound.above) / Number(bound.below)
    return rounded * (1.0 - 4.0 * UNIT)


def largest_bound(bounds: Sequence[Bound]) -> Bound:
    """The first of the largest quotients, by products of integers; a denominator of zero is
    infinity.
    """
    best = bounds[0]
    for bound in bounds[1:]:
        if bound.above * best.below > best.above * bound.below:
            best = bound
    return best
