"""Ranges of real vectors: finite unions of intervals and boxes, with exact Lebesgue measure.

A region is kept up to sets of measure zero: boundaries belong to nobody, and a box without volume
(a point, a surface) contributes nothing. That is all that entropies, leakages and test
performances of continuous uncertain variables can see (Farokhi 2020, eq. (1) to (6)). A region is a
mask over a compressed grid with rational edges, so lengths and measures are exact.
"""

from __future__ import annotations

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
