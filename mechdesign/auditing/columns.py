"""A channel of one variable as columns of integers over the useful symbols of a table.

Every audit starts here. The column of an output y has W(y|x) for each useful symbol x of the table,
in units of the channel's denominator, and only where it is positive (`Entries`): 0, 3/8 and 5/8 are
the symbols (1, 2) with the entries (3, 5). So

    P(s, y) = sum over x of P(s, x) W(y|x)

is a sum of counts times entries, an integer in a fixed unit, and nothing is rounded.

A channel and a table need not agree: the table may have more useful columns than the channel
releases, and in another order. `released_part` drops the other columns where no later step needs
them, and `columns_on` gives all symbols that differ only in them the same entry.

Of several releases of one record, the column of a tuple of outputs is the product of their columns.
`directions` forms these products. Lifts do not change when a column is multiplied by a constant, so
proportional products are kept once. Example: the columns (2, 4) and (3, 6) over two symbols are one
direction, (1, 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import TypeAlias

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed
from mechdesign.tables.columns import other_spelling
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol, Variable

Entries: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""One column: the useful symbols with a positive entry, ascending, and these entries."""

Direction: TypeAlias = tuple[Entries, tuple[int, ...]]
"""A column without common divisor, and the first tuple of outputs that has it, one output of each
release.
"""


SPARSE = 8
"""Cells for every filled one from which sums over the filled cells are faster than those of an
array."""


class FilledCounts:
    """The counts of a table by sensitive symbol, and where they are not zero.

    Most counts of a large table are zero: that of a column with itself has one in each row.
    """

    def __init__(self, counts: Sequence[Sequence[int]]) -> None:
        self._counts = counts
        self._width = len(counts[0]) if counts else 0
        self._filled: list[tuple[list[int], list[int]]] = []
        for row in counts:
            places = [x for x, count in enumerate(row) if count]
            self._filled.append((places, [row[x] for x in places]))
        self._size = sum(len(places) for places, _ in self._filled)
        self.is_sparse = SPARSE * self._size < self._width * len(counts)

    def masses(self, inputs: Sequence[int], values: Sequence[int]) -> list[int]:
        """For each sensitive symbol s the sum over x of count(s, x) W(y|x)."""
        masses: list[int] = []
        if len(inputs) * len(self._counts) <= self._size:
            for row in self._counts:
                masses.append(sum(map(mul, [row[x] for x in inputs], values)))
            return masses
        entry_of = [0] * self._width
        for x, value in zip(inputs, values, strict=True):
            entry_of[x] = value
        for places, counts in self._filled:
            masses.append(sum(map(mul, counts, [entry_of[x] for x in places])))
        return masses


def released_part(channel: Channel, joint: Joint) -> Joint:
    """The table of the useful columns that a channel releases, from a table that may have more."""
    columns = channel.useful.columns
    if set(columns) < set(joint.useful.columns):
        return joint.releasing(columns)
    return joint


def columns_on(channel: Channel, joint: Joint) -> list[Entries]:
    """The column of every output over the useful symbols of the table."""
    # On the channel's own table rows are the symbols themselves.
    if channel.useful is joint.useful:
        return list(channel.columns)
    # Symbols of the table that differ only in columns that are not released share a row.
    sharing: list[list[int]] = [[] for _ in channel.useful.symbols]
    for x, row in enumerate(rows_on(channel.useful, joint)):
        sharing[row].append(x)
    columns: list[Entries] = []
    for rows, values in channel.columns:
        entry_of: dict[int, int] = {}
        for row, value in zip(rows, values, strict=True):
            entry_of.update(dict.fromkeys(sharing[row], value))
        inputs = sorted(entry_of)
        columns.append((inputs, [entry_of[x] for x in inputs]))
    return columns


def rows_on(useful: Variable, joint: Joint) -> list[int]:
    """The row of a channel on `useful` for each useful symbol of the table.

    The table may have further useful columns.

    Raises
    ------
    InputError
        If the table lacks a column of the channel, or one of them has a symbol that the other
        lacks.
    """
    symbols = _symbols_on(useful, joint.useful)
    present = set(symbols)
    unknown = [symbol for symbol in useful.symbols if symbol not in present]
    if unknown:
        names = [useful.names[useful.index[symbol]] for symbol in unknown]
        raise InputError(
            f"the table has no useful symbol {listed(names)}, which the channel has"
            + other_spelling(unknown[0], symbols)
        )
    without_row = [
        symbol for symbol in dict.fromkeys(symbols) if symbol not in useful.index
    ]
    if without_row:
        names = [", ".join(symbol) for symbol in without_row]
        raise InputError(
            f"the channel has no row for the useful symbol {listed(names)} of the table"
            + other_spelling(without_row[0], useful.symbols)
        )
    return [useful.index[symbol] for symbol in symbols]


def _symbols_on(useful: Variable, whole: Variable) -> Sequence[Symbol]:
    """For each symbol of `whole` its part in the columns of `useful`."""
    columns = useful.columns
    if set(columns) <= set(whole.columns):
        positions = [whole.columns.index(column) for column in columns]
    elif len(columns) == len(whole.columns):
        # A wide table has the symbols in its header, and no name of the column.
        positions = list(range(len(columns)))
    else:
        missing = [column for column in columns if column not in whole.columns]
        raise InputError(
            f"the table has no useful column {listed(missing)}, which the channel releases"
        )
    return whole.parts_of_symbols(positions)


def everything(joint: Joint) -> list[Direction]:
    """The direction of no release at all: the column of ones, after no outputs."""
    n = len(joint.useful)
    return [((range(n), [1] * n), ())]


def directions(
    earlier: Iterable[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Products of every direction and column, each direction once.

    Tuples of outputs that never occur together are left out. It is called release by release,
    beginning with `everything`.
    """
    entries = [dict(zip(*column, strict=True)) for column in columns]
    first_tuples: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}
    for (inputs, values), outputs in earlier:
        for y, entry_of in enumerate(entries):
            support: list[int] = []
            products: list[int] = []
            for x, value in zip(inputs, values, strict=True):
                if x in entry_of:
                    support.append(x)
                    products.append(value * entry_of[x])
            if not support:
                continue
            # Proportional columns are equal without their common divisor.
            divisor = math.gcd(*products)
            primitive = tuple(product // divisor for product in products)
            first_tuples.setdefault((tuple(support), primitive), (*outputs, y))
    return list(first_tuples.items())
