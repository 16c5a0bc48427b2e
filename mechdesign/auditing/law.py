"""What an analyst reads: how far the law of the released rows is from that of the table.

A channel W of a table with the counts c_x releases the row y with the probability P(y) = sum_x
(c_x / N) W(y|x), where the table has it in the share p(y). The law of the table is kept where both
agree for every row; then tables and means of the released columns have the table's values in
expectation. Otherwise `law_of` says how far they move: single rows, single columns, pairs of
columns, values that disappear, and rows that no record has.

For example, two rows (a) and (b) with the counts 3 and 1, where a is always kept and b becomes a
half of the time: a has the share 7/8 in place of 3/4, so the total variation is 1/8.

Everything is computed in integers. With D the least common denominator of c_x / total_x, the
integer N D P(y) is a sum of products of integers, and so is N D p(y). Only `quotient_above` rounds,
outwards. Numbers that long have no NumPy type, so sums over the cells of a column are taken
digit by digit (`_Deviations`), with digits so short that a sum of doubles is exact.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import Entries
from mechdesign.channel.channel import Channel
from mechdesign.channel.output_cells import cells_of_labels
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.tables.joint import Joint

Cells = tuple[str, ...]
"""The texts of a row, one for each column."""

EXACT_BITS = 53
"""Bits of an integer that a double holds exactly."""


@dataclass(frozen=True)
class ShareChange:
    """The share of a column's value in the table and among released rows, rounded to nearest."""

    column: str
    value: str
    before: float
    after: float

    @property
    def record(self) -> dict[str, Any]:
        """The change as JSON."""
        return {
            "column": self.column,
            "value": self.value,
            "before": self.before,
            "after": self.after,
        }


@dataclass(frozen=True)
class Law:
    """The law of the released rows beside that of the table; distances are rounded up.

    Attributes
    ----------
    kept : bool
        Whether every released row has exactly the probability that the table gives it.
    largest_deviation : float
        The largest |P(y) - p(y)| of a row.
    total_variation : float
        Half the sum of |P(y) - p(y)| over all rows.
    columns : dict of str to float
        Total variation of each column.
    pairs : (str, str, float) or None
        The pair of columns with the largest total variation, and this; None for a single column.
    impossible_rows : float
        Probability that a released row is one that no record of the table has.
    vanished : dict of str to tuple of str
        By column the values of the table that are never released; columns without any are left out.
    largest_share_change : ShareChange or None
        The value of a column whose share changes most; None where no share changes.
    """

    kept: bool
    largest_deviation: float
    total_variation: float
    columns: dict[str, float]
    pairs: tuple[str, str, float] | None
    impossible_rows: float
    vanished: dict[str, tuple[str, ...]]
    largest_share_change: ShareChange | None

    @property
    def record(self) -> dict[str, Any]:
        """The law as JSON."""
        pairs = None
        if self.pairs is not None:
            one, other, variation = self.pairs
            pairs = {"columns": [one, other], "total_variation": variation}
        change = None
        if self.largest_share_change is not None:
            change = self.largest_share_change.record
        return {
            "kept": self.kept,
            "largest_deviation": self.largest_deviation,
            "total_variation": self.total_variation,
            "columns": dict(self.columns),
            "pairs": pairs,
            "impossible_rows": self.impossible_rows,
            "vanished": {name: list(values) for name, values in self.vanished.items()},
            "largest_share_change": change,
        }


def channel_law(channel: Channel, joint: Joint | None) -> Law | None:
    """What an analyst reads of what a channel releases from a table.

    None where outputs are labels, which cannot be compared with the table: only rows, and symbols
    of the columns themselves, have a place in it (`Channel.law_absent` has the reason in words).
    Without a table the channel itself says whether it keeps the law.
    """
    if joint is None:
        return _kept_law(channel.released_columns) if channel.keeps_law else None
    useful = joint.useful
    if channel.joint is joint and channel.keeps_law:
        return _kept_law(useful.columns)
    cells: Sequence[Cells] | None = None
    if channel.releases_symbols:
        cells = channel.output_cells
    elif channel.published is None:
        cells = cells_of_labels(channel.outputs, useful)
    return law_of(
        joint.useful_counts,
        channel.integers,
        channel.row_totals,
        useful.symbols,
        cells,
        useful.columns,
    )


def _kept_law(columns: Sequence[str]) -> Law:
    """The law of rows that are all released exactly as often as the table has them."""
    pair = None if len(columns) < 2 else (columns[0], columns[1], 0.0)
    return Law(
        kept=True,
        largest_deviation=0.0,
        total_variation=0.0,
        columns=dict.fromkeys(columns, 0.0),
        pairs=pair,
        impossible_rows=0.0,
        vanished={},
        largest_share_change=None,
    )


