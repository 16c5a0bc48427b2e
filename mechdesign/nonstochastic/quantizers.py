"""Quantisers: piecewise constant mechanisms with exact thresholds (Farokhi 2019, Definition 3).

A quantiser cuts [lo, hi] at thresholds t_1 < t_2 < ... into cells [lo, t_1), [t_1, t_2), ..,
[t_m, hi] and releases which cell the answer lies in: Q(x) = b_k for x in the k-th cell, where b_k
is the middle of the cell unless another number is given. The paper has equal cells
(`uniform_quantizer`); here they may have any widths. Thresholds are exact rationals, and no answer
is rounded before it has its cell:

- a double is compared with the smallest double at or above each threshold (`Quantizer.cells`);
- an exact answer is a number of units, compared in whole numbers (`Quantizer.placing`).

For example, ``Quantizer(0, 10, (4,))`` has the cells [0, 4) and [4, 10]. An answer of 4 lies in the
second one, whose middle 7 is released. No answer moves by more than 3.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.queries import (
    check_whole,
    doubles,
    exact_number,
    interval,
)

MOST_LEVELS = 1_000_000
"""Most cells of a uniform quantiser. Where thresholds are kept one by one, these take some
200 MB."""


@dataclass(frozen=True)
class EvenThresholds(Sequence[Fraction]):
    """Evenly spaced thresholds, each computed on access: a million of them take no memory."""

    first: Fraction
    step: Fraction
    number: int

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, place: Any) -> Any:
        places = range(self.number)[place]
        if isinstance(places, range):
            return tuple(self.first + k * self.step for k in places)
        return self.first + places * self.step


SHORTEST_EVEN = 3
"""Fewer thresholds are always evenly spaced, and are kept as they are."""


@dataclass(frozen=True)
class Quantizer:
    """Cells of [lo, hi] cut at `thresholds`: all closed below, and the last one also above.

    Parameters
    ----------
    lo, hi
        The range of the answers; it must not depend on the data.
    thresholds
        Strictly increasing, in (lo, hi]; kept as `EvenThresholds` where they are evenly spaced.
    released
        The released number of each cell, increasing, if it is not the middle.
    """

    lo: Fraction
    hi: Fraction
    thresholds: tuple[Fraction, ...] | EvenThresholds = ()
    released: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        ends = interval(self.lo, self.hi)
        cuts = _normalised(self.thresholds)
        if cuts and not (ends.lo < cuts[0] and cuts[-1] <= ends.hi):
            raise InputError(
                f"thresholds must lie above {float(ends.lo):g} and not above {float(ends.hi):g}, "
                "the range"
            )
        object.__setattr__(self, "lo", ends.lo)
        object.__setattr__(self, "hi", ends.hi)
        object.__setattr__(self, "thresholds", cuts)
        if not self.released:
            return
        # Numbers that are equal would merge cells, and the certificate counts them apart.
        if len(self.released) != self.levels or not _increases(self.released):
            raise InputError(
                f"{self.levels} cells need as many released numbers, increasing strictly"
            )

    @property
    def levels(self) -> int:
        """Number of cells."""
        return len(self.thresholds) + 1

    @cached_property
    def edges(self) -> tuple[Fraction, ...]:
        """lo, the thresholds and hi."""
        return (self.lo, *self.thresholds, self.hi)

    def edge(self, place: int) -> Fraction:
        """The lower end of cell `place`; that of the cell after the last is hi."""
        if place == 0:
            return self.lo
        if place == self.levels:
            return self.hi
        return self.thresholds[place - 1]

    def midpoint(self, cell: int) -> Fraction:
        """The released number of a cell, which is its middle unless `released` has another one."""
        if self.released:
            return self.released[cell]
        return (self.edge(cell) + self.edge(cell + 1)) / 2

    @cached_property
    def midpoints(self) -> tuple[Fraction, ...]:
        """The released numbers of all cells."""
        return tuple(self.midpoint(cell) for cell in range(self.levels))

    @cached_property
    def _cuts(self) -> NDArray[np.float64]:
        """The smallest double at or above each threshold."""
        # A double is at or above a threshold iff it is at or above this one.
        cuts = [quotient_above(*t.as_integer_ratio()) for t in self.thresholds]
        return np.array(cuts)

    @property
    def widest_cell(self) -> Fraction:
        """Width of the widest cell."""
        cuts = self.thresholds
        if isinstance(cuts, EvenThresholds):
            return max(cuts.first - self.lo, cuts.step, self.hi - cuts[-1])
        return max(b - a for a, b in itertools.pairwise(self.edges))

    @property
    def worst_error(self) -> Fraction:
        """The largest distance of an answer from its released number."""
        if not self.released:
            return self.widest_cell / 2
        worst = Fraction(0)
        cells = itertools.pairwise(self.edges)
        for number, (low, high) in zip(self.released, cells, strict=True):
            worst = max(worst, number - low, high - number)
        return worst

    def cell(self, answer: object) -> int:
        """Index of the cell of one exact answer (0 for the lowest).

        Raises
        ------
        InputError
            If it is no number, or lies outside [lo, hi].
        """
        value = exact_number("answer", answer)
        if not self.lo <= value <= self.hi:
            raise InputError(self._outside_message(1))
        return self.placing(Fraction(1, value.denominator))(value.numerator)

    def placing(self, unit: Fraction) -> Callable[[int], int]:
        """A function from a number of units to its cell, in whole numbers alone.

        An answer m * unit is at or above a threshold t iff m >= ceil(t / unit). For thresholds
        first + k * step their number is floor((m * unit - first) / step) + 1, between 0 and all of
        them.
        """
        cuts = self.thresholds
        if not isinstance(cuts, EvenThresholds):
            least = [math.ceil(t / unit) for t in cuts]
            return lambda multiple: bisect_right(least, multiple)
        # With unit u/v, first a/b and step s/t:
        # (m u/v - a/b) / (s/t) = (m u b t - a v t) / (v b s)
        u, v = unit.as_integer_ratio()
        a, b = cuts.first.as_integer_ratio()
        s, t = cuts.step.as_integer_ratio()
        slope = u * b * t
        base = a * v * t
        divisor = v * b * s

        def cell(multiple: int) -> int:
            at_or_below = (multiple * slope - base) // divisor + 1
            return min(max(at_or_below, 0), cuts.number)

        return cell

    def cells(self, answers: Any) -> NDArray[np.int64]:
        """Indices of the cells of an array of doubles, exact for each double.

        Raises
        ------
        InputError
            On NaN, and on answers outside the range.
        """
        values = doubles("the answers", answers)
        if bool(np.isnan(values).any()):
            raise InputError(
                "the data contain NaN, which lies in no cell; drop it first"
            )
        # The ends, rounded inwards: a double is at or above lo iff it is at or above the first
        # double that is.
        lowest = quotient_above(*self.lo.as_integer_ratio())
        highest = -quotient_above(*(-self.hi).as_integer_ratio())
        beyond = (values < lowest) | (values > highest)
        if bool(beyond.any()):
            raise InputError(self._outside_message(int(np.count_nonzero(beyond))))
        return np.searchsorted(self._cuts, values, side="right").astype(np.int64)

    def release(self, answers: Any) -> NDArray[np.float64]:
        """The midpoints (nearest doubles) of the cells of `answers`; errors as in `cells`."""
        return np.array([float(m) for m in self.midpoints])[self.cells(answers)]

    def _outside_message(self, count: int) -> str:
        """The message about answers outside the range."""
        # Without the value, which is an individual's: messages end up in logs.
        verb = "lies" if count == 1 else "lie"
        return (
            f"{count} of the values {verb} outside the range {float(self.lo):g} to "
            f"{float(self.hi):g}; widen the range, or clip them"
        )


def uniform_quantizer(lo: object, hi: object, levels: int) -> Quantizer:
    """`levels` cells of the same width (the linear quantiser of Farokhi 2019, Definition 3).

    Raises
    ------
    InputError
        If `levels` is not from 1 to `MOST_LEVELS`, or is above 1 on a range without width.
    """
    domain = interval(lo, hi)
    if check_whole("levels", levels) > MOST_LEVELS:
        raise InputError(f"levels ({levels}) must be at most {MOST_LEVELS:,}")
    span = domain.hi - domain.lo
    if span == 0 and levels > 1:
        raise InputError(
            "a range without width has one level; give a range with lower < upper"
        )
    step = span / levels
    return Quantizer(
        domain.lo, domain.hi, EvenThresholds(domain.lo + step, step, levels - 1)
    )


def quantizer_between(values: Iterable[Fraction], gaps: Iterable[int]) -> Quantizer:
    """The quantiser of a finite set of answers with a threshold half-way in each chosen gap."""
    members = list(values)
    cuts = tuple((members[g] + members[g + 1]) / 2 for g in sorted(gaps))
    return Quantizer(members[0], members[-1], cuts)


def _increases(numbers: Sequence[Fraction]) -> bool:
    """Whether numbers increase strictly."""
    return all(a < b for a, b in itertools.pairwise(numbers))


def _normalised(
    thresholds: tuple[Fraction, ...] | EvenThresholds,
) -> tuple[Fraction, ...] | EvenThresholds:
    """Exact thresholds, as `EvenThresholds` if evenly spaced: so equal quantisers compare equal."""
    if isinstance(thresholds, EvenThresholds):
        if thresholds.number >= SHORTEST_EVEN and thresholds.step > 0:
            return thresholds
        # A step of zero or less is refused below, as numbers that do not increase.
        thresholds = tuple(thresholds)
    cuts = tuple(
        exact_number(f"threshold {k + 1}", t) for k, t in enumerate(thresholds)
    )
    if not _increases(cuts):
        raise InputError("thresholds must increase strictly")
    if len(cuts) < SHORTEST_EVEN:
        return cuts
    step = cuts[1] - cuts[0]
    if all(b - a == step for a, b in itertools.pairwise(cuts)):
        return EvenThresholds(cuts[0], step, len(cuts))
    return cuts
