"""The lookup table of a channel: for every input the intervals of integers of its outputs.

An output y of an input x has the interval [low, high) of length W(y|x) * 2^53, the integer of the
channel file. The intervals of an input are disjoint and cover [0, 2^53), so a uniform integer below
2^53 falls into that of y with the probability W(y|x), exactly. An x with W(a|x) = 3/4 and
W(b|x) = 1/4 has the intervals [0, 3 * 2^51) for a and [3 * 2^51, 2^53) for b.

A channel of rows has one such table for each level. Its inputs are looked up at the node of the
tree that the record has reached, which is the path released so far, and every output leads to a
node of the next level. A channel of one variable is the same with a single node.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.core.row_tree import DENOMINATOR, END
from mechdesign.release.drawing import channel_digest
from mechdesign.release.row_drawing import row_channel_digest
from mechdesign.tables.bins import Bins
from mechdesign.tables.variable import Symbol, Variable

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
    """

    digest: str
    start: int
    levels: tuple[Level, ...]

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


def lookup_of(channel: Channel | RowChannel) -> Lookup:
    """The lookup table of a channel.

    Raises
    ------
    InputError
        If the denominator is not that of designed channels, 2^53, or the argument is no channel
        of one variable or of rows.
    """
    if isinstance(channel, RowChannel):
        return _lookup_of_rows(channel)
    # Callers without a type checker may pass anything, most likely a channel for boxes of rows.
    if not isinstance(channel, Channel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            "export needs a channel of one column or of rows, not an object of type "
            f"{type(channel).__name__}"
        )
    if channel.denominator != DENOMINATOR:
        raise InputError(
            "export needs a channel with the denominator 2^53, as `design` makes them; this one "
            f"has {channel.denominator}"
        )
    level = Level(
        number=1,
        inputs=channel.useful,
        outputs=(",".join(channel.useful.columns),),
        entries=tuple(_entries_of_matrix(channel)),
    )
    return Lookup(digest=channel_digest(channel), start=0, levels=(level,))


def _entries_of_matrix(channel: Channel) -> Iterator[Entry]:
    """The entries of a channel of one variable, at its single node 0."""
    rows = IntegerRows.of(channel.rows)
    for symbol, row in zip(channel.useful.symbols, rows.entries(), strict=True):
        low = 0
        for output, weight in row:
            released = (channel.outputs[output],)
            # END: after the only level nothing is drawn.
            yield Entry(0, symbol, low, low + weight, released, END)
            low += weight


def _lookup_of_rows(channel: RowChannel) -> Lookup:
    """The lookup table of a channel of rows: given columns first, then level after level."""
    levels: list[Level] = []
    # Without given columns there is one stratum, and every record begins at its root.
    start = int(channel.tree.roots[0])
    if channel.given:
        start = 0
        levels.append(_level_of_given(channel))
    # Output columns are in the order of the release: given ones, then level by level. A level has
    # as many of them as its outputs have texts: one label, or a cell for each column.
    first = sum(len(variable.columns) for variable in channel.given)
    for k, variable in enumerate(channel.levels):
        end = first + len(channel.texts_of(k, 0))
        level = Level(
            number=k + 1,
            inputs=variable,
            outputs=tuple(channel.output_columns[first:end]),
            entries=tuple(_entries_of_level(channel, k)),
        )
        levels.append(level)
        first = end
    return Lookup(row_channel_digest(channel), start, tuple(levels))


def _level_of_given(channel: RowChannel) -> Level:
    """The combinations of given symbols; each is released as it is and leads to its root."""
    columns: list[str] = []
    bins: list[Bins | None] = []
    for variable in channel.given:
        columns.extend(variable.columns)
        for part in range(len(variable.columns)):
            bins.append(variable.bins_of(part))
    # A stratum is a combination of given symbols that occurs; others have no root, so a record with
    # one of them finds no entry and is refused.
    symbols: list[Symbol] = []
    entries: list[Entry] = []
    roots: list[int] = channel.tree.roots.tolist()
    for stratum, root in zip(channel.strata, roots, strict=True):
        symbol: Symbol = ()
        for variable, code in zip(channel.given, stratum, strict=True):
            symbol += variable.symbols[code]
        symbols.append(symbol)
        # All draws lead to the one output, which is the input itself.
        entry = Entry(
            node=0, inputs=symbol, low=0, high=DENOMINATOR, outputs=symbol, child=root
        )
        entries.append(entry)
    inputs = Variable(tuple(columns), tuple(symbols), bins=tuple(bins))
    return Level(GIVEN, inputs, inputs.columns, tuple(entries))


def _entries_of_level(channel: RowChannel, k: int) -> Iterator[Entry]:
    """The entries of level k; slots of the tree are outputs at a node."""
    # A pair of the tree is a node and a symbol that occurs there. Its row has the slots that it can
    # draw; slots belong to a node, and each has an output and a child.
    table = channel.tree.levels[k]
    symbols = channel.levels[k].symbols
    outputs: list[int] = table.slot_outputs.tolist()
    children: list[int] = table.slot_children.tolist()
    nodes: list[int] = table.pair_nodes.tolist()
    codes: list[int] = table.pair_inputs.tolist()
    rows = table.rows.entries()
    for node, code, row in zip(nodes, codes, rows, strict=True):
        # The integers of a row sum to 2^53, so their cumulative sums are the ends of the intervals.
        low = 0
        for slot, weight in row:
            released = channel.texts_of(k, outputs[slot])
            child = children[slot]
            yield Entry(node, symbols[code], low, low + weight, released, child)
            low += weight
    for node in np.flatnonzero(table.constant).tolist():
        # A constant node gives its one output to every symbol of the level, also to those that no
        # record of the table had there.
        slot = int(table.first_slot[node])
        constant = channel.texts_of(k, outputs[slot])
        for symbol in symbols:
            yield Entry(node, symbol, 0, DENOMINATOR, constant, children[slot])
