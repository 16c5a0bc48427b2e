"""Continuous ranges: finite unions of intervals and boxes, with exact Lebesgue measure.

A region is kept up to sets of measure zero: boundaries belong to nobody, and a box without volume
(a point, a surface) contributes nothing. That is all that entropies, leakages and test
performances of continuous uncertain variables can see (Farokhi 2020, eq. (1) to (6)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import grids
from mechdesign.nonstochastic.grids import Box, Mask


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
        first = grids.read_box("box 1", given[0])
        dimension = len(first)
        read = [first] + [grids.read_box(f"box {k + 2}", b, dimension) for k, b in enumerate(given[1:])]
        solid = [box for box in read if all(low < high for low, high in box)]
        scale = grids.common_scale(solid)
        edges = grids.cut_places(solid, dimension, scale)
        return cls._simplified(dimension, scale, edges, grids.paint(solid, edges, scale))

    @classmethod
    def intervals(cls, pairs: Iterable[tuple[Any, Any]]) -> Boxes:
        """The union of intervals on the line, each a (low, high) pair."""
        return cls.union([[pair] for pair in pairs])

    @classmethod
    def _simplified(cls, dimension: int, scale: int, edges: Sequence[Sequence[int]], mask: Mask) -> Boxes:
        tidy, cuts = grids.simplify(mask, edges)
        reduced = math.gcd(scale, *(edge for axis in cuts for edge in axis))
        tidy.setflags(write=False)
        return cls(
            dimension, scale // reduced, tuple(tuple(edge // reduced for edge in axis) for axis in cuts), tidy
        )

    @cached_property
    def measure(self) -> Fraction:
        """Lebesgue measure, exact."""
        return Fraction(grids.volume(self.mask, self.edges), self.scale**self.dimension)

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
        mask = operation(grids.refine(self.mask, mine, edges), grids.refine(other.mask, theirs, edges))
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
