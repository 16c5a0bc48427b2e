"""The most outputs that a quantiser gives on one fibre of a linear query, counted exactly.

A fibre of block b is {s + w x : x in the domain of b}, where the base s is the contribution of all
the others. The number of cells on it is a piecewise constant function of s. It can rise only where
a member of the fibre reaches a threshold from below (cells are closed below), so only these bases
and the ends of the set of bases are counted.

For example, two individuals have 0 or 1 each, their sum is asked for, and the only threshold is 1.
The other individual gives the bases 0 and 1. The fibre {0, 1} has two cells and {1, 2} one, so the
most is 2, attained at the base 0.

Three ways count, by what the domains are:

- evenly spaced thresholds and intervals: a formula (`_most_even`);
- finite domains: all bases, listed as integers on a common lattice (`_most_on_lattice`);
- all else: the bases where the count can rise, in exact arithmetic (`_most_over`).

*Sums.* `sumset` lists the sums of count_k independent members of each finite set k of integers. A
set is kept as runs of consecutive integers, because even many sums consist of few runs:

1. Every set is moved to start at 0, and divided by the common unit of all.
2. The sums of n members of one set are put together from those of 1, 2, 4, .. members, by doubling
   (`doublings`, `with_members`): 13 members are 8 and 4 and 1.
3. Two sets are added run by run, [p, q] + [r, s] = [p + r, q + s], or by a convolution where they
   have too many runs (`added`).

For example, the sums of two members of {0, 3} and one of {0, 1} are 0, 1, 3, 4, 6, 7: the runs
[0, 1], [3, 4] and [6, 7].
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.nonstochastic.quantizers import EvenThresholds
from mechdesign.nonstochastic.queries import (
    FiniteDomain,
    IntervalDomain,
    LinearQuery,
    Stratum,
    reach,
)

CHUNK = 1 << 20
"""Answers that are placed into cells at a time: 8 MB."""

MOST_ANSWERS = 2 * 10**9
"""Most answers that are placed into cells, which takes some 100 s. Beyond it the bases are
relaxed."""

MOST_STEPS = 3_000_000
"""Most answers of one finite individual among others on intervals. They are placed one by one,
which takes some 5 s."""

MOST_COMPONENTS = 100_000
"""Most intervals of bases, which are walked through one by one in exact arithmetic."""

Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Count:
    """At most `outputs` cells on any fibre; `attained` of them at `base` (of block `block`).

    The two numbers differ only where the bases were too many to list (`most_outputs`).
    """

    outputs: int
    attained: int
    block: int
    base: Fraction


def others(query: LinearQuery, block: int) -> list[Stratum]:
    """The blocks of all individuals but one of block `block`."""
    rest: list[Stratum] = []
    for k, stratum in enumerate(query.blocks):
        if k == block:
            stratum = replace(stratum, count=stratum.count - 1)
        if stratum.count:
            rest.append(stratum)
    return rest


def is_finite(block: Stratum) -> bool:
    """Whether one individual of the block has finitely many contributions."""
    return isinstance(block.domain, FiniteDomain) or block.width == 0


def contributions(block: Stratum) -> list[Fraction]:
    """The contributions w x of one individual of a finite block, sorted."""
    if isinstance(block.domain, FiniteDomain):
        values = block.domain.values
    else:
        # An interval of no width, or of no weight: one contribution.
        values = (block.domain.lo,)
    return sorted({block.weight * v for v in values})


def lattice_unit(blocks: Iterable[Stratum]) -> int:
    """The smallest integer u that makes u times every contribution of finite blocks an integer."""
    unit = 1
    for block in blocks:
        if is_finite(block):
            unit = math.lcm(unit, *(v.denominator for v in contributions(block)))
    return unit


def base_sums(blocks: Sequence[Stratum], unit: int) -> Integers | None:
    """Sorted distinct sums of all contributions in units of 1/unit; None if too many."""
    parts: list[tuple[list[int], int]] = []
    for block in blocks:
        parts.append(([int(v * unit) for v in contributions(block)], block.count))
    return sumset(parts)


def most_outputs(query: LinearQuery, thresholds: Sequence[Fraction]) -> Count:
    """The largest number of cells on a fibre of the query.

    Exact (``outputs == attained``) unless the sums of the others are too many to list. Then they
    are relaxed to all real numbers between the smallest and the largest sum, so `outputs` is an
    upper bound.
    """
    # Individuals of one block are alike, so one of each block stands for all of it.
    counts = [_most_in_block(query, k, thresholds) for k in range(len(query.blocks))]
    most = max(counts, key=lambda count: count.attained)
    return replace(most, outputs=max(count.outputs for count in counts))


def _most_in_block(query: LinearQuery, k: int, thresholds: Sequence[Fraction]) -> Count:
    """The largest number of cells that one individual of block `k` can bring about."""
    block = query.blocks[k]
    rest = others(query, k)

    # The formula, or the list of all bases, where the domains are of one kind.
    all_intervals = not any(is_finite(b) for b in (block, *rest))
    if isinstance(thresholds, EvenThresholds) and all_intervals:
        return replace(_most_even(block, rest, thresholds), block=k)
    if is_finite(block) and all(is_finite(b) for b in rest):
        count = _most_on_lattice(block, rest, thresholds)
        if count is not None:
            return replace(count, block=k)

    # The bases where the count can rise, unless they are too many.
    bases = _components(rest)
    rises = 0
    if is_finite(block):
        # Each value reaches each threshold at a base of its own, where all values are placed.
        rises = len(thresholds) * len(contributions(block)) ** 2
    if bases is not None and rises <= MOST_STEPS:
        outputs, base = _most_over(block, bases, thresholds)
        return Count(outputs, outputs, k, base)

    # Relaxed: the individual fills its interval, and the others all between their smallest and
    # largest sum. The largest count of the two true fibres at the ends is attained.
    lo, hi = reach(rest)
    filled = replace(block, domain=IntervalDomain(block.domain.lo, block.domain.hi))
    outputs, _ = _most_over(filled, bases or [(lo, hi)], thresholds)
    attained, base = max(_at_base(block, s, thresholds) for s in (lo, hi))
    return Count(outputs, attained, k, base)


def _most_even(block: Stratum, rest: list[Stratum], cuts: EvenThresholds) -> Count:
    """Evenly spaced thresholds and intervals, by a formula.

    A fibre (s + a, s + b] of length L that ends on threshold t_k holds t_k, t_(k-1), .. above t_k -
    L: that is min(k + 1, ceil(L / step)) of them, which grows with k. No other base but the
    smallest can have more.
    """
    lo, hi = reach(rest)
    low, high = block.ends
    at_lowest, _ = _at_base(block, lo, cuts)
    # The thresholds that a fibre can end on, as indices: lo + high <= t_k <= hi + high.
    first = max(0, math.ceil((lo + high - cuts.first) / cuts.step))
    last = min(cuts.number - 1, math.floor((hi + high - cuts.first) / cuts.step))
    most = 0
    if first <= last:
        most = 1 + min(last + 1, math.ceil((high - low) / cuts.step))
    if at_lowest >= most:
        return Count(at_lowest, at_lowest, 0, lo)
    # The lowest threshold with as many below it is the earliest base that attains the maximum. The
    # fibre begins above `most` - 1 thresholds, so the last of them has the index `most` - 2.
    return Count(most, most, 0, cuts[max(first, most - 2)] - high)


def _at_base(
    block: Stratum, base: Fraction, thresholds: Sequence[Fraction]
) -> tuple[int, Fraction]:
    """The number of cells on one fibre, and its base."""
    if is_finite(block):
        # A finite domain may skip cells, so its answers are counted one by one.
        cells = {bisect_right(thresholds, base + v) for v in contributions(block)}
        return len(cells), base
    low, high = block.ends
    first = bisect_right(thresholds, base + low)
    last = bisect_right(thresholds, base + high)
    return 1 + last - first, base


def _most_on_lattice(
    block: Stratum, rest: list[Stratum], thresholds: Sequence[Fraction]
) -> Count | None:
    """All domains finite: answers are integers u * y, and y >= t iff u * y >= ceil(u * t).

    None if there are too many answers, or too large ones for 64 bits.
    """
    unit = lattice_unit([block, *rest])
    bases = base_sums(rest, unit)
    steps = [int(v * unit) for v in contributions(block)]
    if bases is None or max(abs(s) for s in steps) > LARGEST_INTEGER:
        return None
    # All answers lie closer to 0 than `farthest`, so an answer is on the same side of a clipped
    # threshold as of the true one.
    farthest = 2 * LARGEST_INTEGER
    clipped = {min(max(math.ceil(t * unit), -farthest), farthest) for t in thresholds}
    cuts = np.array(sorted(clipped), dtype=np.int64)
    step = np.asarray(steps, dtype=np.int64)
    gaps = np.diff(step)
    even_steps = gaps.size > 0 and gaps.min() == gaps.max()
    if even_steps and (cuts.size < 2 or np.diff(cuts).min() >= gaps[0]):
        # Equal steps no longer than a cell skip no cell: the two ends of a fibre count it.
        return _most_over_sums(bases, step[[0, -1]], cuts, unit, skipping=False)
    if bases.size * step.size > MOST_ANSWERS:
        return None
    return _most_over_sums(bases, step, cuts, unit, skipping=True)


def _most_over_sums(
    bases: Integers, step: Integers, cuts: Integers, unit: int, *, skipping: bool
) -> Count:
    """The largest count over listed bases; without `skipping`, all cells between the ends count."""
    rows = max(1, CHUNK // step.size)
    # The first of several bases with the same count is kept, so the witness is the smallest.
    attained = 0
    base = 0
    for start in range(0, bases.size, rows):
        part = bases[start : start + rows]
        cells = np.searchsorted(cuts, part[:, None] + step[None, :], side="right")
        # Answers ascend along a row, and each change of cell between neighbours is one more output.
        jumps = np.diff(cells, axis=1)
        if skipping:
            counts = 1 + np.count_nonzero(jumps, axis=1)
        else:
            counts = 1 + jumps.sum(axis=1)
        place = int(counts.argmax())
        if counts[place] > attained:
            attained = int(counts[place])
            base = int(part[place])
    return Count(attained, attained, 0, Fraction(base, unit))


def _components(rest: list[Stratum]) -> list[Ends] | None:
    """The set of bases as disjoint closed intervals, or None if it has too many of them.

    The individuals on intervals together fill [lo, hi], which is moved to every sum of the finite
    ones.
    """
    discrete = [b for b in rest if is_finite(b)]
    lo, hi = reach(b for b in rest if not is_finite(b))
    unit = lattice_unit(discrete)
    sums = base_sums(discrete, unit)
    if sums is None:
        return None
    # Two neighbouring sums are in one component if the interval bridges them. Sums are whole
    # multiples of the unit, so the width is rounded down.
    breaks = np.flatnonzero(np.diff(sums) > math.floor((hi - lo) * unit))
    if breaks.size >= MOST_COMPONENTS:
        return None
    first = sums[np.concatenate(([0], breaks + 1))].tolist()
    last = sums[np.concatenate((breaks, [sums.size - 1]))].tolist()
    components: list[Ends] = []
    for a, b in zip(first, last, strict=True):
        components.append((lo + Fraction(a, unit), hi + Fraction(b, unit)))
    return components


def _most_over(
    block: Stratum, bases: Sequence[Ends], thresholds: Sequence[Fraction]
) -> tuple[int, Fraction]:
    """The largest count over closed intervals of bases, and a base where it is attained.

    All numbers are scaled to integers, which Python compares faster than fractions.
    """
    finite = is_finite(block)
    if finite:
        steps = contributions(block)
    else:
        steps = list(block.ends)
    base_ends = [end for base in bases for end in base]
    denominators = {v.denominator for v in (*thresholds, *steps, *base_ends)}
    scale = math.lcm(*denominators)

    def scaled(numbers: Iterable[Fraction]) -> list[int]:
        return [v.numerator * (scale // v.denominator) for v in numbers]

    cuts = scaled(thresholds)
    offsets = scaled(steps)
    ends = scaled(base_ends)

    # The count rises where a member reaches a threshold; of an interval only the upper end can
    # raise it.
    rising = offsets
    if not finite:
        rising = offsets[1:]
    rises = sorted({t - v for t in cuts for v in rising})
    # Within a component the count is largest at its lower end, or where it has just risen.
    candidates: list[int] = []
    for first, last in zip(ends[::2], ends[1::2], strict=True):
        candidates.append(first)
        candidates += rises[bisect_left(rises, first) : bisect_right(rises, last)]

    attained = 0
    base = 0
    for s in candidates:
        cells = [bisect_right(cuts, s + v) for v in offsets]
        if finite:
            count = len(set(cells))
        else:
            count = 1 + cells[-1] - cells[0]
        if count > attained:
            attained = count
            base = s
    return attained, Fraction(base, scale)


LARGEST_SPAN = 1 << 24
"""Largest span of a sumset that is listed whole (128 MB) and convolved in about a second."""

LARGEST_SUMSET = 4_000_000
"""Most members of a sumset of a larger span, and most pairs of runs in one addition, which then
takes less than a second."""

MOST_ADDITIONS = 50_000_000
"""Most pairs of runs in all additions together, where the span is too large for convolutions. They
take some seconds."""

MOST_PAIRS = 300_000
"""Pairs of runs above which one convolution is faster than adding them."""

LARGEST_INTEGER = 1 << 61
"""Largest sum, so that adding two of them cannot overflow 64 bits."""

Integers = NDArray[np.int64]

Runs: TypeAlias = tuple[Integers, Integers]
"""A set as the first and last members of its runs of consecutive integers, in order."""


def sumset(parts: Sequence[tuple[Sequence[int], int]]) -> Integers | None:
    """The sorted distinct sums of `count` members of each set `values`; None if too many."""
    # Every set is moved to start at 0, and divided by the common unit of all: both keep the numbers
    # small.
    base = 0
    offsets: list[tuple[list[int], int]] = []
    for values, count in parts:
        lowest = min(values)
        base += lowest * count
        moved = [v - lowest for v in sorted(set(values))]
        if count and len(moved) > 1:
            offsets.append((moved, count))
    unit = math.gcd(*(v for values, _ in offsets for v in values))
    span = sum(values[-1] * count for values, count in offsets)
    if abs(base) + span > LARGEST_INTEGER:
        return None
    narrow = span <= LARGEST_SPAN * unit
    sums = _Sums(narrow=narrow)
    # The sums of no members: 0 alone.
    total: Runs = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    for values, count in offsets:
        units = np.array(values, dtype=np.int64) // unit
        grown = sums.with_members(total, units, count)
        if grown is None:
            return None
        total = grown
    members = int((total[1] - total[0] + 1).sum())
    if not narrow and members > LARGEST_SUMSET:
        return None
    return base + _members(total) * unit


class _Sums:
    """Sums of sets of integers that start at 0, within limits of memory and time.

    Parameters
    ----------
    narrow
        Whether all sums together fit into an array (`LARGEST_SPAN`), so that convolutions can be
        used.
    """

    def __init__(self, *, narrow: bool) -> None:
        self._narrow = narrow
        self._room = MOST_ADDITIONS

    def added(self, a: Runs, b: Runs) -> Runs | None:
        """The sums of a member of each, or None if they are too many to compute."""
        pairs = a[0].size * b[0].size
        if self._narrow and pairs > MOST_PAIRS:
            return _convolved(a, b)
        # Without the second limit a million people, each adding little, would take for ever.
        if pairs > min(LARGEST_SUMSET, self._room):
            return None
        if not self._narrow:
            self._room -= pairs
        # All pairs of runs; the sums of integers of two runs have no gaps.
        first = np.add.outer(a[0], b[0]).ravel()
        last = np.add.outer(a[1], b[1]).ravel()
        return _merged(first, last)

    def doublings(self, values: Integers, count: int) -> list[Runs]:
        """The sums of 1, 2, 4, .. members of a set, up to `count` and as far as possible."""
        doubled = [_merged(values, values)]
        while 1 << len(doubled) <= count:
            twice = self.added(doubled[-1], doubled[-1])
            if twice is None:
                break
            doubled.append(twice)
        return doubled

    def with_members(self, total: Runs, values: Integers, count: int) -> Runs | None:
        """The sums of a member of `total` and `count` members of a set; None if too many."""
        doubled = self.doublings(values, count)
        left = count
        # Adding members in doubles takes some 2 log2(count) additions in the place of `count`.
        while left:
            # The largest power of two of members that is not too much at once: if the sums of 8
            # have too many runs, 13 members are 4 and 4 and 4 and 1.
            most = min(len(doubled), left.bit_length())
            sums: Runs | None = None
            for k in reversed(range(most)):
                sums = self.added(total, doubled[k])
                if sums is not None:
                    left -= 1 << k
                    break
            if sums is None:
                return None
            total = sums
        return total


def _convolved(a: Runs, b: Runs) -> Runs:
    """The sums of a member of each, by a convolution of zeros and ones.

    A result counts pairs, at most 2^24 of them, and the error of the transform is below
    6 * log2(length) * 2^-53 * 2^24 < 1e-6, so that 1/2 separates none from some beyond doubt.
    """
    size = int(a[1][-1] + b[1][-1]) + 1
    # Longer than the result, so that the cyclic convolution does not wrap around.
    length = 1 << size.bit_length()
    ones = np.zeros((2, length))
    for k, runs in enumerate((a, b)):
        ones[k, _members(runs)] = 1.0
    spectra = np.fft.rfft(ones)
    sums = np.flatnonzero(np.fft.irfft(spectra[0] * spectra[1], length)[:size] > 0.5)
    return _merged(sums, sums)


def _members(runs: Runs) -> Integers:
    """All members of a set, in order."""
    first, last = runs
    lengths = last - first + 1
    # A member is its place in the whole, moved from the start of its run there to the run's first
    # member.
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(first - starts, lengths)


def _merged(first: Integers, last: Integers) -> Runs:
    """The runs of the union of runs that may overlap or touch."""
    order = np.argsort(first, kind="stable")
    first = first[order]
    # A run may lie inside of an earlier one, so the end so far is the largest of all before.
    last = np.maximum.accumulate(last[order])
    # A new run starts where a gap of at least one integer is left.
    starts = np.flatnonzero(first[1:] > last[:-1] + 1) + 1
    return first[np.append(0, starts)], last[np.append(starts, len(last)) - 1]
