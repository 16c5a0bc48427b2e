"""Lifts as ratios of integers, and the extreme ones of a channel; no floating point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import mul
from typing import NamedTuple, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint

Entries: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Rows of the positive entries of one output, and those entries."""


class LiftCell(NamedTuple):
    """One lift, ``mass * total / (row * output)`` in integers, of symbol `s` on output `y`."""

    s: int
    y: int
    mass: int
    row: int
    output: int
    total: int

    @property
    def lift(self) -> tuple[int, int]:
        """Numerator and denominator of the lift."""
        return self.mass * self.total, self.row * self.output

    @property
    def inverse(self) -> tuple[int, int]:
        """Those of its inverse; the denominator is 0 for a lift of 0."""
        return self.row * self.output, self.mass * self.total


class ExtremeLifts(NamedTuple):
    """The largest and the smallest lift, and the two with the largest ratio on one output."""

    high: LiftCell
    low: LiftCell
    above: LiftCell
    below: LiftCell

    @property
    def ratio(self) -> tuple[int, int]:
        """Numerator and denominator of the largest Gamma(y)."""
        return self.above.mass * self.below.row, self.below.mass * self.above.row


def extremes_by_output(
    counts: Sequence[Sequence[int]], columns: Sequence[Entries], joint: Joint
) -> Iterator[ExtremeLifts]:
    """The extreme lifts of each output in turn, found by exact comparison of every cell."""
    sums = [sum(row) for row in joint.counts]
    total = sum(sums)
    for y, (at, values) in enumerate(columns):
        masses = [sum(map(mul, [row[x] for x in at], values)) for row in counts]
        output = sum(masses)
        s = t = 0
        most = least = masses[0]
        most_row = least_row = sums[0]
        for k in range(1, len(masses)):
            mass, row = masses[k], sums[k]
            if mass * most_row > most * row:
                s, most, most_row = k, mass, row
            elif mass * least_row < least * row:
                t, least, least_row = k, mass, row
        high, low = (
            LiftCell(s, y, most, most_row, output, total),
            LiftCell(t, y, least, least_row, output, total),
        )
        yield ExtremeLifts(high, low, high, low)


def extremes_of(counts: Sequence[Sequence[int]], columns: Sequence[Entries], joint: Joint) -> ExtremeLifts:
    """The extreme lifts of all outputs together (of equal ones the first); arguments as above."""
    found: ExtremeLifts | None = None
    for here in extremes_by_output(counts, columns, joint):
        found = here if found is None else _extreme_of(found, here)
    if found is None:
        raise InputError("a channel needs at least one output")
    return found


def _extreme_of(one: ExtremeLifts, other: ExtremeLifts) -> ExtremeLifts:
    high = other.high if _exceeds(other.high.lift, one.high.lift) else one.high
    low = other.low if _exceeds(one.low.lift, other.low.lift) else one.low
    wider = other if _exceeds(other.ratio, one.ratio) else one
    return ExtremeLifts(high, low, wider.above, wider.below)


def _exceeds(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether the first ratio of non-negative integers is larger; a zero denominator means infinity."""
    return one[0] * other[1] > other[0] * one[1]
