"""The distinct combinations of cells in several columns, and numbers for them.

The codes of all columns become one integer for each record, in mixed radix (`distinct_records`).
The distinct integers number the combinations. They are found by counting where few are possible,
otherwise by sorting (`distinct_numbers`). Where the product of the sizes does not fit into 64 bits,
whole rows are sorted in their place. `Numbering` keeps the numbers of the combinations from one
batch to the next.

For example, the columns have the texts ("a", "b") and ("x", "y", "z"). With one more for a missing
cell they have 3 and 4 possible cells. The record (b, x) has the codes 1 and 0, raised by one 2 and
1, and so the integer 2 * 4 + 1 = 9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.formats.cells import Encoded

FIRST_RECORDS = 16
"""Records for each possible one among which all distinct ones are looked for first."""

DENSE_LIMIT = 1 << 20
"""Most possible combinations for which a dense array is used (8 MB)."""

SORTED_TOGETHER = 1 << 20
"""Most numbers that are sorted at once; of more, parts are sorted one after the other."""

PARTS = 16
"""Parts of numbers that are too many to be sorted at once."""


def distinct_records(
    columns: Sequence[Encoded],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct combinations of cells in columns of equal length n.

    Returns
    -------
    distinct : (k, number of columns) array
        The codes of each combination, -1 for a missing cell.
    inverse : (n,) array
        The combination of every record.
    """
    # Codes from 0 on, with 0 for a missing cell, are the digits of one mixed-radix number.
    sizes = tuple(len(column.texts) + 1 for column in columns)
    shifted = [column.codes.astype(np.int64) + 1 for column in columns]
    possible = math.prod(sizes)
    # Such numbers would not fit into 64 bits, so whole rows are compared.
    if possible >= 2**63:
        records = np.stack(shifted, axis=1)
        distinct, inverse = np.unique(records, axis=0, return_inverse=True)
        return distinct - 1, inverse.reshape(-1)
    numbers = np.ravel_multi_index(tuple(shifted), sizes)
    present, inverse = distinct_numbers(numbers, possible)
    return np.stack(np.unravel_index(present, sizes), axis=1) - 1, inverse


def counted_records(
    columns: Sequence[Encoded],
) -> tuple[list[Encoded], NDArray[np.int64]] | None:
    """The distinct records of columns of equal length n, in the order of their first appearance,
    and how often each occurs.

    None where so many are possible that looking for them would not pay.
    """
    sizes = [len(column.texts) + 1 for column in columns]
    possible = math.prod(sizes)
    if possible > len(columns[0]):
        return None
    # As in `distinct_records`, but in place: this is done for every record of a table.
    numbers = np.zeros(len(columns[0]), np.int64)
    for size, column in zip(sizes, columns, strict=True):
        numbers *= size
        numbers += column.codes
        numbers += 1
    counts = np.bincount(numbers, minlength=possible)
    distinct_count = np.count_nonzero(counts)
    first = np.full(possible, len(numbers))
    # Most often the first records have them all.
    for head in (numbers[: FIRST_RECORDS * possible], numbers):
        # Of several writes to one place the last remains, so the records are written in reverse.
        first[head[::-1]] = np.arange(len(head) - 1, -1, -1)
        if np.count_nonzero(first < len(numbers)) == distinct_count:
            break
    present = np.argsort(first)[:distinct_count]
    codes = np.unravel_index(present, sizes)
    distinct = [
        column.recoded(code - 1) for column, code in zip(columns, codes, strict=True)
    ]
    return distinct, counts[present]


def distinct_numbers(
    numbers: NDArray[np.integer[Any]], possible: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct values of `numbers`, and the place of each number among them.

    All numbers must be at least 0 and below `possible`.
    """
    if possible <= DENSE_LIMIT:
        present = np.flatnonzero(np.bincount(numbers))
        place = np.zeros(possible, np.int64)
        place[present] = np.arange(len(present))
        return present, place[numbers]
    presents: list[NDArray[Any]] = []
    places = np.empty(len(numbers), np.int64)
    found = 0
    for at, present, inverse in _sorted_parts(numbers, possible):
        places[at] = inverse + found
        found += len(present)
        presents.append(present)
    return np.concatenate(presents), places


def numbered(
    numbers: NDArray[np.integer[Any]], possible: int
) -> tuple[NDArray[np.int32], int]:
    """The place of each number among the distinct ones, and how many these are.

    As of `distinct_numbers`, in four bytes a number, for the columns of long tables.
    """
    if possible <= DENSE_LIMIT:
        present = np.flatnonzero(np.bincount(numbers))
        place = np.zeros(possible, np.int32)
        place[present] = np.arange(len(present))
        return place[numbers], len(present)
    places = np.empty(len(numbers), np.int32)
    found = 0
    for at, present, inverse in _sorted_parts(numbers, possible):
        places[at] = inverse + found
        found += len(present)
    return places, found


def _sorted_parts(
    numbers: NDArray[np.integer[Any]], possible: int
) -> Iterator[tuple[Any, NDArray[Any], NDArray[np.int64]]]:
    """Where the numbers of a part are, its distinct numbers, and the place of each among them.

    Sorting takes longer than counting, but its memory grows with the records only.
    """
    if len(numbers) <= SORTED_TOGETHER:
        yield slice(None), *np.unique(numbers, return_inverse=True)
        return
    for at in parts_in_order(numbers, possible):
        yield at, *np.unique(numbers[at], return_inverse=True)


def counted_numbers(
    numbers: NDArray[np.integer[Any]], possible: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct values of `numbers`, and how often each occurs.

    All numbers must be at least 0 and below `possible`.
    """
    if possible > DENSE_LIMIT:
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers)
    present = np.flatnonzero(counts)
    return present, counts[present]


def parts_in_order(
    numbers: NDArray[np.integer[Any]], possible: int
) -> Iterator[NDArray[np.int64]]:
    """The places of the smallest numbers, then those of larger ones, and so on.

    Sorting part by part takes a fraction of the memory, where the numbers are spread over all that
    are possible.
    """
    width = -(-possible // PARTS)
    part_of = np.empty(len(numbers), np.uint8)
    for start in range(0, len(numbers), SORTED_TOGETHER):
        some = slice(start, start + SORTED_TOGETHER)
        part_of[some] = numbers[some] // width
    for part in range(PARTS):
        yield np.flatnonzero(part_of == part)


class Numbering:
    """Numbers distinct combinations of texts in the order of their first appearance.

    The numbers stay the same over many batches of records.
    """

    def __init__(self) -> None:
        self._number_of: dict[tuple[str, ...], int] = {}

    def __len__(self) -> int:
        return len(self._number_of)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The combinations in the order of their numbers."""
        return tuple(self._number_of)

    def number(self, columns: Sequence[Encoded]) -> NDArray[np.int64]:
        """The number of every record; a missing cell is the empty text."""
        distinct, inverse = distinct_records(columns)
        # The record in which each combination appears first. Of several writes to one place the
        # last remains, so the records are written in reverse.
        first = np.empty(len(distinct), np.int64)
        first[inverse[::-1]] = np.arange(len(inverse))[::-1]
        # The code -1 of a missing cell leads to the empty text at the end.
        texts_of = [(*column.texts, "") for column in columns]
        numbers = np.empty(len(distinct), np.int64)
        # Only the distinct combinations become Python texts.
        for k in np.argsort(first).tolist():
            codes = distinct[k].tolist()
            texts = [texts[code] for texts, code in zip(texts_of, codes, strict=True)]
            numbers[k] = self._number_of.setdefault(tuple(texts), len(self._number_of))
        return numbers[inverse]
