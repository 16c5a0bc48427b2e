"""Released rows that are nearest to true cells of a person.

Rows are compared cell by cell: equal cells, and values that stand for the true one, are 0 apart;
numbers by their difference over the range of the column; other cells are 1 apart. Equal released
rows are taken together, with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.judging.together import Files, Flags, Floats, SharedColumn

Distances: TypeAlias = NDArray[np.float32]
"""(records, rows) array; single precision, because there are many."""

CLOSE = 1e-5
"""Distances that differ by less are equal: sums of a few single-precision numbers."""

CHUNK = 1 << 24
"""Distances that are in memory at a time (64 MB)."""

WORK = 1 << 31
"""Distances that are computed in all: some ten seconds."""

MOST_TARGETS = 2_000
FEWEST_TARGETS = 100
"""People that an attack is tried on."""


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct released rows.

    Attributes
    ----------
    codes : (columns, rows) codes of the released values
    counts : (rows,) integers
    row_of : (released,) integers
        The distinct row of every released one.
    """

    codes: Integers
    counts: Integers
    row_of: Integers

    @classmethod
    def of(cls, columns: Sequence[SharedColumn]) -> DistinctRows:
        """The distinct rows of these columns."""
        row_of = combined([column.released.codes for column in columns])
        _, first, counts = np.unique(row_of, return_index=True, return_counts=True)
        codes = np.stack([column.released.codes[first] for column in columns])
        return cls(codes.astype(np.int64), counts, row_of)

    def __len__(self) -> int:
        return len(self.counts)


def combined(parts: Sequence[Any]) -> Integers:
    """A number below k for each of the k distinct combinations of codes."""
    codes = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        # Renumbered at every step: the product of the numbers of values may exceed 2**63.
        codes = codes * (int(part.max(initial=0)) + 1) + part
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    return codes


def targets_of(files: Files, rows: DistinctRows, seed: int) -> Integers:
    """People that attacks are tried on: as many as take a bearable time."""
    each = max(1, 2 * len(files.columns) * len(rows))
    most = int(np.clip(WORK // each, FEWEST_TARGETS, MOST_TARGETS))
    candidates = np.arange(files.records)
    if files.is_linked:
        candidates = np.unique(files.owner)
    chance = np.random.default_rng([seed, 1])
    return np.sort(chance.permutation(candidates)[:most])


def distances(column: SharedColumn, records: Integers, codes: Integers) -> Distances:
    """(records, rows) how far the cells of rows are from the true cells of records."""
    values, place = np.unique(column.original.codes[records], return_inverse=True)
    apart = np.ones((len(column.covers), len(values)), np.float32)
    numbers = column.numbers
    after = column.released_numbers
    if numbers is not None and after is not None:
        known = numbers[~np.isnan(numbers)]
        width = float(known.max() - known.min()) or 1.0
        gaps = np.abs(after[:, None] - numbers[values][None, :]) / width
        # A missing number is far from all others.
        apart = np.where(np.isnan(gaps), 1.0, np.minimum(gaps, 1.0)).astype(np.float32)
    of_value = {value: at for at, value in enumerate(values.tolist())}
    for released, places in enumerate(column.covers):
        if len(places) == 1:
            at = of_value.get(int(places[0]))
            if at is not None:
                apart[released, at] = 0.0
        else:
            apart[released, np.isin(values, places)] = 0.0
    return apart.T[place.reshape(-1)][:, codes]


def chunks(targets: Integers, width: int) -> Iterator[Integers]:
    """The targets in parts, so that `width` distances of each fit into memory."""
    size = max(1, CHUNK // max(1, width))
    for first in range(0, len(targets), size):
        yield targets[first : first + size]


def nearest(far: Any) -> Flags:
    """(records, rows) which rows are nearest to each record."""
    return far <= far.min(axis=1, keepdims=True) + CLOSE


def votes(near: Flags, weights: Integers, codes: Integers, values: int) -> Floats:
    """(records, values) how many of the nearest released rows have each value.

    `weights` are the numbers of released rows, (rows,) or (records, rows).
    """
    record, row = np.nonzero(near)
    weight = weights[row] if weights.ndim == 1 else weights[record, row]
    found = np.bincount(record * values + codes[row], weight, len(near) * values)
    found = found.astype(np.float64)
    return found.reshape(len(near), values)
