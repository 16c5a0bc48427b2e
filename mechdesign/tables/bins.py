"""Bins of a column of numbers, dates or times, decided by exact arithmetic on the text of a cell.

Bins are contiguous. A bin includes its lower edge and not its upper one; a finite last edge belongs
to the last bin. The first edge may be ``-inf`` and the last one ``inf``. A cell outside the edges
has no bin. With the edges 0, 10 and inf, the cell ``10.0`` is in the bin ``[10, inf)``.

`Bins.bin_of` decides for one cell, by exact fractions. Columns are long, so `bins_of` (for texts)
and `sorted_values` (for arrow arrays) first search the edges for the nearest doubles, or for whole
microseconds, of all cells at once. Only a cell whose rounded number equals a rounded edge is
decided exactly.
"""

# pyarrow has no complete types.
# pyright: basic
from __future__ import annotations

import itertools
import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mechdesign.core.documents import Record
from mechdesign.core.errors import InputError
from mechdesign.formats.arrow_arrays import arrow_integers, arrow_texts, integers_of
from mechdesign.formats.cells import Encoded, encode
from mechdesign.tables.cell_values import ORIGIN, WHAT, Kind, number_of

NO_NUMBER = "no number"
OUTSIDE = "outside the edges"
"""Texts in the place of a label, for cells that have no bin. They are different from all labels."""

NO_NUMBER_CODE = -1
OUTSIDE_CODE = -2
"""The same in the place of the number of a bin."""

_NAN_CODE = -3
"""The same for NaN, which is a missing cell."""

ORIGIN_MICROSECONDS = int(ORIGIN.timestamp()) * 1_000_000
"""`ORIGIN` in arrow's microseconds since 1970."""

FAR = 2**62
"""Microseconds that no date reaches."""

MOST_VALUES = 1000
"""Most values of a bin that are kept.

Of more values, those at as many equal shares of its records are kept.
"""


MOST_KNOWN = 10_000
"""Most texts whose bins are remembered (1 MB)."""


