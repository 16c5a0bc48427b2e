"""The lookup table of a channel: for every input the intervals of integers of its outputs.

An output y of an input x has the interval [low, high) of length W(y|x) * 2^53, the integer of the
channel file. The intervals of an input are disjoint and cover [0, 2^53), so a uniform integer below
2^53 falls into that of y with the probability W(y|x), exactly. An x with W(a|x) = 3/4 and
W(b|x) = 1/4 has the intervals [0, 3 * 2^51) for a and [3 * 2^51, 2^53) for b. Rows with sums of
their own are rounded to the sum 2^53 first, and judged again (`rounding`).

The table is in levels and nodes, for tools that were written for channels of several steps: this
one has the level 1 and the node 0.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.exporting.rounding import with_one_sum
from mechdesign.release.drawing import channel_digest
from mechdesign.tables.variable import Symbol, Variable

END = -1
"""The child of an entry of the last level."""

BITS = DENOMINATOR.bit_length() - 1
"""Bits of a draw: the denominator of every designed channel is 2^53."""

GIVEN = 0
"""Number of the level of the given columns, which takes no draw: each input has one output."""

CSV_HEAD = ("level", "node", "low", "high", "child")
"""The first columns of the CSV; those of the channel follow, with a word before each name."""

INPUT = "input"
OUTPUT = "output"
"""The words before the names of columns in the CSV."""


@dataclass(frozen=True)
class Entry:
    """One output of one input at one node: the result of draws in [low, high), which lead to
    `child`.
    """

    node: int
    inputs: Symbol
    low: int
    high: int
    outputs: Symbol
    child: int


@dataclass(frozen=True)
class Level:
    """One step of a release.

    Attributes
    ----------
    number : int
        Its place from 1; `GIVEN` for the columns that are released as they are.
    inputs : Variable
        The columns of its inputs.
    outputs : tuple of str
        The names of the columns of its outputs.
    entries : tuple of Entry
        Ascending by node, input and interval.
    """

    number: int
    inputs: Variable
    outputs: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Lookup:
    """All levels of a channel, in the order in which they are drawn.

    Attributes
    ----------
    digest : str
        SHA-256 of the channel, as in manifests and ledgers.
    start : int
        The node of a record before anything is released.
    levels : tuple of Level
    is_rounded : bool
        Whether the integers are those of the channel file next to the sum 2^53, and not those
        themselves.
    """

    digest: str
    start: int
    levels: tuple[Level, ...]
    is_rounded: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a record must have."""
        names: list[str] = []
        for level in self.levels:
            names.extend(level.inputs.columns)
        return tuple(names)

    @property
    def size(self) -> int:
        """Number of intervals."""
        return sum(len(level.entries) for level in self.levels)

    def csv_text(self) -> str:
        """The table as CSV; cells of columns that a level does not have are empty."""
        released: list[str] = []
        for level in self.levels:
            released.extend(level.outputs)
        inputs = [f"{INPUT} {name}" for name in self.columns]
        outputs = [f"{OUTPUT} {name}" for name in released]
        text = io.StringIO()
        writer = csv.DictWriter(
            text, [*CSV_HEAD, *inputs, *outputs], restval="", lineterminator="\n"
        )
        writer.writeheader()
        for level in self.levels:
            for entry in level.entries:
                cells: dict[str, str | int] = {
                    "level": level.number,
                    "node": entry.node,
                    "low": entry.low,
                    "high": entry.high,
                    "child": entry.child,
                }
                for name, cell in zip(level.inputs.columns, entry.inputs, strict=True):
                    cells[f"{INPUT} {name}"] = cell
                for name, cell in zip(level.outputs, entry.outputs, strict=True):
                    cells[f"{OUTPUT} {name}"] = cell
                writer.writerow(cells)
        return text.getvalue()


def lookup_of(channel: Channel) -> Lookup:
    """The lookup table of a channel.

    Raises
    ------
    InputError
        If the denominator is not that of designed channels, 2^53, or the argument is no channel
        of one variable or of rows; if rows with sums of their own cannot be judged again.
    NotPrivate
        If rows with sums of their own break the promise when they are rounded.
    """
    # Callers without a type checker may pass anything, most likely a channel for boxes of rows.
    if not isinstance(channel, Channel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            "export needs a channel of one column or of rows, not an object of type "
            f"{type(channel).__name__}"
        )
    rounded = with_one_sum(channel)
    if rounded.denominator != DENOMINATOR:
        raise InputError(
            "export needs a channel with the denominator 2^53, as `design` makes them; this one "
            f"has {rounded.denominator}"
        )
    level = Level(
        number=1,
        inputs=channel.useful,
        outputs=channel.output_columns,
        entries=tuple(_entries_of_matrix(rounded)),
    )
    return Lookup(
        digest=channel_digest(channel),
        start=0,
        levels=(level,),
        is_rounded=rounded is not channel,
    )


def _entries_of_matrix(channel: Channel) -> Iterator[Entry]:
    """The entries of a channel of one variable, at its single node 0."""
    rows = IntegerRows.of(channel.rows)
    for symbol, row in zip(channel.useful.symbols, rows.entries(), strict=True):
        low = 0
        for output, weight in row:
            released = channel.output_cells[output]
            # END: after the only level nothing is drawn.
            yield Entry(0, symbol, low, low + weight, released, END)
            low += weight
