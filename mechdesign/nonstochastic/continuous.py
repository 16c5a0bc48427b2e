"""Joint ranges of continuous uncertain variables, made of boxes, with exact measures.

The x axis and the y axis are each cut at every endpoint. Between the cuts all conditional ranges
are the same, so the joint range is a relation between finitely many cells, each with its Lebesgue
measure (a discrete symbol counts 1). Null sets are dropped, as the essential suprema of Farokhi
2020, eq. (3) to (5), do.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.exact import quoted
from mechdesign.nonstochastic import grids
from mechdesign.nonstochastic.boxes import Boxes
from mechdesign.nonstochastic.encoding import LARGEST_ENUMERATION
from mechdesign.nonstochastic.ranges import JointRange

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredRange:
    """A joint range as cells with measures; build it with `from_boxes` or `from_regions`.

    Parameters
    ----------
    cells
        Which x cells and y cells can occur together.
    x_weights, y_weights
        Measure of every cell, in the order of the symbols of `cells`; positive. A discrete
        variable has one cell of measure 1 for each symbol.
    x_continuous, y_continuous
        Whether the variable is continuous.
    """

    cells: JointRange
    x_weights: tuple[Fraction, ...] = field(repr=False)
    y_weights: tuple[Fraction, ...] = field(repr=False)
    x_continuous: bool
    y_continuous: bool

    @classmethod
    def from_boxes(cls, pieces: Iterable[tuple[Any, Any]]) -> MeasuredRange:
        """The union of products of an x box and a y box, each a sequence of (low, high) pairs.

        A piece with no volume is a null set and is dropped.

        Raises
        ------
        InputError
            If no piece has a volume, or an interval is reversed or not finite.
        """
        given = list(pieces)
        if not given:
            raise InputError("the joint range is empty: give at least one pair of boxes")
        for k, piece in enumerate(given):
            if not isinstance(piece, tuple | list) or len(piece) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"piece {k + 1} must be a pair (x box, y box), not {quoted(piece)}")
        xs = _read("x box", [x for x, _ in given])
        ys = _read("y box", [y for _, y in given])
        solid = [k for k in range(len(given)) if _is_solid(xs[k]) and _is_solid(ys[k])]
        if not solid:
            raise InputError("the joint range has measure zero: every piece is a point or a surface")
        x_cells, x_weights = _cut([xs[k] for k in solid])
        y_cells, y_weights = _cut([ys[k] for k in solid])
        cells, x_kept, y_kept = _relate(x_cells, y_cells)
        return cls(
            cells, tuple(x_weights[k] for k in x_kept), tuple(y_weights[k] for k in y_kept), True, True
        )

    @classmethod
    def from_regions(cls, regions: Mapping[Hashable, Boxes]) -> MeasuredRange:
        """X continuous and Y discrete: the conditional range [[X|y]] of every output y.

        Raises
        ------
        InputError
            If there is no output, or the region of an output has measure zero.
        """
        if not regions:
            raise InputError("the joint range is empty: give at least one output with its region")
        for y, region in regions.items():
            if region.is_null:
                raise InputError(f"output {quoted(y)} has an empty conditional range (measure zero); drop it")
        boxes = [(box, j) for j, region in enumerate(regions.values()) for box in region.boxes()]
        x_cells, x_weights = _cut([box for box, _ in boxes])
        cells, x_kept, _ = _relate(x_cells, [np.asarray([j], dtype=np.int64) for _, j in boxes])
        return cls(
            JointRange.from_codes(cells.x_symbols, tuple(regions), cells.rows, cells.columns),
            tuple(x_weights[k] for k in x_kept),
            (Fraction(1),) * len(regions),
            True,
            False,
        )

    @property
    def unit(self) -> str:
        """Unit of entropies and leakages."""
        return "nats"

    def log(self, ratio: Fraction) -> float:
        """Natural logarithm of an exact positive number of any size."""
        return math.log(ratio.numerator) - math.log(ratio.denominator)

    @cached_property
    def x_total(self) -> Fraction:
        """Measure of the marginal range of X (number of symbols when discrete)."""
        return sum(self.x_weights, Fraction(0))

    @cached_property
    def smallest_x(self) -> Fraction:
        """Smallest measure of a conditional range [[X|y]] over essentially all y."""
        return min(self.x_measures)

    @cached_property
    def largest_x(self) -> Fraction:
        """Largest measure of a conditional range [[X|y]] over essentially all y."""
        return max(self.x_measures)

    @cached_property
    def x_measures(self) -> tuple[Fraction, ...]:
        """Measure of [[X|y]] for every y cell, exact."""
        scale = math.lcm(*(weight.denominator for weight in self.x_weights))
        whole = [grids.scaled(weight, scale) for weight in self.x_weights]
        totals = [0] * self.cells.shape[1]
        for i, j in zip(self.cells.rows.tolist(), self.cells.columns.tolist(), strict=True):
            totals[j] += whole[i]
        return tuple(Fraction(total, scale) for total in totals)

    @cached_property
    def reverse(self) -> MeasuredRange:
        """The same joint range seen from Y."""
        return MeasuredRange(
            self.cells.reverse, self.y_weights, self.x_weights, self.y_continuous, self.x_continuous
        )


def _read(name: str, boxes: Sequence[Any]) -> list[grids.Box]:
    first = grids.read_box(f"{name} 1", boxes[0])
    return [first] + [grids.read_box(f"{name} {k + 2}", box, len(first)) for k, box in enumerate(boxes[1:])]


def _is_solid(box: grids.Box) -> bool:
    return all(low < high for low, high in box)


def _cut(boxes: Sequence[grids.Box]) -> tuple[list[Places], list[Fraction]]:
    """Cut space at every endpoint: the cells of each box (flat numbers), and every cell's measure."""
    scale = grids.common_scale(boxes)
    dimension = len(boxes[0])
    edges = grids.cut_places(boxes, dimension, scale)
    places = [{edge: k for k, edge in enumerate(axis)} for axis in edges]
    shape = tuple(len(axis) - 1 for axis in edges)
    grids.check_cells(shape)
    found: list[Places] = []
    for box in boxes:
        spans = [
            np.arange(place[grids.scaled(low, scale)], place[grids.scaled(high, scale)])
            for place, (low, high) in zip(places, box, strict=True)
        ]
        found.append(np.ravel_multi_index(np.ix_(*spans), shape).reshape(-1).astype(np.int64))
    measures = np.asarray([1], dtype=object)
    for axis in edges:
        widths = np.asarray([b - a for a, b in pairwise(axis)], dtype=object)
        measures = np.multiply.outer(measures, widths).reshape(-1)
    unit = scale**dimension
    return found, [Fraction(int(m), unit) for m in measures.tolist()]


def _relate(xs: Sequence[Places], ys: Sequence[Places]) -> tuple[JointRange, list[int], list[int]]:
    """The relation of the cells of each piece, and the cells that take part."""
    n_pairs = sum(x.size * y.size for x, y in zip(xs, ys, strict=True))
    if n_pairs > LARGEST_ENUMERATION:
        raise InputError(
            f"the pieces are cut into {n_pairs:,} pairs of cells, more than {LARGEST_ENUMERATION:,}; "
            "use fewer pieces or shared endpoints"
        )
    rows = np.concatenate([np.repeat(x, y.size) for x, y in zip(xs, ys, strict=True)])
    columns = np.concatenate([np.tile(y, x.size) for x, y in zip(xs, ys, strict=True)])
    x_kept, rows = np.unique(rows, return_inverse=True)
    y_kept, columns = np.unique(columns, return_inverse=True)
    cells = JointRange.from_codes(tuple(range(x_kept.size)), tuple(range(y_kept.size)), rows, columns)
    return cells, x_kept.tolist(), y_kept.tolist()