def columns_law(
    joint: Joint,
    columns: Sequence[Entries],
    denominator: int,
    outputs: Sequence[str],
) -> Law | None:
    """The law of a matrix from elsewhere, column by column over one denominator; None for labels.

    The entries are positions of useful symbols of the table with their integers.
    """
    cells = cells_of_labels(outputs, joint.useful)
    if cells is None:
        return None
    before: dict[Cells, int] = defaultdict(int)
    after: dict[Cells, int] = defaultdict(int)
    counts = joint.useful_counts
    for symbol, count in zip(joint.useful.symbols, counts, strict=True):
        before[symbol] += int(count) * denominator
    for cell, (inputs, values) in zip(cells, columns, strict=True):
        for x, value in zip(inputs, values, strict=True):
            after[cell] += int(counts[x]) * value
    return _compared(before, after, joint.useful.columns)


def law_of(
    counts: Sequence[int],
    rows: IntegerRows,
    totals: Sequence[int],
    input_cells: Sequence[Cells],
    output_cells: Sequence[Cells] | None,
    columns: Sequence[str],
) -> Law | None:
    """The law of the rows that a channel releases from a table, beside the table's own.

    Parameters
    ----------
    counts : sequence of n int
        How many records of the table have each input row; not negative, and not all zero.
    rows : IntegerRows, (n, m)
        W(y|x) = rows[x][y] / totals[x].
    totals : sequence of n int
        The sum of each row; rows may have totals of their own.
    input_cells, output_cells : sequences of n and of m tuples of str
        The texts of inputs and outputs, one for each column. Where two inputs or two outputs have
        the same texts, their probabilities are added. None for outputs that are labels and no cells
        of the columns.
    columns : sequence of str
        The names of the columns.

    Returns
    -------
    Law or None
        None where the outputs have no cells: then no released row can be compared with one of the
        table.

    Raises
    ------
    InputError
        If the integers of a row do not sum to its total, or the counts are no counts.
    """
    counts = [int(count) for count in counts]
    if min(counts, default=0) < 0 or sum(counts) == 0:
        raise InputError("the counts must not be negative, and one must be positive")
    if rows.row_sums() != [int(total) for total in totals]:
        raise InputError("the integers of a row of the channel do not sum to its total")
    if output_cells is None:
        return None

    released, denominator = _released(counts, rows, totals)
    before: dict[Cells, int] = defaultdict(int)
    after: dict[Cells, int] = defaultdict(int)
    for cells, count in zip(input_cells, counts, strict=True):
        before[cells] += count * denominator
    for cells, mass in zip(output_cells, released, strict=True):
        after[cells] += mass
    return _compared(before, after, columns)


def _compared(
    before: dict[Cells, int], after: dict[Cells, int], columns: Sequence[str]
) -> Law:
    """The law of rows with these masses after the release, beside those before; of one sum."""
    whole = sum(before.values())
    # Rows in the order of the table, so that values are listed in this order, too.
    every_row = list(dict.fromkeys(itertools.chain(before, after)))
    deviations = _Deviations(
        every_row, [after.get(row, 0) - before.get(row, 0) for row in every_row]
    )
    impossible = sum(mass for row, mass in after.items() if not before.get(row))

    variations: list[int] = []
    for column in range(len(columns)):
        variations.append(_variation(deviations.by_cell([column])))
    worst_pair = _worst_pair(deviations, columns, whole)
    return Law(
        kept=not any(deviations.values),
        largest_deviation=quotient_above(_largest(deviations.values), whole),
        total_variation=quotient_above(_variation(deviations.values), 2 * whole),
        columns={
            name: quotient_above(variation, 2 * whole)
            for name, variation in zip(columns, variations, strict=True)
        },
        pairs=worst_pair,
        impossible_rows=quotient_above(impossible, whole),
        vanished=_vanished(before, after, columns),
        largest_share_change=_largest_share_change(deviations, before, columns, whole),
    )


