"""The exact law of what a row channel releases for one row, as fractions.

    W(y|x, k) = product over levels j of W_j(y_j | x_j; k, y_1 .. y_{j-1})

`law_of_row` finds the codes of the row's texts (`_codes_of`), starts at the root of its given
symbols, and follows all paths that the row can take (`_entries` has the branches at a node). A
path that ends adds its product to the released texts that it leads to. For example, a row that
draws clerk with 1/4 and then 30 with 2/3 adds 1/6 to (clerk, 30).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.row_tree import DENOMINATOR, NO_PAIR
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded, encode
from mechdesign.tables.columns import positions_of, unknown_at
from mechdesign.tables.variable import Variable

if TYPE_CHECKING:
    from mechdesign.channel.row_channel import RowChannel


class _Entry(NamedTuple):
    """An output of a node, the node that it leads to, and its probability out of `DENOMINATOR`."""

    output: int
    child: int
    value: int


def law_of_row(
    channel: RowChannel, row: Mapping[str, str] | Sequence[str]
) -> dict[tuple[str, ...], Fraction]:
    """What `RowChannel.distribution` returns, and refuses."""
    codes = _codes_of(channel, row)
    given = codes[: len(channel.given)]
    if given not in channel.stratum_of:
        raise InputError(
            "the channel does not know this combination of given symbols: no record of its "
            "table has it"
        )
    root = int(channel.tree.roots[channel.stratum_of[given]])
    start: tuple[str, ...] = ()
    for variable, code in zip(channel.given, given, strict=True):
        start += variable.symbols[code]

    # Down all paths of the tree that the row can take. A path that waits has its level, its
    # node, the texts released so far, and the product of their probabilities.
    law: dict[tuple[str, ...], Fraction] = {}
    waiting = [(0, root, start, Fraction(1))]
    while waiting:
        level, node, texts, share = waiting.pop()
        if level == len(channel.levels):
            law[texts] = law.get(texts, Fraction(0)) + share
            continue
        code = codes[len(channel.given) + level]
        for entry in _entries(channel, level, node, code):
            longer = texts + channel.texts_of(level, entry.output)
            product = share * Fraction(entry.value, DENOMINATOR)
            waiting.append((level + 1, entry.child, longer, product))
    return law


def _codes_of(
    channel: RowChannel, row: Mapping[str, str] | Sequence[str]
) -> tuple[int, ...]:
    """The code of each given variable and each level in a row of texts."""
    names = channel.released_columns
    if isinstance(row, Mapping):
        absent = [name for name in names if name not in row]
        if absent:
            raise InputError(f"the row has no column {listed(absent)}")
        texts = [row[name] for name in names]
    else:
        texts = list(row)
        if len(texts) != len(names):
            raise InputError(
                f"the row has {len(texts)} texts, and the channel needs one for each of "
                f"{listed(names)}"
            )
    codes: list[int] = []
    start = 0
    for variable in channel.groups:
        end = start + len(variable.columns)
        codes.append(_code_of(variable, texts[start:end]))
        start = end
    return tuple(codes)


def _entries(channel: RowChannel, level: int, node: int, code: int) -> list[_Entry]:
    """The entries of a symbol's row at a node."""
    table = channel.tree.levels[level]
    # A slot is an output of a node, a pair an input of it (`core.row_tree`). A constant node
    # has one output and no rows, for all symbols alike.
    if table.constant[node]:
        slot = int(table.first_slot[node])
        slots = [slot]
        values = [DENOMINATOR]
    else:
        pair = int(table.pairs(np.array([node]), np.array([code]))[0])
        if pair == NO_PAIR:
            variable = channel.levels[level]
            title = quoted(",".join(variable.columns))
            raise InputError(
                "the channel does not know this combination of symbols: no record of its table "
                f"has it with {quoted(variable.names[code])} of {title}"
            )
        span = slice(int(table.rows.indptr[pair]), int(table.rows.indptr[pair + 1]))
        slots = table.rows.indices[span].tolist()
        values = table.rows.values[span].tolist()
    outputs = table.slot_outputs[slots].tolist()
    children = table.slot_children[slots].tolist()
    entries: list[_Entry] = []
    for output, child, value in zip(outputs, children, values, strict=True):
        entries.append(_Entry(output, child, value))
    return entries


def _code_of(variable: Variable, texts: Sequence[str]) -> int:
    """The symbol of the texts of a record: numbers of a column with bins, or labels of the bins."""
    code_of_symbol = variable.index.get(tuple(texts))
    if code_of_symbol is not None:
        return code_of_symbol
    # Not a symbol: a number that lies in a bin, or unknown.
    cells: list[Encoded] = []
    for text, name in zip(texts, variable.columns, strict=True):
        cells.append(encode([text], name))
    code = int(positions_of(cells, variable)[0])
    if code < 0:
        raise unknown_at(0, cells, variable)
    return code