class Bins(Record):
    """Edges of the bins of one column and, except in a public file, the table's values in each.

    Attributes
    ----------
    kind : Kind
        The kind of the cells: numbers, dates or times.
    edges : tuple of str
        The edges, ascending.
    values : tuple of tuples of str, optional
        The values of every bin, ascending; of more than `MOST_VALUES`, those at as many equal
        shares of its records.
    counts : tuple of tuples of int, optional
        The records (or parts of the mass) of each value.
    """

    kind: Kind = "number"
    edges: Annotated[tuple[str, ...], Field(min_length=2)]
    values: tuple[tuple[str, ...], ...] | None = None
    counts: tuple[tuple[Annotated[int, Field(ge=1)], ...], ...] | None = None

    def __eq__(self, other: object) -> bool:
        # By the fields alone: what is computed and kept has arrays, which have no one truth value.
        return isinstance(other, Bins) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    @property
    def _fields(self) -> tuple[object, ...]:
        """All fields."""
        return self.kind, self.edges, self.values, self.counts

    @model_validator(mode="after")
    def _consistent(self) -> Bins:
        """Refuse edges, values or counts that do not fit together."""
        self._check_edges()
        self._check_sizes()
        for k, texts in enumerate(self.values or ()):
            numbers: list[Fraction] = []
            for text in texts:
                number = self.number(text)
                if number is not None:
                    numbers.append(number)
            # A text that is no number has no bin, so the second condition refuses it.
            ascending = numbers == sorted(set(numbers))
            if not ascending or (self.bins_of(texts) != k).any():
                raise InputError(
                    f"the values of the bin {k + 1} must ascend and lie in it"
                )
        return self

    def _check_edges(self) -> None:
        """Refuse edges that do not ascend."""
        named = list(zip(self.edges, self.cuts, strict=True))
        for (low, low_cut), (high, high_cut) in itertools.pairwise(named):
            if not low_cut < high_cut:
                raise InputError(
                    f"the edges must ascend, but '{low}' stands before '{high}'"
                )

    def _check_sizes(self) -> None:
        """Refuse values and counts that do not have the same size in every bin."""
        if self.values is None and self.counts is None:
            return
        values = self.values or ()
        counts = self.counts or ()
        value_sizes = list(map(len, values))
        count_sizes = list(map(len, counts))
        if value_sizes != count_sizes or len(value_sizes) != len(self):
            raise InputError(
                "values and counts must both have every bin, equally many of each, or be left out"
            )

    def _cut(self, edge: str) -> Fraction | float:
        """An edge as a number."""
        # Plain numbers may not be infinite, but edges may.
        if edge in ("-inf", "inf"):
            return float(edge)
        number = self.number(edge)
        if number is None:
            raise InputError(f"the edge '{edge}' is no {WHAT[self.kind]}")
        return number

    def __len__(self) -> int:
        return len(self.edges) - 1

    def number(self, text: str) -> Fraction | None:
        """The exact number of a cell; None if it has none of this kind."""
        return number_of(text, self.kind)

    @cached_property
    def cuts(self) -> tuple[Fraction | float, ...]:
        """The edges as numbers; only infinities are floats."""
        return tuple(map(self._cut, self.edges))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The symbols of the bins: ``[20, 30)``, .."""
        labels: list[str] = []
        for low, high in itertools.pairwise(self.edges):
            is_last = len(labels) == len(self) - 1
            left = "(" if low == "-inf" else "["
            right = "]" if is_last and high != "inf" else ")"
            labels.append(f"{left}{low}, {high}{right}")
        return tuple(labels)

    @cached_property
    def marked(self) -> tuple[str, ...]:
        """The texts of sorted cells: the labels, then `OUTSIDE` and `NO_NUMBER`.

        The codes of the last two, -2 and -1, count from the end.
        """
        return (*self.labels, OUTSIDE, NO_NUMBER)

    def bin_of(self, text: str) -> int:
        """The bin of a cell, or `NO_NUMBER_CODE`, or `OUTSIDE_CODE`."""
        value = self.number(text)
        if value is None:
            return NO_NUMBER_CODE
        return self.bin_at(value)

    def bin_at(self, value: Fraction) -> int:
        """The bin of a number, or `OUTSIDE_CODE`."""
        k = bisect_right(self.cuts, value) - 1
        # A finite last edge belongs to the last bin.
        if k == len(self) and value == self.cuts[-1]:
            return k - 1
        if 0 <= k < len(self):
            return k
        return OUTSIDE_CODE

    def bins_of(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """`bin_of` of every text.

        Rounded numbers decide where they can, exact ones where the rounded ones fall on an edge.
        """
        # Batch by batch a file mostly has the same texts.
        known = self._known
        if all(text in known for text in texts):
            return np.array([known[text] for text in texts], dtype=np.int64)
        rounded = _rounded(texts, self.kind)
        if rounded is None:
            return np.array(list(map(self._remembered_bin, texts)), dtype=np.int64)
        bins, unsure = self._searched(rounded)
        for place in np.flatnonzero(unsure).tolist():
            bins[place] = self._remembered_bin(texts[place])
        if len(known) + len(texts) <= MOST_KNOWN:
            known.update(zip(texts, bins.tolist(), strict=True))
        return bins

    def _remembered_bin(self, text: str) -> int:
        """`bin_of` of a text, which is often the same in every batch of a file."""
        found = self._known.get(text)
        if found is None:
            found = self.bin_of(text)
            # Few texts fall on an edge; where many do, the last ones are kept.
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[text] = found
        return found

    @cached_property
    def _known(self) -> dict[str, int]:
        """The bins of texts that were decided before."""
        return {}

    @cached_property
    def _rounded_cuts(self) -> NDArray[Any]:
        """The edges as doubles, or as microseconds."""
        cut_at = _nearest_double if self.kind == "number" else _microseconds
        return np.array([cut_at(cut) for cut in self.cuts])

    def _searched(
        self, rounded: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The bins of doubles, or of microseconds, and where only exact numbers can decide.

        Rounding is monotone: numbers with different nearest doubles are in the order of these.
        """
        cuts = self._rounded_cuts
        bins = np.searchsorted(cuts, rounded, side="right") - 1
        on_edge = cuts[np.clip(bins, 0, None)] == rounded
        # Arrow reads the texts nan and inf as doubles, but they are no numbers here. 1e350 is one,
        # and infinite as a double.
        unsure = on_edge | ~np.isfinite(rounded)
        bins[(bins < 0) | (bins == len(self))] = OUTSIDE_CODE
        return bins, unsure

    def sorted_in(self, column: Encoded) -> Encoded:
        """The column with the labels of bins in place of numbers.

        A column that has them already stays.
        """
        if column.texts == self.marked:
            return column
        # The remainder turns -1 and -2 into the places of the last two texts.
        codes = self.bins_of(column.texts) % len(self.marked)
        empty = [not text for text in column.texts]
        codes = np.where(empty, -1, codes)
        # The last entry serves missing cells.
        return Encoded(np.append(codes, -1)[column.codes], self.marked)

    def sorted_values(self, column: Any, name: str) -> Encoded | None:
        """`sorted_in` for an arrow array of numbers, dates or moments, without their texts.

        Returns None for arrays of other types.
        """
        import pyarrow as pa

        if not self._reads(column.type):
            return None
        # Unsafe casts round integers beyond 2^53 to doubles, as is meant; safe ones refuse them.
        if self.kind == "number":
            rounded = integers_of(column.cast(pa.float64(), safe=False).fill_null(0))
        else:
            zone = column.type.tz if self.kind == "instant" else None
            moments = column.cast(pa.timestamp("us", zone)).cast(pa.int64())
            rounded = integers_of(moments.fill_null(0)) - ORIGIN_MICROSECONDS
        missing = np.asarray(column.is_null())
        bins, unsure = self._searched(rounded)
        unsure &= ~missing
        if unsure.any():
            places = arrow_integers(np.flatnonzero(unsure))
            cells = encode(column.take(places), name)
            exact = [self.bin_of(text) for text in cells.texts]
            # NaN is a missing cell to `encode`, with the code of the last entry.
            exact.append(_NAN_CODE)
            bins[unsure] = np.array(exact)[cells.codes]
        missing |= bins == _NAN_CODE
        return Encoded(np.where(missing, -1, bins % len(self.marked)), self.marked)

    def _reads(self, kind: Any) -> bool:
        """Whether arrow values of a type can be sorted into these bins without their texts."""
        import pyarrow as pa

        types = pa.types
        if self.kind == "number":
            return types.is_float64(kind) or types.is_integer(kind)
        if self.kind == "clock":
            return False
        if types.is_date32(kind):
            return self.kind != "instant"
        # Nanoseconds would lose digits.
        if not types.is_timestamp(kind) or kind.unit == "ns":
            return False
        return (self.kind == "instant") == (kind.tz is not None)

    @cached_property
    def representatives(self) -> tuple[str | None, ...] | None:
        """The median of every bin under the table, a value of the column.

        It is None for an empty bin. Without values there are no representatives at all.
        """
        if self.values is None or self.counts is None:
            return None
        medians: list[str | None] = []
        for texts, counts in zip(self.values, self.counts, strict=True):
            medians.append(texts[middle_of(counts)] if texts else None)
        return tuple(medians)

    @property
    def shown(self) -> dict[str, str | None]:
        """`representatives` by the label of their bin; empty without values."""
        return dict(zip(self.labels, self.representatives or (), strict=False))

    def public(self) -> Bins:
        """The edges alone, without the values of the table."""
        # A copy would keep the cached properties as well, which are computed from the values.
        return Bins(kind=self.kind, edges=self.edges)


