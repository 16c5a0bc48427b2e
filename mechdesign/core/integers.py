"""An immutable sparse matrix of non-negative integers that reads like a tuple of tuples."""

# Rows come as anything that looks like a matrix.
# pyright: basic
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted

Integers = NDArray[np.int64]

LARGEST_INTEGER = 2**62
"""Largest entry: it and the sum of two entries fit a signed 64-bit integer."""


class IntegerRows(Sequence[tuple[int, ...]]):
    """Rows of non-negative integers up to `LARGEST_INTEGER`, stored by row without the zeros.

    Indexing and iterating give tuples of Python integers; `columns` gives the same by column. Compares
    equal to any sequence of sequences with the same integers.
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
        self._arrays = self.indptr, self.indices, self.values = tuple(
            np.array(array, dtype=np.int64) for array in (indptr, indices, values)
        )
        for array in self._arrays:
            array.setflags(write=False)

    @classmethod
    def of(cls, rows: Any, names: Sequence[str] | None = None) -> IntegerRows:
        """Build from rows given as sequences of integers, an integer array, or another `IntegerRows`."""
        if isinstance(rows, IntegerRows):
            return rows
        if isinstance(rows, np.ndarray):
            if rows.ndim != 2:
                raise InputError(f"rows must have 2 dimensions, not {rows.ndim}")
            rows = rows.tolist()
        return cls.from_array(_checked(rows, names))

    @classmethod
    def of_pairs(
        cls, rows: Any, width: int, names: Sequence[str] | None = None
    ) -> IntegerRows:
        """Build from the entries that are not zero."""
        if not isinstance(rows, list):
            raise InputError(
                f"sparse rows must be a list of lists of integers, not {type(rows).__name__}"
            )
        for i, row in enumerate(rows):
            if not isinstance(row, list) or len(row) % 2 or set(map(type, row)) - {int}:
                raise InputError(
                    f"row {_name(names, i)} is not a list of index, value, .. in whole numbers"
                )
            if row and not 0 <= min(row) <= max(row) <= LARGEST_INTEGER:
                wrong = next(v for v in row if not 0 <= v <= LARGEST_INTEGER)
                raise InputError(f"row {_name(names, i)}: {_shown(wrong)} {_WANTED}")
        indptr = np.concatenate(
            [[0], np.cumsum([len(row) // 2 for row in rows])]
        ).astype(np.int64)
        numbers = np.fromiter(
            itertools.chain.from_iterable(rows),
            dtype=np.int64,
            count=2 * int(indptr[-1]),
        )
        indices, values = numbers[::2], numbers[1::2]
        row_of = np.repeat(np.arange(len(rows)), np.diff(indptr))
        wrong = (indices >= width) | (values == 0)
        wrong[1:] |= (np.diff(indices) <= 0) & (np.diff(row_of) == 0)
        if wrong.any():
            i = int(row_of[np.argmax(wrong)])
            raise InputError(
                f"row {_name(names, i)}: the indices must ascend and be below {width}, and the values positive"
            )
        return cls((len(rows), width), indptr, indices, values)

    def entries(self) -> Iterator[list[tuple[int, int]]]:
        """Each row as (index, value) of its entries that are not zero."""
        return (list(zip(row[::2], row[1::2], strict=True)) for row in self.pairs())

    def pairs(self) -> Iterator[list[int]]:
        """Each row as index, value, index, value, .. of its entries that are not zero."""
        numbers = np.empty(2 * len(self.values), dtype=np.int64)
        numbers[::2], numbers[1::2] = self.indices, self.values
        ends = (2 * self.indptr).tolist()
        return (numbers[a:b].tolist() for a, b in itertools.pairwise(ends))

    @classmethod
    def from_array(cls, array: NDArray[Any]) -> IntegerRows:
        """Build from a 2-dimensional integer array that is known to be in range."""
        at, indices = np.nonzero(array)
        indptr = np.concatenate(
            [[0], np.cumsum(np.bincount(at, minlength=array.shape[0]))]
        )
        return cls(
            (array.shape[0], array.shape[1]),
            indptr,
            indices,
            array[at, indices].astype(np.int64),
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        i = range(len(self))[index]
        row = [0] * self.shape[1]
        span = slice(int(self.indptr[i]), int(self.indptr[i + 1]))
        for j, value in zip(
            self.indices[span].tolist(), self.values[span].tolist(), strict=True
        ):
            row[j] = value
        return tuple(row)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, IntegerRows):
            arrays = zip(self._arrays, other._arrays, strict=True)
            return self.shape == other.shape and all(
                np.array_equal(one, two) for one, two in arrays
            )
        return (
            tuple(self) == tuple(map(tuple, other))
            if isinstance(other, (tuple, list))
            else NotImplemented
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.indices.tobytes(), self.values.tobytes()))

    def __repr__(self) -> str:
        return f"IntegerRows({self.shape[0]} x {self.shape[1]}, {len(self.values)} positive)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.dense if dtype is None else self.dense.astype(dtype)

    @property
    def dense(self) -> Integers:
        """The full (rows, columns) array."""
        array = np.zeros(self.shape, dtype=np.int64)
        array[self.row_of, self.indices] = self.values
        return array

    @property
    def row_of(self) -> Integers:
        """Row index of every stored value."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @cached_property
    def columns(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Per column, the rows of its positive entries (ascending) and those entries, as Python integers."""
        order = np.argsort(self.indices, kind="stable")
        at, values = (
            tuple(self.row_of[order].tolist()),
            tuple(self.values[order].tolist()),
        )
        ends = np.cumsum(np.bincount(self.indices, minlength=self.shape[1])).tolist()
        starts = [0, *ends[:-1]]
        return tuple((at[a:b], values[a:b]) for a, b in zip(starts, ends, strict=True))

    def row_sums(self) -> list[int]:
        """The exact sum of every row."""
        return [sum(row[1::2]) for row in self.pairs()]


_WANTED = f"is not a non-negative integer of at most {LARGEST_INTEGER}"

_SHOWN_BITS = 256
"""Longer integers are not written out: Python refuses to, beyond some thousand digits."""


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    return quoted(value)


def _name(names: Sequence[str] | None, i: int) -> str:
    return quoted(names[i]) if names is not None and i < len(names) else str(i + 1)


def _checked(rows: Any, names: Sequence[str] | None) -> Integers:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Sequence):
        raise InputError(
            f"rows must be a list of lists of integers, not {type(rows).__name__}"
        )
    width = len(rows[0]) if len(rows) and isinstance(rows[0], Sequence) else 0
    for i, row in enumerate(rows):
        if isinstance(row, (str, bytes)) or not isinstance(row, Sequence):
            raise InputError(f"row {_name(names, i)} is not a list of integers")
        if len(row) != width:
            raise InputError(
                f"row {_name(names, i)} has {len(row)} entries where the first row has {width}"
            )
        # One pass in C tells the usual case; only a bad row is searched. A bool is not a number here.
        if set(map(type, row)) - {int} or (
            row and not 0 <= min(row) <= max(row) <= LARGEST_INTEGER
        ):
            j = next(
                j
                for j, v in enumerate(row)
                if type(v) is not int or not 0 <= v <= LARGEST_INTEGER
            )
            raise InputError(
                f"row {_name(names, i)}: entry {j + 1} ({_shown(row[j])}) {_WANTED}"
            )
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)
