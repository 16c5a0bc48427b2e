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

*Masses* P(s, y) of an output, and the means over S that every measure is made of. With masses m_s
proportional to P(s, y), o their sum, sums r_s proportional to P(s) and N their sum, the lift is a
quotient of integers,

    l(s, y) = P(s, y) / (P(s) P(y)) = m_s N / (r_s o).

The functions below are means of lifts over P(s), of one output:

    distances        sum_s P(s) |l - 1|^power              rational, computed exactly
    log_power_mean   log (sum_s P(s) l^order)^(1/order)    enclosed in a ball
    divergence       sum_s P(s) l log l                    enclosed in a ball

With `inverse` they are the same means of 1/l (of `divergence` that with P(S) and P(S|y)
exchanged), and None where these are infinite: some lift is 0.

Example: masses (3, 1) with sums (5, 5) have the lifts 3 * 10 / (5 * 4) = 3/2 and 1/2. Their
distances are 1/2 for the power 1 and 1/4 for the power 2, and the divergence is 0.1308.

`masses_by_output` forms the masses of each output from the columns of a channel and the counts of a
table, and `information` sums what all outputs tell, I(S;Y).

A ball is an Arb number of python-flint: a midpoint with a radius, which surely contains the value.
Its type is `Any`, because python-flint has no complete types. Its precision is that of the caller,
set by `core.balls.precision` or `core.balls.double_above`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from operator import mul
from typing import Any, TypeAlias

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed
from mechdesign.tables.columns import other_spelling
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol, Variable

# ------------------------------------------------------------------------------ columns

Entries: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""One column: the useful symbols with a positive entry, ascending, and these entries."""

Direction: TypeAlias = tuple[Entries, tuple[int, ...]]
"""A column without common divisor, and the first tuple of outputs that has it, one output of each
release.
"""


SPARSE = 8
"""Cells for every filled one from which sums over the filled cells are faster than those of an
array."""

FEW = 32
"""Inputs of an output up to which Python's integers are added faster than arrays are made."""

HALF = 31
"""Bits of a half of a value (`FilledCounts`)."""

LARGEST_VALUE = 1 << (2 * HALF)
MOST_COUNTED = 1 << 32
"""Values and sums of counts below these are added in halves of 64 bits."""

MOST_CELLS = 1 << 22
"""Cells of a table up to which it is held as an array: larger ones are mostly empty."""

AT_ONCE = 1 << 20
"""Entries of outputs, and masses of them, that are computed at once: 8 MB each."""

FEW_ENTRIES = 1 << 12
"""Entries up to which one output after the other is as fast."""

DIGITS = ((32, 1 << 21), (16, 1 << 37))
"""Bits of the digits of long values, and what the counts of a sensitive symbol add up to at most:
then a sum of digits times counts is below 2^53, so that doubles have it exactly."""

LONG_BYTES = 1 << 25
"""Bytes of long values that are multiplied at once."""


