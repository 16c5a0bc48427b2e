"""The codebook of a channel of rows or of boxes: a CSV file that says what its labels mean.

A channel of rows draws level by level, and what an output means depends on the node that a row is
at: what it has released so far. So `row_codebook_text` walks the tree from its roots, one level
after the other, and writes a line for each node, symbol and output with P(output | symbol, node).
With the given column ``sex`` and the level ``job``, lines are::

    level,given_and_released,output,symbol,p_output_given_symbol
    job,m,A,clerk,0.75
    job,m,A,nurse,0.25

The tables of a level are flat (`core.row_tree`): a *slot* is a node with one of its outputs, and
leads to a node of the next level; a *pair* is a node with a symbol that occurs there. A *constant*
node has a single output whatever the symbol is, so its line has the symbol ``any``.

A channel of boxes draws once in each stratum of the given columns; `box_codebook_text` writes a
line for each stratum, output and box that go together::

    given,output,box,rows,p_output_given_box
    m,box 1,box 1,"job {clerk, nurse}; hours {38, any other}",0.75
    m,box 2,box 1,"job {clerk, nurse}; hours {38, any other}",0.25

``repr`` gives each probability all of its digits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.tables.row_boxes import NOTHING


def row_codebook_text(channel: RowChannel) -> str:
    """One line for each level, node, output and symbol that the output can stand for there.

    A node is what a row has released so far, `given_and_released` (texts joined with ``", "``).
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["level", "given_and_released", "output", "symbol", "p_output_given_symbol"]
    )
    nodes = _roots(channel)
    for level, table in enumerate(channel.tree.levels):
        columns = ",".join(channel.levels[level].columns)
        labels = channel.labels[level]
        children: list[tuple[int, tuple[str, ...]]] = []
        for node, texts in nodes:
            prefix = ", ".join(texts)
            first, end = np.searchsorted(table.slot_nodes, [node, node + 1]).tolist()
            # The slots of the node: each leads to one child, with one text more.
            for slot in range(first, end):
                output = labels[int(table.slot_outputs[slot])]
                children.append((int(table.slot_children[slot]), (*texts, output)))
                if table.constant[node]:
                    writer.writerow([columns, prefix, output, "any", repr(1.0)])
            for symbol, output, value in _node_probabilities(channel, level, node):
                share = repr(value / DENOMINATOR)
                writer.writerow([columns, prefix, output, symbol, share])
        nodes = children
    return stream.getvalue()


def _roots(channel: RowChannel) -> list[tuple[int, tuple[str, ...]]]:
    """The first node of each stratum, and the texts of its given columns.

    Several strata may share a constant node, so a node may come with several texts.
    """
    roots: list[tuple[int, tuple[str, ...]]] = []
    for root, stratum in zip(channel.tree.roots.tolist(), channel.strata, strict=True):
        texts: tuple[str, ...] = ()
        for variable, code in zip(channel.given, stratum, strict=True):
            texts += variable.symbols[code]
        roots.append((root, texts))
    return roots


def _node_probabilities(
    channel: RowChannel, level: int, node: int
) -> Iterator[tuple[str, str, int]]:
    """The symbols and outputs that go together at a node, and P(output | symbol) in units of
    1/`DENOMINATOR`.
    """
    table = channel.tree.levels[level]
    names = channel.levels[level].names
    labels = channel.labels[level]
    # The pairs are sorted by node. A constant node has none.
    first, end = np.searchsorted(table.pair_nodes, [node, node + 1]).tolist()
    for pair in range(first, end):
        symbol = names[int(table.pair_inputs[pair])]
        # The probabilities of the pair are a row of a sparse matrix, by the slots of the node.
        start, stop = table.rows.indptr[pair : pair + 2].tolist()
        slots = table.rows.indices[start:stop].tolist()
        values = table.rows.values[start:stop].tolist()
        for slot, value in zip(slots, values, strict=True):
            yield symbol, labels[int(table.slot_outputs[slot])], value


def box_codebook_text(channel: BoxChannel) -> str:
    """One line for each stratum, output and box that the output can stand for."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["given", "output", "box", "rows", "p_output_given_box"])
    for part in channel.parts:
        texts: list[str] = []
        for variable, code in zip(channel.given, part.stratum, strict=True):
            texts += variable.symbols[code]
        given = ", ".join(texts)
        inner = part.channel
        if inner is None:
            # A stratum without a channel of its own has one output for every row.
            writer.writerow([given, NOTHING, "any", "every row", repr(1.0)])
            continue
        # Each text is the name of a box and the rows in it.
        rows_of_box = dict(text.split(": ", 1) for text in channel.box_texts(part))
        rows = list(zip(inner.useful.names, inner.rows, inner.row_totals, strict=True))
        for y, output in enumerate(inner.outputs):
            for box, row, total in rows:
                if row[y]:
                    share = repr(row[y] / total)
                    writer.writerow([given, output, box, rows_of_box[box], share])
    return stream.getvalue()
