"""The most outputs that a quantiser gives on one fibre of a linear query.

A fibre of block b is {s + w x : x in the domain of b}, where the base s is the contribution of all the others. The
number of cells on it is a piecewise constant function of s, so it is enough to look at the bases where it can rise,
and the count is exact.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechdesign.nonstochastic.domains import FiniteDomain, IntervalDomain
from mechdesign.nonstochastic.quantizers import EvenThresholds
from mechdesign.nonstochastic.queries import (
    LARGEST_INTEGER,
    Integers,
    LinearQuery,
    Stratum,
    reach,
    sumset,
)

CHUNK = 1 << 20
"""Answers that are placed into cells at a time: 8 MB."""

MOST_ANSWERS = 2 * 10**9
"""Answers that are placed into cells in all: some 100 s. Beyond it the bases are relaxed."""

MOST_STEPS = 3_000_000
"""Answers of one finite individual among others on intervals, placed one by one: some 5 s."""

MOST_COMPONENTS = 100_000
"""Intervals of bases that are walked through one by one in exact arithmetic."""

Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Count:
    """At most `outputs` cells on any fibre; `attained` of them at `base` (of block `block`)."""

    outputs: int
    attained: int
    block: int
    base: Fraction


def others(query: LinearQuery, block: int) -> list[Stratum]:
    """The blocks of everybody but one individual of block `block`."""
    changed = [
        replace(b, count=b.count - 1) if k == block else b
        for k, b in enumerate(query.blocks)
    ]
    return [b for b in changed if b.count]


def is_finite(block: Stratum) -> bool:
    """Whether one individual of the block has finitely many contributions."""
    return isinstance(block.domain, FiniteDomain) or block.width == 0


def contributions(block: Stratum) -> list[Fraction]:
    """The contributions w x of one individual of a finite block, sorted."""
    values = (
        block.domain.values
        if isinstance(block.domain, FiniteDomain)
        else (block.domain.lo,)
    )
    return sorted({block.weight * v for v in values})


def lattice_unit(blocks: Iterable[Stratum]) -> int:
    """The smallest integer u such that u times every contribution of the finite blocks is an integer."""
    return math.lcm(
        *(v.denominator for b in blocks if is_finite(b) for v in contributions(b))
    )


def base_sums(blocks: Sequence[Stratum], unit: int) -> Integers | None:
    """Sorted distinct sums of everyone's contribution in units of 1/unit; None if too many."""
    return sumset(
        [([int(v * unit) for v in contributions(b)], b.count) for b in blocks]
    )


def most_outputs(query: LinearQuery, thresholds: Sequence[Fraction]) -> Count:
    """The largest number of cells on a fibre of the query.

    Exact (``outputs == attained``) unless the sums of the others are too many to list; then they
    are relaxed to all real numbers between the smallest and the largest, which counts no fibre out.
    """
    found = [_most_in_block(query, k, thresholds) for k in range(len(query.blocks))]
    most = max(found, key=lambda count: count.attained)
    return replace(most, outputs=max(count.outputs for count in found))


def _most_in_block(query: LinearQuery, k: int, thresholds: Sequence[Fraction]) -> Count:
    block, rest = query.blocks[k], others(query, k)
    if isinstance(thresholds, EvenThresholds) and not any(
        is_finite(b) for b in (block, *rest)
    ):
        return replace(_most_even(block, rest, thresholds), block=k)
    if is_finite(block) and all(is_finite(b) for b in rest):
        found = _most_on_lattice(block, rest, thresholds)
        if found is not None:
            return replace(found, block=k)
    bases = _components(rest)
    rises = len(thresholds) * len(contributions(block)) ** 2 if is_finite(block) else 0
    if bases is not None and rises <= MOST_STEPS:
        outputs, base = _most_over(block, bases, thresholds)
        return Count(outputs, outputs, k, base)
    lo, hi = reach(rest)
    filled = replace(block, domain=IntervalDomain(block.domain.lo, block.domain.hi))
    outputs, _ = _most_over(filled, bases or [(lo, hi)], thresholds)
    attained, base = max(_at_base(block, s, thresholds) for s in (lo, hi))
    return Count(outputs, attained, k, base)


