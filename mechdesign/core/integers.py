"""An immutable sparse matrix of non-negative integers that reads like a tuple of tuples.

Rows are stored as in a compressed sparse matrix: where each row ends, the columns of its positive
entries, and their values. Channels of many symbols are mostly zeros, so this takes a fraction of
the memory, and audits visit positive entries alone.

For example, the matrix ((0, 2), (3, 0), (0, 0)) is kept as `indptr` 0, 1, 2, 2 (where its rows
begin and end), `indices` 1, 0 and `values` 2, 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import mul
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

Integers = NDArray[np.int64]

LARGEST_INTEGER = 2**62
"""Largest entry. The sum of two such entries still fits a signed 64-bit integer."""

HALF_BITS = 31
"""Bits of a half of an entry (`IntegerRows.weighted_sums`)."""

MANY_ENTRIES = 1 << 20
"""Entries from which products in arrays are worth the time that SciPy takes to load."""

MOST_WEIGHT = 1 << 32
"""Weights that add up to less are multiplied with halves of entries in 64 bits."""

SPARSE = 4
"""Places for each entry from which columns are found by a sort: of fewer an array is quicker."""

FEW_OTHERS = 8
"""Entries of a column for each one that differs from most, from which these are one integer."""

LONG_ROW = 256
"""Entries of a row from which it is compared with the one before, which is quicker than to make it
anew."""

NOWHERE = -1
"""The place of an integer that a list does not have."""

_DEMAND = f"is not a non-negative integer of at most {LARGEST_INTEGER}"
"""The end of messages about an entry."""

_SHOWN_BITS = 256
"""Longer integers are not printed: Python refuses to write out more than some thousand digits."""


class IntegerRows(Sequence[tuple[int, ...]]):
    """Rows of non-negative integers up to `LARGEST_INTEGER`, stored by row without the zeros.

    The layout is that of compressed sparse rows: row i has its positive entries in
    ``values[indptr[i]:indptr[i + 1]]``, and `indices` has their columns, which ascend.

    Indexing and iteration yield tuples of Python integers; `columns` yields the same by column.
    A matrix equals any sequence of sequences with the same integers.
    """

    __slots__ = ("__dict__", "indices", "indptr", "shape", "values")

    def __init__(
        self,
        shape: tuple[int, int],
        indptr: Integers,
        indices: Integers,
        values: Integers,
    ) -> None:
        self.shape = shape
        self.indptr = _frozen(indptr)
        self.indices = _frozen(indices)
        self.values = _frozen(values)

    @classmethod
    def of(cls, rows: Any, names: Sequence[str] | None = None) -> IntegerRows:
        """Build from sequences of integers, an integer array, or another `IntegerRows`.

        Parameters
        ----------
        rows : sequence of sequences, (n, m) array or IntegerRows
            The entries.
        names : sequence of str, optional
            Names of the rows for messages; their numbers by default.

        Raises
        ------
        InputError
            If the rows differ in length or an entry is not an integer in the allowed range.
        """
        if isinstance(rows, IntegerRows):
            return rows
        if isinstance(rows, np.ndarray):
            array = cast("NDArray[Any]", rows)
            if array.ndim != 2:
                raise InputError(f"rows must have 2 dimensions, not {array.ndim}")
            # As Python numbers, whose type and range the checks below see unconverted.
            rows = array.tolist()
        return cls.from_array(_checked(rows, names))

    @classmethod
    def of_pairs(
        cls, rows: Any, width: int, names: Sequence[str] | None = None
    ) -> IntegerRows:
        """Build from rows of index, value, index, value, .. of the positive entries.

        Raises
        ------
        InputError
            If a row has anything but ascending indices below `width` and positive values.
        """
        _check_pairs(rows, names)
        # All rows in one array: indices at even places, values at odd ones.
        lengths = [len(row) // 2 for row in rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        numbers = np.fromiter(
            itertools.chain.from_iterable(rows),
            dtype=np.int64,
            count=2 * int(indptr[-1]),
        )
        indices = numbers[::2]
        values = numbers[1::2]
        row_of = np.repeat(np.arange(len(rows)), lengths)
        wrong = (indices >= width) | (values == 0)
        # Within a row the indices ascend; from one row to the next they may fall.
        descends = np.diff(indices) <= 0
        same_row = np.diff(row_of) == 0
        wrong[1:] |= descends & same_row
        if wrong.any():
            i = int(row_of[np.argmax(wrong)])
            raise InputError(
                f"row {_name(names, i)}: the indices must ascend and be below {width}, and the "
                "values positive"
            )
        return cls((len(rows), width), indptr, indices, values)

    @classmethod
    def from_array(cls, array: NDArray[Any]) -> IntegerRows:
        """Build from an (n, m) integer array whose entries are in range."""
        row_of, indices = np.nonzero(array)
        lengths = np.bincount(row_of, minlength=array.shape[0])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        values = array[row_of, indices].astype(np.int64)
        return cls((array.shape[0], array.shape[1]), indptr, indices, values)

    @classmethod
    def repeated(cls, row: Sequence[int], count: int) -> IntegerRows:
        """So many rows that are all the same, of integers in range."""
        integers = np.array(row, dtype=np.int64)
        filled = np.flatnonzero(integers)
        indptr = np.arange(count + 1) * len(filled)
        indices = np.tile(filled, count)
        values = np.tile(integers[filled], count)
        return cls((count, len(integers)), indptr, indices, values)

    @classmethod
    def with_rows(
        cls, row: Integers, count: int, changed: Mapping[int, Integers]
    ) -> IntegerRows:
        """So many rows of integers in range, which are the same but for some others in their
        places.
        """
        filled = np.flatnonzero(row)
        each = row[filled]
        indices: list[Integers] = []
        values: list[Integers] = []
        for i in range(count):
            other = changed.get(i)
            places = filled if other is None else np.flatnonzero(other)
            indices.append(places)
            values.append(each if other is None else other[places])
        lengths = [len(places) for places in indices]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        shape = (count, len(row))
        return cls(shape, indptr, np.concatenate(indices), np.concatenate(values))

    def entries(self) -> Iterator[list[tuple[int, int]]]:
        """The positive entries of each row as (index, value)."""
        for row in self.pairs():
            yield list(zip(row[::2], row[1::2], strict=True))

    def entries_of(self, i: int) -> list[tuple[int, int]]:
        """The positive entries of one row as (index, value)."""
        span = slice(int(self.indptr[i]), int(self.indptr[i + 1]))
        columns: list[int] = self.indices[span].tolist()
        values: list[int] = self.values[span].tolist()
        return list(zip(columns, values, strict=True))

    def pairs(self) -> Iterator[list[int]]:
        """The positive entries of each row as index, value, index, value, ..; one list for all
        rows where they are the same.
        """
        numbers = np.empty(2 * len(self.values), dtype=np.int64)
        numbers[::2] = self.indices
        numbers[1::2] = self.values
        bounds = (2 * self.indptr).tolist()
        if self.has_equal_rows:
            yield from itertools.repeat(numbers[: bounds[1]].tolist(), len(self))
            return
        for start, end in itertools.pairwise(bounds):
            yield numbers[start:end].tolist()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        # A range treats negative indices and those out of range as a list does.
        i = range(len(self))[cast("int", index)]
        span = slice(int(self.indptr[i]), int(self.indptr[i + 1]))
        row = np.zeros(self.shape[1], dtype=np.int64)
        row[self.indices[span]] = self.values[span]
        return tuple(row.tolist())

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        if self.has_equal_rows:
            return itertools.repeat(cast("tuple[int, ...]", self[0]), len(self))
        return self._each()

    def _each(self) -> Iterator[tuple[int, ...]]:
        """The rows in turn; a long one that is like the one before is the same tuple."""
        before: tuple[int, ...] = ()
        last = slice(0, 0)
        for i, (start, end) in enumerate(itertools.pairwise(self.indptr.tolist())):
            here = slice(start, end)
            if end - start < LONG_ROW or not self._are_equal(last, here):
                before = self[i]
            yield before
            last = here

    def _are_equal(self, one: slice, other: slice) -> bool:
        """Whether two rows have the same entries, by where these are stored."""
        return np.array_equal(self.values[one], self.values[other]) and np.array_equal(
            self.indices[one], self.indices[other]
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, IntegerRows):
            return (
                self.shape == other.shape
                and np.array_equal(self.indptr, other.indptr)
                and np.array_equal(self.indices, other.indices)
                and np.array_equal(self.values, other.values)
            )
        if isinstance(other, (tuple, list)):
            rows = cast("Sequence[Sequence[int]]", other)
            return tuple(self) == tuple(map(tuple, rows))
        return NotImplemented

    def __hash__(self) -> int:
        # Without `indptr`: equal matrices have equal hashes, which is all that is needed.
        return hash((self.shape, self.indices.tobytes(), self.values.tobytes()))

    def __repr__(self) -> str:
        n, m = self.shape
        return f"IntegerRows({n} x {m}, {len(self.values)} positive)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # The dense array is new at every call, so a `copy` is never needed.
        return self.dense if dtype is None else self.dense.astype(dtype)

    @property
    def dense(self) -> Integers:
        """The full (n, m) array."""
        if len(self.values) == self.shape[0] * self.shape[1]:
            return self.values.reshape(self.shape).copy()
        array = np.zeros(self.shape, dtype=np.int64)
        array[self.row_of, self.indices] = self.values
        return array

    @cached_property
    def has_equal_rows(self) -> bool:
        """Whether there are rows, and all of them are the same."""
        lengths = np.diff(self.indptr)
        if not len(lengths) or (lengths != lengths[0]).any():
            return False
        by_row = (len(lengths), int(lengths[0]))
        indices = self.indices.reshape(by_row)
        if not np.array_equal(indices[0], indices[-1]):
            return False
        values = self.values.reshape(by_row)
        return bool((indices == indices[0]).all() and (values == values[0]).all())

    @property
    def row_of(self) -> Integers:
        """The row of every stored value."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @cached_property
    def columns(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """For each column the rows of its positive entries, ascending, and these entries.

        All are Python integers: products of them must not overflow.
        """
        if self.has_equal_rows:
            # Millions of entries take seconds to sort, and all of a column are one integer.
            every = tuple(range(len(self)))
            return tuple(
                (every, (value,) * len(self)) if value else ((), ())
                for value in self[0]
            )
        if SPARSE * len(self.values) >= self.shape[0] * self.shape[1]:
            # Of few zeros an array has all entries in their order.
            every = tuple(range(len(self)))
            by_column = np.ascontiguousarray(self.dense.T)
            return tuple(_entries_of_column(column, every) for column in by_column)
        # A stable sort keeps the rows of a column in order.
        order = np.argsort(self.indices, kind="stable")
        rows = tuple(self.row_of[order].tolist())
        values = tuple(self.values[order].tolist())
        lengths = np.bincount(self.indices, minlength=self.shape[1])
        bounds = [0, *np.cumsum(lengths).tolist()]
        return tuple(
            (rows[start:end], values[start:end])
            for start, end in itertools.pairwise(bounds)
        )

    def weighted_sums(self, weights: Sequence[int]) -> list[int]:
        """The exact sum of every column, with a weight that is not negative for each row."""
        if len(self.values) < MANY_ENTRIES or sum(weights) >= MOST_WEIGHT:
            return [
                sum(map(mul, [weights[i] for i in rows], values))
                for rows, values in self.columns
            ]
        # In halves of 31 bits: their products with weights below 2^32 in all add up to less than
        # 2^63.
        from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

        by_row = np.array(weights, dtype=np.int64)
        sums: list[list[int]] = []
        for half in (self.values >> HALF_BITS, self.values & ((1 << HALF_BITS) - 1)):
            entries: Any = csr_array(
                (half, self.indices, self.indptr), shape=self.shape
            )
            sums.append((by_row @ entries).tolist())
        return [(high << HALF_BITS) + low for high, low in zip(*sums, strict=True)]

    def row_sums(self) -> list[int]:
        """The exact sum of every row."""
        rows, values = self.row_of, self.values
        nearly = np.bincount(rows, values.astype(np.float64), self.shape[0])
        if nearly.max(initial=0.0) < LARGEST_INTEGER:
            sums = np.zeros(self.shape[0], dtype=np.int64)
            np.add.at(sums, rows, values)
            return sums.tolist()
        # In Python's integers: two entries fit 64 bits when added, more may not.
        return [sum(row[1::2]) for row in self.pairs()]


def _entries_of_column(
    column: Integers, every: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rows of a column's positive entries, which are among `every` one, and these entries."""
    if not column.all():
        rows = np.flatnonzero(column)
        return tuple(rows.tolist()), tuple(column[rows].tolist())
    # One integer, and not millions of equal ones.
    value = column[len(column) // 2]
    others = np.flatnonzero(column != value)
    if FEW_OTHERS * len(others) > len(column):
        return every, tuple(column.tolist())
    entries = [int(value)] * len(column)
    for row, other in zip(others.tolist(), column[others].tolist(), strict=True):
        entries[row] = other
    return every, tuple(entries)


def places_in(ascending: Integers, wanted: Integers) -> Integers:
    """The place of each wanted integer in an ascending list; `NOWHERE` if it is not there."""
    if not len(ascending):
        return np.full(len(wanted), NOWHERE, dtype=np.int64)
    # `searchsorted` places what is above all entries behind the last one.
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[places] == wanted, places, NOWHERE)


def _frozen(array: Integers) -> Integers:
    """A copy that cannot be written to."""
    copy = np.array(array, dtype=np.int64)
    copy.setflags(write=False)
    return copy


def _shown(value: object) -> str:
    """An entry as a message shows it."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    return quoted(value)


def _name(names: Sequence[str] | None, i: int) -> str:
    """Row i as a message calls it: by its name, or else by its number from 1 on."""
    if names is not None and i < len(names):
        return quoted(names[i])
    return str(i + 1)


def _fault(row: Sequence[Any]) -> int | None:
    """The place of the first entry that is not an integer in range; None if there is none.

    A truth value is not an integer here.
    """
    # These three passes run in C, which a large channel file needs. `type` and not `isinstance`,
    # for which True is an integer.
    integers = set(map(type, row)) <= {int}
    if integers and (not row or 0 <= min(row) <= max(row) <= LARGEST_INTEGER):
        return None
    for place, value in enumerate(row):
        if type(value) is not int or not 0 <= value <= LARGEST_INTEGER:
            return place
    return None


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a sequence, but not a text, which is a sequence of texts."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _check_pairs(rows: Any, names: Sequence[str] | None) -> None:
    """Refuse what is not a list of lists of an even number of integers in range."""
    if not isinstance(rows, list):
        raise InputError(
            f"sparse rows must be a list of lists of integers, not {type(rows).__name__}"
        )
    for i, row in enumerate(cast("list[Any]", rows)):
        if not _is_pairs(row):
            raise InputError(
                f"row {_name(names, i)} is not a list of index, value, .. in whole numbers"
            )
        place = _fault(row)
        if place is not None:
            raise InputError(f"row {_name(names, i)}: {_shown(row[place])} {_DEMAND}")


def _is_pairs(row: object) -> TypeGuard[list[int]]:
    """Whether a row is a list of integers of even length; a truth value is no integer here."""
    if not isinstance(row, list):
        return False
    numbers = cast("list[Any]", row)
    return len(numbers) % 2 == 0 and set(map(type, numbers)) <= {int}


def _checked(rows: Any, names: Sequence[str] | None) -> Integers:
    """Rows of equal length and of integers in range, as an array."""
    if not _is_list(rows):
        raise InputError(
            f"rows must be a list of lists of integers, not {type(rows).__name__}"
        )
    width = 0
    if len(rows) and _is_list(rows[0]):
        width = len(rows[0])
    for i, row in enumerate(rows):
        if not _is_list(row):
            raise InputError(f"row {_name(names, i)} is not a list of integers")
        if len(row) != width:
            raise InputError(
                f"row {_name(names, i)} has {len(row)} entries where the first row has {width}"
            )
        place = _fault(row)
        if place is not None:
            raise InputError(
                f"row {_name(names, i)}: entry {place + 1} ({_shown(row[place])}) {_DEMAND}"
            )
    # The width is named because an array of no rows has none.
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)