class FilledCounts:
    """The counts of a table by sensitive symbol, and where they are not zero.

    Most counts of a large table are zero: that of a column with itself has one in each row. Outputs
    of many symbols are summed in arrays, exactly (`_in_halves`).

    `rows` has the places of each row that are not zero, ascending, and the counts there.
    """

    def __init__(self, counts: Sequence[Sequence[int]]) -> None:
        self._counts = counts
        self._width = len(counts[0]) if counts else 0
        self.rows: list[tuple[list[int], list[int]]] = []
        for row in counts:
            places = list(compress(range(self._width), row))
            self.rows.append((places, [row[x] for x in places]))
        self._size = sum(len(places) for places, _ in self.rows)
        self._is_sparse = SPARSE * self._size < self._width * len(counts)

    def masses(self, inputs: Sequence[int], values: Sequence[int]) -> list[int]:
        """For each sensitive symbol s the sum over x of count(s, x) W(y|x)."""
        has_few_cells = len(inputs) * len(self._counts) <= self._size
        is_long = len(inputs) > FEW and max(values) < LARGEST_VALUE
        # Of a sparse table an array has all symbols, whatever the output has.
        if is_long and not (self._is_sparse and has_few_cells):
            counts = self._array
            if counts is not None:
                return self._in_halves(counts, inputs, values)
        masses: list[int] = []
        if has_few_cells:
            for row in self._counts:
                masses.append(sum(map(mul, [row[x] for x in inputs], values)))
            return masses
        entry_of = [0] * self._width
        for x, value in zip(inputs, values, strict=True):
            entry_of[x] = value
        for places, counts in self.rows:
            masses.append(sum(map(mul, counts, [entry_of[x] for x in places])))
        return masses

    def masses_of_each(self, columns: Sequence[Entries]) -> Iterator[list[int]]:
        """The masses of some outputs, in turn."""
        for batch in _batches(columns, len(self._counts)):
            at_once = self._masses_at_once(batch)
            if at_once is not None:
                yield from at_once
                continue
            for inputs, values in batch:
                yield self.masses(inputs, values)

    def _masses_at_once(self, columns: Sequence[Entries]) -> list[list[int]] | None:
        """The masses of each output by products of matrices, in halves of 64 bits, or in more
        digits where these are too small; None where there are few entries.
        """
        lengths = [len(inputs) for inputs, _ in columns]
        if sum(lengths) <= FEW_ENTRIES or self._array is None:
            return None
        try:
            values = np.fromiter(chain.from_iterable(w for _, w in columns), np.int64)
        except OverflowError:
            return self._masses_of_long(columns)
        if values.max() >= LARGEST_VALUE:
            return self._masses_of_long(columns)
        from scipy.sparse import csc_array  # pyright: ignore[reportMissingTypeStubs]

        inputs = np.fromiter(chain.from_iterable(x for x, _ in columns), np.int64)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        shape = (self._width, len(columns))
        halves: list[Any] = []
        for half in (values >> HALF, values & ((1 << HALF) - 1)):
            product = self._array @ csc_array((half, inputs, ends), shape=shape)
            if self._is_sparse:
                product = product.toarray()
            halves.append(product.T.tolist())
        masses: list[list[int]] = []
        for upper, lower in zip(*halves, strict=True):
            pairs = zip(upper, lower, strict=True)
            masses.append([(high << HALF) + low for high, low in pairs])
        return masses

    def _masses_of_long(self, columns: Sequence[Entries]) -> list[list[int]] | None:
        """The masses of outputs with long values, digit by digit; None where one output after the
        other is faster, because most counts or entries are zero.

        Rows with denominators of their own have a common one of thousands of bits.
        """
        entries = sum(len(inputs) for inputs, _ in columns)
        if self._is_sparse or SPARSE * entries < self._width * len(columns):
            return None
        most = max(sum(counts) for _, counts in self.rows)
        bits = next(bits for bits, largest in DIGITS if most < largest)
        longest = max(max(values, default=0).bit_length() for _, values in columns)
        places = -(-longest // bits)
        # Of an output the digits are kept of all its entries, and of all its masses.
        size = (self._width + len(self._counts)) * places * bits // 8
        at_once = max(LONG_BYTES // size, 1)
        counts = self._array.astype(np.float64)
        masses: list[list[int]] = []
        for start in range(0, len(columns), at_once):
            part = columns[start : start + at_once]
            masses += _sums_by_digits(counts, part, bits, places)
        return masses

    @cached_property
    def _array(self) -> Any:
        """The counts as an array or a sparse one, (|S|, |X|), where sums of halves fit into 64
        bits; else None.
        """
        cells = self._width * len(self._counts)
        if self._width <= FEW or (not self._is_sparse and cells > MOST_CELLS):
            return None
        if max(sum(counts) for _, counts in self.rows) >= MOST_COUNTED:
            return None
        if not self._is_sparse:
            return np.array(self._counts, dtype=np.int64)
        from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

        data: list[int] = []
        places: list[int] = []
        ends = [0]
        for row_places, row_counts in self.rows:
            data += row_counts
            places += row_places
            ends.append(len(data))
        shape = (len(self._counts), self._width)
        return csr_array((np.array(data, dtype=np.int64), places, ends), shape=shape)

    def _in_halves(
        self, counts: Any, inputs: Sequence[int], values: Sequence[int]
    ) -> list[int]:
        """The masses of one output: values are split into an upper and a lower half.

        Each half is below 2^31 and the counts of a sensitive symbol add up to less than 2^32, so
        that no sum reaches 2^63.
        """
        whole = np.array(values, dtype=np.int64)
        if self._is_sparse:
            entries = np.zeros(self._width, dtype=np.int64)
            entries[np.array(inputs)] = whole
            whole = entries
        elif len(inputs) < self._width:
            counts = counts[:, np.array(inputs)]
        upper = counts @ (whole >> HALF)
        lower = counts @ (whole & ((1 << HALF) - 1))
        return [
            (high << HALF) + low
            for high, low in zip(upper.tolist(), lower.tolist(), strict=True)
        ]


def _sums_by_digits(
    counts: NDArray[np.float64], columns: Sequence[Entries], bits: int, places: int
) -> list[list[int]]:
    """The sums over x of count(s, x) times the entry at x, for every output and each s.

    Entries have so many digits of so many bits, from the lowest on. The products of each digit are
    added like long numbers: what exceeds a digit is carried to the next one.
    """
    size = places * bits // 8
    digit = np.dtype(f"<u{bits // 8}")
    packed = b"".join(
        [value.to_bytes(size, "little") for _, values in columns for value in values]
    )
    digits = np.frombuffer(packed, dtype=digit).reshape(-1, places)
    lengths = [len(inputs) for inputs, _ in columns]
    inputs = np.fromiter(chain.from_iterable(x for x, _ in columns), np.int64)
    output_of = np.repeat(np.arange(len(columns)), lengths)
    entries = np.zeros((counts.shape[1], len(columns)))
    carry = np.zeros((len(columns), len(counts)), dtype=np.int64)
    found: list[NDArray[Any]] = []
    for place in range(places):
        entries[inputs, output_of] = digits[:, place]
        carry += (counts @ entries).T.astype(np.int64)
        found.append((carry & ((1 << bits) - 1)).astype(digit))
        carry >>= bits
    while carry.any():
        found.append((carry & ((1 << bits) - 1)).astype(digit))
        carry >>= bits
    sums = np.stack(found, axis=2)
    return [
        [int.from_bytes(mass.tobytes(), "little") for mass in of_output]
        for of_output in sums
    ]


def _batches(columns: Sequence[Entries], symbols: int) -> Iterator[Sequence[Entries]]:
    """The outputs in parts that are computed at once, with so many sensitive symbols."""
    start = 0
    size = 0
    for y, (inputs, _) in enumerate(columns):
        size += len(inputs) + symbols
        if size > AT_ONCE:
            yield columns[start : y + 1]
            start = y + 1
            size = 0
    if start < len(columns):
        yield columns[start:]


def first_of_constants(columns: Sequence[Entries], n: int) -> list[int]:
    """The outputs without those that all n symbols have with one probability, but for the first.

    Such an output tells nothing: its lifts are 1, on every table and in every population. So one of
    them stands for all. A channel that draws every record anew has no others.
    """
    chosen: list[int] = []
    has_constant = False
    for y, column in enumerate(columns):
        if is_constant(column, n):
            if has_constant:
                continue
            has_constant = True
        chosen.append(y)
    return chosen


def is_constant(column: Entries, n: int) -> bool:
    """Whether all n symbols have the output, with one probability."""
    inputs, values = column
    return len(inputs) == n and values.count(values[0]) == n


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


# ------------------------------------------------------------------------------- masses

BITS = 256
"""Precision of the balls of reported measures: two hundred bits more than a double, so cancellation
costs no digit of the results.
"""


@dataclass(frozen=True)
class OutputMasses:
    """P(s, y) of one output, in proportion to `masses` with sum `output`; P(s) in proportion to
    `sums` with `total`.
    """

    masses: Sequence[int]
    output: int
    sums: Sequence[int]
    total: int

    def lift_quotients(self) -> list[tuple[int, int]]:
        """Numerators m_s N and denominators r_s o of the lifts."""
        return [
            (m * self.total, r * self.output)
            for m, r in zip(self.masses, self.sums, strict=True)
        ]

    @property
    def is_constant(self) -> bool:
        """Whether every lift is exactly 1."""
        return all(top == bottom for top, bottom in self.lift_quotients())


@dataclass(frozen=True)
class ReleasedMasses:
    """Everything that may be released, with the masses of each: P(s, y) are the masses over
    `scale`.
    """

    labels: Sequence[str]
    outputs: Sequence[OutputMasses]
    scale: int

    @property
    def sums(self) -> Sequence[int]:
        """P(s) in proportion."""
        return self.outputs[0].sums


def masses_of(channel: Channel, joint: Joint) -> ReleasedMasses:
    """The outputs of a channel of one column."""
    outputs = list(masses_by_output(columns_on(channel, joint), joint))
    return ReleasedMasses(channel.outputs, outputs, joint.total * channel.denominator)


def masses_by_output(
    columns: Sequence[Entries], joint: Joint
) -> Iterator[OutputMasses]:
    """The masses of each output in turn; columns are over the useful symbols of the table."""
    sums = joint.sensitive_counts
    total = joint.total
    # m_s = sum over x of count(s, x) W(y|x)
    for masses in FilledCounts(joint.counts).masses_of_each(columns):
        yield OutputMasses(masses, sum(masses), sums, total)


def distances(output: OutputMasses, power: int, *, inverse: bool = False) -> Any:
    """sum_s P(s) |l - 1|^power, or of 1/l (Zarrabian et al. 2023, eqs. (31), (32), Def. 6); None if
    infinite.
    """
    if inverse and 0 in output.masses:
        return None
    mean = fmpq(0)
    for row, (top, bottom) in zip(output.sums, output.lift_quotients(), strict=True):
        # |top/bottom - 1| = |top - bottom| / bottom, and of the inverse over top.
        base = top if inverse else bottom
        mean += fmpq(row * abs(top - bottom) ** power, base**power)
    return mean / output.total


def log_power_mean(output: OutputMasses, order: float, *, inverse: bool = False) -> Any:
    """log of (sum_s P(s) l^order)^(1/order), or of 1/l, as a ball; None where it is infinite.

    The order is positive, the exact rational that the double is, or inf (Zarrabian et al. 2023, eq.
    (33), Definition 6).
    """
    if inverse and 0 in output.masses:
        return None
    lifts = output.lift_quotients()
    if inverse:
        lifts = [(bottom, top) for top, bottom in lifts]
    return log_norm(lifts, order, output.sums, output.total)


def log_norm(
    values: Sequence[tuple[int, int]], order: float, weights: Sequence[int], total: int
) -> Any:
    """log of (sum_i w_i v_i^order / total)^(1/order) for quotients v_i >= 0 of integers, not all 0,
    as a ball.

    The largest value v is taken out,

        log v + log(sum_i w_i (v_i / v)^order / total) / order,

    so that every power lies in [0, 1]: at a large order the powers themselves would overflow, or be
    known too badly for a logarithm.
    """
    exact = [fmpq(top, bottom) for top, bottom in values]
    largest = max(exact)
    if math.isinf(order):
        return arb(largest).log()
    mean = arb(0)
    exponent = arb(order)
    for weight, value in zip(weights, exact, strict=True):
        if value == largest:
            mean += weight
        elif value:
            # log1p keeps the digits of values that are nearly as large
            mean += weight * (arb(value / largest - 1).log1p() * exponent).exp()
    return arb(largest).log() + (mean / total).log() / exponent


def divergence(output: OutputMasses, *, inverse: bool = False) -> Any:
    """KL(P(S|y), P(S)) = sum_s P(s) l log l in nats, as a ball; or KL(P(S), P(S|y)) = sum_s P(s)
    log(1/l).

    None where it is infinite: the second one, with a lift of zero.
    """
    if inverse and 0 in output.masses:
        return None
    total = arb(0)
    for row, mass, lift in zip(
        output.sums, output.masses, output.lift_quotients(), strict=True
    ):
        if not mass:
            continue  # 0 log 0 = 0
        log = arb(fmpq(*lift)).log()
        if inverse:
            # P(s) = r_s / N
            total -= log * row / output.total
        else:
            # P(s) l(s, y) = P(s|y) = m_s / o
            total += log * mass / output.output
    return total


def information(outputs: Sequence[OutputMasses], scale: int) -> Any:
    """I(S;Y) = sum over s and y of P(s, y) log l(s, y) in nats, as a ball; P(s, y) = m_s /
    scale.
    """
    total = arb(0)
    for output in outputs:
        for mass, lift in zip(output.masses, output.lift_quotients(), strict=True):
            if mass:  # 0 log 0 = 0
                total += mass * arb(fmpq(*lift)).log()
    return total / scale
