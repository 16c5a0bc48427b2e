"""Exact coordinate compression: the plain arithmetic below `boxes` and `continuous`.

Edges are Python integers over one common denominator, so lengths and measures are exact for every
rational endpoint, however many digits it has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
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
    """Return the endpoints of a closed interval as exact rationals; a float is what its bits say.

    Raises
    ------
    InputError
        If it is not a pair of finite numbers, or is reversed.
    """
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
    """Return a box, one (low, high) pair for each coordinate, as exact rationals.

    Raises
    ------
    InputError
        If it has no coordinate, another number of them than `dimension`, or an unusable interval.
    """
    sides = list(box) if isinstance(box, tuple | list | np.ndarray) else []
    if not sides or (dimension is not None and len(sides) != dimension):
        wanted = "at least one" if dimension is None else str(dimension)
        raise InputError(f"{name} must have {wanted} (low, high) pair(s), one a coordinate, not {len(sides)}")
    return tuple(read_interval(f"{name}, coordinate {k + 1}", side) for k, side in enumerate(sides))


def common_scale(boxes: Iterable[Box]) -> int:
    """The least common denominator of all endpoints."""
    scale = 1
    for box in boxes:
        for low, high in box:
            scale = lcm(scale, low.denominator, high.denominator)
    return scale


def scaled(value: Fraction, scale: int) -> int:
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
    return [sorted({scaled(end, scale) for box in boxes for end in box[axis]}) for axis in range(dimension)]


def paint(boxes: Sequence[Box], edges: Sequence[Sequence[int]], scale: int) -> Mask:
    """Mark the grid cells that the boxes cover, shape (len(edges[0]) - 1, ...).

    Every endpoint must be among the edges of its axis.
    """
    shape = tuple(max(len(axis) - 1, 0) for axis in edges)
    check_cells(shape)
    corners = np.zeros(tuple(n + 1 for n in shape), dtype=np.int64)
    places = [{edge: k for k, edge in enumerate(axis)} for axis in edges]
    for box in boxes:
        spans = [
            (place[scaled(low, scale)], place[scaled(high, scale)])
            for place, (low, high) in zip(places, box, strict=True)
        ]
        for corner in np.ndindex(*(2,) * len(spans)):
            sign = -1 if sum(corner) % 2 else 1
            corners[tuple(span[end] for span, end in zip(spans, corner, strict=True))] += sign
    for axis in range(corners.ndim):
        corners = np.cumsum(corners, axis=axis)
    inner = tuple(slice(0, n) for n in shape)
    return corners[inner] > 0


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