def middle_of(weights: Sequence[int]) -> int:
    """Position of the lower median of ordered things with these weights.

    It is the first one with which half of the weight is reached: 1 for the weights 1, 2, 1.
    """
    sums = list(itertools.accumulate(weights))
    # In integers half of the weight is reached where twice the sum is all of it.
    half = (sums[-1] + 1) // 2
    return bisect_left(sums, half)


def _nearest_double(cut: Fraction | float) -> float:
    """The nearest finite double."""
    return float(max(min(cut, sys.float_info.max), -sys.float_info.max))


def _microseconds(cut: Fraction | float) -> int:
    """Microseconds since `ORIGIN`, rounded up.

    A whole number of microseconds is at least `cut` exactly where it is at least this.
    """
    # Only infinite edges are floats.
    if isinstance(cut, float):
        return -FAR if cut < 0 else FAR
    return math.ceil(cut * 1_000_000)


def _rounded(texts: Sequence[str], kind: Kind) -> NDArray[Any] | None:
    """All texts as their nearest doubles, or as whole microseconds.

    None where arrow cannot parse one.
    """
    import pyarrow as pa

    if kind in ("instant", "clock") or not texts:
        return None
    try:
        if kind == "number":
            return integers_of(arrow_texts(texts).cast(pa.float64()))
        moments = arrow_texts(texts).cast(pa.timestamp("us")).cast(pa.int64())
    except (pa.ArrowException, UnicodeEncodeError):
        return None
    return integers_of(moments) - ORIGIN_MICROSECONDS