def _released(
    counts: Sequence[int], rows: IntegerRows, totals: Sequence[int]
) -> tuple[list[int], int]:
    """N D P(y) of every output y, and D, the least common denominator of c_x / total_x.

    Where every total is c_x times the same unit, D divides the unit, and where all totals are equal
    it divides them. Totals without a common structure make D as long as all of them together.
    """
    reduced = [math.gcd(count, int(t)) for count, t in zip(counts, totals, strict=True)]
    bottoms = [int(t) // g for t, g in zip(totals, reduced, strict=True)]
    denominator = math.lcm(*bottoms)
    factors = [
        count // divisor * (denominator // bottom)
        for count, divisor, bottom in zip(counts, reduced, bottoms, strict=True)
    ]
    return rows.weighted_sums(factors), denominator


class _Deviations:
    """N D (P(row) - p(row)) of rows, with exact sums over rows that agree in some columns.

    A sum over r rows of digits below 2^(53 - log2 r) is below 2^53 in modulus, where doubles add
    integers without rounding. So the integers are cut into digits of so many bits, `np.bincount`
    adds each digit, and Python puts the sums together.
    """

    def __init__(self, rows: Sequence[Cells], values: list[int]) -> None:
        # A row that has the table's probability takes no part in any sum.
        self.values = values
        moved = [i for i, value in enumerate(values) if value]
        self._codes: list[Integers] = []
        self.symbols: list[list[str]] = []
        width = len(rows[0])
        for column in range(width):
            code_of: dict[str, int] = {}
            codes = [code_of.setdefault(rows[i][column], len(code_of)) for i in moved]
            self._codes.append(np.array(codes, dtype=np.int64))
            self.symbols.append(list(code_of))
        self._bits = EXACT_BITS - len(moved).bit_length()
        self._digits = _digits([values[i] for i in moved], self._bits)

    def by_cell(self, columns: Sequence[int]) -> list[int]:
        """The sum of each combination of symbols of the columns that a row has.

        Of a single column they are in the order of `symbols`.
        """
        cells = self._codes[columns[0]]
        size = len(self.symbols[columns[0]])
        for column in columns[1:]:
            cells = cells * len(self.symbols[column]) + self._codes[column]
            size *= len(self.symbols[column])
        # Two columns of thousands of values each have more combinations than rows.
        if size > len(cells):
            used, cells = np.unique(cells, return_inverse=True)
            size = len(used)
        sums = [0] * size
        for place, digit in enumerate(self._digits):
            shift = place * self._bits
            part = np.bincount(cells, weights=digit, minlength=size)
            for cell, value in enumerate(part.astype(np.int64).tolist()):
                sums[cell] += value << shift
        return sums


def _digits(values: Sequence[int], bits: int) -> list[NDArray[np.float64]]:
    """Integers in the base 2^bits, lowest digits first; each digit has the sign of its integer."""
    signs = np.array([1.0 if value > 0 else -1.0 for value in values])
    left = [abs(value) for value in values]
    mask = (1 << bits) - 1
    digits: list[NDArray[np.float64]] = []
    while any(left):
        digits.append(signs * np.array([value & mask for value in left], dtype=float))
        left = [value >> bits for value in left]
    return digits


def _largest(values: Sequence[int]) -> int:
    """The largest modulus."""
    return max(map(abs, values), default=0)


def _variation(values: Sequence[int]) -> int:
    """Twice the total variation: the sum of the moduli."""
    return sum(map(abs, values))


def _worst_pair(
    deviations: _Deviations, columns: Sequence[str], whole: int
) -> tuple[str, str, float] | None:
    """The pair of columns whose joint law is farthest from the table's; the first of several."""
    worst = None
    largest = -1
    for i, j in itertools.combinations(range(len(columns)), 2):
        variation = _variation(deviations.by_cell([i, j]))
        if variation > largest:
            largest = variation
            worst = (columns[i], columns[j])
    if worst is None:
        return None
    return (*worst, quotient_above(largest, 2 * whole))


def _vanished(
    before: dict[Cells, int], after: dict[Cells, int], columns: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """By column the values that the table has and that are never released."""
    vanished: dict[str, tuple[str, ...]] = {}
    for column, name in enumerate(columns):
        released = {row[column] for row, mass in after.items() if mass}
        there = dict.fromkeys(row[column] for row, mass in before.items() if mass)
        missing = tuple(value for value in there if value not in released)
        if missing:
            vanished[name] = missing
    return vanished


def _largest_share_change(
    deviations: _Deviations,
    before: dict[Cells, int],
    columns: Sequence[str],
    whole: int,
) -> ShareChange | None:
    """The value whose share changes most; the first of several."""
    largest = 0
    place = (0, 0)
    for column in range(len(columns)):
        for symbol, change in enumerate(deviations.by_cell([column])):
            if abs(change) > abs(largest):
                largest = change
                place = (column, symbol)
    if not largest:
        return None
    column, symbol = place
    value = deviations.symbols[column][symbol]
    mass = sum(mass for row, mass in before.items() if row[column] == value)
    # Python divides integers of any length to the nearest double.
    return ShareChange(columns[column], value, mass / whole, (mass + largest) / whole)
