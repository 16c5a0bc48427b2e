"""Indistinguishability: how much the outputs of a query shift when one individual's value changes.

A query is epsilon-indistinguishable if, for every individual i and all values x and x', at most
2^epsilon outputs are possible under one of them and not under the other (Farokhi 2020, Definition
5; **bits**). Theorem 5 of that paper, for linear queries and uniform quantisers, is true but loose;
`linear_levels` has the tight count. Domains are product ranges.

*Ranges of real vectors* are finite unions of intervals and boxes, with exact Lebesgue measure.
A region is kept up to sets of measure zero: boundaries belong to nobody, and a box without volume
(a point, a surface) contributes nothing. That is all that entropies, leakages and test
performances of continuous uncertain variables can see (Farokhi 2020, eq. (1) to (6)). A region is a
mask over a compressed grid with rational edges, so lengths and measures are exact.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.noiseless import outputs_allowed
from mechdesign.nonstochastic.queries import check_whole

# --------------------------------------------------------------- ranges of real vectors

LARGEST_GRID = 20_000_000
"""Cells of a compressed grid: 20 MB as a mask; beyond it the boxes are too tangled for a laptop."""

Box = tuple[tuple[Fraction, Fraction], ...]
Edges = tuple[tuple[Fraction, ...], ...]
Mask = NDArray[np.bool_]


def read_interval(name: str, interval: Any) -> tuple[Fraction, Fraction]:
    """The endpoints of a closed interval as exact rationals; a float is what its bits say."""
    ends = list(interval) if isinstance(interval, tuple | list | np.ndarray) else []
    if len(ends) != 2:
        raise InputError(f"{name} must be a pair (low, high), not {interval!r}")
    try:
        low, high = (fraction_of(end) for end in ends)
    except InputError as problem:
        raise InputError(
            f"{name} {tuple(ends)!r} is not a pair of finite numbers: {problem}"
        ) from None
    if low > high:
        raise InputError(
            f"{name} ({ends[0]}, {ends[1]}) is reversed: its low end is above its high end"
        )
    return low, high


def read_box(name: str, box: Any, dimension: int | None = None) -> Box:
    """Return a box, one (low, high) pair for each coordinate, as exact rationals."""
    sides = list(box) if isinstance(box, tuple | list | np.ndarray) else []
    if not sides or (dimension is not None and len(sides) != dimension):
        wanted = "at least one" if dimension is None else str(dimension)
        raise InputError(
            f"{name} must have {wanted} (low, high) pair(s), one a coordinate, not {len(sides)}"
        )
    return tuple(
        read_interval(f"{name}, coordinate {k + 1}", side)
        for k, side in enumerate(sides)
    )


def _checked(edges: Edges) -> tuple[int, ...]:
    """The numbers of cells of each axis, unless they are more than `LARGEST_GRID` together."""
    shape = tuple(max(len(axis) - 1, 0) for axis in edges)
    if prod(shape) > LARGEST_GRID:
        raise InputError(
            f"the boxes cut space into {prod(shape):,} cells, more than {LARGEST_GRID:,}; "
            "use fewer boxes, coarser endpoints or fewer coordinates"
        )
    return shape


@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """A union of boxes in R^d, up to null sets; build it with `interval` or `union`.

    Regions support ``|`` (union), ``&`` (intersection), ``-`` (difference), ``^`` (symmetric
    difference) and ``==``, all exact and up to null sets.

    Parameters
    ----------
    edges
        For each axis the cuts that matter, increasing.
    mask
        Which cells between the cuts belong to the region, shape (len(edges[0]) - 1, ...).
    """

    edges: Edges
    mask: Mask

    @classmethod
    def interval(cls, low: Any, high: Any) -> Boxes:
        """The interval [low, high]; the ends are integers, floats, Fractions or decimal text."""
        return cls.union([[(low, high)]])

    @classmethod
    def union(cls, boxes: Iterable[Sequence[tuple[Any, Any]]]) -> Boxes:
        """The union of boxes, each a sequence of (low, high) pairs; they may overlap.

        Raises
        ------
        InputError
            If there is no box, an interval is reversed or not finite, or dimensions differ.
        """
        given = list(boxes)
        if not given:
            raise InputError("the range is empty: give at least one interval or box")
        read = [read_box("box 1", given[0])]
        read += [
            read_box(f"box {k + 2}", box, len(read[0]))
            for k, box in enumerate(given[1:])
        ]
        edges = tuple(
            tuple(sorted({end for side in sides for end in side}))
            for sides in zip(*read, strict=True)
        )
        mask = np.zeros(_checked(edges), dtype=np.bool_)
        for box in read:
            spans = zip(edges, box, strict=True)
            mask[
                tuple(
                    slice(*(bisect_left(axis, end) for end in side))
                    for axis, side in spans
                )
            ] = True
        return cls._simplified(edges, mask)

    @classmethod
    def _simplified(cls, edges: Edges, mask: Mask) -> Boxes:
        """Without the edges that separate equal slices.

        So equal sets have equal descriptions.
        """
        kept: list[tuple[Fraction, ...]] = []
        for axis, cuts in enumerate(edges):
            if not mask.any():
                return cls(
                    ((),) * len(edges), np.zeros((0,) * len(edges), dtype=np.bool_)
                )
            moved = np.moveaxis(mask, axis, 0)
            padded = np.pad(moved.reshape(len(moved), -1), ((1, 1), (0, 0)))
            needed = np.flatnonzero((padded[1:] != padded[:-1]).any(axis=1))
            kept.append(tuple(cuts[k] for k in needed.tolist()))
            mask = np.moveaxis(moved[needed[:-1]], 0, axis)
        mask.setflags(write=False)
        return cls(tuple(kept), mask)

    @cached_property
    def measure(self) -> Fraction:
        """Lebesgue measure, exact."""
        amounts: Any = self.mask.astype(object)
        for cuts in reversed(self.edges):
            amounts = amounts @ np.array(
                [b - a for a, b in pairwise(cuts)], dtype=object
            )
        return Fraction(amounts)

    def _on(self, edges: Edges) -> Mask:
        """The mask on a grid whose edges include the own ones; nothing lies outside of these."""
        places = [
            [bisect_right(own, edge) for edge in axis[:-1]]
            for own, axis in zip(self.edges, edges, strict=True)
        ]
        return np.pad(self.mask, 1)[np.ix_(*places)]

    def _combine(self, other: Boxes, operation: Callable[[Mask, Mask], Mask]) -> Boxes:
        if len(self.edges) != len(other.edges):
            raise InputError(
                f"regions of {len(self.edges)} and {len(other.edges)} coordinates cannot be "
                "combined; give both the same coordinates"
            )
        edges = tuple(
            tuple(sorted({*a, *b}))
            for a, b in zip(self.edges, other.edges, strict=True)
        )
        _checked(edges)
        return self._simplified(edges, operation(self._on(edges), other._on(edges)))

    def __or__(self, other: Boxes) -> Boxes:
        return self._combine(other, np.logical_or)

    def __and__(self, other: Boxes) -> Boxes:
        return self._combine(other, np.logical_and)

    def __sub__(self, other: Boxes) -> Boxes:
        return self._combine(other, np.greater)

    def __xor__(self, other: Boxes) -> Boxes:
        return self._combine(other, np.logical_xor)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Boxes)
            and self.edges == other.edges
            and np.array_equal(self.mask, other.mask)
        )

    def __hash__(self) -> int:
        return hash((self.edges, self.mask.tobytes()))

    def __repr__(self) -> str:
        return f"Boxes({len(self.edges)} coordinate(s), measure {self.measure})"


# -------------------------------------------------------------------- shifts of outputs

LARGEST_LEVELS = 1_000_000
"""Levels of a quantiser whose shifts are enumerated exactly: some seconds."""


@dataclass(frozen=True)
class LinearLevels:
    """How many levels a uniform quantiser of a linear query may have.

    `ratio` is w / d: the length of the query's range over the most that one individual moves it.
    """

    levels: int
    ratio: Fraction


def _influences(coefficients: Iterable[Any], bounds: Any) -> list[Fraction]:
    """|c_i| (hi_i - lo_i) for every individual; one pair of bounds serves all."""
    weights = [fraction_of(c) for c in coefficients]
    if not weights:
        raise InputError("a linear query needs at least one coefficient")
    pairs: Sequence[Any] = list(bounds)
    # Two numbers are one pair for all; two pairs are those of two individuals.
    if len(pairs) == 2 and not isinstance(pairs[0], tuple | list):
        pairs = [pairs] * len(weights)
    if len(pairs) != len(weights):
        raise InputError(
            f"bounds must be one (low, high) pair or {len(weights)} of them, not {len(pairs)}"
        )
    influences: list[Fraction] = []
    for k, (weight, pair) in enumerate(zip(weights, pairs, strict=True)):
        low, high = read_interval(f"bounds {k + 1}", pair)
        influences.append(abs(weight) * (high - low))
    if not any(influences):
        raise InputError(
            "the query is constant on these bounds: no individual can change it"
        )
    return influences


def linear_levels(
    epsilon: object, coefficients: Iterable[Any], bounds: Any
) -> LinearLevels:
    """The most levels by formula, for c.x on a product of intervals and equal cells over its range.

    With t = q d / w, at most floor(t) + ceil(t) - 1 outputs differ, so q < (w/d)
    (2^(epsilon-1) + 1) for an integer epsilon >= 1. For boxes only: on finite domains even fewer
    levels can break the budget.

    Parameters
    ----------
    epsilon
        Budget in bits, zero or more.
    coefficients
        c, one for each individual.
    bounds
        One (low, high) pair for everybody, or one for each individual.

    Raises
    ------
    InputError
        On bounds that are reversed or not finite, a constant query or an unusable epsilon.
    """
    influences = _influences(coefficients, bounds)
    ratio = sum(influences, Fraction(0)) / max(influences)
    half, odd = divmod(outputs_allowed(epsilon), 2)
    # Even budgets 2k allow t < k + 1, odd ones 2k + 1 allow t <= k + 1.
    limit = ratio * (half + 1)
    levels = math.floor(limit) if odd else math.ceil(limit) - 1
    return LinearLevels(max(levels, 1), ratio)


def box_difference(coefficients: Iterable[Any], bounds: Any, levels: int) -> int:
    """The exact largest difference for c.x on a product of intervals and `levels` equal cells.

    As x_i varies, the query's range given x_i is an interval of length w - d_i that slides over
    [0, d_i] (from the minimum of the query). The cells it touches change at finitely many
    places; all of them are compared. It equals that count unless one individual dominates, so
    that the interval is short and leaves its old cells altogether.
    """
    if check_whole("levels", levels) > LARGEST_LEVELS:
        raise InputError(f"levels ({levels}) must be from 1 to {LARGEST_LEVELS}")
    influences = _influences(coefficients, bounds)
    width = sum(influences, Fraction(0))
    return max(_slide(levels * d / width, levels) for d in set(influences))


def _slide(shift: Fraction, levels: int) -> int:
    """Largest symmetric difference of the cells that [a, a + levels - shift] touches as a goes from
    0 to shift.
    """
    length = levels - shift
    landings = (k - length for k in range(math.ceil(length), levels + 1))
    starts = sorted({shift, *map(Fraction, range(math.floor(shift) + 1)), *landings})
    spans = sorted(
        {
            (min(math.floor(a), levels - 1), min(math.floor(a + length), levels - 1))
            for a in starts
        }
    )
    counts = [last - first + 1 for first, last in spans]
    largest_after = [*itertools.accumulate(reversed(counts), max)][::-1]
    best, reach = 0, 0
    for k, (first, last) in enumerate(spans):
        while reach < len(spans) and spans[reach][0] <= last:
            reach += 1
        # The farthest span that still shares a cell differs most among those that do.
        best = max(best, spans[reach - 1][0] - first + spans[reach - 1][1] - last)
        if reach < len(spans):
            best = max(best, counts[k] + largest_after[reach])
    return best


def levels_record(
    coefficients: Sequence[Any],
    bounds: Any,
    *,
    epsilon: object = None,
    levels: int | None = None,
) -> dict[str, Any]:
    """The most levels within a budget, or the outputs that one individual shifts at some levels.

    Parameters
    ----------
    coefficients, bounds
        As for `linear_levels`.
    epsilon
        Budget in bits; the levels are then the most that it allows.
    levels
        Levels to measure, if no budget is given.

    Returns
    -------
    A record with levels, the ratio w / d, the outputs that differ at most, their logarithm
    (`epsilon`, the smallest budget that these levels keep, in bits) and the levels that Theorem 5
    grants as it is printed (None without a budget).
    """
    published = None
    if epsilon is not None:
        choice = linear_levels(epsilon, coefficients, bounds)
        levels = choice.levels
        budget = float(fraction_of(epsilon))
        published = max(1, math.floor(choice.ratio * Fraction(2 ** (budget - 1) - 1)))
    else:
        choice = linear_levels(0, coefficients, bounds)
    if levels is None:
        raise InputError("a budget (epsilon) or a number of levels is needed")
    differing = box_difference(coefficients, bounds, levels)
    return {
        "individuals": len(coefficients),
        "levels": levels,
        "ratio": float(choice.ratio),
        "outputs_that_differ": differing,
        "epsilon": math.log2(differing) if differing else 0.0,
        "budget": None if epsilon is None else float(fraction_of(epsilon)),
        "published_levels": published,
    }


def averaging_leakage(n: int, levels: int) -> float:
    """L0(X;Y) of the quantised mean of n values in [0, 1], X being all of them (nats).

    The end cells are the smallest: their volume is that of {sum < n / levels} in the cube, an exact
    rational (Irwin 1927, Hall 1927).
    """
    reach = Fraction(check_whole("n", n), check_whole("levels", levels))
    volume = sum(
        (
            (-1) ** k * math.comb(n, k) * (reach - k) ** n
            for k in range(math.floor(reach) + 1)
        ),
        Fraction(0),
    )
    volume /= math.factorial(n)
    return math.log(volume.denominator) - math.log(volume.numerator)


def individual_leakage(n: int, levels: int) -> float:
    """L0(X_i;Y) of the quantised mean of n values in [0, 1], for one of them (nats).

    It is max(0, ln(q / n)): in an end cell each value lies in [0, min(1, n / levels)], and no other
    cell tells more.
    """
    return max(0.0, math.log(check_whole("levels", levels) / check_whole("n", n)))
