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
from itertools import combinations, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.indistinguishability import Box, Boxes, read_box
from mechdesign.nonstochastic.ranges import LARGEST_ENUMERATION, JointRange, log_ratio
from tests.oracles.spaces import UncertainSpace

Places = NDArray[np.int64]


def common_scale(boxes: Iterable[Box]) -> int:
    """The least common denominator of all endpoints."""
    return math.lcm(*{end.denominator for box in boxes for side in box for end in side})


def scaled_end(value: Fraction, scale: int) -> int:
    """``value * scale``, an integer when `scale` is a multiple of the denominator."""
    return value.numerator * (scale // value.denominator)


def cut_places(boxes: Sequence[Box], dimension: int, scale: int) -> list[list[int]]:
    """All endpoints of each axis times `scale`, increasing."""
    return [
        sorted({scaled_end(end, scale) for box in boxes for end in box[axis]})
        for axis in range(dimension)
    ]


def boxes_of(region: Boxes) -> list[Box]:
    """Disjoint boxes (up to boundaries) that make up the region: its cells."""
    cells = np.argwhere(region.mask).tolist()
    return [
        tuple(
            (axis[k], axis[k + 1]) for axis, k in zip(region.edges, cell, strict=True)
        )
        for cell in cells
    ]


@dataclass(frozen=True)
class Symbol:
    """A value of a discrete variable, where a piece of a continuous one has a box."""

    value: Hashable


Side: TypeAlias = Box | Symbol


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
    pieces
        The products whose union the joint range is.
    """

    cells: JointRange
    x_weights: tuple[Fraction, ...] = field(repr=False)
    y_weights: tuple[Fraction, ...] = field(repr=False)
    pieces: tuple[tuple[Side, Side], ...] = field(repr=False)

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
            raise InputError(
                "the joint range is empty: give at least one pair of boxes"
            )
        for k, piece in enumerate(given):
            if not isinstance(piece, tuple | list) or len(piece) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(
                    f"piece {k + 1} must be a pair (x box, y box), not {quoted(piece)}"
                )
        xs = _read("x box", [x for x, _ in given])
        ys = _read("y box", [y for _, y in given])
        solid = [k for k in range(len(given)) if _is_solid(xs[k]) and _is_solid(ys[k])]
        if not solid:
            raise InputError(
                "the joint range has measure zero: every piece is a point or a surface"
            )
        x_cells, x_weights = _cut([xs[k] for k in solid])
        y_cells, y_weights = _cut([ys[k] for k in solid])
        cells, x_kept, y_kept = _relate(x_cells, y_cells)
        return cls(
            cells,
            tuple(x_weights[k] for k in x_kept),
            tuple(y_weights[k] for k in y_kept),
            tuple((xs[k], ys[k]) for k in solid),
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
            raise InputError(
                "the joint range is empty: give at least one output with its region"
            )
        for y, region in regions.items():
            if not region.measure:
                raise InputError(
                    f"output {quoted(y)} has an empty conditional range (measure zero); drop it"
                )
        boxes = [
            (box, j)
            for j, region in enumerate(regions.values())
            for box in boxes_of(region)
        ]
        x_cells, x_weights = _cut([box for box, _ in boxes])
        cells, x_kept, _ = _relate(
            x_cells, [np.asarray([j], dtype=np.int64) for _, j in boxes]
        )
        return cls(
            JointRange.from_codes(
                cells.x_symbols, tuple(regions), cells.rows, cells.columns
            ),
            tuple(x_weights[k] for k in x_kept),
            (Fraction(1),) * len(regions),
            tuple(
                (box, Symbol(y))
                for y, region in regions.items()
                for box in boxes_of(region)
            ),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells, so that the measures of joint ranges take this one too."""
        return self.cells.shape

    @property
    def n_pairs(self) -> int:
        """Number of pairs of cells."""
        return self.cells.n_pairs

    @property
    def rows(self) -> Places:
        """The x cells of the pairs."""
        return self.cells.rows

    @property
    def columns(self) -> Places:
        """The y cells of the pairs."""
        return self.cells.columns

    @property
    def unit(self) -> str:
        """Unit of entropies and leakages."""
        return "nats"

    def log(self, ratio: Fraction) -> float:
        """Natural logarithm of an exact positive number of any size."""
        return log_ratio(ratio, self.unit)

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
        whole = [scaled_end(weight, scale) for weight in self.x_weights]
        totals = [0] * self.cells.shape[1]
        for i, j in zip(
            self.cells.rows.tolist(), self.cells.columns.tolist(), strict=True
        ):
            totals[j] += whole[i]
        return tuple(Fraction(total, scale) for total in totals)

    @cached_property
    def reverse(self) -> MeasuredRange:
        """The same joint range seen from Y."""
        swapped = tuple((y, x) for x, y in self.pieces)
        return MeasuredRange(
            self.cells.reverse, self.y_weights, self.x_weights, swapped
        )

    def x_range(self) -> Boxes | frozenset[Hashable]:
        """The marginal range [[X]]: a region, or the symbols of a discrete variable."""
        return _gathered([x for x, _ in self.pieces])

    def x_given(self, y: Any) -> Boxes | frozenset[Hashable]:
        """The conditional range [[X|y]].

        Parameters
        ----------
        y
            A symbol of a discrete variable; a number, or one number a coordinate; or a `Boxes`
            region that Y is known to lie in (pieces that it meets in a null set do not count).

        Raises
        ------
        InputError
            If `y` is outside the range of Y.
        """
        kept = [x for x, side in self.pieces if _holds(side, y)]
        if not kept:
            raise InputError(
                f"value {quoted(y)} is not in the range of the variable conditioned on"
            )
        return _gathered(kept)

    def is_unrelated(self) -> bool:
        """Whether X and Y are unrelated, up to null sets: the joint range is the whole product."""
        return self.cells.n_pairs == self.cells.shape[0] * self.cells.shape[1]


def _gathered(sides: Sequence[Side]) -> Boxes | frozenset[Hashable]:
    symbols = frozenset(side.value for side in sides if isinstance(side, Symbol))
    return symbols or Boxes.union(
        [side for side in sides if not isinstance(side, Symbol)]
    )


def _holds(side: Side, value: Any) -> bool:
    if isinstance(side, Symbol):
        return side.value == value
    if isinstance(value, Boxes):
        return bool((value & Boxes.union([side])).measure)
    point = list(value) if isinstance(value, tuple | list | np.ndarray) else [value]
    if len(point) != len(side):
        raise InputError(
            f"a point must have {len(side)} coordinate(s), not {len(point)}"
        )
    return all(
        low <= fraction_of(p) <= high
        for p, (low, high) in zip(point, side, strict=True)
    )


def box_space(pieces: Iterable[Mapping[str, Any]]) -> UncertainSpace:
    """Several continuous variables as a space of cells, for unrelatedness and Markov chains.

    Parameters
    ----------
    pieces
        Each a box, one sequence of (low, high) pairs for every named variable; the joint range is
        their union. Cells are numbered; what the space says holds up to null sets.

    Raises
    ------
    InputError
        If no piece has a volume, names differ, or there are too many cells.
    """
    given = list(pieces)
    if not given or any(set(piece) != set(given[0]) for piece in given):
        raise InputError(
            "a space of boxes needs at least one piece, and the same variables in all of them"
        )
    boxes = {name: _read(name, [piece[name] for piece in given]) for name in given[0]}
    solid = [
        k
        for k in range(len(given))
        if all(_is_solid(sides[k]) for sides in boxes.values())
    ]
    if not solid:
        raise InputError(
            "the joint range has measure zero: every piece is a point or a surface"
        )
    cells = [_cut([sides[k] for k in solid])[0] for sides in boxes.values()]
    _check_outcomes(
        sum(math.prod(part[k].size for part in cells) for k in range(len(solid)))
    )
    grid = [
        np.meshgrid(*(part[k] for part in cells), indexing="ij")
        for k in range(len(solid))
    ]
    columns = [
        np.concatenate([axes[v].reshape(-1) for axes in grid])
        for v in range(len(boxes))
    ]
    return UncertainSpace.from_columns(dict(zip(boxes, columns, strict=True)))


def largest_region_difference(joint: MeasuredRange) -> Fraction:
    """The largest measure of a symmetric difference of [[Y|x]] and [[Y|x']], over essentially all
    x, x'.

    A continuous query is epsilon-indistinguishable (Farokhi 2020, eq. (12), nats) if this is at
    most e^epsilon for every individual. Quadratic in the number of x cells.
    """
    rows: list[set[int]] = [set() for _ in range(joint.cells.shape[0])]
    for i, j in zip(
        joint.cells.rows.tolist(), joint.cells.columns.tolist(), strict=True
    ):
        rows[i].add(j)
    distinct = list({frozenset(row) for row in rows})
    return max(
        (
            sum((joint.y_weights[j] for j in a ^ b), Fraction(0))
            for a, b in combinations(distinct, 2)
        ),
        default=Fraction(0),
    )


def _check_outcomes(number: int) -> None:
    if number > LARGEST_ENUMERATION:
        raise InputError(
            f"the pieces are cut into {number:,} pairs of cells, more than {LARGEST_ENUMERATION:,}; "
            "use fewer pieces or shared endpoints"
        )


def _read(name: str, boxes: Sequence[Any]) -> list[Box]:
    first = read_box(f"{name} 1", boxes[0])
    return [first] + [
        read_box(f"{name} {k + 2}", box, len(first)) for k, box in enumerate(boxes[1:])
    ]


def _is_solid(box: Box) -> bool:
    return all(low < high for low, high in box)


def _cut(boxes: Sequence[Box]) -> tuple[list[Places], list[Fraction]]:
    """Cut space at every endpoint: the cells of each box (flat numbers), and every cell's measure."""
    scale = common_scale(boxes)
    dimension = len(boxes[0])
    edges = cut_places(boxes, dimension, scale)
    places = [{edge: k for k, edge in enumerate(axis)} for axis in edges]
    shape = tuple(len(axis) - 1 for axis in edges)
    found: list[Places] = []
    for box in boxes:
        spans = [
            np.arange(place[scaled_end(low, scale)], place[scaled_end(high, scale)])
            for place, (low, high) in zip(places, box, strict=True)
        ]
        found.append(
            np.ravel_multi_index(np.ix_(*spans), shape).reshape(-1).astype(np.int64)
        )
    measures = np.asarray([1], dtype=object)
    for axis in edges:
        widths = np.asarray([b - a for a, b in pairwise(axis)], dtype=object)
        measures = np.multiply.outer(measures, widths).reshape(-1)
    unit = scale**dimension
    return found, [Fraction(int(m), unit) for m in measures.tolist()]


def _relate(
    xs: Sequence[Places], ys: Sequence[Places]
) -> tuple[JointRange, list[int], list[int]]:
    """The relation of the cells of each piece, and the cells that take part."""
    _check_outcomes(sum(x.size * y.size for x, y in zip(xs, ys, strict=True)))
    rows = np.concatenate([np.repeat(x, y.size) for x, y in zip(xs, ys, strict=True)])
    columns = np.concatenate([np.tile(y, x.size) for x, y in zip(xs, ys, strict=True)])
    x_kept, rows = np.unique(rows, return_inverse=True)
    y_kept, columns = np.unique(columns, return_inverse=True)
    cells = JointRange.from_codes(
        tuple(range(x_kept.size)), tuple(range(y_kept.size)), rows, columns
    )
    return cells, x_kept.tolist(), y_kept.tolist()