def _most_even(block: Stratum, rest: list[Stratum], cuts: EvenThresholds) -> Count:
    """Evenly spaced thresholds and intervals, by a formula.

    A fibre (s + a, s + b] of length L that ends on threshold t_k holds t_k, t_(k-1), .. above t_k - L: that
    is min(k + 1, ceil(L / step)) of them, which grows with k. No other base but the smallest can have more.
    """
    lo, hi = reach(rest)
    low, high = block.ends
    at_lowest, _ = _at_base(block, lo, cuts)
    # The thresholds that a fibre can end on, as indices: lo + high <= t_k <= hi + high.
    first = max(0, math.ceil((lo + high - cuts.first) / cuts.step))
    last = min(cuts.number - 1, math.floor((hi + high - cuts.first) / cuts.step))
    most = (
        1 + min(last + 1, math.ceil((high - low) / cuts.step)) if first <= last else 0
    )
    if at_lowest >= most:
        return Count(at_lowest, at_lowest, 0, lo)
    return Count(most, most, 0, cuts[max(first, most - 2)] - high)


def _at_base(
    block: Stratum, base: Fraction, thresholds: Sequence[Fraction]
) -> tuple[int, Fraction]:
    """The number of cells on one fibre, and its base."""
    if is_finite(block):
        return len(
            {bisect_right(thresholds, base + v) for v in contributions(block)}
        ), base
    first, last = (bisect_right(thresholds, base + end) for end in block.ends)
    return 1 + last - first, base


def _most_on_lattice(
    block: Stratum, rest: list[Stratum], thresholds: Sequence[Fraction]
) -> Count | None:
    """All domains finite: answers are integers u * y, and y >= t iff u * y >= ceil(u * t)."""
    unit = lattice_unit([block, *rest])
    bases = base_sums(rest, unit)
    steps = [int(v * unit) for v in contributions(block)]
    if bases is None or max(abs(s) for s in steps) > LARGEST_INTEGER:
        return None
    # An answer is on the same side of a clipped threshold as of the true one.
    most = 2 * LARGEST_INTEGER
    clipped = {min(max(math.ceil(t * unit), -most), most) for t in thresholds}
    cuts = np.array(sorted(clipped), dtype=np.int64)
    step = np.asarray(steps, dtype=np.int64)
    gaps = np.diff(step)
    if (
        gaps.size
        and gaps.min() == gaps.max()
        and (cuts.size < 2 or np.diff(cuts).min() >= gaps[0])
    ):
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
    attained, base = 0, 0
    for start in range(0, bases.size, rows):
        part = bases[start : start + rows]
        jumps = np.diff(
            np.searchsorted(cuts, part[:, None] + step[None, :], side="right"), axis=1
        )
        counts = 1 + (
            np.count_nonzero(jumps, axis=1) if skipping else jumps.sum(axis=1)
        )
        place = int(counts.argmax())
        if counts[place] > attained:
            attained, base = int(counts[place]), int(part[place])
    return Count(attained, attained, 0, Fraction(base, unit))


def _components(rest: list[Stratum]) -> list[Ends] | None:
    """The set of bases as disjoint closed intervals, or None if it has too many of them."""
    discrete = [b for b in rest if is_finite(b)]
    lo, hi = reach(b for b in rest if not is_finite(b))
    unit = lattice_unit(discrete)
    sums = base_sums(discrete, unit)
    if sums is None:
        return None
    span = hi - lo
    breaks = np.flatnonzero(np.diff(sums) > math.floor(span * unit))
    if breaks.size >= MOST_COMPONENTS:
        return None
    first = sums[np.concatenate(([0], breaks + 1))].tolist()
    last = sums[np.concatenate((breaks, [sums.size - 1]))].tolist()
    return [
        (lo + Fraction(a, unit), hi + Fraction(b, unit))
        for a, b in zip(first, last, strict=True)
    ]


def _most_over(
    block: Stratum, bases: Sequence[Ends], thresholds: Sequence[Fraction]
) -> tuple[int, Fraction]:
    """The largest count over closed intervals of bases, and a base where it is attained."""
    finite = is_finite(block)
    steps = contributions(block) if finite else list(block.ends)
    given = [*thresholds, *steps, *(e for base in bases for e in base)]
    scale = math.lcm(*{v.denominator for v in given})
    numbers = [v.numerator * (scale // v.denominator) for v in given]
    cuts, offsets = (
        numbers[: len(thresholds)],
        numbers[len(thresholds) : len(thresholds) + len(steps)],
    )
    ends = numbers[len(thresholds) + len(steps) :]
    rises = sorted({t - v for t in cuts for v in (offsets if finite else offsets[1:])})
    candidates: list[int] = []
    for first, last in zip(ends[::2], ends[1::2], strict=True):
        candidates += [
            first,
            *rises[bisect_left(rises, first) : bisect_right(rises, last)],
        ]
    attained, base = 0, 0
    for s in candidates:
        cells = [bisect_right(cuts, s + v) for v in offsets]
        count = len(set(cells)) if finite else 1 + cells[-1] - cells[0]
        if count > attained:
            attained, base = count, s
    return attained, Fraction(base, scale)
