"""The lookup table of a channel: for every input the intervals of integers of its outputs.

An output y of an input x has the interval [low, high) of length W(y|x) * 2^53, the integer of the
channel file. The intervals of an input are disjoint and cover [0, 2^53), so a uniform integer below
2^53 falls into that of y with the probability W(y|x), exactly. An x with W(a|x) = 3/4 and
W(b|x) = 1/4 has the intervals [0, 3 * 2^51) for a and [3 * 2^51, 2^53) for b. Rows with other
sums are brought to the sum 2^53 first (`with_one_sum`): rounded down, but not to 0, and what
is missing goes to the largest entry. No probability moves by more than the number of its row's
outputs times 2^-53, and the promise is decided again. For example, over 8 the row (1, 1, 1) with
the sum 3 becomes (2, 2, 2), and then (4, 2, 2).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mechdesign.auditing.stated import keeps_promise, refuse_broken
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.file import require_without_boxes
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import quoted
from mechdesign.tables.variable import Symbol, Variable

FREE = "design it with free frequencies (--free-frequencies)"
"""The way to a channel whose rows all have the sum 2^53."""


BITS = DENOMINATOR.bit_length() - 1
"""Bits of a draw: the denominator of every designed channel is 2^53."""

CSV_HEAD = ("low", "high")
"""The first columns of the CSV; those of the channel follow, with a word before each name."""

INPUT = "input"
OUTPUT = "output"
"""The words before the names of columns in the CSV."""


@dataclass(frozen=True)
class Entry:
    """One output of one input: the result of draws in [low, high)."""

    inputs: Symbol
    low: int
    high: int
    outputs: Symbol


@dataclass(frozen=True)
class Lookup:
    """The intervals of a channel.

    Attributes
    ----------
    digest : str
        SHA-256 of the channel, as in manifests and ledgers.
    inputs : Variable
        The columns that a record must have.
    outputs : tuple of str
        The names of the released columns.
    entries : tuple of Entry
        Ascending by input and interval.
    is_rounded : bool
        Whether the integers are those of the channel file next to the sum 2^53, and not those
        themselves.
    """

    digest: str
    inputs: Variable
    outputs: tuple[str, ...]
    entries: tuple[Entry, ...]
    is_rounded: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a record must have."""
        return self.inputs.columns

    @property
    def size(self) -> int:
        """Number of intervals."""
        return len(self.entries)

    def csv_text(self) -> str:
        """The table as CSV."""
        inputs = [f"{INPUT} {name}" for name in self.columns]
        outputs = [f"{OUTPUT} {name}" for name in self.outputs]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*CSV_HEAD, *inputs, *outputs])
        for entry in self.entries:
            writer.writerow([entry.low, entry.high, *entry.inputs, *entry.outputs])
        return text.getvalue()


def lookup_of(channel: Channel) -> Lookup:
    """The lookup table of a channel.

    Raises
    ------
    InputError
        If the argument is no channel of one variable or of rows, or if rows with other sums
        than 2^53 cannot be judged again.
    NotPrivate
        If such rows break the promise when they are rounded.
    """
    # Callers without a type checker may pass anything, most likely a channel for boxes of rows.
    require_without_boxes("channel", channel, "; boxes have no script: use apply")
    if channel.useful.people is not None:
        raise InputError(
            "a channel for people with several records folds their records first, which no script "
            "does: release it with apply"
        )
    for symbol in channel.useful.symbols:
        for column, cell in zip(channel.useful.columns, symbol, strict=True):
            if "\0" in cell:
                raise InputError(
                    f"the column {quoted(column)} has a symbol with NUL, which no script and no "
                    "CSV can hold: release it with apply"
                )
    rounded = with_one_sum(channel)
    return Lookup(
        digest=channel.digest,
        inputs=channel.useful,
        outputs=channel.output_columns,
        entries=tuple(_entries(rounded)),
        is_rounded=rounded is not channel,
    )


def _entries(channel: Channel) -> Iterator[Entry]:
    """The intervals of every input, one after the other."""
    rows = IntegerRows.of(channel.rows)
    for symbol, row in zip(channel.useful.symbols, rows.entries(), strict=True):
        low = 0
        for output, weight in row:
            yield Entry(symbol, low, low + weight, channel.output_cells[output])
            low += weight


def with_one_sum(channel: Channel) -> Channel:
    """The channel with rows of the sum 2^53; the same one where they have it.

    Raises
    ------
    InputError
        If nothing in the file can judge the rounded channel again.
    NotPrivate
        If the rounded channel does not keep the promise.
    """
    if channel.totals is None and channel.denominator == DENOMINATOR:
        return channel
    if channel.joint is None:
        raise InputError(
            "export rounds the rows of this channel to the sum 2^53, and without its table it "
            "cannot judge them again: export the channel file that has the table"
        )
    if channel.record.after:
        raise InputError(
            "export rounds the rows of this channel to the sum 2^53, and without the earlier "
            f"channels it cannot judge them again: {FREE}"
        )
    # A broken channel is refused as such, and not for its rounding.
    refuse_broken(channel)
    columns = len(channel.outputs)
    rows: list[list[int]] = []
    own_sums = zip(channel.integers.entries(), channel.row_totals, strict=True)
    for entries, total in own_sums:
        integers = _rounded([entry for _, entry in entries], total)
        row: list[int] = []
        for (output, _), integer in zip(entries, integers, strict=True):
            row += [output, integer]
        rows.append(row)
    rounded = replace(
        channel,
        rows=IntegerRows.of_pairs(rows, columns),
        denominator=DENOMINATOR,
        totals=None,
    )
    if keeps_promise(rounded) is False:
        raise NotPrivate(
            "the rows of this channel break the promise when they are rounded "
            f"to the sum 2^53 that export needs: {FREE}"
        )
    return rounded


def _rounded(entries: list[int], total: int) -> list[int]:
    """Positive integers with the sum 2^53, in proportion to positive ones with the sum `total`."""
    # What can occur must go on to occur: a lift may rest on the smallest entry.
    integers = [max(entry * DENOMINATOR // total, 1) for entry in entries]
    largest = max(range(len(integers)), key=lambda place: integers[place])
    integers[largest] += DENOMINATOR - sum(integers)
    return integers
