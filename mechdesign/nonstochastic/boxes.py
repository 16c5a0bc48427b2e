"""Continuous ranges: finite unions of intervals and boxes, with exact Lebesgue measure.

A region is kept up to sets of measure zero: boundaries belong to nobody, and a box without volume
(a point, a surface) contributes nothing. That is all that entropies, leakages and test
performances of continuous uncertain variables can see (Farokhi 2020, eq. (1) to (6)). A region is a
mask over a compressed grid whose edges are Python integers over one common denominator, so lengths
and measures are exact for every rational endpoint, however many digits it has.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of

LARGEST_GRID = 20_000_000
"""Cells of a compressed grid: 20 MB as a mask; beyond it the boxes are too tangled for a laptop."""

Box = tuple[tuple[Fraction, Fraction], ...]
Mask = NDArray[np.bool_]


def read_interval(name: str, interval: Any) -> tuple[Fraction, Fraction]:
    """Return the endpoints of a closed interval as exact rationals; a float is what its bits say."""
    ends = list(interval) if isinstance(interval, tuple | list | np.ndarray) else []
    if len(ends) != 2:
        raise InputError(f"{name} must be a pair (low, high), not {interval!r}")
    try:
        low, high = (fraction_of(end) for end in ends)
    except InputError as problem:
        raise InputError(f"{name} {tuple(ends)!r} is not a pair of finite numbers: {problem}") from None
    if low > high:
        raise InputError(f"{name} ({ends[0]}, {ends[1]}) is reversed: its low end is above its high end")
    return low, high


def read_box(name: str, box: Any, dimension: int | None = None) -> Box:
    """Return a box, one (low, high) pair for each coordinate, as exact rationals."""
    sides = list(box) if isinstance(box, tuple | list | np.ndarray) else []
    if not sides or (dimension is not None and len(sides) != dimension):
        wanted = "at least one" if dimension is None else str(dimension)
        raise InputError(f"{name} must have {wanted} (low, high) pair(s), one a coordinate, not {len(sides)}")
    return tuple(read_interval(f"{name}, coordinate {k + 1}", side) for k, side in enumerate(sides))


def common_scale(boxes: Iterable[Box]) -> int:
    """The least common denominator of all endpoints."""
    return lcm(*{end.denominator for box in boxes for side in box for end in side})


def scaled_end(value: Fraction, scale: int) -> int:
    """``value * scale``, an integer when `scale` is a multiple of the denominator."""
    return value.numerator * (scale // value.denominator)


def check_cells(shape: Sequence[int]) -> None:
    """Raise InputError if a grid of this shape would be larger than `LARGEST_GRID`."""
    if prod(shape) > LARGEST_GRID:
        raise InputError(
            f"the boxes cut space into {prod(shape):,} cells, more than {LARGEST_GRID:,}; "
            "use fewer boxes, coarser endpoints or fewer coordinates"
        )


def cut_places(boxes: Sequence[Box], dimension: int, scale: int) -> list[list[int]]:
    """All endpoints of each axis times `scale`, increasing."""
    return [
        sorted({scaled_end(end, scale) for box in boxes for end in box[axis]}) for axis in range(dimension)
    ]


def paint(boxes: Sequence[Box], edges: Sequence[Sequence[int]], scale: int) -> Mask:
    """Mark the grid cells that the boxes cover, shape (len(edges[0]) - 1, ...).

    Every endpoint must be among the edges of its axis.
    """
    shape = tuple(max(len(axis) - 1, 0) for axis in edges)
    check_cells(shape)
    mask = np.zeros(shape, dtype=np.bool_)
    places = [{edge: k for k, edge in enumerate(axis)} for axis in edges]
    for box in boxes:
        spans = zip(places, box, strict=True)
        mask[tuple(slice(*(place[scaled_end(end, scale)] for end in side)) for place, side in spans)] = True
    return mask


def refine(mask: Mask, old: Sequence[Sequence[int]], new: Sequence[Sequence[int]]) -> Mask:
    """The same set of points on a grid whose edges include the old ones."""
    shape = tuple(max(len(axis) - 1, 0) for axis in new)
    check_cells(shape)
    if not mask.any():
        return np.zeros(shape, dtype=np.bool_)
    for axis, (coarse, fine) in enumerate(zip(old, new, strict=True)):
        source = np.asarray([bisect_right(coarse, edge) - 1 for edge in fine[:-1]], dtype=np.int64)
        inside = (source >= 0) & (source < len(coarse) - 1)
        moved = np.moveaxis(np.take(mask, np.where(inside, source, 0), axis=axis), axis, -1)
        mask = np.moveaxis(moved & inside, -1, axis)
    return mask


def simplify(mask: Mask, edges: Sequence[Sequence[int]]) -> tuple[Mask, tuple[tuple[int, ...], ...]]:
    """Drop every edge that separates equal slices, so that equal sets have equal descriptions."""
    kept_edges: list[tuple[int, ...]] = []
    for axis, cuts in enumerate(edges):
        moved = np.moveaxis(mask, axis, 0)
        if moved.size == 0 or not mask.any():
            return np.zeros((0,) * mask.ndim, dtype=np.bool_), ((),) * mask.ndim
        flat = moved.reshape(moved.shape[0], -1)
        padded = np.zeros((flat.shape[0] + 2, flat.shape[1]), dtype=np.bool_)
        padded[1:-1] = flat
        needed = np.flatnonzero((padded[1:] != padded[:-1]).any(axis=1))
        kept_edges.append(tuple(cuts[k] for k in needed.tolist()))
        mask = np.moveaxis(moved[needed[:-1]], 0, axis)
    return mask, tuple(kept_edges)


def volume(mask: Mask, edges: Sequence[Sequence[int]]) -> int:
    """Total of the cells marked, in units of 1 / scale^dimension, exactly."""
    amounts: Any = mask.astype(object)
    for cuts in reversed(edges):
        widths = np.asarray([b - a for a, b in pairwise(cuts)], dtype=object)
        amounts = amounts @ widths if widths.size else 0
    return int(amounts)


@dataclass(frozen=True, eq=False)
class Boxes:
    """A union of boxes in R^d, up to null sets; build it with `interval`, `box` or `union`.

    Regions support ``|`` (union), ``&`` (intersection), ``-`` (difference), ``^`` (symmetric
    difference), ``<=`` (inclusion) and ``==``, all exact and up to null sets.

    Parameters
    ----------
    dimension
        Number of coordinates d.
    scale
        Common denominator of all edges.
    edges
        For each axis the cuts that matter, times `scale`, increasing.
    mask
        Which cells between the cuts belong to the region, shape (len(edges[0]) - 1, ...).
    """

    dimension: int
    scale: int = field(repr=False)
    edges: tuple[tuple[int, ...], ...] = field(repr=False)
    mask: Mask = field(repr=False)

    @classmethod
    def interval(cls, low: Any, high: Any) -> Boxes:
        """The interval [low, high]; endpoints may be integers, floats, Fractions or decimal text."""
        return cls.box([(low, high)])

    @classmethod
    def box(cls, sides: Sequence[tuple[Any, Any]]) -> Boxes:
        """The product of the intervals (low, high) of `sides`."""
        return cls.union([sides])

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
        first = read_box("box 1", given[0])
        dimension = len(first)
        read = [first] + [read_box(f"box {k + 2}", b, dimension) for k, b in enumerate(given[1:])]
        solid = [box for box in read if all(low < high for low, high in box)]
        scale = common_scale(solid)
        edges = cut_places(solid, dimension, scale)
        return cls._simplified(dimension, scale, edges, paint(solid, edges, scale))

    @classmethod
    def intervals(cls, pairs: Iterable[tuple[Any, Any]]) -> Boxes:
        """The union of intervals on the line, each a (low, high) pair."""
        return cls.union([[pair] for pair in pairs])

    @classmethod
    def _simplified(cls, dimension: int, scale: int, edges: Sequence[Sequence[int]], mask: Mask) -> Boxes:
        tidy, cuts = simplify(mask, edges)
        reduced = math.gcd(scale, *(edge for axis in cuts for edge in axis))
        tidy.setflags(write=False)
        return cls(
            dimension, scale // reduced, tuple(tuple(edge // reduced for edge in axis) for axis in cuts), tidy
        )

    @cached_property
    def measure(self) -> Fraction:
        """Lebesgue measure, exact."""
        return Fraction(volume(self.mask, self.edges), self.scale**self.dimension)

    @property
    def is_null(self) -> bool:
        """Whether the region has measure zero."""
        return not self.mask.any()

    @property
    def bounds(self) -> Box:
        """The smallest box that contains the region.

        Raises
        ------
        InputError
            If the region has measure zero.
        """
        if self.is_null:
            raise InputError("a region of measure zero has no bounds")
        return tuple((Fraction(axis[0], self.scale), Fraction(axis[-1], self.scale)) for axis in self.edges)

    def boxes(self) -> list[Box]:
        """Disjoint boxes (up to boundaries) that make up the region."""
        if self.is_null:
            return []
        padded = np.zeros((*self.mask.shape[:-1], self.mask.shape[-1] + 2), dtype=np.int8)
        padded[..., 1:-1] = self.mask
        change = np.diff(padded, axis=-1)
        starts, stops = np.argwhere(change == 1), np.argwhere(change == -1)
        cuts = [[Fraction(edge, self.scale) for edge in axis] for axis in self.edges]
        found: list[Box] = []
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            sides = [(cuts[a][k], cuts[a][k + 1]) for a, k in enumerate(start[:-1])]
            found.append((*sides, (cuts[-1][start[-1]], cuts[-1][stop[-1]])))
        return found

    def _combine(self, other: Boxes, operation: Callable[[Mask, Mask], Mask]) -> Boxes:
        if self.dimension != other.dimension:
            raise InputError(
                f"regions of {self.dimension} and {other.dimension} coordinates cannot be combined; "
                "give both the same coordinates"
            )
        scale = math.lcm(self.scale, other.scale)
        mine = [[edge * (scale // self.scale) for edge in axis] for axis in self.edges]
        theirs = [[edge * (scale // other.scale) for edge in axis] for axis in other.edges]
        edges = [sorted({*a, *b}) for a, b in zip(mine, theirs, strict=True)]
        mask = operation(refine(self.mask, mine, edges), refine(other.mask, theirs, edges))
        return self._simplified(self.dimension, scale, edges, mask)

    def __or__(self, other: Boxes) -> Boxes:
        return self._combine(other, np.logical_or)

    def __and__(self, other: Boxes) -> Boxes:
        return self._combine(other, np.logical_and)

    def __sub__(self, other: Boxes) -> Boxes:
        return self._combine(other, lambda a, b: a & ~b)

    def __xor__(self, other: Boxes) -> Boxes:
        return self._combine(other, np.logical_xor)

    def __le__(self, other: Boxes) -> bool:
        return (self - other).is_null

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Boxes):
            return NotImplemented
        same = (self.dimension, self.scale, self.edges) == (other.dimension, other.scale, other.edges)
        return same and bool(np.array_equal(self.mask, other.mask))

    def __hash__(self) -> int:
        return hash((self.dimension, self.scale, self.edges, self.mask.tobytes()))

    def __repr__(self) -> str:
        shown = [" x ".join(f"[{low}, {high}]" for low, high in box) for box in self.boxes()[:4]]
        more = "" if len(shown) < 4 else ", ..."
        return f"Boxes({' | '.join(shown) + more if shown else 'null'})"
